//! Trains that leave when they should.
//!
//! Departures follow an absolute schedule: sleep while there is time, spin for the last of it,
//! send. A delay of one packet is not handed on to the next. **Catch-up policy**: a packet that
//! would leave later than its plan by more than half its gap (at least 5 µs) moves the *rest* of
//! the schedule by that delay, because packets sent faster than planned to make up for time would
//! be a burst that the method did not ask for. Such a train fails the pacing check anyway; the rows
//! say when each packet really left.

mod check;
mod payloads;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_probe::StampSource;
use narrows_probe::probes::{PacingCheck, PacketPlan};
use nix::errno::Errno;

pub use check::{check, worth_stamping};
pub use payloads::Payloads;

use crate::clock::{self, nanos};
use crate::errors::{Departure, ErrorQueue};
use crate::receive::{Alignment, ArrivalTimes};
use crate::socket::{ProbeSocket, is_queued_icmp};
use crate::sys::send::{self, Message};

/// How packets that are planned back to back leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackToBack {
    /// Each a message of its own: 0.3 to 1 µs apart, each with its own stamp.
    #[default]
    Messages,
    /// Cut by kernel or card out of one buffer (`UDP_SEGMENT`): at the card's rate, one stamp for
    /// all.
    Segments,
}

/// How to send a train.
#[derive(Debug, Clone, Copy, Default)]
pub struct PaceOptions<'a> {
    /// How packets that are planned back to back leave.
    pub back_to_back: BackToBack,
    /// Ask the kernel when each packet left. Costs about a microsecond per packet: see
    /// [`worth_stamping`].
    pub kernel_stamps: bool,
    /// A packet sent a millisecond before the train, to wake CPU, neighbour entry and card from
    /// power saving; the peer ignores it.
    pub wake: Option<&'a [u8]>,
}

/// A train that was sent, with what the program itself knows of its departures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    user_ns: Vec<i64>,
    /// Packets that the host refused.
    refused: Vec<u32>,
    interrupted: bool,
    stamped: bool,
    segmented: bool,
}

/// When the packets of a train left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departures {
    /// One per packet, monotonic nanoseconds. Of a packet that never left: when it was tried, or
    /// planned.
    pub stamps_ns: Vec<i64>,
    /// Where the stamps come from.
    pub source: StampSource,
    /// Positions of the packets that the host refused to send, ascending.
    pub refused: Vec<u32>,
    /// The train was cut short by the stop flag.
    pub interrupted: bool,
    /// How well the plan was kept.
    pub pacing: PacingCheck,
}

/// Sends a train. `plan` and `payloads` have one entry per packet.
///
/// Blocks for the train's length. Departure stamps are collected in `queue` while there is slack;
/// [`Sent::settle`] takes them. Fails only if the socket itself is unusable; a packet that the host
/// refuses is reported in the result.
pub fn send_train(
    socket: &ProbeSocket,
    plan: &[PacketPlan],
    payloads: &Payloads,
    options: &PaceOptions<'_>,
    queue: &mut ErrorQueue,
    stop: &AtomicBool,
) -> io::Result<Sent> {
    if let Some(wake) = options.wake {
        socket.send(wake)?;
    }
    queue.drain(socket);
    queue.take_departures();
    queue.stepped();
    let stamped = options.kernel_stamps && socket.stamp_departures(true);
    let mut train = Pacer {
        socket,
        plan,
        payloads,
        segments: options.back_to_back == BackToBack::Segments,
        sent: Sent {
            user_ns: Vec::with_capacity(plan.len()),
            refused: Vec::new(),
            interrupted: false,
            stamped,
            segmented: false,
        },
    };
    let result = train.run(queue, stop);
    if stamped {
        socket.stamp_departures(false);
    }
    result.map(|()| train.sent)
}

struct Pacer<'a> {
    socket: &'a ProbeSocket,
    plan: &'a [PacketPlan],
    payloads: &'a Payloads,
    segments: bool,
    sent: Sent,
}

