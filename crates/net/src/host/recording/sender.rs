//! The sending end: trains by a spinning thread.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_host_profile::{Rows, Span};

use super::super::bench::PAYLOAD;
use super::{Schedule, Watch};
use crate::clock;
use crate::errors::ErrorQueue;
use crate::receive::CROSS_EVERY_NS;
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
    /// Times in which an end may not have followed a step of the wall clock yet: the stamps of
    /// packets of these times are not to be compared.
    pub(super) stepped: Vec<Span>,
    /// Before this time all steps are known.
    looked_ns: i64,
}

/// A packet that leaves later than its plan by more than half its gap, and at least this, moves the
/// rest of its train, as in [`crate::pace`].
const LATE_NS: i64 = 5_000;
/// A train that was late leaves at least this time before the next.
const REST_NS: i64 = Rows::TRAIN_EVERY_NS / 2;
/// Twice what the receiving end takes to follow a step: it may have been held up.
const FOLLOWED_NS: i64 = 2 * CROSS_EVERY_NS;

pub(super) fn run(near: &ProbeSocket, schedule: Schedule, stop: &AtomicBool) -> io::Result<Sent> {
    let _careful = ThreadScheduling::default().take();
    let mut queue = ErrorQueue::new();
    let mut watch = Watch::new();
    let mut sent = Sent::begin();
    let mut trains = 0;
    for window in schedule.windows() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        clock::sleep_until_ns(window.from);
        let from = watch.restart();
        let mut begin = from;
        while begin < window.to && !stop.load(Ordering::Relaxed) {
            let over = train(near, &mut watch, &mut queue, &mut sent, Rows::train(trains), begin)?;
            trains += 1;
            begin = (begin + Rows::TRAIN_EVERY_NS).max(over + REST_NS);
            watch.spin_until(begin.min(window.to));
        }
        sent.windows.push(Span { from, to: watch.last });
    }
    sent.stalls = watch.stalls;
    Ok(sent)
}

/// Sends one train from `begin` on; when its last call was over.
fn train(
    near: &ProbeSocket,
    watch: &mut Watch,
    queue: &mut ErrorQueue,
    sent: &mut Sent,
    (count, gap): (usize, i64),
    begin: i64,
) -> io::Result<i64> {
    // What was sent before is stamped no more, and what the kernel's calls take is no stall.
    near.stamp_departures(true);
    let begin = begin.max(watch.restart());
    let packets = &mut sent.packets;
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
    sent.look(queue);
    watch.restart();
    Ok(over)
}

impl Sent {
    fn begin() -> Self {
        let looked_ns = clock::now_ns();
        Self { packets: Vec::new(), windows: Vec::new(), stalls: Vec::new(), stepped: Vec::new(), looked_ns }
    }

    /// Follows a step of the wall clock, by which the kernel stamps.
    fn look(&mut self, queue: &mut ErrorQueue) {
        let now = clock::now_ns();
        if queue.stepped() {
            self.stepped.push(Span { from: self.looked_ns, to: now + FOLLOWED_NS });
        }
        self.looked_ns = now;
    }

    /// Both ends stamped this packet on one scale.
    pub(super) fn is_comparable(&self, row: &SentRow) -> bool {
        !self.stepped.iter().any(|span| (span.from..=span.to).contains(&row.stamped_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_near_a_step_of_the_wall_clock_are_not_compared() {
        let mut queue = ErrorQueue::new();
        let mut sent = Sent::begin();
        sent.look(&mut queue);
        assert!(sent.stepped.is_empty());
        let before = sent.looked_ns;
        queue.step_wall_clock(501_678);
        sent.look(&mut queue);
        sent.look(&mut queue);
        let [step] = sent.stepped[..] else { panic!("{:?}", sent.stepped) };
        assert!(step.from == before && step.to >= sent.looked_ns + FOLLOWED_NS / 2, "{step:?}");
        let at = |stamped_ns| SentRow { seq: 0, planned_ns: None, stamped_ns, returned_ns: stamped_ns, left_ns: None };
        let compared = [before - 1, before, step.to, step.to + 1].map(|ns| sent.is_comparable(&at(ns)));
        assert_eq!(compared, [true, false, false, true]);
    }
}
