//! Two methods' answers to one question.

use narrows_units::BitRate;

use narrows_probe::Entry;
use narrows_probe::outcome::{BoundKind, BucketFinding, Caveat, Confidence, Estimate, Finding, Limit, Outcome, Ranged};
use narrows_train::bucket_head::emptied_by;

/// Quantile of the normal distribution that leaves 5 % on either side: intervals of both methods,
/// and of the result, hold 90 %.
const NINETY: f64 = 1.645;

/// Bias and spread that a rate search has beyond its own interval, as a share of the capacity:
/// measured in the simulator over ten paths with Poisson traffic, 60 seeds each, where pathload's
/// quick form was off by +2 % in the median with a spread of 3 %.
const SEARCH_ERROR: f64 = 0.035;

/// How much of the spread between single trains of the other method a search of few streams
/// inherits: ours, from on/off traffic, where the spread is a quarter of the capacity and the
/// search errs by an eighth.
const SEARCH_SPREAD: f64 = 0.5;

/// The deepest token bucket that each train empties first; from [`DEEP_OCTETS`] on a few trains do
/// so in quick succession, for each costs a third of a usual run (ours).
const EMPTIED_OCTETS: u64 = 600_000;
const DEEP_OCTETS: u64 = 150_000;
const DEEP_TRAINS: &str = "4";
const DEEP_LOAD: &str = "0.4";
/// A bucket that fills faster than this share of the rate at which packets come is hardly one.
const MOST_REFILLED: f64 = 0.9;
/// What a bucket of unknown depth is taken to hold (ours: as `watch` does; more costs octets and no
/// truth).
const USUAL_OCTETS: u64 = 60_000;

/// What trains take from the capacity: the narrow link's rate where that is sure enough, else the
/// least that it may be, and the token bucket that each of them empties first. What follows meets a
/// link of the bucket's rate. A bucket that is too deep for that is no link, and a rate that varies
/// is another by then.
pub(super) fn taken_over(known: &Estimate) -> Vec<(&'static str, String)> {
    let shaped = known.caveats.contains(&Caveat::Shaped);
    let depth = match &known.details.finding {
        Finding::Bucket(bucket) => drained(bucket, known.rate()),
        _ => USUAL_OCTETS,
    };
    let bucket = Some(depth).filter(|depth| shaped && *depth <= EMPTIED_OCTETS);
    let sure = known.verdict() == BoundKind::Estimated && known.confidence > Confidence::Low;
    let link = !known.caveats.contains(&Caveat::VariableRate) && (!shaped || bucket.is_some());
    let rate = known.rate().filter(|_| link);
    let narrow = rate.filter(|_| sure).map(|rate| ("narrow", rate.value.bps().to_string()));
    let least = rate.filter(|rate| !sure && !shaped && rate.low > BitRate::ZERO);
    let narrow = narrow.or(least.map(|rate| ("least", rate.low.bps().to_string())));
    let deep = bucket.is_some_and(|octets| octets > DEEP_OCTETS);
    let few = [("trains", DEEP_TRAINS), ("load", DEEP_LOAD)].map(|(name, value)| (name, value.to_owned()));
    let peak = match &known.details.finding {
        Finding::Bucket(found) if bucket.is_some() => Some(("bucket-peak", found.peak_bps.bps().to_string())),
        _ => None,
    };
    let bucket = bucket.map(|octets| ("bucket", octets.to_string()));
    narrow.into_iter().chain(bucket).chain(peak).chain(few.into_iter().filter(|_| deep)).collect()
}

/// Octets that empty the bucket: while they come at the peak rate it goes on to fill.
fn drained(bucket: &BucketFinding, rate: Option<Ranged<BitRate>>) -> u64 {
    let share = rate.map_or(0.0, |rate| rate.value.as_f64() / bucket.peak_bps.as_f64().max(1.0));
    narrows_units::rounded(emptied_by(bucket.depth.count() as f64, share.clamp(0.0, MOST_REFILLED)))
}

