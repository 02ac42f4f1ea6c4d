//! Tails: whether a hop behind a narrower link is one link, or several in a row.
//!
//! Tailgating probes whose last packet is longer. Two packets that leave a narrow link are `x`
//! apart, what that takes for the second: two large ones meet nowhere behind it, but a large one
//! and a shorter one do wherever a link takes longer than `x` for the large one. One link of time
//! `P` holds the tail back by `P - x`. Of a row only the last link that holds it counts in full:
//! with each link in front the large packet falls behind by that link's time and the tail by the
//! share `w` of it (`w` the ratio of lengths), so that the row holds it back by less:
//!
//! ```text
//!  one link of P                    P - x
//!  p in front of P - p              P - x - w p
//!  P - p in front of p < w (P - p)  P - x - p
//! ```
//!
//! What is missing of `P - x` thus bounds what any link in front of the slowest may take:
//! `p <= missing / w`.

use super::picture::{Added, Picture};
use super::session::MethodRun;
use super::spacings::Kind;
use super::stages::{Pairs, Stages};

/// Trains per place where large packets die, at most and where these tell (ours).
pub(super) const MOST_TRAILING_PACKETS: u32 = 16;
const FEW_TRAILING_PACKETS: u32 = 7;
/// By which share of the hop's time the tail is to be behind, of which both the hold and what a row
/// takes off it are clear (ours).
const BEHIND: f64 = 0.5;
/// IP octets by which tails differ (ours).
const STEP: u16 = 16;
/// Of a hop's time what a link in front of its slowest may take unseen for the hop still to count
/// as one (ours).
const UNSEEN: f64 = 0.15;
/// Error over the hop's time up to which it counts as one: a router that copied as much would be
/// taken for a part of the link (ours).
const SURE: f64 = 0.04;
/// In errors of a difference (as tailgating probes).
const ERRORS: f64 = 2.0;

/// What tails say of a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Made {
    /// One link, but for what takes no longer than this, ns.
    OneLink { unseen: f64 },
    /// Several, of which all but the slowest take so long, ns, give or take.
    Row { rest: f64, off: f64 },
}

/// What is missing, known to `off`, of what one link of `time` would hold a tail back by; `ratio`:
/// of lengths.
fn made(missing: f64, off: f64, time: f64, ratio: f64) -> Option<Made> {
    if missing < -off {
        // Held back by more than one link does: something else was there.
        return None;
    }
    let unseen = (missing.max(0.0) + off) / ratio;
    if missing <= off && unseen <= UNSEEN * time && off <= SURE * time {
        return Some(Made::OneLink { unseen });
    }
    let rest = missing / ratio;
    (missing > 2.0 * off && rest <= time).then(|| Made::Row { rest: rest.min(time - rest), off: off / ratio })
}

impl MethodRun {
    /// IP octets of the tail that tells a hop; `None` where none can. With so much behind, the last
    /// link of any row of two holds the tail.
    fn trailing_packet(&self, added: &[Added], own: &Added) -> Option<u16> {
        let before = added.iter().filter(|added| added.hop < own.hop && added.stands_alone());
        let steepest = before.map(|added| added.slope).fold(0.0, f64::max);
        if steepest <= 0.0 {
            return None;
        }
        let share = BEHIND * (own.slope / steepest).min(1.0);
        let most = share * self.wire(self.plan.largest());
        let sizes = (self.plan.smallest()..self.plan.largest()).step_by(STEP.into()).skip(1);
        let octets = sizes.take_while(|octets| self.wire(*octets) <= most).last()?;
        // What is learned of the hop in between does not ask for another.
        Some(self.tailgating_probes.trailing_packet_near(own.hop - 1, octets, self.plan.smallest()).unwrap_or(octets))
    }

    /// What tails say so far of a hop that sizes tell.
    pub(super) fn by_trailing_packets(&self, added: &[Added], own: &Added) -> Option<Made> {
        let large = self.wire(self.plan.largest());
        let trailing_packet = self.trailing_packet(added, own)?;
        let ratio = self.wire(trailing_packet) / large;
        let reported = self
            .tailgating_probes
            .spacings(own.hop - 1, trailing_packet, self.floor_ns())
            .filter(|reported| reported.agreed)?;
        let behind = self.behind(added, own.hop - 1, ratio);
        if !behind.1.is_finite() {
            return None;
        }
        let time = own.slope * large;
        let error = ERRORS * reported.here.error_ns.hypot(reported.before.error_ns);
        let off = error.hypot((behind.1 - behind.0) / 2.0).hypot(own.half_width() * large);
        let one = time - f64::midpoint(behind.0, behind.1);
        if one <= 2.0 * off {
            return None;
        }
        made(one - (reported.here.ns - reported.before.ns), off, time, ratio)
    }

