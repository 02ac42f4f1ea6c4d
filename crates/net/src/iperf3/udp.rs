//! UDP streams: one thread sends datagrams on an absolute schedule, or counts those that come.
//!
//! **Catch-up policy**: a stream that is late sends back to back until its mean rate is kept again; time lost beyond 50 ms (ours: what a
//! busy host's scheduler costs) is given up, so that a stalled host does not follow with a flood. [`Spacing`] tells how evenly datagrams
//! really left. Where datagrams are due more often than every 10 µs, several leave at a time, cut out of one buffer by kernel or card.

use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wire::iperf3::{DatagramHead, GREETING, GREETING_REPLY, is_greeting_reply};

use super::stream::{SendPlan, Shared};
use super::tcp::LAST_CALL_NS;
use crate::care::Care;
use crate::clock;
use crate::load::rest;
use crate::pace::Payloads;
use crate::receive::Receiver;
use crate::socket::{ProbeSocket, is_queued_icmp};
use crate::sys::send::{self, BATCH, Message};

/// Time that a late stream may make up for.
const MOST_DEBT_NS: i64 = 50_000_000;
/// A waiting thread looks at its stop flag this often.
const LOOK_NS: i64 = 10_000_000;
/// CPU time and spacing are noted this often.
const NOTE_EVERY_NS: i64 = 5_000_000;
/// Datagrams closer than this leave in groups.
const GROUP_NS: u64 = 10_000;
/// Payload octets of one segmented send, below the largest IP packet.
const MOST_OCTETS: usize = 65_000;
/// Room for a head; the rest of a datagram is not read.
const SLOT_OCTETS: usize = 64;

/// How evenly datagrams left: times between the beginnings of sends, in logarithmic classes of a sixteenth octave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spacing {
    classes: Vec<u64>,
    count: u64,
    most_ns: u64,
    planned_ns: u64,
    group: u64,
    given_up_ns: u64,
}

const SUB: u32 = 4;
const CLASSES: usize = 64 << SUB;

impl Spacing {
    fn new(planned_ns: u64, group: usize) -> Self {
        Self {
            classes: vec![0; CLASSES],
            planned_ns,
            group: group as u64,
            ..Self::default()
        }
    }

    fn class(nanos: u64) -> usize {
        let nanos = nanos.max(1);
        let octave = nanos.ilog2();
        let part = if octave >= SUB {
            nanos >> (octave - SUB)
        } else {
            nanos << (SUB - octave)
        };
        let part = part & ((1 << SUB) - 1);
        usize::try_from((u64::from(octave) << SUB) | part).unwrap_or(0)
    }

    /// Middle of a class.
    fn nanos(class: usize) -> u64 {
        let (octave, part) = (class >> SUB, class & ((1 << SUB) - 1));
        let value = (((1 << SUB) + part) as f64 + 0.5) / f64::from(1u32 << SUB);
        let octave = i32::try_from(octave).unwrap_or(0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturating"
        )]
        let nanos = (value * 2f64.powi(octave)) as u64;
        nanos
    }

    fn note(&mut self, nanos: u64) {
        self.count += 1;
        self.most_ns = self.most_ns.max(nanos);
        if let Some(class) = self.classes.get_mut(Self::class(nanos)) {
            *class += 1;
        }
    }

    /// Time between sends as planned; zero where there was no rate to keep.
    pub fn planned(&self) -> Duration {
        Duration::from_nanos(self.planned_ns)
    }

    /// Datagrams of each send.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// Time that was lost and not made up for.
    pub fn given_up(&self) -> Duration {
        Duration::from_nanos(self.given_up_ns)
    }

    /// A quantile of the times between sends, within three percent; `None` before the second send.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is one"
        )]
        let rank = (self.count as f64 * share.clamp(0.0, 1.0)) as u64;
        let mut below = 0;
        let class = self.classes.iter().position(|&count| {
            below += count;
            count > 0 && below > rank.min(self.count.saturating_sub(1))
        });
        class.map(|class| Duration::from_nanos(Self::nanos(class)))
    }

    /// The longest time between sends.
    pub fn most(&self) -> Duration {
        Duration::from_nanos(self.most_ns)
    }
}

