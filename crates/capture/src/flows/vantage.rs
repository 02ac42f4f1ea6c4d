//! Which end of a flow a capture sits at, found from the trace.
//!
//! Four signs, each about one host of the connection, seen from the capture:
//!
//! 1. *Its packets are marked as sent by the capturing host* (cooked captures, pcapng flags, live
//!    rings). Together with a hop limit that no router has lowered this settles it. If they are
//!    marked as received by it, the capture is not at that host.
//! 2. *Its checksums are not computed yet*, and the other host's are: its card computes them behind
//!    the capture. Where both hosts' packets are so, they have never left one machine, and the sign
//!    says nothing.
//! 3. *Hop limits.* Hosts begin with 64, 128 or 255. What lacks is the number of routers between it
//!    and the capture; with one or more in between the capture is not at that host. None does not
//!    mean that it is: bridges, cables and radio lower nothing.
//! 4. *Answers*: the smallest round trip to the host ([`super::response`]). A host at the capture
//!    answers within what its kernel needs. It is taken as being there if its answers take at most
//!    2 ms and a fifth of the other host's at most.
//!
//! A capture sits at a host if sign 1 or 2 says so, or sign 4 does, and 1 and 3 do not forbid it;
//! or if 3 shows routers to the other host only and no answer of either host contradicts. It sits
//! in the middle if 3 shows routers to both hosts, or both hosts' smallest answers take longer than
//! 1 ms and neither is at the capture, or a router lies towards the host that answers soon. Else
//! nobody knows. The thresholds are ours: a kernel answers in 10 to 200 us, with interrupts
//! gathered in up to 1 ms; a frame of 60 octets needs 1 ms at 480 kbit/s, so that a link that
//! narrow before the capture shows.

use narrows_diagnose::passive::Vantage;

/// A host that takes longer to answer than this is elsewhere.
const AT_HOST_NS: i64 = 2_000_000;
/// It answers so many times sooner than the other.
const SOONER: i64 = 5;
/// No kernel takes longer than this at its best.
const AWAY_NS: i64 = 1_000_000;
/// More routers than any path has: the hop limit began elsewhere.
const MOST_ROUTERS: u8 = 40;

/// What the trace shows of one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Signs {
    /// Packets of it.
    pub(super) packets: u64,
    /// Of those, with a checksum that is not computed yet.
    pub(super) unfinished: u64,
    /// Of those, marked as sent by the capturing host.
    pub(super) sent_here: u64,
    /// Of those, marked as received by it.
    pub(super) came_here: u64,
    /// Highest hop limit.
    pub(super) hop_limit: u8,
    /// Smallest round trip to it.
    pub(super) answer_ns: Option<i64>,
}

impl Signs {
    /// Routers between it and the capture.
    fn routers(&self) -> Option<u8> {
        let began = [64, 128, 255].into_iter().find(|began| *began >= self.hop_limit)?;
        let routers = began - self.hop_limit;
        (self.packets > 0 && self.hop_limit > 0 && routers <= MOST_ROUTERS).then_some(routers)
    }

    fn is_behind_routers(&self) -> bool {
        self.routers().is_some_and(|routers| routers > 0)
    }

    fn is_unfinished(&self) -> bool {
        self.packets > 0 && 2 * self.unfinished > self.packets
    }

    fn is_marked(&self) -> bool {
        self.sent_here > 0 && self.came_here == 0
    }

    /// Answers as only a host at the capture does.
    fn answers_here(&self, other: &Self) -> bool {
        let (Some(own), Some(others)) = (self.answer_ns, other.answer_ns) else {
            return false;
        };
        own <= AT_HOST_NS && own.saturating_mul(SOONER) <= others
    }

    fn is_away(&self) -> bool {
        self.answer_ns.is_some_and(|nanos| nanos > AWAY_NS)
    }

    fn is_here(&self, other: &Self) -> bool {
        // What the capturing host received it did not send.
        let came = self.came_here > 0 && self.sent_here == 0;
        if self.is_behind_routers() || came {
            return false;
        }
        let marked = self.is_marked() && !other.is_marked();
        let unfinished = self.is_unfinished() && other.packets > 0 && !other.is_unfinished();
        let beyond_routers =
            self.routers() == Some(0) && other.is_behind_routers() && !self.is_away() && !other.answers_here(self);
        marked || unfinished || self.answers_here(other) || beyond_routers
    }
}

