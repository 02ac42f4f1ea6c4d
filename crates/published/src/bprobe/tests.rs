use std::time::Duration;

use narrows_units::BitRate;

use super::*;
use narrows_probe::outcome::{BoundKind, Caveat, Limit, Outcome, Reason};
use narrows_probe::registry::{Method, RawParams};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::{Measured, Probe};

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

fn between(narrow: Hop, seed: u64) -> ClosedFormWorld {
    ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), narrow, Hop::ethernet(mbps(1000))], seed)
}

fn measure(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Measured {
    let raw = params.iter().copied().collect();
    let mut run = Bprobe.begin(&raw).unwrap();
    host_pair.measure(run.as_mut(), Bprobe.imposes(&raw).budget())
}

#[test]
fn sizes_grow_by_half_and_by_one_and_a_half_in_turn_up_to_the_mtu() {
    let params = Params::default();
    assert_eq!(params.sizes(9000), [124, 186, 465, 697, 1741, 2611, 9000]);
    assert_eq!(params.sizes(1500), [124, 186, 465, 697, 1500]);
    assert_eq!(params.sizes(100), [100]);
}

#[test]
fn all_sizes_of_an_idle_path_agree_on_the_wire() {
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    let measured = measure(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::Estimated);
    assert!((estimate.in_unit().value as f64 / 9.752_926e6 - 1.0).abs() < 1e-3, "{}", estimate.in_unit().value);
    assert_eq!(estimate.diagnostics.get("phases_that_agree").unwrap().as_f64(), Some(5.0));
    // Five sizes, ten packets, twice.
    assert_eq!(measured.cost.packets, 100);
    assert_eq!(measured.cost.octets, 20 * (124 + 186 + 465 + 697 + 1500));
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    let bare = measure(&mut host_pair, &[("framing", "bare")]);
    // Without framing 124 octets say 7.65 and 1500 say 9.75: fewer sizes agree.
    let agree = bare.outcome.estimate().unwrap().diagnostics.get("phases_that_agree");
    assert!(agree.is_none_or(|count| count.as_f64() < Some(5.0)));
}

#[test]
fn round_trips_of_one_size_bound_the_way_there() {
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    let measured = measure(&mut host_pair, &[("stamps", "returned")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Path));
    assert!(estimate.caveats.contains(&Caveat::AsymmetricLimit));
}

#[test]
fn hosts_that_set_the_spacing_are_seen() {
    let mut host_pair = between(Hop::ethernet(mbps(500)), 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(60);
    let measured = measure(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!(estimate.in_unit().value < 487_000_000 && estimate.in_unit().value > 150_000_000);
    let mut host_pair = between(Hop::ethernet(mbps(500)), 1);
    host_pair.stamping.batch = Some(Duration::from_micros(500));
    let measured = measure(&mut host_pair, &[]);
    let Outcome::Inconclusive { reason, .. } = &measured.outcome else { panic!("{:?}", measured.outcome) };
    assert_eq!(*reason, Reason::ReceiveBatching);
}

#[test]
fn load_gives_the_truth_or_a_bound_that_holds() {
    let mut estimated = 0;
    for seed in 0..20 {
        let mut host_pair = between(Hop::loaded(mbps(100), Cross::mixed(mbps(50))), seed);
        let measured = measure(&mut host_pair, &[]);
        let Some(estimate) = measured.outcome.estimate() else {
            continue;
        };
        let truth = 97_529_259;
        estimated += u32::from(estimate.verdict() == BoundKind::Estimated);
        let holds = estimate.in_unit().low <= truth
            && (estimate.verdict() == BoundKind::LowerBound || truth <= estimate.in_unit().high);
        assert!(
            holds,
            "{seed}: {} in {}..={}",
            estimate.in_unit().value,
            estimate.in_unit().low,
            estimate.in_unit().high
        );
    }
    assert!(estimated >= 15, "{estimated}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("first", "10"),
        ("phases", "1"),
        ("packets", "2"),
        ("rounds", "0"),
        ("tolerance", "0.9"),
        ("spacing", "1 h"),
        ("stamps", "mine"),
        ("via", "pigeon"),
        ("framing", "x"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Bprobe.begin(&raw).is_err(), "{name} = {value}");
    }
    let mut run = Bprobe.begin(&RawParams::new()).unwrap();
    let facts = narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1));
    let step = run.step(narrows_units::Stamp::from_nanos(0), narrows_probe::Event::Started(facts));
    let narrows_probe::Step::Send(Probe::Train(train)) = step else { panic!("{step:?}") };
    assert_eq!((train.packets.len(), train.packets[0].ip_octets), (10, 124));
}
