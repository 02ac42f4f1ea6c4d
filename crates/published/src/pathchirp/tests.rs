use super::*;
use crate::chirps::testing;
use crate::chirps::testing::{estimate, fluid, found, mbps, train};
use narrows_probe::World;
use narrows_probe::outcome::{BoundKind, Caveat, Limit, Outcome, Reason};
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;

const TOOL: Excursionist = Excursionist { tool: true, spread: 1.2, decrease: 1.5, busy: 5 };

fn measure<W: World<Fault = std::convert::Infallible>>(world: &mut W, params: &[(&str, &str)]) -> Outcome {
    testing::measure(&Pathchirp, world, params)
}

/// One chirp of these rates whose delays are given, in ns.
fn one(rates: &[f64], delays: &[i64], flavour: &Excursionist) -> ChirpReading {
    found(flavour, flavour.tool, rates, delays)
}

/// `[Chirp03]` §4 by hand: ten rates doubling from 1 Mbit/s would need ten gaps; here all gaps are
/// 1 ms, so that the weights are alike.
#[test]
fn rates_of_steps_are_weighted_by_their_time() {
    // Twelve packets; packet 1 to 7: an excursion of six steps that ends; from 9 on one that lasts.
    let delays: Vec<i64> = [0, 0, 5, 9, 12, 10, 9, 0, 0, 0, 4, 9, 15].map(|us| us * 1000).to_vec();
    // Rates 1 to 12 Mbit/s: gap k is 12 ms / k.
    let rates: Vec<f64> = (1..=12).map(|k| f64::from(k) * 1e6).collect();
    let found = one(&rates, &delays, &TOOL);
    // Steps 1, 2, 3 rise within the excursion from 1 to 7: their own rates, 2, 3 and 4. All others:
    // the rate of step 9, 10 Mbit/s.
    let gaps: Vec<f64> = (1..=12).map(|k| 12.0 / f64::from(k)).collect();
    let each = |step: usize| match step {
        1..=3 => step as f64 + 1.0,
        _ => 10.0,
    };
    let sum: f64 = gaps.iter().enumerate().map(|(step, gap)| each(step) * gap).sum();
    let expected = sum / gaps.iter().sum::<f64>() * 1e6;
    assert!((found.rate - expected).abs() < 10.0, "{} {expected}", found.rate);
    assert!(!found.open);
}

/// §3.3 of the algorithm: the first rate above what is available, so within one step above it,
/// whatever the load.
#[test]
fn a_fluid_path_gives_the_first_rate_above() {
    for (spread, busy) in [(1.2, 5), (1.05, 5), (1.02, 5)] {
        for cross in [0.0, 0.1, 0.3, 0.5, 0.7, 0.85] {
            let rates = ladder::geometric(10e6, 200e6, spread);
            let asked = train(&rates);
            let found = one(&rates, &fluid(&asked, 100e6, cross * 100e6), &Excursionist { spread, busy, ..TOOL });
            let available = 100e6 * (1.0 - cross);
            let ratio = found.rate / available;
            assert!((0.9999..=spread * 1.0001).contains(&ratio), "{spread} {cross}: {ratio}");
            assert!(!found.open);
        }
    }
}

#[test]
fn without_a_queue_the_highest_rate_is_all_there_is() {
    let rates = ladder::geometric(10e6, 200e6, 1.2);
    let found = one(&rates, &[0; 18], &TOOL);
    assert!((found.rate / rates[16] - 1.0).abs() < 1e-4 && found.open);
}

#[test]
fn a_fluid_path_from_end_to_end() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (1000, 500), (10_000, 3000), (40_000, 12_000), (2, 1)] {
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        let outcome = measure(&mut path, &[]);
        let result = estimate(&outcome);
        let available = mbps(capacity - cross).as_f64();
        let ratio = result.in_unit().value as f64 / available;
        assert!((1.0 / 1.05..=1.05).contains(&ratio), "{capacity} {cross}: {ratio} {result:?}");
        assert!(result.in_unit().low as f64 <= available && available <= result.in_unit().high as f64, "{result:?}");
        assert_eq!(result.verdict(), BoundKind::Estimated);
    }
}

