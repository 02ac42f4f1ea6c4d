//! Costs and errors of this host, measured on loopback sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_probe::probes::PacketPlan;
use narrows_probe::{HostFacts, StampSource};
use narrows_units::BitRate;

use super::Interface;
use crate::clock;
use crate::errors::ErrorQueue;
use crate::pace::{BackToBack, PaceOptions, Payloads, send_train};
use crate::receive::{Alignment, Receiver};
use crate::socket::{ProbeSocket, SocketOptions};

/// UDP payload of a full-size packet at the usual MTU of 1500.
const FULL_PAYLOAD: usize = 1472;
const FULL_IP_OCTETS: u16 = 1500;

/// Measures this host; `interface` is the one towards the path.
pub fn measure(interface: Option<&Interface>) -> io::Result<HostFacts> {
    let clock = clock::measure();
    let (send_cost, receive_cost) = call_costs()?;
    let (stamp_error, stamp_source) = stamp_error()?;
    Ok(HostFacts {
        send_cost,
        receive_cost,
        clock_resolution: clock.resolution,
        stamp_error,
        stamp_source,
        min_gap: min_gap(send_cost, receive_cost),
        max_send_rate: max_send_rate()?,
        interface_rate: interface.and_then(|interface| interface.rate),
        virtual_interface: interface.is_some_and(|interface| interface.is_virtual),
    })
}

/// Twice the dearer of the two calls, as pathload 1.3.2 has it. Departs from it in the floor:
/// pathload's 7 µs are of the hosts of 2003; a spinning sender of today keeps gaps of 2 µs.
fn min_gap(send_cost: Duration, receive_cost: Duration) -> Duration {
    const FLOOR: Duration = Duration::from_micros(2);
    (2 * send_cost.max(receive_cost)).max(FLOOR)
}

fn loopback() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
}

/// Medians of 51 calls each way (pathload 1.3.2: the 26th smallest of 50).
fn call_costs() -> io::Result<(Duration, Duration)> {
    const CALLS: usize = 51;
    let remote = UdpSocket::bind(loopback())?;
    remote.set_read_timeout(Some(Duration::from_millis(100)))?;
    let near = UdpSocket::bind(loopback())?;
    near.connect(remote.local_addr()?)?;
    let mut buffer = [1; 2048];
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let begun = clock::now_ns();
        near.send(&buffer[..FULL_PAYLOAD])?;
        let gone = clock::now_ns();
        // A packet that the loopback lost (a full buffer elsewhere) costs a row, not the
        // measurement.
        let arrived = remote.recv(&mut buffer).is_ok();
        let ended = clock::now_ns();
        out.push(gone - begun);
        if arrived {
            back.push(ended - gone);
        }
    }
    Ok((quantile(&mut out, 0.5), quantile(&mut back, 0.5)))
}

/// The value below which this share of the values lies; zero without values.
fn quantile(values: &mut [i64], share: f64) -> Duration {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a short list's last index is a small whole number"
    )]
    let index = (last as f64 * share).round() as usize;
    let value = values.get(index).copied().unwrap_or(0);
    Duration::from_nanos(u64::try_from(value).unwrap_or(0))
}

/// Spread (99th percentile minus median) of the time from a send to its receive stamp, over packets
/// far enough apart that none waits for another; and the source of the stamps.
fn stamp_error() -> io::Result<(Duration, StampSource)> {
    const PACKETS: usize = 200;
    const GAP: Duration = Duration::from_micros(60);
    let (near, remote) = pair(&SocketOptions::default())?;
    let mut receiver = Receiver::new(&remote, 64);
    await_stamps(&near, &remote, &mut receiver)?;
    let plan = vec![full_packet(GAP); PACKETS];
    let payloads = Payloads::new((0..PACKETS).map(|_| FULL_PAYLOAD), 1);
    let mut queue = ErrorQueue::new();
    let running = AtomicBool::new(false);
    let sent = send_train(&near, &plan, &payloads, &PaceOptions::default(), &mut queue, &running)?;
    let departures = sent.settle(&plan, &near, &mut queue);
    let mut seen = Vec::with_capacity(PACKETS);
    let deadline = clock::now_ns() + 20_000_000;
    receiver.receive_until(&remote, deadline, &running, |datagram| {
        seen.push(datagram.seen);
        seen.len() < PACKETS
    })?;
    let alignment = Alignment::choose(&seen);
    let mut delays: Vec<i64> =
        seen.iter().zip(&departures.stamps_ns).map(|(seen, departed)| alignment.stamp_ns(seen) - departed).collect();
    let error = quantile(&mut delays, 0.99).saturating_sub(quantile(&mut delays, 0.5));
    Ok((error, alignment.source()))
}

