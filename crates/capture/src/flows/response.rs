//! How soon a host answers, as seen from the capture: the smallest round trip between the two.
//!
//! A packet puts a *question* to the host that it goes to; a later packet of that host that can
//! only have been sent after it is the answer. Two kinds: sequence numbers (SYN and SYN/ACK, data
//! and acknowledgement; RFC 6298 §3 keeps retransmissions out) and timestamps (RFC 7323 §4: a value
//! that a host echoes has reached it), which tell of hosts that only send, too. Host delays
//! (delayed acknowledgements, applications that think) only lengthen single answers; the smallest
//! is kept.

use narrows_diagnose::passive::SeenPacket;

use super::order::{at_or_after, before};

/// Questions to one host that wait for an answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Responses {
    /// The end of the data that wait for an acknowledgement, and when they passed.
    data: Option<(u32, i64)>,
    /// The highest end of data so far.
    highest: Option<u32>,
    /// Where data before that end which never passed.
    hole: Option<u32>,
    /// A timestamp that waits for its echo, and when it first passed.
    stamp: Option<(u32, i64)>,
    last_stamp: Option<u32>,
    smallest_ns: Option<i64>,
    answers: u32,
}

impl Responses {
    /// Smallest time from a question to its answer.
    pub(super) fn smallest_ns(&self) -> Option<i64> {
        self.smallest_ns
    }

    /// A packet to the host.
    #[inline]
    pub(super) fn ask(&mut self, packet: &SeenPacket) {
        let tcp = &packet.tcp;
        let taken = tcp.payload_octets + u32::from(tcp.syn) + u32::from(tcp.fin);
        if taken > 0 && !tcp.rst {
            let end = tcp.sequence.wrapping_add(taken);
            match self.highest {
                // Sent before: whose answer comes next cannot be told.
                Some(highest) if before(tcp.sequence, highest) => {
                    self.data = None;
                    // Lost before the capture, or late: it is not the capture that missed them.
                    self.hole = self.hole.filter(|end| !before(tcp.sequence, *end));
                }
                known => {
                    if known.is_some_and(|highest| before(highest, tcp.sequence)) {
                        self.hole.get_or_insert(tcp.sequence);
                    }
                    if self.data.is_none() {
                        self.data = Some((end, packet.at_ns));
                    }
                }
            }
            if self.highest.is_none_or(|highest| before(highest, end)) {
                self.highest = Some(end);
            }
        }
        if let Some((value, _)) = tcp.timestamps
            && self.last_stamp.is_none_or(|last| before(last, value))
        {
            self.last_stamp = Some(value);
            if self.stamp.is_none() {
                self.stamp = Some((value, packet.at_ns));
            }
        }
    }

    /// A packet from the host. Whether it acknowledges data that never passed here.
    #[inline]
    pub(super) fn answer(&mut self, packet: &SeenPacket) -> bool {
        let tcp = &packet.tcp;
        let mut unseen = false;
        if let Some(acknowledged) = tcp.acknowledgement.filter(|_| !tcp.rst) {
            if let Some((end, asked)) = self.data
                && at_or_after(acknowledged, end)
            {
                self.data = None;
                self.count(packet.at_ns - asked);
            }
            if let Some(end) = self.hole
                && at_or_after(acknowledged, end)
            {
                self.hole = None;
                unseen = true;
            }
            if let Some(highest) = self.highest
                && before(highest, acknowledged)
            {
                unseen = true;
                self.highest = Some(acknowledged);
            }
        }
        if let (Some((value, asked)), Some((_, echo))) = (self.stamp, tcp.timestamps) {
            if echo == value {
                self.count(packet.at_ns - asked);
                self.stamp = None;
            } else if before(value, echo) {
                self.stamp = None;
            }
        }
        unseen
    }

    fn count(&mut self, nanos: i64) {
        // A clock that stepped back says nothing.
        if nanos >= 0 {
            self.answers = self.answers.saturating_add(1);
            self.smallest_ns = Some(self.smallest_ns.map_or(nanos, |smallest| smallest.min(nanos)));
        }
    }
}