#[test]
fn as_many_chirps_count_as_the_manual_says() {
    for (params, chirps) in [(&[][..], 22.0), (&[("preset", "tool"), ("tick", "0 s")][..], 11.0)] {
        let outcome = measure(&mut Fluid::new(mbps(100), mbps(30)), params);
        let counted = estimate(&outcome).diagnostics.get("chirps").and_then(narrows_probe::Diagnostic::as_f64);
        assert!(counted.is_some_and(|counted| (counted - chirps).abs() < 0.5), "{params:?} {counted:?}");
        assert!(INFO.manual.contains(&format!("{chirps} chirps")));
    }
}

/// The tool's rules over a fluid path: the range moves by sevens until it holds the estimate.
#[test]
fn the_tools_range_moves() {
    for (capacity, cross, low) in [(100, 40, 10.0), (600, 300, 200.0 / 7.0), (4, 1, 10.0 / 7.0)] {
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        // Without the tool's clock, whose microseconds spoil what is fast.
        let outcome = measure(&mut path, &[("preset", "tool"), ("tick", "0 s")]);
        let result = estimate(&outcome);
        let ratio = result.in_unit().value as f64 / mbps(capacity - cross).as_f64();
        assert!((0.99..=1.21).contains(&ratio), "{capacity} {cross}: {ratio}");
        let found = result.diagnostics.get("low_bps").unwrap().as_f64().unwrap();
        assert!((found / 1e6 - low).abs() < 0.01 * low, "{found}");
    }
}

/// `[Jin03a]` §4.2: with a clock of 1 us not above OC-12. As the tool is, it fails; ours does not.
#[test]
fn a_clock_of_a_microsecond_above_oc12() {
    for (capacity, cross) in [(1000, 100), (2500, 800)] {
        let available = mbps(capacity - cross).as_f64();
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        let tool = measure(&mut path, &[("preset", "tool")]);
        let off = tool.estimate().map(|result| result.in_unit().value as f64 / available - 1.0);
        let usable = |off: f64| off.abs() < 0.15;
        let claims = tool.estimate().is_some_and(|result| result.verdict() == BoundKind::Estimated);
        assert!(!claims || !off.is_some_and(usable), "the tool should fail: {tool:?}");
        // Ours takes more packets per rate,
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        let outcome = measure(&mut path, &[("tick", "1 us")]);
        let ratio = estimate(&outcome).in_unit().value as f64 / available;
        assert!((0.93..=1.07).contains(&ratio), "{capacity}: {ratio}");
        // and refuses where it may not.
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        let Outcome::Inconclusive { reason, .. } = measure(&mut path, &[("tick", "1 us"), ("group", "1")]) else {
            panic!("one packet per rate, and a tick for each");
        };
        assert_eq!(reason, Reason::StampsTooCoarse);
    }
}

#[test]
fn hosts_slower_than_what_is_available_bound_it() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000))], 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(40);
    host_pair.facts.sender.min_gap = Duration::from_micros(40);
    let outcome = measure(&mut host_pair, &[]);
    let result = estimate(&outcome);
    assert_eq!((result.verdict(), result.limited_by), (BoundKind::LowerBound, Limit::Sender));
    // 1500 octets in 40 us.
    assert!((0.9..=1.0).contains(&(result.in_unit().value as f64 / 300e6)), "{}", result.in_unit().value);
    assert!(result.caveats.contains(&Caveat::SenderLimited));
}

