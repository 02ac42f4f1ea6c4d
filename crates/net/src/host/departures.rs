//! How well the discipline of the interface towards a peer keeps departure times (`SO_TXTIME`):
//! only packets that leave by it show that.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use narrows_diagnose::host::{Pacer, PacingRow};

use super::bench::pacing_row;
use crate::clock;
use crate::errors::ErrorQueue;
use crate::socket::{ProbeSocket, SocketOptions};
use crate::sys::departure;

/// Fewer than `fq` lets one flow queue (100).
const PACKETS: usize = 50;
const GAP: Duration = Duration::from_micros(200);
/// The first leaves so long after it was handed over.
const LEAD_NS: i64 = 3_000_000;
const PAYLOAD: [u8; 64] = [0; 64];

/// Sends 50 small packets to `peer`, all at once, each with a time of its own 200 µs after the one
/// before, and looks when the driver got them. The peer's program is to make nothing of them. Fails
/// if the kernel does not stamp departures, or refuses the times.
pub fn departure_times(peer: SocketAddr) -> io::Result<PacingRow> {
    let socket = ProbeSocket::connected(peer, &SocketOptions::default())?;
    departure::enable(socket.as_fd())?;
    let mut queue = ErrorQueue::new();
    if !socket.stamp_departures(true) {
        return Err(io::Error::other("the kernel does not stamp departures here"));
    }
    let begin = clock::now_ns().saturating_add(LEAD_NS);
    let gap = clock::nanos(GAP);
    let mut last = begin;
    for _ in 0..PACKETS {
        departure::send_at(socket.as_fd(), &PAYLOAD, u64::try_from(last).unwrap_or(0))?;
        last = last.saturating_add(gap);
    }
    let mut stamps = vec![None; PACKETS];
    let deadline = last.saturating_add(50_000_000);
    while stamps.iter().any(Option::is_none) && clock::now_ns() < deadline {
        clock::sleep_until_ns(clock::now_ns().saturating_add(1_000_000));
        queue.drain(&socket);
        for departure in queue.take_departures() {
            let place = usize::try_from(departure.id).ok().and_then(|id| stamps.get_mut(id));
            if let (Some(place @ None), Some(at)) = (place, departure.kernel_ns) {
                *place = Some(at);
            }
        }
    }
    let stamps: Option<Vec<i64>> = stamps.into_iter().collect();
    let stamps = stamps.ok_or_else(|| io::Error::other("not every departure was stamped by the driver"))?;
    Ok(pacing_row(Pacer::DepartureTimes, GAP, &stamps))
}
