//! Packets: medians over twenty seeds, bounded from both sides.

use super::*;

#[derive(Debug)]
struct Sweep {
    /// Median of |value - truth| over the narrow link's rate.
    error: f64,
    /// Median of the signed error.
    bias: f64,
    /// Runs whose interval misses the truth, and by more than a tenth of the narrow link's rate.
    misses: usize,
    wrong: usize,
    without: usize,
    octets: f64,
    seconds: f64,
}

fn sweep(build: impl Fn(u64) -> ClosedFormWorld) -> Sweep {
    let (mut errors, mut signed) = (Vec::new(), Vec::new());
    let (mut misses, mut wrong, mut without, mut octets, mut seconds) = (0, 0, 0, 0.0, 0.0);
    for seed in 0..SEEDS {
        let mut host_pair = build(seed);
        let (capacity, truth) = (host_pair.ip_capacity(1500).as_f64(), host_pair.available(1500).as_f64());
        let (outcome, cost) = on(&mut host_pair, Params::default());
        let Some(estimate) = outcome.estimate().filter(|estimate| estimate.verdict() == BoundKind::Estimated) else {
            without += 1;
            continue;
        };
        let outside = (estimate.in_unit().low as f64 - truth).max(truth - estimate.in_unit().high as f64) / capacity;
        misses += usize::from(outside > 0.0);
        wrong += usize::from(outside > 0.1 && estimate.confidence > Confidence::Low);
        errors.push(off(estimate, truth, capacity));
        signed.push((estimate.in_unit().value as f64 - truth) / capacity);
        octets += cost.octets as f64 / SEEDS as f64;
        seconds += cost.time.as_secs_f64() / SEEDS as f64;
    }
    let sweep = Sweep {
        error: narrows_stat::median(&errors).unwrap(),
        bias: narrows_stat::median(&signed).unwrap(),
        misses,
        wrong,
        without,
        octets,
        seconds,
    };
    println!("{sweep:?}");
    sweep
}

#[test]
fn an_idle_path_is_measured_quickly_and_exactly() {
    for rate in [10, 100, 1000, 10_000] {
        let sweep = sweep(|seed| one_link(rate, 0, seed));
        assert!(sweep.error < 0.01 && sweep.misses == 0 && sweep.without == 0, "{rate} {sweep:?}");
        assert!(sweep.seconds < 3.0 && sweep.octets < 8e6, "{rate} {sweep:?}");
    }
}

#[test]
fn poisson_load_on_the_narrow_link() {
    for rate in [10, 100, 1000, 10_000] {
        for load in [30, 50, 70] {
            let sweep = sweep(|seed| one_link(rate, load, seed));
            assert!(sweep.error < 0.05 && sweep.bias.abs() < 0.04, "{rate} {load} {sweep:?}");
            assert!(sweep.misses <= 5 && sweep.wrong == 0 && sweep.without == 0, "{rate} {load} {sweep:?}");
            assert!(sweep.seconds < 12.0, "{rate} {load} {sweep:?}");
            if rate == 100 {
                assert!(sweep.seconds < 4.0 && sweep.octets < 8e6, "{load} {sweep:?}");
            }
        }
    }
}

#[test]
fn a_tight_link_that_is_not_the_narrow_one() {
    for (rate, load) in [(200, 140), (200, 120), (155, 110)] {
        for narrow_first in [true, false] {
            let sweep = sweep(|seed| {
                let tight = Hop::loaded(mbps(rate), Cross::poisson(mbps(load)));
                let mut hops = vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(100)), tight];
                if !narrow_first {
                    hops.swap(1, 2);
                }
                ClosedFormWorld::new(hops, seed)
            });
            assert!(sweep.error < 0.08 && sweep.bias.abs() < 0.08, "{rate} {load} {sweep:?}");
            assert!(sweep.wrong <= 1 && sweep.without == 0, "{rate} {load} {sweep:?}");
        }
    }
}

#[test]
fn two_full_links() {
    for (first, second) in [(50, 40), (40, 50), (50, 50), (70, 60)] {
        let sweep = sweep(|seed| {
            let loaded = |load| Hop::loaded(mbps(100), Cross::poisson(mbps(load)));
            ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), loaded(first), loaded(second)], seed)
        });
        assert!(sweep.error < 0.08 && sweep.bias.abs() < 0.06, "{first} {second} {sweep:?}");
        assert!(sweep.wrong <= 1 && sweep.without == 0, "{first} {second} {sweep:?}");
    }
}

