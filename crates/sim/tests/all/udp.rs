//! UDP loads from hosts that are held up.

use std::sync::Arc;

use narrows_host_profile::HostProfile;
use narrows_methods as methods;
use narrows_probe::outcome::Caveat;
use narrows_probe::{Estimate, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

/// A sender that caught up after each hold-up filled a short queue, whose losses passed for the
/// path's: a quarter to a half of the rate, without a word.
#[test]
fn a_sender_that_is_held_up_finds_no_losses_of_its_own() {
    let profile = HostProfile::from_toml(include_str!("../../../../hosts/busy.toml")).expect("a profile");
    let text = include_str!("../../../../scenarios/burst-shallow-queue.toml");
    let scenario = Scenario::from_toml(text).expect("a valid scenario").hosts(&Arc::new(profile));
    let method = methods::find("udp").expect("a method");
    let raw = RawParams::new();
    let mut values = Vec::new();
    for seed in 1..=20 {
        let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
        let mut estimator = method.begin(&raw).expect("parameters of the method");
        let measured =
            drive(&mut world, estimator.as_mut(), method.imposes(&raw).budget()).expect("a world that works");
        let rate = measured.outcome.estimate().and_then(Estimate::rate).expect("a rate");
        values.push(rate.value.as_f64());
        assert!((rate.low.as_f64()..=rate.high.as_f64()).contains(&95.7e6), "seed {seed}: {:?}", measured.outcome);
        assert!(measured.outcome.caveats().contains(&Caveat::HostStall), "seed {seed}: {:?}", measured.outcome);
    }
    values.sort_by(f64::total_cmp);
    assert!((0.85 * 95.7e6..1.05 * 95.7e6).contains(&values[10]), "{values:?}");
}
