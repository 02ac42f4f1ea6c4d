//! TCP streams: one thread writes as much as the plan allows, or reads until the end.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use super::worker::{SendPlan, Shared};
use crate::clock;
use crate::transfer::{LOTS_FROM_OCTETS, MOST_BLOCK, Pace, Source, read_in_lots};

/// CPU time is noted this often.
const CPU_EVERY_NS: i64 = 5_000_000;
/// Octets of one read at most.
const MOST_READ: usize = 128 << 10;

/// What comes longer than this after the end is not waited for, however much it is.
pub(super) const LAST_CALL_NS: i64 = 100_000_000;

/// Writes until it is told to stop, or has sent all that there is to send.
pub(super) fn send(stream: &TcpStream, shared: &Shared, plan: &SendPlan) {
    let source = Source::new(plan.zero_copy);
    let block = plan.block.clamp(1, MOST_BLOCK);
    let mut pace = Pace::new(plan.rate_bps, plan.burst);
    let (mut at, mut end, mut noted) = (0, 0, 0);
    loop {
        let now = clock::now_ns();
        if shared.stopped() || now >= plan.until_ns {
            break;
        }
        if now - noted > CPU_EVERY_NS {
            noted = now;
            shared.note_cpu();
        }
        if at == end {
            if !pace.due(now) {
                continue;
            }
            (at, end) = (0, usize::try_from(plan.send_budget.take(block as u64)).unwrap_or(0));
            if end == 0 {
                break;
            }
            pace.spend(end as u64);
        }
        match source.send(stream, at, end) {
            Ok(0) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
            Ok(written) => {
                at += written;
                shared.octets.fetch_add(written as u64, Ordering::Relaxed);
            }
            // Nothing could be written for as long as a call may wait.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    // What was taken and not sent is nobody's.
    plan.send_budget.give_back((end - at) as u64);
    shared.note_cpu();
}

/// Reads until the peer's end, or until it is told to stop and nothing more waits.
pub(super) fn receive(stream: &TcpStream, shared: &Shared, block: usize) {
    let mut room = vec![0; block.clamp(4_096, MOST_READ)];
    let (mut noted, mut last_call, mut lots) = (0, None, false);
    let mut reader = stream;
    loop {
        if shared.stopped() && clock::now_ns() > *last_call.get_or_insert_with(|| clock::now_ns() + LAST_CALL_NS) {
            break;
        }
        match reader.read(&mut room) {
            Ok(0) => break,
            Ok(read) => {
                let now = clock::now_ns();
                let before = shared.octets.fetch_add(read as u64, Ordering::Relaxed);
                if !lots && before >= LOTS_FROM_OCTETS {
                    lots = true;
                    read_in_lots(stream);
                }
                shared.last_ns.store(now, Ordering::Relaxed);
                if now - noted > CPU_EVERY_NS {
                    noted = now;
                    shared.note_cpu();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Nothing came for as long as a call may wait.
                if shared.stopped() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    shared.ended.store(true, Ordering::Relaxed);
    shared.note_cpu();
}
