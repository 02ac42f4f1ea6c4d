//! Costs per datagram, one by one, in batches, and cut or merged by the kernel.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use narrows_diagnose::host::{Costs, Spread};

use crate::clock;
use crate::socket::{ProbeSocket, SocketOptions};
use crate::sys::option;
use crate::sys::receive::Slots;
use crate::sys::send::{self, Message};

/// UDP payload of a full-size packet at the usual MTU of 1500.
pub(in crate::host) const PAYLOAD: usize = 1472;
/// Datagrams of one batch.
const BATCH: usize = 64;
/// Segments of one send: the most that fit below the largest IP packet.
const SEGMENTS: usize = 44;
const ROUNDS: usize = 40;

pub(in crate::host) fn loopback() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
}

/// Connected sockets over loopback: what is sent by the first is received by the second.
pub(super) fn pair() -> io::Result<(ProbeSocket, ProbeSocket)> {
    let options = SocketOptions::default();
    let remote = ProbeSocket::bind(loopback(), &options)?;
    let near = ProbeSocket::connected(remote.local()?, &options)?;
    Ok((near, remote))
}

pub(super) fn measure(costs: &mut Costs) -> io::Result<()> {
    let (near, remote) = pair()?;
    singles(costs, &near, &remote)?;
    batches(costs, &near, &remote)?;
    segments(costs, &near, &remote)
}

fn elapsed(begun: i64, count: usize) -> f64 {
    clock::now_ns().saturating_sub(begun) as f64 / count.max(1) as f64
}

/// Takes all that waits in `remote`.
fn empty(remote: &ProbeSocket, slots: &mut Slots) {
    while slots.receive(remote.as_fd(), false).is_ok_and(|count| count > 0) {}
}

fn singles(costs: &mut Costs, near: &ProbeSocket, remote: &ProbeSocket) -> io::Result<()> {
    let payload = [1; PAYLOAD];
    let mut slots = Slots::new(1, 2048);
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..BATCH {
            let begun = clock::now_ns();
            send::send_plain(near.as_fd(), &payload)?;
            out.push(elapsed(begun, 1));
        }
        loop {
            let begun = clock::now_ns();
            // What the loopback lost costs a row, not the measurement.
            if !slots.receive(remote.as_fd(), false).is_ok_and(|count| count > 0) {
                break;
            }
            back.push(elapsed(begun, 1));
        }
    }
    (costs.send, costs.receive) = (Spread::of(&out), Spread::of(&back));
    Ok(())
}

fn batches(costs: &mut Costs, near: &ProbeSocket, remote: &ProbeSocket) -> io::Result<()> {
    let payload = [1; PAYLOAD];
    let payloads = [&payload[..]; BATCH];
    let mut slots = Slots::new(BATCH, 2048);
    empty(remote, &mut slots);
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = clock::now_ns();
        let sent = send::send_many(near.as_fd(), payloads.into_iter())?;
        out.push(elapsed(begun, sent));
        let begun = clock::now_ns();
        if let Ok(count) = slots.receive(remote.as_fd(), false)
            && count > 0
        {
            back.push(elapsed(begun, count));
        }
        empty(remote, &mut slots);
    }
    (costs.send_batch, costs.receive_batch) = (Spread::of(&out), Spread::of(&back));
    Ok(())
}

fn segments(costs: &mut Costs, near: &ProbeSocket, remote: &ProbeSocket) -> io::Result<()> {
    let payload = vec![1; PAYLOAD * SEGMENTS];
    let message = Message { payload: &payload, hop_limit: None, segment_octets: u16::try_from(PAYLOAD).ok() };
    option::set_int(remote.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)?;
    let mut slots = Slots::new(1, 1 << 16);
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = clock::now_ns();
        send::send(near.as_fd(), &[message], false)?;
        out.push(elapsed(begun, SEGMENTS));
        loop {
            let begun = clock::now_ns();
            if !slots.receive(remote.as_fd(), false).is_ok_and(|count| count > 0) {
                break;
            }
            let octets = slots.iter().map(|(message, _)| message.octets).sum::<usize>();
            back.push(elapsed(begun, octets / PAYLOAD));
        }
    }
    (costs.send_segments, costs.receive_merged) = (Spread::of(&out), Spread::of(&back));
    Ok(())
}
