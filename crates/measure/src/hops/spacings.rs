//! What trains of three brought: spacings of the small packets' answers, by where the large ones
//! died.

use std::collections::{BTreeMap, BTreeSet};

use narrows_train::pair_mode::{Difference, pair_mode};

/// Share of the spacings that agree where no queue comes and goes (ours).
const AGREED: f64 = 0.8;

/// One kind of train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// Who answers the small packets, from zero.
    pub(super) responder: usize,
    /// How far the leader is ahead, of [`LEADS_MS`].
    pub(super) replay: usize,
    /// The hop at which the large packet dies, from zero.
    pub(super) died: usize,
    /// IP octets of the small packet behind it.
    pub(super) trailing_packet: u16,
}

/// How far ahead the leader may leave, ms: where its answer and the large packet's would meet on a
/// slow reverse direction, another lead keeps them apart (ours).
pub(super) const LEADS_MS: [u64; 5] = [0, 1, 3, 9, 27];

/// What trains brought.
#[derive(Debug, Clone, Default)]
pub(super) struct TailgatingProbes {
    trains: BTreeMap<Kind, Brought>,
    /// By how much small packets left behind large ones, ns.
    pub(super) behind_ns: Vec<f64>,
    /// An answer that comes no later than so many ns per octet of it after another may have waited
    /// for it on the reverse direction.
    pub(super) guard: f64,
    /// The first hop behind the narrow link, from zero.
    pub(super) front: usize,
}

/// What the trains of one kind brought.
#[derive(Debug, Clone, Default)]
struct Brought {
    sent: u32,
    reverse: Vec<Back>,
}

/// How the answers of one train came back, ns.
#[derive(Debug, Clone, Copy)]
struct Back {
    /// From the leader's to the tail's.
    spacing: f64,
    /// From any other to one of these, and octets of that on the wire.
    after: f64,
    wire: f64,
}

impl Back {
    fn waited(&self, guard: f64) -> bool {
        self.after <= guard * self.wire
    }
}

/// Times and stamps of one train, ns: the small packets' answers, the large one's if there was one,
/// and departures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    pub(super) kind: Kind,
    pub(super) leader: Option<i64>,
    pub(super) large: Option<i64>,
    pub(super) trailing_packet: Option<i64>,
    /// From the large packet's departure to the tail's.
    pub(super) behind: i64,
    /// From the leader's departure to the tail's, where there is a lead.
    pub(super) ahead: i64,
}

/// What trains of two kinds told of one hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProbeFate {
    pub(super) here: Difference,
    pub(super) before: Difference,
    pub(super) agreed: bool,
    pub(super) ahead_ns: f64,
}

impl TailgatingProbes {
    pub(super) fn sent(&self, kind: Kind) -> u32 {
        self.trains.get(&kind).map_or(0, |brought| brought.sent)
    }

    /// Trains sent with that tail whose large packet died there, whoever answered.
    pub(super) fn sent_alike(&self, kind: Kind) -> u32 {
        let alike = self
            .trains
            .iter()
            .filter(|(other, _)| (other.died, other.trailing_packet) == (kind.died, kind.trailing_packet));
        alike.map(|(_, brought)| brought.sent).sum()
    }

    /// The tail that most trains to a hop had, of those that are within a quarter of `octets` and
    /// above `least`.
    pub(super) fn trailing_packet_near(&self, hop: usize, octets: u16, least: u16) -> Option<u16> {
        let near = |kind: &Kind| {
            kind.died == hop && kind.trailing_packet > least && 4 * octets.abs_diff(kind.trailing_packet) <= octets
        };
        let sent = |kind: &Kind| (self.sent_alike(*kind), std::cmp::Reverse(kind.trailing_packet));
        self.trains.keys().filter(|kind| near(kind)).max_by_key(|kind| sent(kind)).map(|kind| kind.trailing_packet)
    }

    /// `wire`: octets of a small packet's answer.
    pub(super) fn take(&mut self, course: &Course, wire: f64) {
        let brought = self.trains.entry(course.kind).or_default();
        brought.sent = brought.sent.saturating_add(1);
        self.behind_ns.push(course.behind.max(0) as f64);
        let (Some(leader), Some(trailing_packet)) = (course.leader, course.trailing_packet) else {
            return;
        };
        let apart = trailing_packet.saturating_sub(leader) as f64;
        let spacing = trailing_packet.saturating_sub(leader).saturating_sub(course.ahead) as f64;
        let after = |answer: i64| {
            let after = course.large.map(|large| answer.saturating_sub(large) as f64);
            after.filter(|after| *after >= 0.0).unwrap_or(f64::INFINITY)
        };
        let after = apart.min(after(leader)).min(after(trailing_packet));
        brought.reverse.push(Back { spacing, after, wire });
    }

