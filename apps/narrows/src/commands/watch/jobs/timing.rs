//! Whether this host kept time while it measured.

use narrows_probe::{Caveat, Entry, Outcome, Reason};

/// A host stood still, its clock was set, or it could not keep the gaps that were planned, so that
/// little or nothing could be used. Which of both ends it was is not known; neither is the path.
pub(super) fn is_invalid(entry: &Entry) -> bool {
    let is_of_timing = |caveat: &Caveat| matches!(caveat, Caveat::HostStall | Caveat::ClockStep);
    let doubted = entry.outcome.caveats().iter().any(is_of_timing);
    match &entry.outcome {
        Outcome::Estimated(_) => {
            let samples = &entry.outcome.details().samples;
            let [kept, rejected] = [&samples.kept, &samples.rejected].map(|counts| counts.values().sum::<u64>());
            doubted && rejected > kept
        }
        Outcome::Inconclusive { reason, .. } => doubted || *reason == Reason::SenderCannotPace,
    }
}

#[cfg(test)]
mod tests {
    use narrows_probe::{Cost, Estimate, SampleCounts};
    use narrows_units::{BitRate, Direction, Metric};

    use super::*;

    fn entry(outcome: Outcome) -> Entry {
        let metric = Metric::AvailableIpCapacity;
        Entry { metric, direction: Direction::Forward, method: "slope", outcome, cost: Cost::default() }
    }

    #[test]
    fn a_standstill_counts_where_it_left_little() {
        let rate = BitRate::from_mbps(50);
        let estimate = |caveat: Option<Caveat>, kept: u64, rejected: u64| {
            let estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, rate, rate, rate);
            let estimate =
                estimate.counted(SampleCounts::default().kept("trains", kept).rejected("paused_trains", rejected));
            entry(caveat.map_or(estimate.clone(), |caveat| estimate.caveat(caveat)).into())
        };
        assert!(!is_invalid(&estimate(None, 2, 8)), "lost trains are the path's");
        assert!(!is_invalid(&estimate(Some(Caveat::HostStall), 8, 2)));
        assert!(is_invalid(&estimate(Some(Caveat::HostStall), 2, 8)));
        assert!(is_invalid(&estimate(Some(Caveat::ClockStep), 2, 8)));
        let none = |reason: Reason, caveat: Option<Caveat>| {
            let mut outcome = Outcome::inconclusive(reason);
            if let Outcome::Inconclusive { caveats, .. } = &mut outcome {
                caveats.extend(caveat);
            }
            entry(outcome)
        };
        assert!(is_invalid(&none(Reason::NoAgreement, Some(Caveat::HostStall))));
        assert!(is_invalid(&none(Reason::SenderCannotPace, None)));
        assert!(!is_invalid(&none(Reason::NoAgreement, None)));
    }
}
