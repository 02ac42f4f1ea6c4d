//! How well the gaps of back-to-back trains are kept, by the receiving kernel's stamps:
//! `cargo run --release -p narrows-lab --example spacing`. Wants a quiet machine with two
//! processors.

use std::error::Error;
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use narrows_lab::{RealTimePath, Side, StartOptions};
use narrows_scenario::{Hop, Queue, Scenario};
use narrows_units::BitRate;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeValLike};

const TRAINS: usize = 30;
const PACKETS: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    narrows_lab::enter_user_namespace_if_needed()?;
    for (mbps, ip_octets) in [(100, 1_500), (1_000, 1_500), (5_000, 9_000)] {
        let hop = |rate| Hop::rate(rate).mtu(ip_octets).queue(Queue::Unlimited);
        let scenario =
            Scenario::new("spacing").hop(hop(BitRate::from_gbps(10))).hop(hop(BitRate::from_mbps(mbps))).validate()?;
        let path = RealTimePath::start(&scenario, StartOptions::default())?;
        let mut gaps = measure(&path, ip_octets)?;
        gaps.sort_unstable();
        let quantile = |per_cent: usize| gaps[(gaps.len() - 1) * per_cent / 100] as f64 / 1e3;
        let truth = f64::from(ip_octets + 38) * 8.0 / mbps as f64;
        let timing_report = path.stop()?;
        #[expect(clippy::print_stdout, reason = "this is what the example is for")]
        {
            println!(
                "{mbps} Mbit/s, {ip_octets} octets: gap {truth:.3} µs; p10 {:.3}, p50 {:.3}, p90 {:.3} µs\n{timing_report}\n\
                 looks {:.1} µs apart (p99)\n",
                quantile(10),
                quantile(50),
                quantile(90),
                timing_report.poll_gap_p99_ns as f64 / 1e3
            );
        }
    }
    Ok(())
}

/// Gaps in nanoseconds between the packets of all trains, without each train's first ten: those
/// still see the sender start.
fn measure(path: &RealTimePath, ip_octets: u16) -> Result<Vec<i64>, Box<dyn Error>> {
    let sender = path.host(Side::Sender);
    let receiver = path.host(Side::Receiver);
    let target = SocketAddr::new(receiver.addresses().ipv4.into(), 9_000);
    let server = receiver.run(|| UdpSocket::bind(target))??;
    server.set_read_timeout(Some(Duration::from_millis(200)))?;
    setsockopt(&server, sockopt::ReceiveTimestampns, &true)?;
    let client = sender.run(|| UdpSocket::bind((sender.addresses().ipv4, 0)))??;
    let data = vec![0; usize::from(ip_octets) - 28];
    let mut gaps = Vec::new();
    for _ in 0..TRAINS {
        for _ in 0..PACKETS {
            client.send_to(&data, target)?;
        }
        let mut stamps = Vec::new();
        while stamps.len() < PACKETS {
            let Some(stamp) = receive(&server)? else { break };
            stamps.push(stamp);
        }
        gaps.extend(stamps.windows(2).skip(10).map(|pair| pair[1] - pair[0]));
    }
    Ok(gaps)
}

/// The kernel's stamp of the next datagram.
fn receive(socket: &UdpSocket) -> Result<Option<i64>, Box<dyn Error>> {
    let mut data = [0; 9_000];
    let mut into = [IoSliceMut::new(&mut data)];
    let mut control = nix::cmsg_space!(TimeSpec);
    let flags = MsgFlags::empty();
    let message = match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut into, Some(&mut control), flags) {
        Ok(message) => message,
        Err(nix::errno::Errno::EAGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.num_nanoseconds()),
        _ => None,
    });
    Ok(stamp)
}
