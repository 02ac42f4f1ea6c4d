#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used
)]
use estimate::{RawParams, Verdict, run};
use scenario::{Scenario, Way};
use sim::SimWorld;
fn path(name: &str, hops: &[(&str, f64, f64)], extra: &str) -> String {
    let mut s = format!("name = \"{name}\"\nseed = 1\n{}", "");
    for (i, (rate, load, delay)) in hops.iter().enumerate() {
        s += &format!("[[hop]]\nname=\"h{i}\"\nrate = \"{rate}\"\ndelay = \"{delay} us\"\n");
        if *load > 0.0 {
            let r: f64 = {
                let (n, u) = rate.split_once(' ').unwrap();
                n.parse::<f64>().unwrap()
                    * match u {
                        "Gbit/s" => 1000.0,
                        _ => 1.0,
                    }
            };
            s += &format!(
                "cross = [{{ arrivals = \"poisson\", rate = \"{} kbit/s\", ip_octets = \"imix\" }}]\n",
                (r * load * 1000.0) as u64
            );
        }
    }
    s + extra
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runs: u64 = args[2].parse().unwrap();
    let mut raw = RawParams::new();
    for p in args.iter().skip(3).filter(|p| p.contains('=')) {
        let (a, b) = p.split_once('=').unwrap();
        raw.set(a, b);
    }
    let only = args
        .iter()
        .skip(3)
        .find(|p| !p.contains('='))
        .cloned()
        .unwrap_or_default();
    let method = estimate::methods::find(&args[1]).unwrap();
    let mut cells: Vec<(String, String)> = vec![];
    for (edge, narrow) in [
        ("10 Mbit/s", "1 Mbit/s"),
        ("100 Mbit/s", "10 Mbit/s"),
        ("1 Gbit/s", "100 Mbit/s"),
        ("10 Gbit/s", "1 Gbit/s"),
        ("200 Mbit/s", "100 Mbit/s"),
    ] {
        for load in [0.0, 0.3, 0.5, 0.7] {
            cells.push((
                format!("{narrow} between {edge}, narrow {load}"),
                path(
                    "x",
                    &[(edge, 0.0, 500.0), (narrow, load, 1000.0), (edge, 0.0, 500.0)],
                    "",
                ),
            ));
        }
        for load in [0.3, 0.5, 0.7] {
            cells.push((
                format!("{narrow} between {edge}, all {load}"),
                path(
                    "x",
                    &[(edge, load, 500.0), (narrow, load, 1000.0), (edge, load, 500.0)],
                    "",
                ),
            ));
        }
    }
    for load in [0.0, 0.3, 0.6] {
        cells.push((
            format!("six alike 100, {load}"),
            path("x", &[("100 Mbit/s", load, 300.0); 6], ""),
        ));
        cells.push((
            format!("100 then 200 loaded {load} behind"),
            path(
                "x",
                &[
                    ("1 Gbit/s", 0.0, 300.0),
                    ("100 Mbit/s", 0.0, 300.0),
                    ("200 Mbit/s", load, 300.0),
                    ("200 Mbit/s", load, 300.0),
                ],
                "",
            ),
        ));
    }
    for (there, back) in [
        ("20 Mbit/s", "2 Mbit/s"),
        ("2 Mbit/s", "50 Mbit/s"),
        ("100 Mbit/s", "4 Mbit/s"),
    ] {
        let extra = format!(
            "[[reverse]]\nrate=\"{back}\"\ndelay=\"1000 us\"\n[[reverse]]\nrate=\"1 Gbit/s\"\ndelay=\"500 us\"\n"
        );
        cells.push((
            format!("asym {there} there {back} back"),
            path("x", &[("1 Gbit/s", 0.0, 500.0), (there, 0.0, 1000.0)], &extra),
        ));
    }
    for g in ["1 us", "10 us", "100 us"] {
        let extra = format!(
            "[sender]\nclock={{granularity=\"{g}\"}}\n[receiver]\nclock={{granularity=\"{g}\", offset=\"3 ms\", skew_ppm=15}}\n"
        );
        for rate in ["10 Mbit/s", "100 Mbit/s", "1 Gbit/s"] {
            cells.push((
                format!("ticks {g} {rate}"),
                path("x", &[("10 Gbit/s", 0.0, 500.0), (rate, 0.3, 1000.0)], &extra),
            ));
        }
    }
    for rate in ["10 Mbit/s", "100 Mbit/s", "1 Gbit/s"] {
        let extra = "[sender]\ncoalescing={timer=\"125 us\", frames=64}\nreceive_cost=\"1 us\"\n[receiver]\ncoalescing={timer=\"125 us\", frames=64}\nreceive_cost=\"1 us\"\n";
        cells.push((
            format!("coalescing 125us {rate}"),
            path("x", &[("10 Gbit/s", 0.0, 500.0), (rate, 0.0, 1000.0)], extra),
        ));
        let extra = "[sender]\nsend_cost=\"30 us\"\n";
        cells.push((
            format!("slow sender 30us {rate}"),
            path("x", &[("10 Gbit/s", 0.0, 500.0), (rate, 0.0, 1000.0)], extra),
        ));
        let extra = "[receiver]\nsend_cost=\"10 us\"\nreceive_cost=\"10 us\"\n[sender]\nsend_cost=\"2 us\"\nreceive_cost=\"3 us\"\n";
        cells.push((
            format!("slow receiver 10us {rate}"),
            path("x", &[("10 Gbit/s", 0.0, 500.0), (rate, 0.0, 1000.0)], extra),
        ));
    }
    println!(
        "{:<46} {:>9} {:>8} {:>8} | {:>5} {:>5} {:>5} {:>5} {:>6} | octets s | reasons",
        "cell", "truth", "med err", "p90", "est", "bound", "none", "wrong", "cover"
    );
    for (label, toml) in cells.iter().filter(|(l, _)| l.contains(&only)) {
        let scenario = match Scenario::from_toml(toml) {
            Ok(s) => s,
            Err(e) => {
                println!("{label}: {e}");
                continue;
            }
        };
        let truth = scenario.truth(Way::Forward).capacity(1500).as_f64();
        let (mut errs, mut est, mut bound, mut none, mut wrong, mut cover) = (vec![], 0, 0, 0, 0, 0);
        let mut why = std::collections::BTreeMap::<String, u32>::new();
        let (mut oct, mut sec) = (0, 0.0);
        let mut hops = std::collections::BTreeMap::<u16, (Vec<f64>, u32, u32)>::new();
        for seed in 0..runs {
            let mut world = SimWorld::new(&scenario, Way::Forward, seed * 7919 + 13);
            let mut m = method.begin(&raw).unwrap();
            let measured = match run(&mut world, m.as_mut(), method.imposes(&raw).budget()) {
                Ok(m) => m,
                Err(_) => continue,
            };
            oct += measured.cost.octets;
            sec += measured.cost.time.as_secs_f64();
            match measured.outcome.estimate() {
                None => {
                    none += 1;
                    if let estimate::Outcome::Inconclusive { reason, .. } = &measured.outcome {
                        *why.entry(
                            format!("{reason:?}")
                                .split(|c: char| c == ' ' || c == '{')
                                .next()
                                .unwrap()
                                .to_string(),
                        )
                        .or_default() += 1;
                    }
                }
                Some(e) => {
                    let (lo, hi) = (e.low as f64, e.high as f64);
                    let miss = match e.verdict {
                        Verdict::Estimated => (lo - truth).max(truth - hi).max(0.0),
                        Verdict::LowerBound => (lo - truth).max(0.0),
                        Verdict::UpperBound => (truth - hi).max(0.0),
                        _ => 0.0,
                    };
                    if miss <= 0.0 {
                        cover += 1;
                    }
                    if miss > 0.1 * truth {
                        wrong += 1;
                    }
                    if e.verdict == Verdict::Estimated {
                        est += 1;
                        errs.push(e.value as f64 / truth - 1.0);
                    } else {
                        bound += 1;
                        *why.entry(format!(
                            "bound {:.0}%{:?}",
                            e.value as f64 / truth * 100.0,
                            e.limited_by
                        ))
                        .or_default() += 1;
                    }
                    for c in &e.caveats {
                        *why.entry(c.id().to_string()).or_default() += 1;
                    }
                    for also in &e.also {
                        if let Some(h) = also.hop() {
                            let t = scenario
                                .truth(Way::Forward)
                                .hop_capacity(h as usize - 1, 1500)
                                .map_or(0.0, |r| r.as_f64());
                            let slot = hops.entry(h).or_default();
                            match also.verdict {
                                Verdict::Estimated => {
                                    slot.0.push(also.value as f64 / t - 1.0);
                                    if t < also.low as f64 * 0.95 || t > also.high as f64 * 1.05 {
                                        slot.2 += 1
                                    }
                                }
                                _ => {
                                    slot.1 += 1;
                                    if also.verdict == Verdict::LowerBound && also.low as f64 > t * 1.05 {
                                        slot.2 += 1
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        errs.sort_by(f64::total_cmp);
        let med = errs.get(errs.len() / 2).copied().unwrap_or(f64::NAN);
        let mut abs: Vec<f64> = errs.iter().map(|e| e.abs()).collect();
        abs.sort_by(f64::total_cmp);
        let p90 = abs.get(abs.len() * 9 / 10).copied().unwrap_or(f64::NAN);
        println!(
            "{label:<46} {:>9.3} {:>7.2}% {:>7.2}% | {est:>5} {bound:>5} {none:>5} {wrong:>5} {:>5.0}% | {:.0}k {:.2} | {why:?}",
            truth / 1e6,
            med * 100.0,
            p90 * 100.0,
            100.0 * cover as f64 / (est + bound).max(1) as f64,
            oct as f64 / runs as f64 / 1e3,
            sec / runs as f64
        );
        for (h, (mut e, b, w)) in hops {
            e.sort_by(f64::total_cmp);
            println!(
                "      hop {h}: med {:>7.2}% of {} est, {b} bounds/none, {w} wrong; worst {:.1}%/{:.1}%",
                e.get(e.len() / 2).copied().unwrap_or(f64::NAN) * 100.0,
                e.len(),
                e.first().copied().unwrap_or(f64::NAN) * 100.0,
                e.last().copied().unwrap_or(f64::NAN) * 100.0
            );
        }
    }
}
