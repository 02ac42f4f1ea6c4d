//! What trains of three brought: spacings of the small packets' answers, by where the large ones died.

use std::collections::{BTreeMap, BTreeSet};

use narrows_train::densest::{Difference, densest};

/// Share of the spacings that agree where no queue comes and goes (ours).
const AGREED: f64 = 0.8;

/// One kind of train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// Who answers the small packets, from zero.
    pub(super) anchor: usize,
    /// How far the leader is ahead, of [`LEADS_MS`].
    pub(super) lead: usize,
    /// The hop at which the large packet dies, from zero.
    pub(super) died: usize,
    /// IP octets of the small packet behind it.
    pub(super) tail: u16,
}

/// How far ahead the leader may leave, ms: where its answer and the large packet's would meet on a slow way back, another lead keeps them
/// apart (ours).
pub(super) const LEADS_MS: [u64; 5] = [0, 1, 3, 9, 27];

/// What trains brought.
#[derive(Debug, Clone, Default)]
pub(super) struct Couriers {
    trains: BTreeMap<Kind, Brought>,
    /// By how much small packets left behind large ones, ns.
    pub(super) behind_ns: Vec<f64>,
    /// An answer that comes no later than so many ns per octet of it after another may have waited for it on the way back.
    pub(super) guard: f64,
    /// The first hop behind the narrow link, from zero.
    pub(super) front: usize,
}

/// What the trains of one kind brought.
#[derive(Debug, Clone, Default)]
struct Brought {
    sent: u32,
    back: Vec<Back>,
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

/// Times and stamps of one train, ns: the small packets' answers, the large one's if there was one, and departures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    pub(super) kind: Kind,
    pub(super) leader: Option<i64>,
    pub(super) large: Option<i64>,
    pub(super) tail: Option<i64>,
    /// From the large packet's departure to the tail's.
    pub(super) behind: i64,
    /// From the leader's departure to the tail's, where there is a lead.
    pub(super) ahead: i64,
}

/// What trains of two kinds told of one hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    pub(super) here: Difference,
    pub(super) before: Difference,
    pub(super) agreed: bool,
    pub(super) ahead_ns: f64,
}

impl Couriers {
    pub(super) fn sent(&self, kind: Kind) -> u32 {
        self.trains.get(&kind).map_or(0, |brought| brought.sent)
    }

    /// Trains sent with that tail whose large packet died there, whoever answered.
    pub(super) fn sent_alike(&self, kind: Kind) -> u32 {
        let alike = self
            .trains
            .iter()
            .filter(|(other, _)| (other.died, other.tail) == (kind.died, kind.tail));
        alike.map(|(_, brought)| brought.sent).sum()
    }

    /// The tail that most trains to a hop had, of those that are within a quarter of `octets` and above `least`.
    pub(super) fn tail_near(&self, hop: usize, octets: u16, least: u16) -> Option<u16> {
        let near = |kind: &Kind| kind.died == hop && kind.tail > least && 4 * octets.abs_diff(kind.tail) <= octets;
        let sent = |kind: &Kind| (self.sent_alike(*kind), std::cmp::Reverse(kind.tail));
        self.trains
            .keys()
            .filter(|kind| near(kind))
            .max_by_key(|kind| sent(kind))
            .map(|kind| kind.tail)
    }

    /// `wire`: octets of a small packet's answer.
    pub(super) fn take(&mut self, course: &Course, wire: f64) {
        let brought = self.trains.entry(course.kind).or_default();
        brought.sent = brought.sent.saturating_add(1);
        self.behind_ns.push(course.behind.max(0) as f64);
        let (Some(leader), Some(tail)) = (course.leader, course.tail) else {
            return;
        };
        let apart = tail.saturating_sub(leader) as f64;
        let spacing = tail.saturating_sub(leader).saturating_sub(course.ahead) as f64;
        let after = |answer: i64| {
            let after = course.large.map(|large| answer.saturating_sub(large) as f64);
            after.filter(|after| *after >= 0.0).unwrap_or(f64::INFINITY)
        };
        let after = apart.min(after(leader)).min(after(tail));
        brought.back.push(Back { spacing, after, wire });
    }

