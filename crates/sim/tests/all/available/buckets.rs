//! Token buckets that the default's own trains show by the way: told where there is one, not where
//! hosts or the path pause.

use narrows_methods as methods;
use narrows_probe::{Caveat, Confidence, Limit, Outcome};
use narrows_scenario::Scenario;
use narrows_units::Metric;

use super::{measured, read};

/// 100 Mbit/s, a link of 200 Mbit/s behind it that others fill by two thirds, and hosts that do not
/// run for 5 ms at a time.
const PAUSES: &str = r#"
name = "pauses"
about = "the demonstration's path between hosts that pause"
seed = 1
warm_up = "200 ms"
[[hop]]
name = "narrow"
rate = "100 Mbit/s"
delay = "3 ms"
queue = "200 packets"
[[hop]]
name = "tight"
rate = "200 Mbit/s"
delay = "1 ms"
queue = "400 packets"
cross = [{ arrivals = "poisson", rate = "130 Mbit/s", ip_octets = 1500 }]
[sender]
stalls = { every = "80 ms", lasting = "5 ms" }
[receiver]
stalls = { every = "60 ms", lasting = "5 ms" }
"#;

/// A shaper of 20 Mbit/s and thirty packets before 100 Mbit/s.
const SHAPED: &str = r#"
name = "shaped"
about = "a shaper within the trains' length"
seed = 1
[[hop]]
name = "access"
rate = "1 Gbit/s"
delay = "1 ms"
[[hop]]
name = "narrow"
rate = "100 Mbit/s"
delay = "3 ms"
queue = "300 packets"
shaper = { rate = "20 Mbit/s", burst = "46140 B", queue = "300 packets" }
"#;

fn reported(scenario: &Scenario, seed: u64) -> Outcome {
    let method = methods::automatic(Metric::AvailableIpCapacity).expect("a default");
    measured(scenario, method, &[], seed)
}

/// Heads of trains outran their tails in a fifth of these runs once.
#[test]
fn pauses_are_no_bucket() {
    let scenario = read(PAUSES);
    for seed in 50_000..50_008 {
        let outcome = reported(&scenario, seed);
        assert!(!outcome.caveats().contains(&Caveat::Shaped), "{seed}: {outcome:?}");
    }
}

#[test]
fn a_bucket_is_reported() {
    let scenario = read(SHAPED);
    for seed in 1..=3 {
        let outcome = reported(&scenario, seed);
        let estimate = outcome.estimate().expect("a value");
        assert!(estimate.caveats.contains(&Caveat::Shaped), "{seed}: {estimate:?}");
        assert_eq!(estimate.limited_by, Limit::Shaper);
        // The capacity shows the bucket, and the trains empty it: they find a link of its rate.
        assert_eq!(estimate.confidence, Confidence::Medium);
        assert!((19_600_000..=20_400_000).contains(&estimate.in_unit().value), "{}", estimate.in_unit().value);
        assert!(estimate.in_unit().low <= 20_000_000 && 20_000_000 <= estimate.in_unit().high, "{estimate:?}");
    }
}