/// Available bandwidth never exceeds capacity (RFC 5136 §2.3.5): an interval that reaches beyond is
/// cut there. One that lies beyond as a whole is of trains that a bucket let through, or of another
/// moment: no more than the capacity is left, with the capacity's interval. Of trains that a bucket
/// let through only that is known: others may take all of it.
///
/// Where the link's rate varies, trains that find it fast say only that more is available than they
/// took: the mean is too low, and all of the link may be free.
pub(super) fn cap_by(known: &Estimate, outcome: &mut Outcome) {
    let Some(capacity) = known.rate().filter(|known| known.verdict == BoundKind::Estimated) else {
        return;
    };
    let shaped = known.caveats.iter().any(|caveat| matches!(caveat, Caveat::Shaped));
    let Outcome::Estimated(estimate) = outcome else { return };
    let beyond = estimate.rate().is_some_and(|rate| rate.low > capacity.high);
    // Trains that met no bucket and found all of its rate free were let through by it; so was what
    // passed faster than the capacity.
    let all = estimate.rate().is_some_and(|rate| rate.high >= capacity.low);
    let bound = estimate.verdict() == BoundKind::LowerBound;
    let met = estimate.caveats.contains(&Caveat::Shaped) && !bound;
    let let_through = (beyond && (shaped || bound)) || (all && shaped && !met);
    estimate.adjust(|rate: &mut Ranged<BitRate>| {
        let value = if beyond { capacity.value } else { capacity.high };
        rate.value = rate.value.min(value);
        rate.high = rate.high.min(capacity.high).max(rate.value);
        rate.low = rate.low.min(if beyond { capacity.low } else { rate.value });
        if let_through {
            *rate = Ranged { low: BitRate::ZERO, high: capacity.high, verdict: BoundKind::Estimated, ..*rate };
        }
    });
    if known.caveats.contains(&Caveat::VariableRate) {
        estimate.adjust(|rate: &mut Ranged<BitRate>| rate.high = rate.high.max(capacity.high));
        estimate.confidence = Confidence::Low;
        if !estimate.caveats.contains(&Caveat::VariableRate) {
            estimate.caveats.push(Caveat::VariableRate);
        }
    }
    if shaped {
        estimate.caveats.retain(|caveat| !matches!(caveat, Caveat::BucketNotExcluded { .. }));
    }
    // Trains may not have emptied a bucket whose depth nobody knows.
    if shaped && !matches!(known.details.finding, Finding::Bucket(_)) {
        estimate.confidence = Confidence::Low;
    }
    if let_through {
        estimate.caveats.retain(|caveat| *caveat != Caveat::Shaped);
        estimate.caveats.push(Caveat::Shaped);
        estimate.limited_by = Limit::Shaper;
        estimate.confidence = Confidence::Low;
    }
}

/// A path carries at least what is available on it (RFC 5136 §2.3.5): a lower bound of the capacity
/// below that rises to it. Trains of the search for available bandwidth may go faster than those
/// that a host sends back to back.
pub(super) fn raise_by(available: &Estimate, outcome: &mut Outcome) {
    let Outcome::Estimated(capacity) = outcome else { return };
    let bounded = capacity.verdict() == BoundKind::LowerBound;
    let Some(least) = available.rate().map(|rate| rate.low).filter(|_| bounded) else { return };
    capacity.adjust(|rate: &mut Ranged<BitRate>| {
        rate.value = rate.value.max(least);
        rate.low = rate.low.max(least);
        rate.high = rate.high.max(least);
    });
}

/// One answer from `trains` (whose interval is honest but may be wide) and `search` (whose interval
/// is narrow and does not know its own bias): the mean of both weighted by their variances,
/// relative to a path of `capacity`. If one of them claims no value, `trains` stand: where hosts
/// leave them no value, a search misses the truth four times out of five and does not know it.
pub(super) fn combine(trains: Entry, search: &Entry, capacity: BitRate) -> Entry {
    let (Some((trains_say, a)), Some((search_says, b))) = (claim(&trains), claim(search)) else {
        return Entry { cost: trains.cost.then(search.cost), ..trains };
    };
    let scale = capacity.as_f64().max(1.0);
    let spread = train_spread(trains_say).unwrap_or(0.0);
    let sd_a = half_width(a) / NINETY;
    let own = half_width(b) / NINETY;
    let sd_b = (own.powi(2) + (SEARCH_ERROR * scale).powi(2) + (SEARCH_SPREAD * spread).powi(2)).sqrt();
    let (weight_a, weight_b) = (1.0 / sd_a.max(1e-3 * scale).powi(2), 1.0 / sd_b.powi(2));
    let value = (a.value.as_f64() * weight_a + b.value.as_f64() * weight_b) / (weight_a + weight_b);
    // Two answers that contradict each other are less sure than either: the interval spans their
    // disagreement too.
    let disagreement = (a.value.as_f64() - b.value.as_f64()).abs() / 2.0;
    let half = (NINETY / (weight_a + weight_b).sqrt()).max(disagreement);
    let agree = a.value.bps().abs_diff(b.value.bps()) * 20 <= a.value.max(b.value).bps();
    let range = Ranged::new(whole(value), whole(value - half), whole(value + half));
    let mut estimate = Estimate::new(trains_say.metric, trains_say.layer, range);
    estimate.interval = trains_say.interval.into_iter().chain(search_says.interval).max();
    estimate.confidence = if agree { Confidence::High } else { Confidence::Medium };
    estimate.caveats = union(&trains_say.caveats, &search_says.caveats);
    estimate.also.clone_from(&trains_say.also);
    estimate.details.clone_from(&trains_say.details);
    estimate.diagnostics.clone_from(&trains_say.diagnostics);
    let estimate = estimate
        .with("slope_bps", a.value)
        .with("pathload_bps", b.value)
        .with("slope_weight", weight_a / (weight_a + weight_b));
    Entry { method: "slope and pathload", cost: trains.cost.then(search.cost), outcome: estimate.into(), ..trains }
}

