//! Was the plan kept?

use std::time::Duration;

use narrows_probe::probes::{PacingCheck, PacketPlan};

use crate::clock::nanos;

/// Holds departures (monotonic nanoseconds, one per packet) against the plan. Back-to-back packets
/// have no planned gap and are not judged; a train without any planned gap is kept by definition.
///
/// The limits are those that [`PacingCheck::Broken`] names: ours, from the rule that a gap error of
/// a tenth is a rate error of a tenth.
pub fn check(plan: &[PacketPlan], departures_ns: &[i64]) -> PacingCheck {
    let (mut planned, mut actual, mut gaps, mut off) = (0i64, 0i64, 0usize, 0usize);
    let (mut worst, mut broken) = (0i64, false);
    for (packet, pair) in plan.iter().skip(1).zip(departures_ns.windows(2)) {
        let gap = nanos(packet.gap);
        if gap == 0 {
            continue;
        }
        let real = pair[1].saturating_sub(pair[0]);
        let error = real.saturating_sub(gap).saturating_abs();
        planned = planned.saturating_add(gap);
        actual = actual.saturating_add(real);
        gaps += 1;
        off += usize::from(error > (gap / 10).max(1_000));
        broken |= error > (gap / 2).max(5_000);
        worst = worst.max(error);
    }
    broken |= i128::from(actual - planned).abs() * 50 > i128::from(planned);
    broken |= off * 20 > gaps;
    if broken { PacingCheck::Broken { worst: Duration::from_nanos(worst.unsigned_abs()) } } else { PacingCheck::Kept }
}

/// Whether stamps by the kernel are worth what they cost this train: a microsecond or so per
/// packet, which a train with gaps below 10 µs or with long back-to-back runs would show.
pub fn worth_stamping(plan: &[PacketPlan]) -> bool {
    const SMALLEST_GAP: Duration = Duration::from_micros(10);
    const LONGEST_RUN: usize = 16;
    let rest = plan.get(1..).unwrap_or_default();
    let spaced = rest.iter().all(|packet| packet.gap.is_zero() || packet.gap >= SMALLEST_GAP);
    let runs = rest.split(|packet| !packet.gap.is_zero());
    spaced && runs.map(<[PacketPlan]>::len).max().unwrap_or(0) < LONGEST_RUN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(gaps_us: &[u64]) -> Vec<PacketPlan> {
        gaps_us
            .iter()
            .map(|&us| PacketPlan { gap: Duration::from_micros(us), ip_octets: 1500, hop_limit: None })
            .collect()
    }

    /// Departures whose gaps are these.
    fn departures(gaps_ns: &[i64]) -> Vec<i64> {
        let mut at = 1_000;
        gaps_ns
            .iter()
            .map(|gap| {
                at += gap;
                at
            })
            .collect()
    }

    #[test]
    fn the_plan_itself_is_kept() {
        let plan = plan(&[0, 100, 50, 0, 0, 20]);
        assert_eq!(check(&plan, &departures(&[0, 100_000, 50_000, 700, 900, 20_000])), PacingCheck::Kept);
        assert_eq!(check(&plan[..1], &[5]), PacingCheck::Kept);
        assert_eq!(check(&[], &[]), PacingCheck::Kept);
    }

    #[test]
    fn one_gap_off_by_more_than_half_breaks() {
        let plan = plan(&[0, 100, 100, 100]);
        let just = departures(&[0, 150_000, 52_000, 100_000]);
        // Half is allowed for one gap, but two of three are off by more than a tenth.
        assert_eq!(check(&plan, &just), PacingCheck::Broken { worst: Duration::from_micros(50) });
        let mut long = vec![0];
        long.extend([100_000i64; 98]);
        let plan = tests::plan(&[100; 99]);
        assert_eq!(check(&plan, &departures(&long)), PacingCheck::Kept);
        (long[10], long[11]) = (150_000, 50_000);
        assert_eq!(check(&plan, &departures(&long)), PacingCheck::Kept);
        (long[10], long[11]) = (150_100, 49_900);
        assert!(matches!(check(&plan, &departures(&long)), PacingCheck::Broken { .. }));
    }

    #[test]
    fn a_mean_off_by_two_percent_breaks() {
        let plan = plan(&[100; 100]);
        assert_eq!(check(&plan, &departures(&[101_900; 100])), PacingCheck::Kept);
        assert!(matches!(check(&plan, &departures(&[102_100; 100])), PacingCheck::Broken { .. }));
        assert!(matches!(check(&plan, &departures(&[97_900; 100])), PacingCheck::Broken { .. }));
    }

    #[test]
    fn short_gaps_and_long_runs_are_not_stamped() {
        assert!(worth_stamping(&plan(&[0, 10, 10])));
        assert!(!worth_stamping(&plan(&[0, 9, 10])));
        assert!(worth_stamping(&plan(&[0; 16])));
        assert!(!worth_stamping(&plan(&[0; 17])));
        assert!(worth_stamping(&plan(&[0, 0, 5_000, 0, 5_000, 0])));
    }
}
