use super::*;
use crate::testbed::{Cross, Hop, Testbed};
use crate::{Budget, Outcome};

fn available_on(bed: &mut Testbed) -> (Outcome, crate::Cost) {
    let mut machine = machine::Machine::new(Params::default());
    let measured = bed.measure(&mut machine, INFO.default_budget());
    (measured.outcome, measured.cost)
}

fn mbps(mbps: u64) -> BitRate {
    BitRate::from_mbps(mbps)
}

/// Median absolute error (relative to the narrow link) and how often the truth lay outside the interval.
fn sweep(name: &str, seeds: u64, build: impl Fn(u64) -> Testbed) -> (f64, usize) {
    let (mut errors, mut signed, mut misses, mut octets, mut time) = (Vec::new(), Vec::new(), 0, 0.0, 0.0);
    let (mut trains, mut local, mut width) = (0.0, 0, 0.0);
    for seed in 0..seeds {
        let mut bed = build(seed);
        let (capacity, truth) = (bed.ip_capacity(1500).as_f64(), bed.available(1500).as_f64());
        let (outcome, cost) = available_on(&mut bed);
        let Some(estimate) = outcome.estimate() else { println!("{name} {seed}: {outcome:?}"); errors.push(1.0); signed.push(-1.0); continue };
        signed.push((estimate.value as f64 - truth) / capacity);
        errors.push((estimate.value as f64 - truth).abs() / capacity);
        let bounded = estimate.verdict == crate::Verdict::LowerBound;
        misses += usize::from(truth < estimate.low as f64 || (!bounded && truth > estimate.high as f64));
        if errors[errors.len() - 1] > 0.3 {
            println!("{name} {seed} {} of {truth}: {estimate:?}", estimate.value);
        }
        octets += cost.octets as f64 / seeds as f64;
        time += cost.time.as_secs_f64() / seeds as f64;
        trains += bed.trains.len() as f64 / seeds as f64;
        width += (estimate.high - estimate.low) as f64 / capacity / seeds as f64;
        local += usize::from(estimate.evidence.get("capacity_from_knee") == Some(&true.into()));
    }
    let mid = stat::median(&errors).unwrap();
    println!(
        "{name:28} |e| {:5.1} % p90 {:5.1} % bias {:+5.1} % miss {misses:2}/{seeds} width {:4.1} % local {local:2} {:5.2} MB {time:5.2} s {trains:4.1} trains",
        mid * 100.0, stat::quantile(&errors, 0.9).unwrap() * 100.0, stat::median(&signed).unwrap() * 100.0, width * 100.0, octets / 1e6,
    );
    (mid, misses)
}

#[test]
fn explore() {
    for rate in [10u64, 100, 1000, 10_000] {
        for load in [0, 30, 50, 70, 85] {
            sweep(&format!("{rate} M {load} %"), 20, |seed| {
                let hop = Hop::loaded(mbps(rate), Cross::poisson(mbps(rate * load / 100)));
                Testbed::new(vec![Hop::ethernet(mbps(rate * 10)), hop, Hop::ethernet(mbps(rate * 10))], seed)
            });
        }
    }
    for (batch, burst) in [(0, 4), (50, 1), (50, 4), (100, 4)] {
        for load in [0, 30, 50, 70] {
            sweep(&format!("10 G {load} %, batch {batch} burst {burst}"), 20, |seed| {
                let mut cross = Cross::poisson(mbps(100 * load));
                cross.burst = burst;
                let mut bed = Testbed::new(vec![Hop::loaded(mbps(10_000), cross), Hop::ethernet(mbps(10_000))], seed);
                bed.stamping.batch = (batch > 0).then(|| Duration::from_micros(batch));
                bed.stamping.batch_step = Duration::from_nanos(300);
                bed.facts.sender.max_send_rate = Some(mbps(9_700));
                bed
            });
        }
    }
    for (queue, loss, batch) in [(60_000, 0.0, 0), (30_000, 0.0, 0), (10_000_000, 0.02, 0), (10_000_000, 0.1, 0), (10_000_000, 0.0, 1000)] {
        for load in [0, 50] {
            sweep(&format!("100 M {load} %, queue {queue} loss {loss} batch {batch}"), 20, |seed| {
                let mut hop = Hop::loaded(mbps(100), Cross::poisson(mbps(load)));
                hop.queue_octets = queue;
                hop.loss = loss;
                let mut bed = Testbed::new(vec![Hop::ethernet(mbps(1000)), hop], seed);
                bed.stamping.batch = (batch > 0).then(|| Duration::from_micros(batch));
                bed.stamping.batch_step = Duration::from_nanos(300);
                bed
            });
        }
    }
    for load in [0, 30, 50, 70] {
        sweep(&format!("slow sender {load} %"), 20, |seed| {
            let hop = Hop::loaded(mbps(100), Cross::poisson(mbps(load)));
            let mut bed = Testbed::new(vec![Hop::ethernet(mbps(1000)), hop], seed);
            bed.facts.sender.max_send_rate = Some(mbps(100));
            bed
        });
    }
    for (c, x) in [(200, 140), (200, 120), (155, 110), (1000, 950)] {
        sweep(&format!("narrow 100, tight {c}-{x}"), 20, |seed| {
            let hop = Hop::loaded(mbps(c), Cross::poisson(mbps(x)));
            Testbed::new(vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(100)), hop], seed)
        });
    }
    for (c, x) in [(200, 140), (200, 120)] {
        sweep(&format!("tight {c}-{x}, then narrow 100"), 20, |seed| {
            let hop = Hop::loaded(mbps(c), Cross::poisson(mbps(x)));
            Testbed::new(vec![Hop::ethernet(mbps(1000)), hop, Hop::ethernet(mbps(100))], seed)
        });
    }
    for (x, y) in [(50, 40), (40, 50), (50, 48), (50, 50), (70, 60)] {
        sweep(&format!("two links 100-{x}, 100-{y}"), 20, |seed| {
            let hop = |x| Hop::loaded(mbps(100), Cross::poisson(mbps(x)));
            Testbed::new(vec![Hop::ethernet(mbps(1000)), hop(x), hop(y)], seed)
        });
    }
}