    /// The spacings of trains with that tail that died at a hop, and of those that died one hop
    /// sooner; and whether nearly all agree on them, and by how much their leaders were ahead, ns.
    pub(super) fn spacings(&self, hop: usize, trailing_packet: u16, floor_ns: f64) -> Option<ProbeFate> {
        let of = |key: Kind| {
            let reverse = &self.trains.get(&key)?.reverse;
            let free: Vec<f64> =
                reverse.iter().filter(|reverse| !reverse.waited(self.guard)).map(|reverse| reverse.spacing).collect();
            // Of a spacing that ticks take one of two readings the more frequent is off by half a
            // tick.
            let found = pair_mode(&free, floor_ns / 2.0)?;
            let near = free.iter().filter(|ns| (**ns - found.ns).abs() <= 2.0 * found.error_ns + floor_ns).count();
            Some((found, near as f64 >= AGREED * free.len() as f64))
        };
        let before = hop.checked_sub(1)?;
        let ways: BTreeSet<(std::cmp::Reverse<usize>, usize)> = self
            .trains
            .keys()
            .filter(|kind| kind.trailing_packet == trailing_packet)
            .map(|kind| (std::cmp::Reverse(kind.responder), kind.replay))
            .collect();
        let both = |(responder, replay): (std::cmp::Reverse<usize>, usize)| {
            let kind = |died| Kind { responder: responder.0, replay, died, trailing_packet };
            let ((here, one), (before, other)) = (of(kind(hop))?, of(kind(before))?);
            Some(ProbeFate {
                here,
                before,
                agreed: one && other,
                ahead_ns: LEADS_MS.get(replay).map_or(0.0, |ms| *ms as f64 * 1e6),
            })
        };
        ways.into_iter().find_map(both)
    }

    /// Trains were sent whose large packets died there.
    pub(super) fn tried(&self, hop: usize) -> bool {
        self.trains.keys().any(|kind| kind.died == hop)
    }

    /// Answers of trains like these wait for one another more often than not.
    pub(super) fn is_in_the_way(&self, kind: Kind) -> bool {
        let waited = |brought: &Brought| {
            let waited = brought.reverse.iter().filter(|reverse| reverse.waited(self.guard)).count();
            waited >= 3 && 2 * waited > brought.reverse.len()
        };
        self.trains.get(&kind).is_some_and(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(died: usize, leader: i64, large: Option<i64>, trailing_packet: i64) -> Course {
        let kind = Kind { responder: 5, replay: 0, died, trailing_packet: 48 };
        Course { kind, leader: Some(leader), large, trailing_packet: Some(trailing_packet), behind: 3, ahead: 0 }
    }

    #[test]
    fn spacings_of_one_hop_and_the_next() {
        let mut tailgating_probes = TailgatingProbes::default();
        for k in 0..8 {
            tailgating_probes.take(&course(2, 10_000, None, 1_300_000 + k), 114.0);
            tailgating_probes.take(&course(3, 10_000, Some(500_000), 1_420_000 + k), 114.0);
        }
        let reported = tailgating_probes.spacings(3, 48, 100.0).unwrap();
        assert!((reported.here.ns - reported.before.ns - 120_000.0).abs() < 5.0 && reported.agreed);
        assert_eq!(tailgating_probes.spacings(2, 48, 100.0), None);
        // Some were longer: no longer agreed.
        for k in 0..4 {
            tailgating_probes.take(&course(2, 10_000, None, 1_500_000 + 10_000 * k), 114.0);
        }
        let reported = tailgating_probes.spacings(3, 48, 100.0).unwrap();
        assert!((reported.before.ns - 1_290_000.0).abs() < 10.0 && !reported.agreed);
    }

    /// A small packet's answer right behind the large one's may have waited for it.
    #[test]
    fn answers_behind_answers_do_not_count() {
        let mut tailgating_probes = TailgatingProbes { guard: 1000.0, ..TailgatingProbes::default() };
        for k in 0..8 {
            tailgating_probes.take(&course(1, 1_000_000, Some(950_000), 2_300_000 + k), 114.0);
            tailgating_probes.take(&course(2, 1_000_000, Some(1_100_000), 2_300_000 + k), 114.0);
        }
        let kind = |replay, died| Kind { responder: 5, replay, died, trailing_packet: 48 };
        assert!(tailgating_probes.is_in_the_way(kind(0, 1)) && !tailgating_probes.is_in_the_way(kind(0, 2)));
        // With a lead of a millisecond, of which spacings are told without.
        for died in [1, 2] {
            for k in 0..8 {
                let ahead =
                    course(died, 1_000_000, Some(1_600_000), 2_300_000 + i64::try_from(died).unwrap() * 100_000 + k);
                let ahead = Course { kind: kind(1, died), ahead: 1_000_000, ..ahead };
                tailgating_probes.take(&ahead, 114.0);
            }
        }
        let reported = tailgating_probes.spacings(2, 48, 100.0).unwrap();
        assert!(
            (reported.here.ns - reported.before.ns - 100_000.0).abs() < 5.0
                && (reported.here.ns - 500_000.0).abs() < 10.0
        );
    }
}
