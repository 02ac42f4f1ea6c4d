//! What a run says of the largest packet.

use narrows_probe::Measured;
use narrows_probe::outcome::Estimate;
use narrows_units::{Metric, Octets};

/// The largest IP packet that the path takes, after a run: less than before if the run found less.
/// A router that drops larger ones without a word tells no other part of this host.
pub(crate) fn after(before: u16, measured: &Measured) -> u16 {
    let estimate = measured.outcome.estimate().filter(|estimate| estimate.metric == Metric::PathMtu);
    let found = estimate.and_then(Estimate::ranged::<Octets>).map(|range| range.value.count());
    found.and_then(|octets| u16::try_from(octets).ok()).map_or(before, |found| found.min(before))
}

#[cfg(test)]
mod tests {
    use narrows_probe::Cost;
    use narrows_probe::outcome::{Outcome, Ranged, Reason};

    use super::*;

    #[test]
    fn a_path_mtu_that_was_found_bounds_what_is_sent() {
        let after = |before, outcome| after(before, &Measured { outcome, cost: Cost::default() });
        let exactly = |octets| Ranged::exactly(Octets::new(octets));
        let found = |metric, octets| Outcome::from(Estimate::new(metric, None, exactly(octets)));
        assert_eq!(after(1500, found(Metric::PathMtu, 1400)), 1400);
        assert_eq!(after(1400, found(Metric::PathMtu, 1500)), 1400);
        assert_eq!(after(1500, found(Metric::MaximumBurstOctets, 900)), 1500);
        assert_eq!(after(1500, Outcome::inconclusive(Reason::NoAnswer)), 1500);
    }
}
