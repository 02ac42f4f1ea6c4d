use units::BitRate;

use super::*;
use crate::testbed::{Cross, Hop, Testbed, real_host};
use crate::{Budget, Confidence, Limit, Measured, Verdict};
use crate::outcome::Caveat;

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn three_hops(narrow: Hop, edge: BitRate, seed: u64) -> Testbed {
    Testbed::new(vec![Hop::ethernet(edge), narrow, Hop::ethernet(edge)], seed)
}

fn run_on(bed: &mut Testbed, params: &Params) -> Measured {
    let budget = Pathrate.info().default_budget();
    bed.measure(&mut Run::new(params.clone()), budget)
}

fn show(name: &str, truth: BitRate, make: impl Fn(u64) -> Testbed) {
    let mut rows = Vec::new();
    let (mut wrong, mut time, mut octets) = (0, 0.0f64, 0);
    for seed in 0..20 {
        let mut bed = make(seed);
        let m = run_on(&mut bed, &Params::default());
        let c = m.cost;
        time = time.max(c.time.as_secs_f64());
        octets = octets.max(c.octets);
        match m.outcome.estimate() {
            Some(e) => {
                let err = e.value as f64 / truth.as_f64() - 1.0;
                let inside = e.low <= truth.bps() && truth.bps() <= e.high;
                let ids: Vec<_> = e.caveats.iter().map(Caveat::id).collect();
                let bad = err.abs() > 0.05 && e.verdict == Verdict::Estimated && e.confidence > Confidence::Low;
                wrong += usize::from(bad);
                rows.push((err, format!(
                    "{:+.3}% [{:+.2},{:+.2}]{} {:?} {:?} {:?} {:.2}s {}kB {:?}",
                    err * 100.0,
                    (e.low as f64 / truth.as_f64() - 1.0) * 100.0,
                    (e.high as f64 / truth.as_f64() - 1.0) * 100.0,
                    if inside { "" } else { "!" },
                    e.verdict, e.confidence, e.evidence.get("branch"),
                    c.time.as_secs_f64(), c.octets / 1000, ids
                )));
            }
            None => rows.push((9.0, format!("{:?} {:.2}s {}kB", m.outcome, c.time.as_secs_f64(), c.octets / 1000))),
        }
    }
    rows.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    println!("== {name}: median |err| {:.2}%, wrong {wrong}, max {time:.1} s {} kB", rows[10].0.abs() * 100.0, octets / 1000);
    for k in [0, 10, 17, 19] { println!("{}", rows[k].1); }
}

