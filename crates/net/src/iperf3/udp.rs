//! UDP streams: one thread sends datagrams on an absolute schedule, or counts those that come.
//!
//! A stream that is late catches up as [`Timetable`] has it; time lost beyond a second is
//! abandoned. [`Spacing`] tells how evenly datagrams really left. Where datagrams are due more
//! often than every 10 µs, several leave at a time, cut out of one buffer by kernel or card.

use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_probe::timetable::{Slack, Timetable};
use narrows_wire::iperf3::{DatagramHead, GREETING, GREETING_REPLY, Parameters, is_greeting_reply};

use super::tcp::LAST_CALL_NS;
use super::worker::{SendPlan, Shared};
use crate::clock;
use crate::load::{Dropped, rest};
use crate::pace::Payloads;
use crate::receive::Receiver;
use crate::socket::{ProbeSocket, is_queued_icmp};
use crate::spacing::Spacing;
use crate::sys::send::{self, BATCH, Message};
use crate::thread_scheduling::ThreadScheduling;

/// What a late stream may make up for (ours: an outage longer than a second is no scheduler's).
const SLACK: Slack = Slack { most_debt: Duration::from_secs(1), at_once: Duration::from_millis(25) };
/// A waiting thread looks at its stop flag this often.
const POLL_NS: i64 = 10_000_000;
/// CPU time and spacing are noted this often.
const NOTE_EVERY_NS: i64 = 5_000_000;
/// Payload octets of one segmented send, below the largest IP packet.
const MOST_OCTETS: usize = 65_000;
/// Room for a head; the rest of a datagram is not read.
const SLOT_OCTETS: usize = 64;

/// Sends until it is told to stop, or has sent all that there is to send.
pub(super) fn send(socket: &ProbeSocket, shared: &Shared, plan: &SendPlan) {
    let _careful = ThreadScheduling::default().take();
    Sender::new(socket, shared, plan).run();
}

struct Sender<'a> {
    socket: &'a ProbeSocket,
    shared: &'a Shared,
    plan: &'a SendPlan,
    payloads: Payloads,
    group: usize,
    number: u64,
    segments: bool,
    spacing: Spacing,
}

impl<'a> Sender<'a> {
    fn new(socket: &'a ProbeSocket, shared: &'a Shared, plan: &'a SendPlan) -> Self {
        let block = plan.block.clamp(plan.counters.head_octets(), 65_507);
        let most = (MOST_OCTETS / block).clamp(1, BATCH);
        let gap_ns = (block as u64 * 8).saturating_mul(1_000_000_000).checked_div(plan.rate_bps);
        let group = match usize::try_from(plan.burst) {
            Ok(0) => crate::spacing::group(gap_ns, most),
            burst => burst.unwrap_or(most).clamp(1, most),
        };
        let planned = gap_ns.unwrap_or(0).saturating_mul(group as u64);
        Self {
            socket,
            shared,
            plan,
            payloads: Payloads::new((0..group).map(|_| block), plan.seed),
            group,
            number: 0,
            segments: true,
            spacing: Spacing::new(planned, group),
        }
    }

    fn run(&mut self) {
        let block = self.payloads.get(0).len() as u64;
        let begin = clock::now_ns();
        let first = Timetable::first_ns(begin, self.spacing.planned());
        let mut timetable = Timetable::new(first, self.plan.rate_bps, SLACK);
        let (mut noted, mut last) = (0, None);
        loop {
            let now = clock::now_ns();
            if now - noted > NOTE_EVERY_NS {
                noted = now;
                self.note(&timetable);
            }
            if self.shared.stopped() || now >= self.plan.until_ns {
                break;
            }
            let target = timetable.next_ns();
            if now < target {
                rest(target.min(now + POLL_NS).min(self.plan.until_ns), now);
                continue;
            }
            let wanted = self.plan.send_budget.take(self.group as u64 * block).div_ceil(block);
            if wanted == 0 {
                break;
            }
            if let Some(last) = last.replace(now) {
                self.spacing.note(u64::try_from(now - last).unwrap_or(0));
            }
            let sent = self.group_of(usize::try_from(wanted).unwrap_or(1));
            self.plan.send_budget.give_back((wanted - sent.min(wanted)) * block);
            timetable.leaves(now, u128::from(wanted * block) * 8);
        }
        self.note(&timetable);
    }

    fn note(&mut self, timetable: &Timetable) {
        self.spacing.give_up(timetable.unrecovered_ns());
        self.shared.note_cpu();
        let mut shown = self.shared.spacing.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone_from(&self.spacing);
    }

