//! One direction of one TCP connection, condensed.
//!
//! What is kept: the gaps between data packets that follow one another in sequence, and between
//! acknowledgements of new data, each with what tells whether a queue stood behind it (timestamps,
//! round trips, stamps of a second capture). Gaps are kept in blocks of neighbours, at most 2048 of
//! data and 1024 of acknowledgements: when they are full every second block goes, and from then on
//! every second comes; the first, in which a connection's window opens, stays for good.

mod blocks;
mod clock;
mod sizes;

use std::collections::VecDeque;

use super::{Course, SeenPacket};
pub(super) use blocks::Blocks;
pub(super) use clock::PeerClock;
use sizes::Sizes;

/// One direction of one TCP connection, condensed to what passive methods read. Its memory is
/// bounded, however long the flow.
#[derive(Debug, Clone, Default)]
pub struct FlowLog {
    pub(super) counts: Counts,
    pub(super) data: Blocks<DataGap, 16>,
    pub(super) acks: Blocks<AckGap, 8>,
    /// The data sender's timestamps against this capture's clock.
    pub(super) sender_clock: PeerClock,
    /// The data receiver's.
    pub(super) receiver_clock: PeerClock,
    pub(super) sizes: Sizes,
    /// Least time from a data packet to its acknowledgement.
    pub(super) least_ahead: Option<i64>,
    delivered: Delivered,
    /// The sequence number expected next.
    next: Option<u32>,
    before: Option<LastData>,
    acknowledged: Option<u32>,
    ack_before: Option<LastAck>,
    /// Data under way behind this point: end of sequence numbers, and when they passed, in
    /// [`FLIGHT_NS`].
    flight: VecDeque<(u32, u32)>,
    /// So many were under way that newcomers are let go unnoticed until half are acknowledged.
    crowded: bool,
    /// Acknowledgements up to here may be of retransmissions (Karn's rule).
    doubtful_to: Option<u32>,
}

/// What has been seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Packets with data.
    pub(super) data: u64,
    /// Their IP octets.
    pub(super) ip_octets: u64,
    /// Data at or before what was seen already.
    pub(super) resent: u64,
    /// Jumps in the sequence.
    pub(super) holes: u64,
    /// Stamps that went back.
    pub(super) stepped_back: u64,
    /// First and last data packet.
    pub(super) span: Option<(i64, i64)>,
}

/// Two data packets that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataGap {
    /// When the second passed.
    pub(super) at: i64,
    /// The second's timestamp, in ticks since the flow's first; [`NO_TICKS`] without.
    pub(super) ticks: i32,
    /// Between the two, in nanoseconds.
    pub(super) gap: u32,
    /// Between the two at the second capture; [`NO_TIME`] if there is none.
    pub(super) sent: u32,
    /// The second's IP octets, and two signs above them: there are thousands of these per flow.
    size: u32,
}

impl DataGap {
    const EQUAL: u32 = 1 << 31;
    const FOLLOWS: u32 = 1 << 30;

    fn size(ip_octets: u32, equal: bool, follows: bool) -> u32 {
        ip_octets.min(Self::FOLLOWS - 1) | if equal { Self::EQUAL } else { 0 } | if follows { Self::FOLLOWS } else { 0 }
    }

    /// The second's IP octets.
    pub(super) fn ip_octets(&self) -> u32 {
        self.size & (Self::FOLLOWS - 1)
    }

    /// Both are of this size.
    pub(super) fn equal(&self) -> bool {
        self.size & Self::EQUAL != 0
    }

    /// Its first packet is the second of the gap before.
    pub(super) fn follows(&self) -> bool {
        self.size & Self::FOLLOWS != 0
    }
}

/// Two acknowledgements of new data that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AckGap {
    pub(super) at: i64,
    /// The receiver's timestamp; [`NO_TICKS`] without.
    pub(super) ticks: i32,
    pub(super) gap: u32,
    /// Between the data packets that the two acknowledge last, when they passed here.
    pub(super) sent: u32,
    /// From the data packet to this acknowledgement of it.
    pub(super) ahead: u32,
    /// Payload octets that this one acknowledges, and that the one before does.
    pub(super) covered: u32,
    pub(super) covered_before: u32,
}

pub(super) const NO_TICKS: i32 = i32::MIN;
pub(super) const NO_TIME: u32 = u32::MAX;

/// Payload that acknowledgements say has crossed.
#[derive(Debug, Clone, Copy, Default)]
struct Delivered {
    first: Option<i64>,
    last: i64,
    octets: u64,
    second: Option<Second>,
    best: f64,
}

/// A stretch of a second or more: its begin, and the octets before it.
#[derive(Debug, Clone, Copy)]
struct Second {
    begun: i64,
    before: u64,
    ahead: Option<i64>,
}

