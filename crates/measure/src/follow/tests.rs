use super::*;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;
use narrows_probe::{BoundKind, Caveat, Event, Outcome, PathFacts, Reason, Refusal, Step, drive};
use narrows_units::Stamp;

fn begun(pairs: &[(&str, &str)]) -> Box<dyn Estimator> {
    Track.begin(&pairs.iter().copied().collect()).unwrap()
}

#[test]
fn exact_in_the_fluid_model() {
    for capacity in [BitRate::from_mbps(100), BitRate::from_gbps(1), BitRate::from_gbps(10)] {
        for tenths in [0u64, 3, 5, 7, 9] {
            let cross = BitRate::from_bps(capacity.bps() / 10 * tenths);
            let mut world = Fluid::new(capacity, cross);
            let mut machine = begun(&[("duration", "10 s")]);
            let Ok(measured) = drive(&mut world, machine.as_mut(), INFO.imposes.budget());
            let estimate = measured.outcome.estimate().unwrap();
            let truth = (capacity.bps() - cross.bps()) as f64;
            let off = (estimate.in_unit().value as f64 - truth).abs() / capacity.as_f64();
            assert!(off < 0.01, "{capacity} {cross}: {off} {estimate:?}");
            assert!(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64, "{estimate:?}");
            let load = measured.cost.octets as f64 * 8.0 / measured.cost.time.as_secs_f64() / capacity.as_f64();
            assert!(load < 0.0102, "{capacity} {cross}: {load}");
        }
    }
}

/// Capacity and rate are known from before: eight trains are enough, and none is far too fast.
#[test]
fn eight_trains_from_a_known_rate() {
    let (capacity, cross) = (BitRate::from_mbps(100), BitRate::from_mbps(40));
    for start in ["60 Mbit/s", "30 Mbit/s", "80 Mbit/s"] {
        let mut world = Fluid::new(capacity, cross);
        let mut machine =
            begun(&[("start-rate", start), ("capacity", "100 Mbit/s"), ("trains", "8"), ("memory", "10 s")]);
        let Ok(measured) = drive(&mut world, machine.as_mut(), INFO.imposes.budget());
        let found = measured.outcome.estimate().unwrap().in_unit();
        assert!((found.value as f64 - 60e6).abs() < 1e6, "{start}: {found:?}");
        assert_eq!(measured.outcome.details().samples.kept.get("trains"), Some(&8), "{start}");
        assert!(measured.cost.octets <= 8 * 36_000, "{start}: {}", measured.cost.octets);
        assert!(measured.cost.time < Duration::from_secs(4), "{start}: {:?}", measured.cost.time);
    }
}

/// Poisson load on a gigabit: unbiased, and the interval holds the truth.
#[test]
fn poisson_load_is_followed() {
    let (mut errors, mut held) = (Vec::new(), 0);
    for seed in 1..=10 {
        let hop = Hop::loaded(BitRate::from_gbps(1), Cross::poisson(BitRate::from_mbps(500)));
        let mut host_pair = ClosedFormWorld::new(vec![hop], seed);
        let truth = host_pair.available(1500).as_f64();
        let measured = host_pair.measure(begun(&[("duration", "8 s")]).as_mut(), INFO.imposes.budget());
        let estimate = measured.outcome.estimate().unwrap();
        errors.push((estimate.in_unit().value as f64 - truth) / 1e9);
        held += u32::from(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64);
    }
    let mean = narrows_stat::mean(&errors).unwrap();
    assert!((-0.03..0.03).contains(&mean), "{errors:?}");
    assert!(errors.iter().all(|error| error.abs() < 0.1), "{errors:?}");
    assert!(held >= 7, "{held} of 10");
}

/// Seven tenths taken: trains near what is left scatter by as much as is left, and what tells of
/// the tight link's capacity is that scatter.
#[test]
fn heavy_load_is_followed_without_bias() {
    let (mut errors, mut held) = (Vec::new(), 0);
    for seed in 1..=20 {
        let hop = Hop::loaded(BitRate::from_gbps(1), Cross::poisson(BitRate::from_mbps(700)));
        let mut host_pair = ClosedFormWorld::new(vec![hop], seed);
        let truth = host_pair.available(1500).as_f64();
        let measured = host_pair.measure(begun(&[("duration", "20 s")]).as_mut(), INFO.imposes.budget());
        let estimate = measured.outcome.estimate().unwrap();
        errors.push((estimate.in_unit().value as f64 - truth) / 1e9);
        held += u32::from(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64);
    }
    let mean = narrows_stat::mean(&errors).unwrap();
    assert!((-0.02..0.02).contains(&mean), "{errors:?}");
    assert!((16..=20).contains(&held), "{held} of 20: {errors:?}");
}

#[test]
fn a_slow_sender_is_a_bound() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 4);
    host_pair.facts.sender.send_cost = Duration::from_micros(60);
    host_pair.facts.sender.max_send_rate = Some(BitRate::from_mbps(200));
    let measured = host_pair.measure(begun(&[("duration", "10 s")]).as_mut(), INFO.imposes.budget());
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
    assert!(estimate.caveats.contains(&Caveat::SenderLimited));
    assert!((190_000_000..=200_500_000).contains(&estimate.in_unit().value), "{}", estimate.in_unit().value);
}

/// A path that lets nothing through ends it after the timeout, with a reason.
#[test]
fn silence_ends_it() {
    let hop = Hop { loss: 1.0, ..Hop::ethernet(BitRate::from_mbps(100)) };
    let mut host_pair = ClosedFormWorld::new(vec![hop], 4);
    let measured = host_pair.measure(begun(&[("timeout", "3 s")]).as_mut(), INFO.imposes.budget());
    let Outcome::Inconclusive { reason, .. } = &measured.outcome else { panic!("{measured:?}") };
    assert_eq!(*reason, Reason::NoAnswer);
    assert!((3..6).contains(&measured.cost.time.as_secs()), "{:?}", measured.cost.time);
}

#[test]
fn stops_at_once_and_says_what_it_knows() {
    let mut machine = begun(&[]);
    let at = Stamp::from_nanos(0);
    let facts = PathFacts::ideal(1500, Duration::from_millis(1));
    assert!(matches!(machine.step(at, Event::Started(facts)), Step::Send(_)));
    assert!(machine.latest().is_none());
    let refused = machine.step(at, Event::Refused(Refusal::TooLarge { max_ip_octets: 1400 }));
    assert!(matches!(refused, Step::Send(_)));
    let Step::Done(outcome) = machine.step(at, Event::Stop(Reason::Interrupted)) else { panic!() };
    assert_eq!(outcome.verdict(), BoundKind::Inconclusive);
}

#[test]
fn parameters_are_checked() {
    for (name, value) in
        [("period", "1 ms"), ("load", "0"), ("burst", "1"), ("size", "20"), ("capacity", "0"), ("nosuch", "1")]
    {
        assert!(Track.begin(&[(name, value)].into_iter().collect()).is_err(), "{name}");
    }
}