/// Sends until the kernel stamps what arrives, or it is clear that it will not: its switch for
/// stamps takes effect a moment after it is asked for.
fn await_stamps(near: &ProbeSocket, remote: &ProbeSocket, receiver: &mut Receiver) -> io::Result<()> {
    const TIMEOUT_NS: i64 = 100_000_000;
    let deadline = clock::now_ns() + TIMEOUT_NS;
    while clock::now_ns() < deadline {
        near.send(&[0; 16])?;
        receiver.receive(remote, deadline)?;
        if receiver.iter().any(|datagram| datagram.seen.kernel_ns.is_some()) {
            break;
        }
        clock::sleep_until_ns(clock::now_ns() + 1_000_000);
    }
    Ok(())
}

/// The best of several blasts, cut by the kernel out of large buffers where it can, into a socket
/// that nobody reads.
fn max_send_rate() -> io::Result<Option<BitRate>> {
    const BLASTS: usize = 8;
    const PACKETS: usize = 440;
    let options = SocketOptions { receive_buffer_octets: 4_096, ..SocketOptions::default() };
    let (near, _remote) = pair(&options)?;
    let plan = vec![full_packet(Duration::ZERO); PACKETS];
    let payloads = Payloads::new((0..PACKETS).map(|_| FULL_PAYLOAD), 1);
    let pace = PaceOptions { back_to_back: BackToBack::Segments, ..PaceOptions::default() };
    let mut best: Option<BitRate> = None;
    for _ in 0..BLASTS {
        let sent = send_train(&near, &plan, &payloads, &pace, &mut ErrorQueue::new(), &AtomicBool::new(false))?;
        let lasted = sent.first_ns().map_or(0, |first| clock::now_ns() - first);
        let lasted = Duration::from_nanos(u64::try_from(lasted).unwrap_or(0));
        best = best.max(BitRate::over(PACKETS as u64 * u64::from(FULL_IP_OCTETS), lasted));
    }
    Ok(best)
}

fn full_packet(gap: Duration) -> PacketPlan {
    PacketPlan { gap, ip_octets: FULL_IP_OCTETS, hop_limit: None }
}

fn pair(options: &SocketOptions) -> io::Result<(ProbeSocket, ProbeSocket)> {
    let remote = ProbeSocket::bind(loopback(), options)?;
    let near = ProbeSocket::connected(remote.local()?, options)?;
    Ok((near, remote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_short_list() {
        let mut values = [5, 1, 4, 2, 3];
        assert_eq!(quantile(&mut values, 0.5), Duration::from_nanos(3));
        assert_eq!(quantile(&mut values, 0.99), Duration::from_nanos(5));
        assert_eq!(quantile(&mut [], 0.5), Duration::ZERO);
    }

    #[test]
    fn the_gap_rule() {
        let us = Duration::from_micros;
        assert_eq!(min_gap(us(3), us(1)), us(6));
        assert_eq!(min_gap(us(1), us(4)), us(8));
        assert_eq!(min_gap(Duration::from_nanos(200), Duration::from_nanos(300)), us(2));
    }

    #[test]
    fn this_host_has_facts() {
        let begun = clock::now_ns();
        let facts = measure(None).unwrap();
        assert!(clock::now_ns() - begun < 60_000_000_000);
        for cost in [facts.send_cost, facts.receive_cost, facts.clock_resolution] {
            assert!(cost > Duration::ZERO && cost < Duration::from_millis(10), "{facts:?}");
        }
        assert_eq!(facts.stamp_source, StampSource::Kernel);
        let rate = facts.max_send_rate.unwrap();
        assert!(rate > BitRate::from_mbps(10) && rate < BitRate::from_gbps(10_000), "{facts:?}");
    }
}