impl Delivered {
    /// `ahead`: how long the last of these octets and their acknowledgement were under way beyond
    /// the capture, if that is known. `at_once`: they may have crossed long before, and waited at
    /// the receiver for what was lost in front of them.
    fn add(&mut self, at: i64, octets: u32, ahead: Option<i64>, at_once: bool) {
        let Some(first) = self.first else {
            // What it acknowledges crossed before.
            if !at_once {
                (self.first, self.last) = (Some(at), at);
                self.begin(at, ahead);
            }
            return;
        };
        self.octets += u64::from(octets);
        self.last = self.last.max(at).max(first);
        let Some(second) = self.second.filter(|_| !at_once) else {
            self.begin(at, ahead.filter(|_| !at_once));
            return;
        };
        let took = at.saturating_sub(second.begun);
        if took >= SECOND_NS {
            // What waited less at the end than at the beginning came in less time than it took to
            // cross.
            let drained = second.ahead.zip(ahead).map_or(0, |(then, now)| then.saturating_sub(now).max(0));
            self.best = self.best.max(rate(self.octets - second.before, took.saturating_add(drained)));
            self.begin(at, ahead);
        }
    }

    fn begin(&mut self, at: i64, ahead: Option<i64>) {
        self.second = Some(Second { begun: at, before: self.octets, ahead });
    }

    /// Payload bit/s that the path carried, at least.
    fn least(&self) -> f64 {
        let took = self.first.map_or(0, |first| self.last.saturating_sub(first));
        if took < SECOND_NS {
            return 0.0;
        }
        (MEAN * rate(self.octets, took)).max(BEST * self.best)
    }
}

fn rate(octets: u64, took: i64) -> f64 {
    octets as f64 * 8e9 / took.max(1) as f64
}

const SECOND_NS: i64 = 1_000_000_000;
/// What of the mean, and of the best second, counts (ours).
const MEAN: f64 = 0.97;
const BEST: f64 = 0.85;

#[derive(Debug, Clone, Copy)]
struct LastData {
    at: i64,
    departed: Option<i64>,
    ip_octets: u32,
    /// A gap ends with it.
    chained: bool,
}

#[derive(Debug, Clone, Copy)]
struct LastAck {
    at: i64,
    /// When the last of what it acknowledges passed.
    data_at: i64,
    covered: u32,
}

/// Smaller packets are no probes of a link (`[Nettimer01]` asks for large ones; the number is ours:
/// a minimum-size TCP segment).
const LEAST_PAYLOAD: u32 = 500;
/// Most data packets under way that are remembered.
const MOST_FLIGHT: usize = 4096;
/// Nanoseconds in which they are, so that they take half the room: 32 bits last for half a minute.
const FLIGHT_NS: i64 = 8;

impl FlowLog {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more packet of the connection, in capture order.
    pub fn see(&mut self, course: Course, packet: &SeenPacket) {
        match course {
            Course::Along => self.along(packet),
            Course::Back => self.back(packet),
        }
    }

    /// Octets of memory that it holds, itself included, roughly.
    pub fn held_octets(&self) -> usize {
        size_of::<Self>()
            + self.data.held_octets()
            + self.acks.held_octets()
            + self.sender_clock.held_octets()
            + self.receiver_clock.held_octets()
            + self.flight.capacity() * size_of::<(u32, u32)>()
    }

    /// IP octets per time, in bit/s, that the path must have carried: the mean over all
    /// acknowledgements, less what stamps and headers may hide, or the best second, less what
    /// queues on the reverse direction may squeeze together. Zero where too little was
    /// acknowledged.
    pub(super) fn delivered(&self) -> f64 {
        let Some((ip_octets, payload)) = self.sizes.full() else {
            return 0.0;
        };
        let headers = f64::from(ip_octets) / f64::from(payload.max(1));
        headers * self.delivered.least()
    }

    fn along(&mut self, packet: &SeenPacket) {
        let tcp = &packet.tcp;
        let ticks = self.sender_clock.see(packet.at_ns, tcp.timestamps.map(|(value, _)| value));
        let end = tcp.sequence.wrapping_add(tcp.payload_octets).wrapping_add(u32::from(tcp.syn) + u32::from(tcp.fin));
        if tcp.is_boundary() || tcp.payload_octets == 0 {
            self.before = None;
            if tcp.syn {
                self.next = Some(end);
            }
            return;
        }
        self.counts.data += 1;
        self.counts.ip_octets += u64::from(packet.ip_octets);
        let first = self.counts.span.map_or(packet.at_ns, |(first, _)| first);
        self.counts.span = Some((first, packet.at_ns));
        self.sizes.count(packet.ip_octets, tcp.payload_octets);
        let ahead = self.next.map_or(0, |next| distance(next, tcp.sequence));
        if ahead < 0 {
            self.counts.resent += 1;
            self.doubtful_to = self.next;
            self.before = None;
            return;
        }
        if ahead > 0 {
            self.counts.holes += 1;
            self.before = None;
        }
        self.next = Some(end);
        self.crowded = self.flight.len() >= if self.crowded { MOST_FLIGHT / 2 } else { MOST_FLIGHT };
        if !self.crowded {
            self.flight.push_back((end, flight_time(packet.at_ns)));
        }
        self.data_gap(packet, ticks);
    }

