//! What the trains of [`tailgating_probes`](super::tailgating_probes) say of hops.

use super::picture::{Added, EITHER};
use super::session::MethodRun;
use super::stages::{Pairs, Stages};
use super::tailgating_probes::CAUGHT;

/// In errors of a difference: what it must be for `q` to have been held back (as `quartets`).
const ERRORS: f64 = 2.0;
/// Share by which sizes and trains may differ beyond their errors (ours).
const APART: f64 = 0.1;

/// What trains say of one hop, ns for a large packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    Time { time: f64, half: f64 },
    AtMost(f64),
}

impl Known {
    /// As what the hop adds per octet of `large` on the wire, and its standard error.
    pub(super) fn slope(self, large: f64, ratio: f64) -> (f64, f64) {
        match self {
            Self::Time { time, half } => {
                // Of two links in a row the small packet is behind by what the first leaves, too.
                let row = ratio * time / 2.0;
                (time / large, half.hypot(row) / large / EITHER)
            }
            Self::AtMost(most) => (most / 2.0 / large, most / 2.0 / large / EITHER),
        }
    }
}

impl MethodRun {
    /// By how much the large packet comes to the narrow link after the leader has left it, if
    /// nobody waits there: it falls behind on each link in front.
    fn parted(&self, added: &[Added]) -> f64 {
        let narrow =
            added.iter().filter(|added| added.stands_alone()).max_by(|one, other| one.slope.total_cmp(&other.slope));
        let Some(narrow) = narrow else { return f64::INFINITY };
        let front = added.iter().filter(|added| added.hop < narrow.hop).map(Added::most);
        let (large, small) = (self.wire(self.plan.largest()), self.wire(self.plan.smallest()));
        (front.sum::<f64>() * (large - small) - narrow.slope * small).max(0.0)
    }

    /// What the trains so far say of a hop, from what `added` tells of those in front.
    pub(super) fn reported_by_tailgating_probes(&self, added: &[Added], hop: usize) -> Option<Known> {
        let floor = self.floor_ns();
        let spacings = self.tailgating_probes.spacings(hop, self.plan.smallest(), floor)?;
        let (here, before) = (spacings.here, spacings.before);
        let held = here.ns - before.ns;
        // Where queues come and go the three are together at the narrow link at one time, and not
        // at another.
        let apart = if spacings.agreed { 0.0 } else { self.parted(added) + spacings.ahead_ns };
        let error = ERRORS * here.error_ns.hypot(before.error_ns) + apart;
        let behind = self.behind(added, hop, self.ratio());
        if !behind.1.is_finite() {
            return None;
        }
        if held - error > CAUGHT * behind.1 {
            let half = error + (behind.1 - behind.0) / 2.0;
            let time = held + f64::midpoint(behind.0, behind.1);
            return Some(Known::Time { time, half });
        }
        let spread = error.max(here.spread_ns.hypot(before.spread_ns));
        Some(Known::AtMost(held.max(0.0) + spread + behind.1))
    }

    /// Hops (from zero) at which sizes and trains disagree on what all links so far take: their
    /// routers take their own time for each octet.
    pub(super) fn copying(&self, by_sizes: &[Added]) -> Vec<usize> {
        let large = self.wire(self.plan.largest());
        let mut added = by_sizes.to_vec();
        let (mut off, mut most_off, mut copying) = (0.0_f64, 0.0_f64, Vec::new());
        for at in 0..added.len() {
            let own = added[at].clone();
            let hop = own.hop - 1;
            let reported = self.reported_by_tailgating_probes(&added, hop).filter(|_| own.stands_alone() && hop > 0);
            let seen = own.slope * large;
            let (time, half) = match reported {
                Some(Known::Time { time, half }) => (time, half),
                Some(Known::AtMost(most)) => (most / 2.0, most / 2.0),
                None => (seen, 0.0),
            };
            // Trains see a row of links as so much less.
            let row = self.ratio() * seen;
            if (seen - time).abs() > half + own.half_width() * large + row + APART * time {
                off += seen - time;
                (added[at].slope, added[at].se) = (time / large, half / large / EITHER);
            }
            let router = hop + 1 < self.hops.len();
            most_off = most_off.max(off);
            if router && off > most_off / 4.0 {
                copying.push(hop);
            }
        }
        copying
    }

    /// The first hop (from zero) behind the narrow link of which trains should have told whether
    /// its router copies, and could not: answers met on the reverse direction whoever gave them.
    /// What sizes tell from there on may be a router's.
    pub(super) fn unchecked_from(&self, by_sizes: &[Added]) -> Option<usize> {
        let alone = by_sizes.iter().filter(|added| added.stands_alone());
        let check = alone.filter(|added| self.may_check(added.hop - 1)).map(|added| added.hop - 1);
        let tried = |hop: &usize| {
            *hop > 0 && self.tailgating_probes.tried(*hop) && self.responder(*hop, self.plan.smallest()).is_none()
        };
        check.filter(tried).find(|&hop| self.reported_by_tailgating_probes(by_sizes, hop).is_none())
    }

    /// Whether a hop that sizes see as a row of links is one: of the row all links but the last
    /// leave the small packet a little further behind, which trains do not count. It is little:
    /// frames of other lengths than assumed would do the same, so that this says what is likelier,
    /// and no more.
    pub(super) fn row_by_tailgating_probes(&self, added: &[Added], own: &Added, stages: &Stages) -> Pairs {
        let large = self.wire(self.plan.largest());
        let Some(Known::Time { time, half }) = self.reported_by_tailgating_probes(added, own.hop - 1) else {
            return Pairs::Unknown;
        };
        let times: Vec<f64> = stages.rates.iter().map(|rate| 8e9 / rate * large).collect();
        let all: f64 = times.iter().sum();
        let but = |last: f64| self.ratio() * (all - last);
        let least = but(times.iter().copied().fold(0.0, f64::max));
        let most = but(times.iter().copied().fold(f64::INFINITY, f64::min));
        let (missing, off) = (own.slope * large - time, half + own.half_width() * large);
        match missing {
            _ if off > least / 2.0 => Pairs::Unknown,
            _ if missing < least / 2.0 => Pairs::OneLink,
            _ if missing < most + off => Pairs::Row,
            _ => Pairs::Unknown,
        }
    }
}