#[test]
fn explore() {
    let t10 = BitRate::from_bps(9_752_925);
    for (edge, octets) in [(10, 1500), (10, 500), (12, 1500), (12, 100), (20, 500), (100, 100)] {
        for x in [3, 7] {
            for constant in [true, false] {
                show(&format!("narrow x {x} edge {edge} octets {octets} cbr {constant}"), t10, |s| {
                    let mut c = if constant { Cross::constant(mbps(x)) } else { Cross::poisson(mbps(x)) };
                    c.ip_octets = octets;
                    if octets == 100 { c.rate = mbps(x * 7 / 10); }
                    three_hops(Hop::loaded(mbps(10), c), mbps(edge), s)
                });
            }
        }
    }
    for load in [50, 80, 90] {
        for burst in [1, 8] {
            show(&format!("after: 100 at {load} burst {burst}"), t10, |s| {
                let c = Cross { burst, ..Cross::poisson(mbps(load)) };
                Testbed::new(vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(10)), Hop::loaded(mbps(100), c)], s)
            });
            show(&format!("before: 100 at {load} burst {burst}"), t10, |s| {
                let c = Cross { burst, ..Cross::poisson(mbps(load)) };
                Testbed::new(vec![Hop::ethernet(mbps(1000)), Hop::loaded(mbps(100), c), Hop::ethernet(mbps(10))], s)
            });
        }
    }
    for load in [50, 80] {
        show(&format!("mixed after: 100 at {load}"), t10, |s| {
            Testbed::new(vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(10)), Hop::loaded(mbps(100), Cross::mixed(mbps(load)))], s)
        });
        show(&format!("mixed after: 20 at {}", load / 5), t10, |s| {
            Testbed::new(vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(10)), Hop::loaded(mbps(20), Cross::mixed(mbps(load / 5)))], s)
        });
    }
    for x in [3, 7] {
        for edge in [10, 30, 1000] {
        show(&format!("mixed narrow {x} edge {edge}"), t10, |s| three_hops(Hop::loaded(mbps(10), Cross::mixed(mbps(x))), mbps(edge), s));
        }
    }
    for burst in [1, 10] {
        show(&format!("narrow 10 at 7 burst {burst}"), t10, |s| {
            let c = Cross { burst, ..Cross::poisson(mbps(7)) };
            three_hops(Hop::loaded(mbps(10), c), mbps(100), s)
        });
        show(&format!("narrow 10 at 9 burst {burst}"), t10, |s| {
            let c = Cross { burst, ..Cross::poisson(mbps(9)) };
            three_hops(Hop::loaded(mbps(10), c), mbps(100), s)
        });
    }
    show("1G at 600 jitter 1us", BitRate::from_bps(975_292_588), |s| {
        let mut b = three_hops(Hop::loaded(mbps(1000), Cross::poisson(mbps(600))), mbps(10_000), s);
        b.stamping.jitter = us(1);
        b.facts.receiver = real_host(us(1), us(0), us(2));
        b
    });
    show("1G jitter 20us", BitRate::from_bps(975_292_588), |s| {
        let mut b = three_hops(Hop::ethernet(mbps(1000)), mbps(10_000), s);
        b.stamping.jitter = us(20);
        b.facts.receiver = real_host(us(20), us(0), us(2));
        b
    });
    show("1G sender 200", BitRate::from_bps(975_292_588), |s| {
        let mut b = three_hops(Hop::loaded(mbps(1000), Cross::poisson(mbps(300))), mbps(10_000), s);
        b.facts.sender.send_cost = us(60);
        b
    });
    for c in [100, 1000, 10_000] {
        for period in [30, 100, 400] {
            for step in [0, 1] {
                for x in [0, 5] {
                    show(&format!("{c} batch {period} step {step} load {x}0%"), Testbed::new(vec![Hop::ethernet(mbps(c))], 0).ip_capacity(1500), |s| {
                        let hop = if x > 0 { Hop::loaded(mbps(c), Cross::poisson(mbps(c * x / 10))) } else { Hop::ethernet(mbps(c)) };
                        let mut b = three_hops(hop, mbps(40_000), s);
                        b.stamping.batch = Some(us(period));
                        b.stamping.batch_step = us(step) / 2;
                        b.facts.receiver = real_host(us(1), us(0), us(2));
                        b
                    });
                }
            }
        }
    }
    show("striped 2x50", BitRate::from_bps(97_529_258), |s| {
        let mut h = Hop::ethernet(mbps(50));
        h.channels = 2;
        three_hops(h, mbps(1000), s)
    });
    for depth in [4, 12, 40] {
        show(&format!("bucket {depth}"), BitRate::from_bps(97_529_258), |s| {
            let mut h = Hop::ethernet(mbps(100));
            h.bucket = Some(crate::testbed::Bucket { rate: mbps(10), depth_octets: depth * 1538 });
            three_hops(h, mbps(1000), s)
        });
    }
    for loss in [1, 10, 30, 60, 100] {
        show(&format!("loss {loss}"), t10, |s| {
            let mut h = Hop::ethernet(mbps(10));
            h.loss = f64::from(loss) / 100.0;
            three_hops(h, mbps(1000), s)
        });
    }
    show("queue of 6 packets", t10, |s| {
        let mut h = Hop::ethernet(mbps(10));
        h.queue_octets = 6 * 1538;
        three_hops(h, mbps(1000), s)
    });
    show("bare", mbps(10), |s| {
        let mut h = Hop::ethernet(mbps(10));
        h.framing = units::Framing::BARE;
        three_hops(h, mbps(1000), s)
    });
    show("bare loaded", mbps(10), |s| {
        let mut h = Hop::loaded(mbps(10), Cross::poisson(mbps(7)));
        h.framing = units::Framing::BARE;
        three_hops(h, mbps(30), s)
    });
}