    fn data_gap(&mut self, packet: &SeenPacket, ticks: i32) {
        let large = packet.tcp.payload_octets >= LEAST_PAYLOAD;
        let last = self.before.take();
        let mut chained = false;
        if let Some(last) = last.filter(|_| large) {
            if packet.at_ns < last.at {
                self.counts.stepped_back += 1;
            } else {
                let sent = packet.departed_ns.zip(last.departed).map(|(now, then)| now - then);
                self.data.push(DataGap {
                    at: packet.at_ns,
                    ticks,
                    gap: short(packet.at_ns - last.at),
                    sent: sent.map_or(NO_TIME, |sent| short(sent.max(0))),
                    size: DataGap::size(packet.ip_octets, last.ip_octets == packet.ip_octets, last.chained),
                });
                chained = true;
            }
        }
        if large {
            self.before =
                Some(LastData { at: packet.at_ns, departed: packet.departed_ns, ip_octets: packet.ip_octets, chained });
        }
    }

    fn back(&mut self, packet: &SeenPacket) {
        let tcp = &packet.tcp;
        let ticks = self.receiver_clock.see(packet.at_ns, tcp.timestamps.map(|(value, _)| value));
        let Some(number) = tcp.acknowledgement.filter(|_| !tcp.is_boundary()) else {
            self.ack_before = None;
            return;
        };
        let covered = self.acknowledged.map_or(0, |last| distance(last, number));
        let last = self.ack_before.take();
        if covered < 0 || (covered == 0 && self.acknowledged.is_some()) {
            return;
        }
        self.acknowledged = Some(number);
        let doubtful = self.doubtful_to.is_some_and(|to| distance(number, to) >= 0);
        let passed = self.acknowledge(number, packet.at_ns);
        let ahead = passed.map(|data_at| packet.at_ns - data_at);
        self.delivered.add(packet.at_ns, covered.unsigned_abs(), ahead, doubtful);
        let Some(data_at) = passed else {
            return;
        };
        if doubtful || tcp.payload_octets > 0 || packet.at_ns < data_at {
            return;
        }
        self.doubtful_to = None;
        let covered = covered.unsigned_abs();
        let ahead = packet.at_ns - data_at;
        self.least_ahead = Some(self.least_ahead.map_or(ahead, |least| least.min(ahead)));
        if let Some(last) = last.filter(|last| packet.at_ns >= last.at) {
            self.acks.push(AckGap {
                at: packet.at_ns,
                ticks,
                gap: short(packet.at_ns - last.at),
                sent: short((data_at - last.data_at).max(0)),
                ahead: short(ahead),
                covered,
                covered_before: last.covered,
            });
        }
        self.ack_before = Some(LastAck { at: packet.at_ns, data_at, covered });
    }

    /// Forgets data that is no longer under way; when the last of what this number acknowledges
    /// passed.
    fn acknowledge(&mut self, number: u32, now: i64) -> Option<i64> {
        let mut passed = None;
        while let Some(&(end, at)) = self.flight.front() {
            let beyond = distance(number, end);
            if beyond > 0 {
                // It acknowledges a part of what one captured packet stands for.
                let begun = self.sizes.largest_payload();
                if i64::from(beyond) < i64::from(begun) {
                    passed = Some(at);
                }
                break;
            }
            passed = Some(at);
            self.flight.pop_front();
        }
        let ago = flight_time(now).wrapping_sub(passed?).cast_signed();
        Some(now.saturating_sub(i64::from(ago) * FLIGHT_NS))
    }
}

/// A time in [`FLIGHT_NS`], that wraps.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it wraps, which is what is wanted")]
fn flight_time(at: i64) -> u32 {
    at.div_euclid(FLIGHT_NS) as u32
}

/// How far `to` lies beyond `from`, in sequence numbers that wrap (RFC 1982).
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

/// Nanoseconds that fit; longer times are all alike.
fn short(nanos: i64) -> u32 {
    u32::try_from(nanos).unwrap_or(NO_TIME - 1).min(NO_TIME - 1)
}
