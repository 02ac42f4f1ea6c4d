//! Packets over links with cross traffic, many seeds each.

use super::*;

/// Medians over the seeds: relative error, signed relative error, and how many intervals miss the
/// truth by over 10 % of the link; seconds.
fn sweep(params: &Params, seeds: u64, cross: &Cross) -> (f64, f64, usize, f64) {
    let (mut errors, mut signed, mut wrong, mut seconds) = (Vec::new(), Vec::new(), 0, 0.0);
    for seed in 0..seeds {
        let mut host_pair = path(cross.clone(), seed);
        let (truth, capacity) = (host_pair.available(1500).as_f64(), host_pair.ip_capacity(1500).as_f64());
        let (outcome, cost) = on(&mut host_pair, params.clone());
        let estimate = outcome.estimate().unwrap();
        assert_eq!(estimate.verdict(), BoundKind::Estimated);
        let outside = (estimate.in_unit().low as f64 - truth).max(truth - estimate.in_unit().high as f64);
        wrong += usize::from(outside > 0.1 * capacity);
        errors.push((ratio(estimate, truth) - 1.0).abs());
        signed.push(ratio(estimate, truth) - 1.0);
        seconds += cost.time.as_secs_f64() / seeds as f64;
    }
    let found = (narrows_stat::median(&errors).unwrap(), narrows_stat::median(&signed).unwrap(), wrong, seconds);
    println!("{found:?}");
    found
}

/// `[Abut18]` table 10: 100 Mbit/s, constant-rate traffic of 0 to 70 Mbit/s, error of pathload in
/// percent of what is available. The packet size of the traffic is not given there, and the result
/// depends on it: where the two periods beat, single rows get worse.
const TABLE_10: [(u64, f64); 8] =
    [(0, 0.9), (10, 0.1), (20, 2.6), (30, 3.6), (40, 5.3), (50, 7.3), (60, 12.8), (70, 16.9)];

fn constant(load: u64, ip_octets: u32) -> Cross {
    Cross { ip_octets, ..Cross::constant(mbps(load)) }
}

/// Sizes of the traffic's packets, whatever comes of them.
const SIZES: [u32; 11] = [100, 300, 500, 700, 900, 1100, 1300, 1350, 1400, 1470, 1500];

/// Prints our error beside the published one for each size and load. How many of the 88 rows are
/// worse than published, and how many runs miss the truth by over a tenth of the link.
fn beside_table_10(params: &Params) -> (usize, usize) {
    let (mut worse, mut missed) = (0, 0);
    for ip_octets in SIZES {
        for (load, published) in TABLE_10 {
            let (error, bias, wrong, _) = sweep(params, 2, &constant(load, ip_octets));
            // The table's digits are cut off: 87.40 of 87.52 Mbit/s are 0.14 %.
            let more = error * 100.0 > published + 0.05;
            let mark = if more { "worse" } else { "" };
            println!("{ip_octets} {load}: {:.2} ({:+.2}) for {published} {wrong} {mark}", error * 100.0, bias * 100.0);
            worse += usize::from(more);
            missed += wrong;
        }
    }
    (worse, missed)
}

#[test]
fn most_rows_are_no_worse_than_the_published_ones_at_every_packet_size() {
    let (worse, missed) = beside_table_10(&Params::default());
    assert!(worse <= 12 && missed == 0, "{worse} {missed}");
    // The tool's small packets read low: of what is left beside 10 Mbit/s nearly always by more
    // than the printed 0.1 %.
    let (worse, missed) = beside_table_10(&faithful());
    assert!(worse <= 26 && missed == 0, "{worse} {missed}");
}

#[test]
fn with_the_tools_packet_sizes_the_published_trend_appears() {
    for (load, published) in TABLE_10 {
        let (error, bias, wrong, _) = sweep(&faithful(), 10, &constant(load, 1400));
        assert!(error * 100.0 <= f64::max(published, 1.0) && wrong == 0, "{load}: {error}");
        // Small packets lose more to framing: the higher the load, the lower the estimate.
        if load >= 40 {
            let expected = -0.02 - (load as f64 - 40.0) / 30.0 * 0.06;
            assert!((bias - expected).abs() < 0.03, "{load}: {bias}");
        }
    }
}

#[test]
fn poisson_traffic() {
    for (load, bound) in [(0, 0.02), (30, 0.06), (50, 0.08), (70, 0.15)] {
        let (error, bias, wrong, seconds) = sweep(&Params::default(), 20, &Cross::poisson(mbps(load)));
        // Bounds are of what is available; of the link they are 2, 4, 4 and 5 %.
        assert!(error <= bound && bias.abs() <= bound, "{load}: {error} {bias}");
        assert!(wrong <= 1 && seconds < 60.0, "{load}: {wrong} {seconds}");
    }
}

#[test]
fn quick_is_quick() {
    let quick = Params { quick: true, ..Params::default() };
    for (load, bound) in [(0, 0.02), (50, 0.12)] {
        let (error, bias, wrong, seconds) = sweep(&quick, 20, &Cross::poisson(mbps(load)));
        assert!(error <= bound && bias.abs() <= bound && wrong <= 2, "{load}: {error} {bias} {wrong}");
        assert!((0.1..6.0).contains(&seconds), "{load}: {seconds}");
    }
}

/// Intervals hold the truth on constant-rate traffic of any packet size, whether the tool's small
/// packets are used or full ones, and on Poisson traffic in most runs: what the search alone
/// brackets (`[Abut18]` table 10 at 50 %: half of the runs) lies within a packet of others per
/// stream of it.
#[test]
fn intervals_hold_the_truth() {
    for params in [Params::default(), faithful()] {
        let (mut constant_missed, mut poisson_missed, mut runs) = (0, 0, 0);
        for ip_octets in [576, 1400, 1470, 1500] {
            for load in [0, 20, 40, 50, 60, 70] {
                let missed = |cross: Cross| {
                    (0..4)
                        .filter(|seed| {
                            let mut host_pair = path(cross.clone(), *seed);
                            let truth = host_pair.available(1500).bps();
                            let outcome = on(&mut host_pair, params.clone()).0;
                            let estimate = outcome.estimate().unwrap();
                            !(estimate.in_unit().low..=estimate.in_unit().high).contains(&truth)
                        })
                        .count()
                };
                constant_missed += missed(constant(load, ip_octets));
                poisson_missed += missed(Cross { ip_octets, ..Cross::poisson(mbps(load)) });
                runs += 4;
            }
        }
        assert!(constant_missed * 20 <= runs, "{constant_missed} of {runs}");
        assert!(poisson_missed * 7 <= runs, "{poisson_missed} of {runs}");
    }
}