/// The entry's estimate, if it claims a value and not a bound.
fn claim(entry: &Entry) -> Option<(&Estimate, Ranged<BitRate>)> {
    let estimate = entry.outcome.estimate()?;
    let rate = estimate.rate()?;
    (rate.verdict == BoundKind::Estimated).then_some((estimate, rate))
}

fn half_width(rate: Ranged<BitRate>) -> f64 {
    rate.high.saturating_sub(rate.low).as_f64() / 2.0
}

/// Standard deviation of the single trains' answers, bit/s.
fn train_spread(estimate: &Estimate) -> Option<f64> {
    match &estimate.details.finding {
        Finding::Available(found) => narrows_stat::variance_sample(&found.per_train_bps).map(f64::sqrt),
        _ => None,
    }
}

fn union(first: &[Caveat], second: &[Caveat]) -> Vec<Caveat> {
    let mut all = first.to_vec();
    all.extend(second.iter().filter(|caveat| !first.contains(caveat)).cloned());
    all
}

fn whole(value: f64) -> BitRate {
    BitRate::from_bps_f64(value.max(0.0)).unwrap_or(BitRate::ZERO)
}

#[cfg(test)]
mod tests {
    use narrows_units::{Direction, Metric, Octets};

    use super::*;
    use narrows_probe::Cost;
    use narrows_probe::outcome::Reason;

    const CAPACITY: BitRate = BitRate::from_mbps(100);

    fn entry(method: &'static str, mbps: Option<(u64, u64, u64)>) -> Entry {
        let metric = Metric::AvailableIpCapacity;
        let rate = BitRate::from_mbps;
        Entry {
            metric,
            direction: Direction::Forward,
            method,
            outcome: mbps.map_or_else(
                || Outcome::inconclusive(Reason::NoAgreement),
                |(low, value, high)| Estimate::ip_rate(metric, rate(value), rate(low), rate(high)).into(),
            ),
            cost: Cost::default(),
        }
    }

    /// What is free on a path passes it; a value of the capacity, or a higher bound, stands.
    #[test]
    fn a_path_carries_at_least_what_is_available() {
        let rate = BitRate::from_mbps;
        let of = |mbps| Estimate::ip_rate(Metric::IpCapacity, rate(mbps), rate(mbps), rate(mbps));
        let available = Estimate::ip_rate(Metric::AvailableIpCapacity, rate(80), rate(75), rate(85));
        for (capacity, expected) in
            [(of(60).at_least(Limit::Sender), 75), (of(90).at_least(Limit::Sender), 90), (of(60), 60)]
        {
            let mut outcome = Outcome::from(capacity);
            raise_by(&available, &mut outcome);
            let found = outcome.estimate().and_then(Estimate::rate).unwrap();
            assert_eq!((found.low, found.value), (rate(expected), rate(expected)));
        }
    }

    /// By hand: sd 10/1.645 = 6.079 and sqrt((2/1.645)² + 3.5²) = 3.705; weights 0.02706 and
    /// 0.07284; the mean of 60 and 66 is 64.37, and ± 1.645/sqrt(0.0999) = 5.20 exceeds half their
    /// difference.
    #[test]
    fn weights_go_by_variance() {
        let both = combine(entry("slope", Some((50, 60, 70))), &entry("pathload", Some((64, 66, 68))), CAPACITY);
        let estimate = both.outcome.estimate().expect("both claim a value");
        assert!(estimate.in_unit().value.abs_diff(64_374_000) < 20_000, "{}", estimate.in_unit().value);
        assert!(
            (estimate.in_unit().high - estimate.in_unit().value).abs_diff(5_204_000) < 20_000,
            "{}",
            estimate.in_unit().high
        );
    }