/// Where the capture sits on the way from `sender` to `receiver`.
pub(super) fn vantage(sender: &Signs, receiver: &Signs) -> Vantage {
    match (sender.is_here(receiver), receiver.is_here(sender)) {
        (true, false) => Vantage::Sender,
        (false, true) => Vantage::Receiver,
        // Two signs contradict each other.
        (true, true) => Vantage::Unknown,
        (false, false) => {
            let between_routers = sender.is_behind_routers() && receiver.is_behind_routers();
            let remote_from_both = sender.is_away() && receiver.is_away();
            let beside_a_router = |host: &Signs, other: &Signs| host.is_behind_routers() && other.is_away();
            if between_routers
                || remote_from_both
                || beside_a_router(sender, receiver)
                || beside_a_router(receiver, sender)
            {
                Vantage::Middle
            } else {
                Vantage::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(hop_limit: u8, answer_us: i64) -> Signs {
        Signs { packets: 100, hop_limit, answer_ns: Some(answer_us * 1_000), ..Signs::default() }
    }

    /// The vantage, and that it is the mirrored one for the other direction.
    fn both(sender: &Signs, receiver: &Signs) -> Vantage {
        let found = vantage(sender, receiver);
        let mirrored = match found {
            Vantage::Sender => Vantage::Receiver,
            Vantage::Receiver => Vantage::Sender,
            other => other,
        };
        assert_eq!(vantage(receiver, sender), mirrored);
        found
    }

    #[test]
    fn a_host_at_the_capture_answers_at_once() {
        assert_eq!(both(&host(64, 40), &host(52, 20_000)), Vantage::Sender);
        assert_eq!(both(&host(64, 40), &host(64, 900)), Vantage::Sender);
        assert_eq!(both(&host(113, 31_000), &host(64, 60)), Vantage::Receiver);
    }

    #[test]
    fn in_the_middle_both_are_away() {
        assert_eq!(both(&host(63, 5_000), &host(62, 8_000)), Vantage::Middle);
        assert_eq!(both(&host(63, 100), &host(62, 8_000)), Vantage::Middle);
        assert_eq!(both(&host(64, 5_000), &host(64, 8_000)), Vantage::Middle);
        // On the router's link to the receiver, which is long.
        assert_eq!(both(&host(63, 80), &host(64, 10_000)), Vantage::Middle);
    }

    #[test]
    fn a_short_link_without_routers_says_nothing() {
        assert_eq!(both(&host(64, 90), &host(64, 200)), Vantage::Unknown);
        assert_eq!(both(&Signs::default(), &Signs::default()), Vantage::Unknown);
    }

    #[test]
    fn routers_to_one_host_alone_settle_it_unless_answers_object() {
        let silent = |hop_limit| Signs { answer_ns: None, ..host(hop_limit, 0) };
        assert_eq!(both(&silent(64), &silent(55)), Vantage::Sender);
        assert_eq!(both(&silent(64), &host(55, 9_000)), Vantage::Sender);
        assert_eq!(both(&host(64, 7_000), &host(55, 9_000)), Vantage::Middle);
    }

    #[test]
    fn marks_and_unfinished_checksums_settle_it() {
        let plain = host(64, 90);
        let marked = Signs { sent_here: 50, ..plain };
        let unmarked = Signs { came_here: 50, ..plain };
        assert_eq!(both(&marked, &unmarked), Vantage::Sender);
        // A router sends both.
        assert_eq!(both(&marked, &marked), Vantage::Unknown);
        let unfinished = Signs { unfinished: 99, ..plain };
        assert_eq!(both(&unfinished, &plain), Vantage::Sender);
        // Two namespaces of one machine.
        assert_eq!(both(&unfinished, &unfinished), Vantage::Unknown);
        // What a router forwards was not sent here.
        let forwarded = Signs { hop_limit: 63, ..marked };
        assert_eq!(both(&forwarded, &unmarked), Vantage::Unknown);
    }

    #[test]
    fn odd_hop_limits_say_nothing() {
        assert_eq!(host(5, 0).routers(), None);
        assert_eq!(host(0, 0).routers(), None);
        assert_eq!(host(255, 0).routers(), Some(0));
        assert_eq!(host(100, 0).routers(), Some(28));
    }
}