    /// The spacings of trains with that tail that died at a hop, and of those that died one hop sooner; and whether nearly all agree on them, and by how much
    /// their leaders were ahead, ns.
    pub(super) fn spacings(&self, hop: usize, tail: u16, floor_ns: f64) -> Option<Told> {
        let of = |key: Kind| {
            let back = &self.trains.get(&key)?.back;
            let free: Vec<f64> = back
                .iter()
                .filter(|back| !back.waited(self.guard))
                .map(|back| back.spacing)
                .collect();
            // Of a spacing that ticks take one of two readings the more frequent is off by half a tick.
            let found = densest(&free, floor_ns / 2.0)?;
            let near = free
                .iter()
                .filter(|ns| (**ns - found.ns).abs() <= 2.0 * found.error_ns + floor_ns)
                .count();
            Some((found, near as f64 >= AGREED * free.len() as f64))
        };
        let before = hop.checked_sub(1)?;
        let ways: BTreeSet<(std::cmp::Reverse<usize>, usize)> = self
            .trains
            .keys()
            .filter(|kind| kind.tail == tail)
            .map(|kind| (std::cmp::Reverse(kind.anchor), kind.lead))
            .collect();
        let both = |(anchor, lead): (std::cmp::Reverse<usize>, usize)| {
            let kind = |died| Kind {
                anchor: anchor.0,
                lead,
                died,
                tail,
            };
            let ((here, one), (before, other)) = (of(kind(hop))?, of(kind(before))?);
            Some(Told {
                here,
                before,
                agreed: one && other,
                ahead_ns: LEADS_MS.get(lead).map_or(0.0, |ms| *ms as f64 * 1e6),
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
            let waited = brought.back.iter().filter(|back| back.waited(self.guard)).count();
            waited >= 3 && 2 * waited > brought.back.len()
        };
        self.trains.get(&kind).is_some_and(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(died: usize, leader: i64, large: Option<i64>, tail: i64) -> Course {
        let kind = Kind {
            anchor: 5,
            lead: 0,
            died,
            tail: 48,
        };
        Course {
            kind,
            leader: Some(leader),
            large,
            tail: Some(tail),
            behind: 3,
            ahead: 0,
        }
    }

    #[test]
    fn spacings_of_one_hop_and_the_next() {
        let mut couriers = Couriers::default();
        for k in 0..8 {
            couriers.take(&course(2, 10_000, None, 1_300_000 + k), 114.0);
            couriers.take(&course(3, 10_000, Some(500_000), 1_420_000 + k), 114.0);
        }
        let told = couriers.spacings(3, 48, 100.0).unwrap();
        assert!((told.here.ns - told.before.ns - 120_000.0).abs() < 5.0 && told.agreed);
        assert_eq!(couriers.spacings(2, 48, 100.0), None);
        // Some were longer: no longer agreed.
        for k in 0..4 {
            couriers.take(&course(2, 10_000, None, 1_500_000 + 10_000 * k), 114.0);
        }
        let told = couriers.spacings(3, 48, 100.0).unwrap();
        assert!((told.before.ns - 1_290_000.0).abs() < 10.0 && !told.agreed);
    }

    /// A small packet's answer right behind the large one's may have waited for it.
    #[test]
    fn answers_behind_answers_do_not_count() {
        let mut couriers = Couriers {
            guard: 1000.0,
            ..Couriers::default()
        };
        for k in 0..8 {
            couriers.take(&course(1, 1_000_000, Some(950_000), 2_300_000 + k), 114.0);
            couriers.take(&course(2, 1_000_000, Some(1_100_000), 2_300_000 + k), 114.0);
        }
        let kind = |lead, died| Kind {
            anchor: 5,
            lead,
            died,
            tail: 48,
        };
        assert!(couriers.is_in_the_way(kind(0, 1)) && !couriers.is_in_the_way(kind(0, 2)));
        // With a lead of a millisecond, of which spacings are told without.
        for died in [1, 2] {
            for k in 0..8 {
                let ahead = course(
                    died,
                    1_000_000,
                    Some(1_600_000),
                    2_300_000 + i64::try_from(died).unwrap() * 100_000 + k,
                );
                let ahead = Course {
                    kind: kind(1, died),
                    ahead: 1_000_000,
                    ..ahead
                };
                couriers.take(&ahead, 114.0);
            }
        }
        let told = couriers.spacings(2, 48, 100.0).unwrap();
        assert!((told.here.ns - told.before.ns - 100_000.0).abs() < 5.0 && (told.here.ns - 500_000.0).abs() < 10.0);
    }
}