    #[test]
    fn beside_a_rate_that_varies_all_may_be_free() {
        let rate = |mbps: u64| BitRate::from_mbps(mbps);
        let known = Estimate::ip_rate(Metric::IpCapacity, rate(40), rate(39), rate(41)).caveat(Caveat::VariableRate);
        assert_eq!(taken_over(&known), []);
        let mut found = entry("slope", Some((21, 23, 28))).outcome;
        cap_by(&known, &mut found);
        let found = found.estimate().unwrap();
        assert_eq!(found.rate().map(|rate| (rate.low, rate.value, rate.high)), Some((rate(21), rate(23), rate(41))));
        assert!(found.confidence == Confidence::Low && found.caveats.contains(&Caveat::VariableRate), "{found:?}");
    }

    fn shaped(depth_octets: Option<u64>) -> Estimate {
        let rate = BitRate::from_mbps;
        let known = Estimate::ip_rate(Metric::IpCapacity, rate(50), rate(49), rate(51)).caveat(Caveat::Shaped);
        let found = |depth| Finding::Bucket(Box::new(BucketFinding { peak_bps: rate(195), depth: Octets::new(depth) }));
        depth_octets.map(found).into_iter().fold(known, Estimate::found)
    }

    #[test]
    fn trains_empty_the_bucket_that_the_capacity_found() {
        let said = |known: &Estimate| -> String {
            let said = taken_over(known).into_iter().map(|(name, value)| format!("{name}={value}"));
            said.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said(&shaped(Some(30_000))), "narrow=50000000 bucket=40345 bucket-peak=195000000");
        assert_eq!(said(&shaped(None)), "narrow=50000000 bucket=60000", "of a depth that nobody knows");
        assert_eq!(
            said(&shaped(Some(300_000))),
            "narrow=50000000 bucket=403448 bucket-peak=195000000 trains=4 load=0.4"
        );
        assert_eq!(said(&shaped(Some(500_000))), "", "too deep, and so no link of its rate");
        let mut unsure = shaped(None);
        unsure.confidence = Confidence::Low;
        assert_eq!(said(&unsure), "bucket=60000");
    }

    #[test]
    fn what_a_bucket_let_through_may_all_be_taken() {
        let rate = BitRate::from_mbps;
        let capped = |known: &Estimate, mut outcome: Outcome| {
            cap_by(known, &mut outcome);
            let found = outcome.estimate().unwrap().rate().unwrap();
            (found.verdict, found.low, found.value, found.high)
        };
        let any = (BoundKind::Estimated, BitRate::ZERO, rate(50), rate(51));
        let trains = |low, value, high| entry("slope", Some((low, value, high))).outcome;
        assert_eq!(capped(&shaped(Some(500_000)), trains(190, 195, 200)), any);
        let bound =
            Estimate::ip_rate(Metric::AvailableIpCapacity, rate(60), rate(60), rate(60)).at_least(Limit::Budget);
        assert_eq!(capped(&shaped(None), bound.clone().into()), any);
        let unshaped = Estimate::ip_rate(Metric::IpCapacity, rate(50), rate(49), rate(51));
        assert_eq!(capped(&unshaped, bound.into()), any, "more than the capacity is no bound");
        let taken = (BoundKind::Estimated, rate(18), rate(20), rate(22));
        assert_eq!(capped(&shaped(Some(500_000)), trains(18, 20, 22)), taken);
        let met = trains(48, 50, 52).estimate().unwrap().clone().caveat(Caveat::Shaped);
        assert_eq!(capped(&shaped(None), met.into()), (BoundKind::Estimated, rate(48), rate(50), rate(51)));
    }

    #[test]
    fn contradiction_widens_the_interval() {
        let both = combine(entry("slope", Some((49, 50, 51))), &entry("pathload", Some((89, 90, 91))), CAPACITY);
        let estimate = both.outcome.estimate().expect("both claim a value");
        assert!(estimate.in_unit().high - estimate.in_unit().low >= 40_000_000 - 2);
        assert_eq!(estimate.confidence, Confidence::Medium);
    }

    #[test]
    fn what_claims_nothing_has_no_weight() {
        let one = combine(entry("slope", Some((50, 60, 70))), &entry("pathload", None), CAPACITY);
        assert_eq!((one.method, one.outcome.estimate().map(|e| e.in_unit().value)), ("slope", Some(60_000_000)));
        for search in [None, Some((64, 66, 68))] {
            let none = combine(entry("slope", None), &entry("pathload", search), CAPACITY);
            assert_eq!((none.method, none.outcome.verdict()), ("slope", BoundKind::Inconclusive));
        }
    }
}