#[test]
fn loss_and_silence() {
    let lossy = |loss: f64| {
        let mut host_pair = ClosedFormWorld::new(vec![Hop::loaded(mbps(100), Cross::poisson(mbps(30)))], 7);
        host_pair.hops[0].loss = loss;
        measure(&mut host_pair, &[])
    };
    let ratio = estimate(&lossy(0.01)).in_unit().value as f64 / 67.5e6;
    assert!((0.85..=1.15).contains(&ratio), "{ratio}");
    for (loss, silent) in [(0.4, false), (1.0, true)] {
        let Outcome::Inconclusive { reason, .. } = lossy(loss) else {
            panic!("{loss}");
        };
        assert_eq!(matches!(reason, Reason::NoAnswer), silent, "{reason:?}");
        assert_eq!(matches!(reason, Reason::TooMuchLoss { .. }), !silent, "{reason:?}");
    }
}

#[test]
fn changed_order_is_not_read() {
    let mut path = Fluid::new(mbps(100), mbps(30)).with_fault(|report| report.reordered = 1);
    let Outcome::Inconclusive { reason, caveats, .. } = measure(&mut path, &[]) else {
        panic!("nothing could be read");
    };
    assert_eq!(reason, Reason::NoAgreement);
    assert!(caveats.iter().any(|caveat| matches!(caveat, Caveat::Reordering { .. })));
}

#[test]
fn batches_are_borne_or_refused() {
    let batched = |period: u64, rate: u64| {
        let mut host_pair = ClosedFormWorld::new(vec![Hop::loaded(mbps(rate), Cross::poisson(mbps(rate / 2)))], 3);
        host_pair.stamping.batch = Some(Duration::from_micros(period));
        measure(&mut host_pair, &[])
    };
    // 1 Gbit/s and 50 us: borne; 10 Gbit/s and 1 ms: no chirp of twenty packets per rate is long
    // enough.
    let borne = batched(50, 1000);
    let ratio = estimate(&borne).in_unit().value as f64 / 475.293e6;
    assert!((0.85..=1.15).contains(&ratio), "{ratio}");
    assert!(borne.caveats().iter().any(|caveat| matches!(caveat, Caveat::ReceiveBatching { .. })));
    let Outcome::Inconclusive { reason, .. } = batched(1000, 10_000) else {
        panic!("a batch of a millisecond");
    };
    assert_eq!(reason, Reason::ReceiveBatching);
}

#[test]
fn clocks_that_drift_or_are_remote_apart_change_nothing() {
    let rates = ladder::geometric(10e6, 200e6, 1.05);
    let asked = train(&rates);
    let level = fluid(&asked, 100e6, 40e6);
    let ours = Excursionist { tool: false, spread: 1.05, ..TOOL };
    let found = |offset: i64, ppm: i64| {
        let mut at = 0;
        let drifting: Vec<i64> = level
            .iter()
            .zip(&asked.packets)
            .map(|(delay, packet)| {
                at += i64::try_from(packet.gap.as_nanos()).unwrap();
                offset + delay + at * ppm / 1_000_000
            })
            .collect();
        one(&rates, &drifting, &ours).rate
    };
    for (offset, ppm) in [(0, 0), (9_000_000_000, 200), (-9_000_000_000, -200), (0, 900)] {
        let ratio = found(offset, ppm) / 60e6;
        assert!((1.0..=1.06).contains(&ratio), "{offset} {ppm}: {ratio}");
    }
    // To the tool a drift is an excursion from the first packet on.
    let drift: Vec<i64> = (0..=i64::try_from(rates.len()).unwrap()).map(|k| k * 40).collect();
    assert!((one(&rates, &drift, &TOOL).rate - 10e6).abs() < 1e3);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("preset", "x"),
        ("spread", "1"),
        ("decrease", "1"),
        ("busy", "0"),
        ("chirps", "1"),
        ("group", "21"),
        ("octets", "10"),
        ("load", "0"),
        ("tick", "1 s"),
        ("low", "5M"),
        ("colour", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Pathchirp.begin(&raw).is_err(), "{name} = {value}");
    }
    let swapped = [("low", "5M"), ("high", "1M")].into_iter().collect();
    assert!(Pathchirp.begin(&swapped).is_err());
}