/// Sends until it is told to stop, or has sent all that there is to send.
pub(super) fn send(socket: &ProbeSocket, shared: &Shared, plan: &SendPlan) {
    let _careful = Care::default().take();
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
        let bits = block as u64 * 8;
        let gap_ns = bits.saturating_mul(1_000_000_000).checked_div(plan.rate_bps);
        let group = match (plan.burst, gap_ns) {
            (0, None) => most,
            (0, Some(gap)) => usize::try_from(GROUP_NS.div_ceil(gap.max(1))).unwrap_or(most),
            (burst, _) => usize::try_from(burst).unwrap_or(most),
        };
        let group = group.clamp(1, most);
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
        let (mut base, mut bits, mut noted, mut last) = (clock::now_ns(), 0u128, 0, None);
        loop {
            let now = clock::now_ns();
            if now - noted > NOTE_EVERY_NS {
                noted = now;
                self.note();
            }
            if self.shared.stopped() || now >= self.plan.until_ns {
                break;
            }
            if let Some(offset) = (bits * 1_000_000_000).checked_div(u128::from(self.plan.rate_bps)) {
                let target = base.saturating_add(i64::try_from(offset).unwrap_or(i64::MAX));
                if now < target {
                    rest(target.min(now + LOOK_NS).min(self.plan.until_ns), now);
                    continue;
                }
                let beyond = now - target - MOST_DEBT_NS;
                if beyond > 0 {
                    base += beyond;
                    self.spacing.given_up_ns += beyond.unsigned_abs();
                }
            }
            let wanted = self.plan.purse.take(self.group as u64 * block).div_ceil(block);
            if wanted == 0 {
                break;
            }
            if let Some(last) = last.replace(now) {
                self.spacing.note(u64::try_from(now - last).unwrap_or(0));
            }
            let sent = self.group_of(usize::try_from(wanted).unwrap_or(1));
            self.plan.purse.give_back((wanted - sent.min(wanted)) * block);
            bits += u128::from(wanted * block) * 8;
        }
        self.note();
    }

    fn note(&self) {
        self.shared.note_cpu();
        let mut shown = self.shared.spacing.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone_from(&self.spacing);
    }

    /// Sends so many datagrams; how many left. Numbers of those that did not are given to the next ones.
    fn group_of(&mut self, count: usize) -> u64 {
        let sent_at = Duration::from_nanos(u64::try_from(clock::now_ns()).unwrap_or(0));
        for k in 0..count {
            let head = DatagramHead {
                sent: sent_at,
                number: self.number + 1 + k as u64,
            };
            // Blocks are never shorter than a head.
            let _ = head.write(self.payloads.get_mut(k), self.plan.counters);
        }
        let segmented = if count > 1 && self.segments {
            self.segmented(count)
        } else {
            None
        };
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
        let mut messages = [Message {
            payload: &[],
            hop_limit: None,
            segment_octets: None,
        }; BATCH];
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

/// Counts what comes until it is told to stop and nothing more waits.
pub(super) fn receive(socket: &ProbeSocket, shared: &Shared) {
    let mut packets = Receiver::new(socket, SLOT_OCTETS);
    let mut last_call = None;
    loop {
        let stopped = shared.stopped();
        if stopped && clock::now_ns() > *last_call.get_or_insert_with(|| clock::now_ns() + LAST_CALL_NS) {
            break;
        }
        let wait = if stopped { 0 } else { LOOK_NS };
        // An error of the socket itself shows as silence; the control connection tells more of it.
        let count = packets.receive(socket, clock::now_ns() + wait).unwrap_or(0);
        shared
            .local_drops
            .fetch_add(packets.take_drops(socket).into(), Ordering::Relaxed);
        if count > 0 {
            let mut arrivals = shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            for datagram in packets.iter() {
                if datagram.payload_octets == GREETING.len() && is_greeting_reply(datagram.payload) {
                    if datagram.payload == GREETING {
                        // The client has not heard the answer; it greets again if it does not hear this one.
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
        } else if stopped {
            break;
        }
        shared.note_cpu();
    }
    shared.ended.store(true, Ordering::Relaxed);
}