    /// Hops that tails may tell.
    fn worth_trailing_packets<'a>(&self, picture: &'a Picture) -> Vec<&'a Added> {
        let check = self.worth_a_check();
        let open = |added: &&Added| added.stands_alone() && !added.by_trains && added.pairs == Pairs::Unknown;
        let open = picture.added.iter().filter(open);
        open.filter(|added| check.contains(&(added.hop - 1))).collect()
    }

    /// Trains with tails that tell one hop.
    fn trailing_packets_of(&self, picture: &Picture, own: &Added) -> Vec<Kind> {
        let trailing_packet = self.trailing_packet(&picture.added, own);
        trailing_packet.map_or(Vec::new(), |trailing_packet| self.kinds(own.hop - 1, trailing_packet))
    }

    /// Trains with tails that are wanted.
    pub(super) fn trailing_packets(&self, picture: &Picture) -> Vec<Kind> {
        let worth = self.worth_trailing_packets(picture).into_iter();
        worth.flat_map(|own| self.trailing_packets_of(picture, own)).collect()
    }

    /// The next of them: some, and more where these do not tell.
    pub(super) fn next_trailing_packet(&self, picture: &Picture) -> Option<Kind> {
        let open = |own: &&Added| {
            let most = if self.by_trailing_packets(&picture.added, own).is_some() {
                FEW_TRAILING_PACKETS
            } else {
                MOST_TRAILING_PACKETS
            };
            let kinds = self.trailing_packets_of(picture, own).into_iter();
            // Trains whose answers waited for one another, and were asked of somebody else, count.
            kinds.filter(|kind| self.tailgating_probes.sent_alike(*kind) < most).collect::<Vec<Kind>>()
        };
        let worth = self.worth_trailing_packets(picture);
        let kinds = worth.iter().flat_map(open);
        kinds.min_by_key(|&kind| (self.tailgating_probes.sent_alike(kind), kind))
    }

    /// Takes what tails say of a hop that nothing else tells from a row; true if they say
    /// something.
    pub(super) fn read_trailing_packets(&self, added: &mut [Added], at: usize) -> bool {
        let own = added[at].clone();
        if own.pairs != Pairs::Unknown {
            return false;
        }
        let large = self.wire(self.plan.largest());
        let rest = own.stages.as_ref().map(|stages| own.slope - 8e9 / stages.rates[0]);
        match self.by_trailing_packets(added, &own) {
            Some(Made::OneLink { unseen }) if rest.is_none_or(|rest| unseen < rest * large) => {
                added[at].pairs = Pairs::OneLink;
                added[at].stages = None;
                added[at].unseen = unseen / large;
                true
            }
            Some(Made::Row { rest: reported, off }) => {
                let standard = rest.is_some_and(|rest| (rest * large - reported).abs() <= off);
                if standard && own.stages.as_ref().is_some_and(|stages| !stages.vague) {
                    added[at].pairs = Pairs::Row;
                    return true;
                }
                let (rest, off) = (reported / large, off / large);
                added[at].stages = Some(Stages {
                    rates: vec![8e9 / (own.slope - rest), 8e9 / rest],
                    ambiguous: true,
                    vague: false,
                    measured: Some((off / (own.slope - rest)).min(0.5)),
                });
                true
            }
            Some(Made::OneLink { .. }) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a row of links holds a tail back by that comes `x` behind, packet by packet.
    fn held(times: &[f64], ratio: f64, x: f64) -> f64 {
        let (mut large, mut trailing_packet, mut free) = (0.0, x, x);
        for time in times {
            large += time;
            trailing_packet = f64::max(trailing_packet, large) + ratio * time;
            free += ratio * time;
        }
        trailing_packet - free
    }

    /// 200 Mbit/s behind 100: one link, two of 400, and two of 200 that look like one of 100.
    #[test]
    fn rows_hold_a_trailing_packet_back_by_less() {
        let ratio = 0.25;
        for (times, x) in [(vec![61_520.0], 30_760.0), (vec![30_760.0; 2], 30_760.0), (vec![61_520.0; 2], 61_520.0)] {
            let time: f64 = times.iter().sum();
            let missing = time - x - held(&times, ratio, x);
            let made = made(missing, 1000.0, time, ratio);
            match times.as_slice() {
                [_] => assert_eq!(made, Some(Made::OneLink { unseen: 4000.0 })),
                _ => {
                    assert!(
                        matches!(made, Some(Made::Row { rest, .. }) if (rest - time / 2.0).abs() < 1.0),
                        "{times:?}: {made:?}"
                    );
                }
            }
        }
    }

    /// A link in front of the slowest takes no more than is said, whichever comes first.
    #[test]
    fn what_is_unseen_is_bounded() {
        let (time, ratio, x) = (100_000.0, 0.25, 50_000.0);
        for share in [0.02, 0.05, 0.1] {
            let rest = share * time;
            for times in [[rest, time - rest], [time - rest, rest]] {
                let missing = time - x - held(&times, ratio, x);
                match made(missing, 500.0, time, ratio) {
                    Some(Made::OneLink { unseen }) => assert!(unseen >= rest, "{share}: {unseen}"),
                    Some(Made::Row { rest: reported, .. }) => assert!(reported + 1.0 >= rest, "{share}: {reported}"),
                    None => {}
                }
            }
        }
        assert_eq!(made(-2000.0, 500.0, time, ratio), None);
        assert_eq!(made(3000.0, 3000.0, time, ratio), None);
    }
}