/// The wake-up packet's head start, and the time to get everything in place.
const LEAD_NS: i64 = 1_000_000;
/// Below this distance a sleep would end too late too often.
const SLEEP_FROM_NS: i64 = 300_000;
/// A sleep ends this long before the target; the rest is spun. Ours: above the 99th percentile of a
/// sleep's lateness on a virtual machine (some 130 µs), so that a sleep rarely costs a packet its
/// time.
const SPIN_NS: i64 = 200_000;
/// Slack that pays for a look at the error queue.
const DRAIN_FROM_NS: i64 = 150_000;
/// A longer sleep looks at the stop flag this often.
const POLL_NS: i64 = 50_000_000;
/// How long a full send buffer may hold a packet up.
const BLOCKED_NS: i64 = 1_000_000_000;

impl Pacer<'_> {
    fn run(&mut self, queue: &mut ErrorQueue, stop: &AtomicBool) -> io::Result<()> {
        let mut target = clock::now_ns() + LEAD_NS;
        let mut at = 0;
        while at < self.plan.len() {
            let gap = if at == 0 { 0 } else { nanos(self.plan[at].gap) };
            target = target.saturating_add(gap);
            if target - clock::now_ns() > DRAIN_FROM_NS {
                queue.drain(self.socket);
            }
            if !wait_until(target, stop) {
                self.abandon(at, target);
                return Ok(());
            }
            let late = clock::now_ns() - target;
            if late > (gap / 2).max(5_000) {
                target += late;
            }
            let end = at + 1 + self.plan[at + 1..].iter().take_while(|packet| packet.gap.is_zero()).count();
            if end - at == 1 {
                self.send_messages(at, end)?;
            } else {
                self.send_run(at, end)?;
                // How long back-to-back packets take is the host's affair; the next gap counts from
                // the last of them.
                target = target.max(clock::now_ns());
            }
            at = end;
        }
        Ok(())
    }

    /// The packets from `at` on will not be sent: they keep their planned places.
    fn abandon(&mut self, at: usize, target: i64) {
        self.sent.interrupted = true;
        let mut stamp = target;
        for (seq, packet) in (0u32..).zip(self.plan).skip(at) {
            if self.sent.user_ns.len() > at {
                stamp = stamp.saturating_add(nanos(packet.gap));
            }
            self.sent.user_ns.push(stamp);
            self.sent.refused.push(seq);
        }
    }

    fn send_run(&mut self, start: usize, end: usize) -> io::Result<()> {
        let mut at = start;
        while at < end {
            let same = self.equal_from(at, end);
            at = if self.segments && same - at > 1 && self.send_segments(at, same)? {
                same
            } else {
                self.send_messages(at, same)?;
                same
            };
        }
        Ok(())
    }

    /// The end of the packets from `at` that may share one segmented send.
    fn equal_from(&self, at: usize, end: usize) -> usize {
        /// Segments of one send: the kernel's limit until Linux 6.9.
        const SEGMENTS: usize = 64;
        /// Payload octets of one send, below the largest IP packet.
        const OCTETS: usize = 65_000;
        let length = self.payloads.get(at).len();
        let most = (OCTETS / length.max(1)).clamp(1, SEGMENTS);
        (at..end.min(at + most))
            .find(|&k| self.payloads.get(k).len() != length || self.plan[k].hop_limit.is_some())
            .map_or(end.min(at + most), |other| other.max(at + 1))
    }

    /// `false` if this kernel or card will not cut; then the caller sends messages, now and later.
    fn send_segments(&mut self, start: usize, end: usize) -> io::Result<bool> {
        let Ok(octets) = u16::try_from(self.payloads.get(start).len()) else {
            return Ok(false);
        };
        if octets == 0 || self.plan[start].hop_limit.is_some() {
            return Ok(false);
        }
        let message =
            Message { payload: self.payloads.span(start, end), hop_limit: None, segment_octets: Some(octets) };
        let before = clock::now_ns();
        match self.push(&[message]) {
            Ok(_) => {
                self.sent.segmented = true;
                self.sent.user_ns.extend(std::iter::repeat_n(before, end - start));
                Ok(true)
            }
            Err(error)
                if matches!(
                    Errno::from_raw(error.raw_os_error().unwrap_or(0)),
                    Errno::EINVAL | Errno::EIO | Errno::EMSGSIZE
                ) =>
            {
                self.segments = false;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends `start..end`, each with a call and a stamp of its own. `sendmmsg` would save a
    /// twentieth of the time, and with it the knowledge of when each packet left.
    fn send_messages(&mut self, start: usize, end: usize) -> io::Result<()> {
        for at in start..end {
            let message =
                Message { payload: self.payloads.get(at), hop_limit: self.plan[at].hop_limit, segment_octets: None };
            self.sent.user_ns.push(clock::now_ns());
            match self.push(&[message]) {
                Ok(_) => {}
                Err(error) if is_refusal(&error) => self.sent.refused.push(u32::try_from(at).unwrap_or(u32::MAX)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// How many messages went; waits while the send buffer is full.
    fn push(&self, messages: &[Message<'_>]) -> io::Result<usize> {
        let give_up = clock::now_ns() + BLOCKED_NS;
        let mut leftovers = 8;
        loop {
            match send::send(self.socket.as_fd(), messages, self.socket.ipv6()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && clock::now_ns() < give_up => {
                    self.socket.wait_to_send(clock::now_ns() + 1_000_000)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_queued_icmp(&error) && leftovers > 0 => leftovers -= 1,
                other => return other,
            }
        }
    }
}

/// The host would not send this one packet; it may send the next.
fn is_refusal(error: &io::Error) -> bool {
    is_queued_icmp(error)
        || error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EPERM | libc::EINVAL))
}

/// Sleeps, then spins; `false` if the flag was set first.
pub(crate) fn wait_until(target: i64, stop: &AtomicBool) -> bool {
    loop {
        let left = target - clock::now_ns();
        if left > SLEEP_FROM_NS {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            clock::sleep_until_ns(target - (left - POLL_NS).max(SPIN_NS));
        } else if left <= 0 {
            return true;
        } else {
            std::hint::spin_loop();
        }
    }
}

impl Sent {
    /// Packets that the host refused, ascending.
    pub fn refused(&self) -> &[u32] {
        &self.refused
    }

    /// Whether the host refused the packet at this position.
    pub fn is_refused(&self, seq: usize) -> bool {
        self.refused.iter().any(|&refused| refused as usize == seq)
    }

    /// When the last packet left, as the program saw it.
    pub fn last_ns(&self) -> Option<i64> {
        self.user_ns.last().copied()
    }

    /// When the first packet left, as the program saw it.
    pub fn first_ns(&self) -> Option<i64> {
        self.user_ns.first().copied()
    }

    /// Joins the stamps that came by the error queue. Call it when the answers are in: a packet
    /// that waited in this host's own queue is stamped only when it leaves that.
    ///
    /// The kernel's stamps are taken if each packet has one, else the program's: never some of
    /// each.
    pub fn settle(self, plan: &[PacketPlan], socket: &ProbeSocket, queue: &mut ErrorQueue) -> Departures {
        queue.drain(socket);
        let stamps = queue.take_departures();
        let mut seen: Vec<ArrivalTimes> =
            self.user_ns.iter().map(|&user_ns| ArrivalTimes { user_ns, kernel_ns: None, hardware_ns: None }).collect();
        // A refused packet may or may not have used up a number, so with any of them the numbers
        // prove nothing; and stamps from both sides of a step of the wall clock do not compare.
        if self.stamped && !self.segmented && self.refused.is_empty() && !queue.stepped() {
            join(&mut seen, &stamps);
        }
        let alignment = Alignment::choose(&seen);
        let stamps_ns: Vec<i64> = seen.iter().map(|seen| alignment.stamp_ns(seen)).collect();
        let pacing = if self.refused.is_empty() {
            check(plan, &stamps_ns)
        } else {
            PacingCheck::Broken { worst: plan.iter().skip(1).map(|packet| packet.gap).max().unwrap_or_default() }
        };
        Departures {
            stamps_ns,
            source: alignment.source(),
            refused: self.refused,
            interrupted: self.interrupted,
            pacing,
        }
    }
}

/// Enters each departure stamp at its packet; the first of two stays.
fn join(seen: &mut [ArrivalTimes], stamps: &[Departure]) {
    for stamp in stamps {
        let Some(packet) = usize::try_from(stamp.id).ok().and_then(|id| seen.get_mut(id)) else {
            continue;
        };
        packet.kernel_ns = packet.kernel_ns.or(stamp.kernel_ns);
        packet.hardware_ns = packet.hardware_ns.or(stamp.hardware_ns);
    }
}

#[cfg(test)]
mod tests;
