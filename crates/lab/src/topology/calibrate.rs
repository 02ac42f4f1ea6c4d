//! Reference runs: what a hop that the kernel plays really carries.
//!
//! One UDP socket in the node before the hop sends packets of the hop's MTU as fast as it may,
//! another in the node behind it takes them. The rate is that of the IP octets that arrive after
//! the first fifth of the run, when bursts are spent and the queue is full, between the first and
//! the last of them, as the receiving kernel stamps them: `(n − 1) · octets / (t_last − t_first)`.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use narrows_units::BitRate;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::error::LabError;
use crate::node::Node;

/// How long a run takes where packets come thick enough.
const RUN: Duration = Duration::from_secs(1);
/// Packets that a run should see, so that a slow hop's rate is known to a percent; runs are
/// prolonged up to `LONGEST` for it.
const PACKETS: u32 = 150;
const LONGEST: Duration = Duration::from_secs(10);
/// Packets that the sending kernel keeps: enough never to run dry, few enough that the sender waits
/// for the hop.
const SENDING_PACKETS: usize = 64;
const RECEIVE_BUFFER: usize = 16 << 20;
const PORT: u16 = 9;
/// Most runs per hop and way, and the share of the scenario's rate that makes more of them
/// needless.
const RUNS: usize = 3;
const REACHED: f64 = 0.99;

/// Runs until one got through what the scenario says, but at most three: a machine that stood still
/// meanwhile takes from what a shaper carries and never adds to it, so the most that any run got
/// through is nearest to what the hop can. `None` if nothing did.
pub(crate) fn capacity(
    from: &Node,
    to: &Node,
    target: std::net::Ipv4Addr,
    ip_octets: u16,
    expected: BitRate,
) -> Result<Option<BitRate>, LabError> {
    let mut most = None;
    for _ in 0..RUNS {
        most = most.max(saturate(from, to, target, ip_octets, expected)?);
        if most.is_some_and(|rate| rate.as_f64() >= REACHED * expected.as_f64()) {
            break;
        }
    }
    Ok(most)
}

/// Saturates the way from one node to its neighbour with packets of `ip_octets`; `None` if fewer
/// than two arrived.
fn saturate(
    from: &Node,
    to: &Node,
    target: std::net::Ipv4Addr,
    ip_octets: u16,
    expected: BitRate,
) -> Result<Option<BitRate>, LabError> {
    let doing = || format!("calibrating the hop from the {} to the {}", from.name(), to.name());
    let wrong = |source| LabError::kernel(doing(), source);
    let target = SocketAddr::new(target.into(), PORT);
    let sink = to.run(|| receiver(target))?.map_err(wrong)?;
    let source = from.run(|| sender(target, ip_octets))?.map_err(wrong)?;
    let run = length(ip_octets, expected);
    let sending = from.spawn_thread(move || send(&source, usize::from(ip_octets) - HEADERS, run))?;
    let arrived = receive(&sink, run);
    match sending.join() {
        Ok(result) => result.map_err(wrong)?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    let (packets, time) = arrived.map_err(wrong)?;
    Ok(packets.checked_sub(1).and_then(|packets| BitRate::over(packets * u64::from(ip_octets), time)))
}

/// IPv4 and UDP.
const HEADERS: usize = 28;

fn length(ip_octets: u16, expected: BitRate) -> Duration {
    let packet = expected.time_for(u64::from(ip_octets)).unwrap_or_default();
    packet.saturating_mul(PACKETS).clamp(RUN, LONGEST)
}

fn receiver(target: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(target)?;
    // Beyond the usual limit needs rights outside; without them the usual limit has to do.
    if setsockopt(&socket.as_fd(), sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        setsockopt(&socket.as_fd(), sockopt::RcvBuf, &RECEIVE_BUFFER)?;
    }
    setsockopt(&socket.as_fd(), sockopt::ReceiveTimestampns, &true)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    Ok(socket)
}

fn sender(target: SocketAddr, ip_octets: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(target)?;
    let octets = SENDING_PACKETS * (usize::from(ip_octets) + 1_024);
    setsockopt(&socket.as_fd(), sockopt::SndBuf, &octets)?;
    Ok(socket)
}

fn send(socket: &UdpSocket, payload: usize, run: Duration) -> io::Result<()> {
    let data = vec![0; payload];
    let begin = now();
    while begin.elapsed() < run {
        match socket.send(&data) {
            Ok(_) => {}
            // A full queue is what this is about.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How many packets came after the first fifth of the run, and in what time, by the kernel's
/// stamps: that this program was not there to read them does not count.
fn receive(socket: &UdpSocket, run: Duration) -> io::Result<(u64, Duration)> {
    let begin = now();
    let mut data = vec![0; 65_536];
    let (mut packets, mut first, mut last) = (0, None, Duration::ZERO);
    let mut settled = None;
    while begin.elapsed() < run {
        match stamped(socket, &mut data) {
            Ok(Some(stamp)) => {
                if stamp < *settled.get_or_insert(stamp + run / 5) {
                    continue;
                }
                last = stamp;
                first.get_or_insert(stamp);
                packets += 1;
            }
            Ok(None) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    let time = first.map_or(Duration::ZERO, |first| last.saturating_sub(first));
    Ok((packets, time))
}

/// Takes a datagram; when the kernel got it, on its clock.
fn stamped(socket: &UdpSocket, data: &mut [u8]) -> io::Result<Option<Duration>> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut parts = [io::IoSliceMut::new(data)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let mut stamps = message.cmsgs()?.filter_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
        _ => None,
    });
    Ok(stamps.next())
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the rate of a real kernel is measured by the real clock")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_hops_take_longer() {
        assert_eq!(length(1_500, BitRate::from_mbps(100)), RUN);
        // 12 ms each.
        assert_eq!(length(1_500, BitRate::from_mbps(1)), Duration::from_millis(1_800));
        assert_eq!(length(1_500, BitRate::from_bps(1_000)), LONGEST);
        assert_eq!(length(1_500, BitRate::ZERO), RUN);
    }
}