/// Two full links look to trains like one of two thirds of the capacity and a third of the traffic.
/// Single packets tell: no capacity is said then, and of the traffic a bound that holds. One full
/// link keeps both numbers in most runs.
#[test]
fn by_products_of_one_and_of_two_full_links() {
    let loaded = |load| Hop::loaded(mbps(100), Cross::poisson(mbps(load)));
    let edge = || Hop::ethernet(mbps(1000));
    let other = |outcome: &Outcome, metric| {
        let estimate = outcome.estimate().unwrap();
        estimate.also.iter().find(|estimate| estimate.metric == metric).cloned()
    };
    let (mut bounds, mut points) = (0, Vec::new());
    for seed in 0..SEEDS {
        let mut two = ClosedFormWorld::new(vec![edge(), loaded(50), loaded(50)], seed);
        let (outcome, _) = on(&mut two, Params::default());
        if let Some(cross) = other(&outcome, Metric::CrossTraffic) {
            let value = cross.in_unit().value as f64;
            match cross.verdict() {
                BoundKind::LowerBound => {
                    assert!((25e6..=50.5e6).contains(&value), "{seed} {cross:?}");
                    bounds += 1;
                }
                _ => assert!(cross.in_unit().high as f64 > 45e6, "{seed} {cross:?}"),
            }
        }
        let capacity = other(&outcome, Metric::IpCapacity);
        assert!(capacity.as_ref().is_none_or(|capacity| capacity.in_unit().high as f64 > 90e6), "{seed} {capacity:?}");
        let mut one = ClosedFormWorld::new(vec![edge(), loaded(50)], seed);
        let (outcome, _) = on(&mut one, Params::default());
        if let Some(cross) =
            other(&outcome, Metric::CrossTraffic).filter(|cross| cross.verdict() == BoundKind::Estimated)
        {
            let outside = (cross.in_unit().low as f64 - 50e6).max(50e6 - cross.in_unit().high as f64);
            assert!(outside < 10e6, "{seed} {cross:?}");
            points.push((cross.in_unit().value as f64 - 50e6).abs());
        }
    }
    // Of one link every third run leaves a bound, too: the slopes of single trains scatter.
    assert!(bounds >= 12 && points.len() >= 8, "{bounds} {points:?}");
    assert!(narrows_stat::median(&points).unwrap() < 10e6, "{points:?}");
}

#[test]
fn a_sender_no_faster_than_the_link() {
    for load in [30, 50, 70] {
        let sweep = sweep(|seed| {
            let mut host_pair = one_link(100, load, seed);
            host_pair.facts.sender.max_send_rate = Some(mbps(100));
            host_pair
        });
        assert!(sweep.error < 0.06 && sweep.bias.abs() < 0.05, "{load} {sweep:?}");
        assert!(sweep.wrong == 0 && sweep.without == 0, "{load} {sweep:?}");
    }
}

#[test]
fn ten_gigabits_through_a_batching_receiver() {
    for (batch, load) in [(20, 70), (200, 30)] {
        batching_at_ten_gigabits(batch, load);
    }
}

#[test]
#[ignore = "soak: a dozen runs of millions of packets"]
fn ten_gigabits_through_receivers_that_batch_otherwise() {
    for batch in [20, 50, 100, 200] {
        for load in [30, 50, 70] {
            batching_at_ten_gigabits(batch, load);
        }
    }
}

fn batching_at_ten_gigabits(batch: u64, load: u64) {
    let sweep = sweep(|seed| {
        let mut cross = Cross::poisson(mbps(100 * load));
        cross.burst = 4;
        let mut host_pair =
            ClosedFormWorld::new(vec![Hop::loaded(mbps(10_000), cross), Hop::ethernet(mbps(10_000))], seed);
        host_pair.stamping.batch = Some(Duration::from_micros(batch));
        host_pair.stamping.batch_step = Duration::from_nanos(300);
        host_pair.facts.sender.max_send_rate = Some(mbps(9_700));
        host_pair
    });
    assert!(sweep.error < 0.05 && sweep.bias.abs() < 0.05, "{batch} {load} {sweep:?}");
    assert!(sweep.wrong <= 1 && sweep.without == 0, "{batch} {load} {sweep:?}");
    assert!(sweep.seconds < 5.0, "{batch} {load} {sweep:?}");
}

#[test]
fn a_hundred_megabits_through_a_batching_receiver() {
    for load in [0, 50] {
        let sweep = sweep(|seed| {
            let mut host_pair = one_link(100, load, seed);
            host_pair.stamping.batch = Some(Duration::from_millis(1));
            host_pair
        });
        assert!(sweep.error < 0.05 && sweep.wrong == 0 && sweep.without == 0, "{load} {sweep:?}");
    }
}

#[test]
fn a_token_bucket_within_the_trains_is_named() {
    let bucket = |depth_octets| {
        let mut host_pair = one_link(100, 0, 1);
        host_pair.hops[1].bucket = Some(Bucket { rate: mbps(50), depth_octets });
        on(&mut host_pair, Params::default()).0
    };
    let outcome = bucket(64_000);
    assert!(has(&outcome, "shaped"), "{outcome:?}");
    assert!(outcome.estimate().is_none_or(|estimate| estimate.confidence == Confidence::Low));
    // And Poisson traffic is no bucket.
    for seed in 0..SEEDS {
        let (outcome, _) = on(&mut one_link(100, 50, seed), Params::default());
        assert!(!has(&outcome, "shaped"), "{seed} {outcome:?}");
    }
}

#[test]
fn short_queues_and_random_loss() {
    for (queue, loss, load) in [(60_000, 0.0, 50), (30_000, 0.0, 0), (10_000_000, 0.02, 50), (10_000_000, 0.1, 0)] {
        let sweep = sweep(|seed| {
            let mut host_pair = one_link(100, load, seed);
            host_pair.hops[1].queue_octets = queue;
            host_pair.hops[1].loss = loss;
            host_pair
        });
        // A queue of 40 packets cuts the trains to a quarter, which round the turning point more: 4
        // to 6 % too low, on these seeds and others.
        assert!(sweep.error < 0.08 && sweep.bias.abs() < 0.08, "{queue} {loss} {load} {sweep:?}");
        assert!(sweep.wrong <= 1 && sweep.without <= 1, "{queue} {loss} {load} {sweep:?}");
    }
}
