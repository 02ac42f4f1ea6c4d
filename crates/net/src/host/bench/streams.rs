//! What loopback carries: one TCP connection, and datagrams as fast as they go.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use narrows_diagnose::host::{Costs, Loopback};
use narrows_units::BitRate;

use super::datagrams::{PAYLOAD, loopback, pair};
use crate::clock;
use crate::sys::option;
use crate::sys::receive::{BATCH, Slots};
use crate::sys::send::{self, Message};

const LASTS_NS: i64 = 200_000_000;
/// IP and UDP headers of one datagram.
const HEADERS: u64 = 28;

pub(super) fn measure(costs: &mut Costs) -> io::Result<()> {
    tcp(&mut costs.loopback)?;
    costs.loopback.udp_bps = udp(1)?.map(BitRate::bps);
    costs.loopback.udp_segments_bps = udp(44)?.map(BitRate::bps);
    Ok(())
}

fn panicked() -> io::Error {
    io::Error::other("a measuring thread panicked")
}

fn tcp(found: &mut Loopback) -> io::Result<()> {
    let listener = TcpListener::bind(loopback())?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut remote, _) = listener.accept()?;
    // A receiver that hangs must not hang the sender.
    near.set_write_timeout(Some(Duration::from_secs(2)))?;
    remote.set_read_timeout(Some(Duration::from_secs(2)))?;
    let receiving = thread::spawn(move || -> io::Result<(u64, Duration, Duration)> {
        let mut buffer = vec![0; 256 << 10];
        let (mut octets, begun, cpu) = (0u64, clock::now_ns(), clock::thread_cpu());
        loop {
            let count = remote.read(&mut buffer)?;
            if count == 0 {
                let took = u64::try_from(clock::now_ns().saturating_sub(begun)).unwrap_or(0);
                return Ok((octets, Duration::from_nanos(took), clock::thread_cpu().saturating_sub(cpu)));
            }
            octets += count as u64;
        }
    });
    let payload = vec![1; 128 << 10];
    let (begun, cpu) = (clock::now_ns(), clock::thread_cpu());
    while clock::now_ns().saturating_sub(begun) < LASTS_NS {
        near.write_all(&payload)?;
    }
    let sending = clock::thread_cpu().saturating_sub(cpu);
    drop(near);
    let (octets, took, receiving) = receiving.join().map_err(|_| panicked())??;
    found.tcp_bps = BitRate::over(octets, took).map(BitRate::bps);
    let each = |time: Duration| u64::try_from((time.as_nanos() * 1000).checked_div(u128::from(octets))?).ok();
    (found.tcp_send_ps_per_octet, found.tcp_receive_ps_per_octet) = (each(sending), each(receiving));
    Ok(())
}

/// IP-layer rate of what arrives when datagrams are sent as fast as they go, so many in one buffer.
fn udp(segments: usize) -> io::Result<Option<BitRate>> {
    let (near, remote) = pair()?;
    if segments > 1 {
        option::set_int(remote.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)?;
    }
    let over = AtomicBool::new(false);
    let payload = vec![1; PAYLOAD * segments];
    let message = Message {
        payload: &payload,
        hop_limit: None,
        segment_octets: u16::try_from(PAYLOAD).ok().filter(|_| segments > 1),
    };
    let slots = if segments > 1 { (8, 1 << 16) } else { (BATCH, 2048) };
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut slots = Slots::new(slots.0, slots.1);
            let mut datagrams = 0u64;
            loop {
                let ended = over.load(Ordering::Acquire);
                match slots.receive(remote.as_fd(), false) {
                    Ok(count) if count > 0 => {
                        datagrams += slots.iter().map(|(message, _)| (message.octets / PAYLOAD) as u64).sum::<u64>();
                    }
                    _ if ended => return datagrams,
                    _ => {
                        let _ = remote.wait(clock::now_ns() + 1_000_000);
                    }
                }
            }
        });
        let begun = clock::now_ns();
        let mut result = Ok(0);
        while result.is_ok() && clock::now_ns().saturating_sub(begun) < LASTS_NS / 2 {
            result = send::send(near.as_fd(), &[message], false);
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                result = near.wait_to_send(clock::now_ns() + 1_000_000).map(|_| 0);
            }
        }
        let took = u64::try_from(clock::now_ns().saturating_sub(begun)).unwrap_or(0);
        over.store(true, Ordering::Release);
        let datagrams = receiving.join().map_err(|_| panicked())?;
        result?;
        let octets = datagrams.saturating_mul(PAYLOAD as u64 + HEADERS);
        Ok(BitRate::over(octets, Duration::from_nanos(took)).filter(|rate| rate.bps() > 0))
    })
}
