use super::*;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;
use narrows_probe::{BoundKind, Caveat, drive};

fn begun(pairs: &[(&str, &str)]) -> Box<dyn Estimator> {
    Bart.begin(&pairs.iter().copied().collect()).unwrap()
}

/// The fluid oracle: the line is exact, and so is what follows from it.
#[test]
fn exact_in_the_fluid_model() {
    for capacity in [BitRate::from_mbps(100), BitRate::from_gbps(1)] {
        for tenths in [0u64, 3, 5, 7, 9] {
            let cross = BitRate::from_bps(capacity.bps() / 10 * tenths);
            let mut world = Fluid::new(capacity, cross);
            let mut machine = begun(&[("duration", "20 s")]);
            let Ok(measured) = drive(&mut world, machine.as_mut(), INFO.imposes.budget());
            let estimate = measured.outcome.estimate().unwrap();
            let truth = (capacity.bps() - cross.bps()) as f64;
            let off = (estimate.in_unit().value as f64 - truth).abs() / capacity.as_f64();
            assert!(off < 0.01, "{capacity} {cross}: {off} {estimate:?}");
            assert!(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64);
        }
    }
}

#[test]
fn poisson_load_is_followed_on_average() {
    let mut errors = Vec::new();
    for seed in 1..=5 {
        let hop = Hop::loaded(BitRate::from_mbps(100), Cross::poisson(BitRate::from_mbps(40)));
        let mut host_pair = ClosedFormWorld::new(vec![hop], seed);
        let truth = host_pair.available(1500).as_f64();
        let measured = host_pair.measure(begun(&[("duration", "30 s")]).as_mut(), INFO.imposes.budget());
        let estimate = measured.outcome.estimate().unwrap();
        errors.push((estimate.in_unit().value as f64 - truth) / 1e8);
        let load = measured.cost.octets as f64 * 8.0 / measured.cost.time.as_secs_f64() / 1e8;
        assert!(load < 0.025, "{load}");
    }
    let mean = narrows_stat::mean(&errors).unwrap();
    assert!((-0.15..0.05).contains(&mean), "{errors:?}");
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
    assert!((150_000_000..=200_500_000).contains(&estimate.in_unit().value), "{}", estimate.in_unit().value);
}

#[test]
fn parameters_are_checked() {
    for (name, value) in
        [("packets", "2"), ("load", "0"), ("q", "2"), ("size", "20"), ("timeout", "1 ms"), ("nosuch", "1")]
    {
        assert!(Bart.begin(&[(name, value)].into_iter().collect()).is_err(), "{name}");
    }
}
