//! The sending end: trains by a spinning thread.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_host_profile::{Rows, Span};

use super::super::bench::PAYLOAD;
use super::{Schedule, Watch};
use crate::clock;
use crate::errors::ErrorQueue;
use crate::socket::{ProbeSocket, retry_over_queued_errors};
use crate::sys::send;
use crate::thread_scheduling::ThreadScheduling;

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentRow {
    pub(super) seq: u32,
    pub(super) planned_ns: Option<i64>,
    pub(super) stamped_ns: i64,
    pub(super) returned_ns: i64,
    pub(super) left_ns: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) packets: Vec<SentRow>,
    pub(super) windows: Vec<Span>,
    pub(super) stalls: Vec<Span>,
}

/// A packet that leaves later than its plan by more than half its gap, and at least this, moves the
/// rest of its train, as in [`crate::pace`].
const LATE_NS: i64 = 5_000;
/// A train that was late leaves at least this time before the next.
const REST_NS: i64 = Rows::TRAIN_EVERY_NS / 2;

pub(super) fn run(near: &ProbeSocket, schedule: Schedule, stop: &AtomicBool) -> io::Result<Sent> {
    let _careful = ThreadScheduling::default().take();
    let mut queue = ErrorQueue::new();
    let mut watch = Watch::new();
    let mut sent = Sent { packets: Vec::new(), windows: Vec::new(), stalls: Vec::new() };
    for window in schedule.windows() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        clock::sleep_until_ns(window.from);
        let from = watch.restart();
        let (mut begin, mut trains) = (from, 0);
        while begin < window.to && !stop.load(Ordering::Relaxed) {
            let over = train(near, &mut watch, &mut queue, &mut sent.packets, Rows::train(trains), begin)?;
            trains += 1;
            begin = (begin + Rows::TRAIN_EVERY_NS).max(over + REST_NS);
            watch.spin_until(begin.min(window.to));
        }
        sent.windows.push(Span { from, to: watch.last });
    }
    queue.stepped();
    sent.stalls = watch.stalls;
    Ok(sent)
}

/// Sends one train from `begin` on; when its last call was over.
fn train(
    near: &ProbeSocket,
    watch: &mut Watch,
    queue: &mut ErrorQueue,
    packets: &mut Vec<SentRow>,
    (count, gap): (usize, i64),
    begin: i64,
) -> io::Result<i64> {
    // What was sent before is stamped no more, and what the kernel's calls take is no stall.
    near.stamp_departures(true);
    let begin = begin.max(watch.restart());
    let first = packets.len();
    let mut payload = [0; PAYLOAD];
    let mut planned = begin;
    for place in 0..count {
        let paced = place == 0 || gap > 0;
        let stamped_ns = if paced { watch.spin_until(planned) } else { watch.now() };
        let seq = u32::try_from(packets.len()).unwrap_or(u32::MAX);
        payload[..4].copy_from_slice(&seq.to_be_bytes());
        retry_over_queued_errors(|| send::send_plain(near.as_fd(), &payload))?;
        let returned_ns = watch.now();
        packets.push(SentRow { seq, planned_ns: paced.then_some(planned), stamped_ns, returned_ns, left_ns: None });
        if stamped_ns - planned > (gap / 2).max(LATE_NS) {
            planned = stamped_ns;
        }
        planned += gap;
    }
    let over = watch.last;
    near.stamp_departures(false);
    queue.drain(near);
    for departure in queue.take_departures() {
        let index = usize::try_from(departure.id).unwrap_or(usize::MAX);
        if let Some(row) = first.checked_add(index).and_then(|index| packets.get_mut(index)) {
            row.left_ns = row.left_ns.or(departure.kernel_ns);
        }
    }
    watch.restart();
    Ok(over)
}