    /// Sends so many datagrams; how many left. Numbers of those that did not are given to the next
    /// ones.
    fn group_of(&mut self, count: usize) -> u64 {
        let sent_at = Duration::from_nanos(u64::try_from(clock::now_ns()).unwrap_or(0));
        for k in 0..count {
            let head = DatagramHead { sent: sent_at, number: self.number + 1 + k as u64 };
            // Blocks are never shorter than a head.
            let _ = head.write(self.payloads.get_mut(k), self.plan.counters);
        }
        let segmented = if count > 1 && self.segments { self.segmented(count) } else { None };
        let sent = segmented.unwrap_or_else(|| self.one_by_one(count)) as u64;
        self.number += sent;
        self.shared.datagrams.fetch_add(sent, Ordering::Relaxed);
        let octets = sent * self.payloads.get(0).len() as u64;
        self.shared.octets.fetch_add(octets, Ordering::Relaxed);
        self.shared.refused.fetch_add(count as u64 - sent, Ordering::Relaxed);
        sent
    }

    /// `None` if this kernel or card will not cut.
    fn segmented(&mut self, count: usize) -> Option<usize> {
        let message = Message {
            payload: self.payloads.span(0, count),
            hop_limit: None,
            segment_octets: Some(u16::try_from(self.payloads.get(0).len()).ok()?),
        };
        match self.push(&[message]) {
            Ok(_) => Some(count),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE)) => {
                self.segments = false;
                None
            }
            Err(_) => Some(0),
        }
    }

    fn one_by_one(&self, count: usize) -> usize {
        let mut messages = [Message { payload: &[], hop_limit: None, segment_octets: None }; BATCH];
        for (k, message) in messages.iter_mut().enumerate().take(count) {
            message.payload = self.payloads.get(k);
        }
        let mut sent = 0;
        while sent < count {
            match self.push(&messages[sent..count]) {
                Ok(more) => sent += more,
                Err(_) => break,
            }
        }
        sent
    }

    /// Waits while the send buffer is full, as long as the stream shall run.
    fn push(&self, messages: &[Message<'_>]) -> std::io::Result<usize> {
        let mut leftovers = 8;
        loop {
            match send::send(self.socket.as_fd(), messages, self.socket.ipv6()) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && !self.shared.stopped() => {
                    self.socket.wait_to_send(clock::now_ns() + 1_000_000)?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if is_queued_icmp(&error) && leftovers > 0 => leftovers -= 1,
                Err(error) => {
                    // Whatever it is, it will not be over in a microsecond; do not spin on it.
                    clock::sleep_until_ns(clock::now_ns() + 200_000);
                    return Err(error);
                }
                Ok(count) => return Ok(count),
            }
        }
    }
}

/// Datagrams of these parameters come in groups: jitter between them is a matter of groups as well.
pub(super) fn crowded(parameters: &Parameters) -> bool {
    let bits = u64::from(parameters.block_octets.max(1)).saturating_mul(8_000_000_000);
    crate::spacing::group(bits.checked_div(parameters.rate_bps), 2) > 1
}

/// Counts what comes until it is told to stop and nothing more waits.
pub(super) fn receive(socket: &ProbeSocket, shared: &Shared, crowded: bool) {
    let mut packets = Receiver::new(socket, SLOT_OCTETS);
    packets.gather(socket, crowded);
    let (mut last_call, mut dropped) = (None, Dropped::default());
    loop {
        let stopped = shared.stopped();
        if stopped && clock::now_ns() > *last_call.get_or_insert_with(|| clock::now_ns() + LAST_CALL_NS) {
            break;
        }
        let wait = if stopped { 0 } else { POLL_NS };
        // An error of the socket itself shows as silence; the control connection tells more of it.
        let count = packets.receive(socket, clock::now_ns() + wait).unwrap_or(0);
        let drops = packets.take_drops(socket);
        dropped.counted(drops);
        shared.local_drops.fetch_add(drops.into(), Ordering::Relaxed);
        if count > 0 {
            let mut arrivals = shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            let lost = arrivals.counts().lost();
            for datagram in packets.iter() {
                dropped.gathered(datagram.gathered);
                if datagram.payload_octets == GREETING.len() && is_greeting_reply(datagram.payload) {
                    if datagram.payload == GREETING {
                        // The client has not heard the answer; it greets again if it does not hear
                        // this one.
                        let _ = socket.send(&GREETING_REPLY);
                    }
                    continue;
                }
                let seen = Duration::from_nanos(u64::try_from(datagram.seen.best_ns()).unwrap_or(0));
                let octets = datagram.payload_octets as u64;
                if arrivals.datagram(datagram.payload, octets, seen) {
                    shared.octets.fetch_add(octets, Ordering::Relaxed);
                    shared.last_ns.store(datagram.seen.user_ns, Ordering::Relaxed);
                }
            }
            let found = arrivals.counts().lost().saturating_sub(lost);
            shared.local_drops.fetch_add(dropped.gap(found), Ordering::Relaxed);
        } else if stopped {
            break;
        }
        shared.note_cpu();
    }
    shared.ended.store(true, Ordering::Relaxed);
}
