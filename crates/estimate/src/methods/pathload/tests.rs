use super::*;
use crate::Estimate;
use crate::testbed::{Cross, Hop, Testbed};

fn mbps(mbps: u64) -> BitRate {
    BitRate::from_mbps(mbps)
}

fn measured(bed: &mut Testbed, params: Params) -> (crate::Outcome, crate::Cost) {
    let mut machine = machine::Machine::new(params);
    let measured = bed.measure(&mut machine, INFO.default_budget());
    (measured.outcome, measured.cost)
}

#[test]
fn explore() {
    for (quick, full_size) in [(false, false), (false, true), (true, true)] {
        for size in [1400u32, 1350, 1470] {
            println!("{size}");
            for (kind, cross) in [
                ("cbr", Cross::constant as fn(BitRate) -> Cross),
                ("poisson", Cross::poisson),
            ] {
                for load in [0, 10, 20, 30, 40, 50, 60, 70] {
                    let (mut errors, mut signed, mut widths, mut misses, mut octets, mut time) =
                        (vec![], vec![], vec![], 0, 0.0, 0.0);
                    for seed in 0..10 {
                        let mut bed = Testbed::new(
                            vec![
                                Hop::ethernet(mbps(1000)),
                                Hop::loaded(
                                    mbps(100),
                                    Cross {
                                        ip_octets: size,
                                        ..cross(mbps(load))
                                    },
                                ),
                                Hop::ethernet(mbps(1000)),
                            ],
                            seed,
                        );
                        let truth = bed.available(1500).as_f64();
                        let (outcome, cost) = measured(
                            &mut bed,
                            Params {
                                quick,
                                full_size,
                                ..Params::default()
                            },
                        );
                        let Some(estimate): Option<&Estimate> = outcome.estimate() else {
                            println!("{outcome:?}");
                            continue;
                        };
                        if seed == 0 && load == 50 {
                            println!("{estimate:?}");
                        }
                        errors.push((estimate.value as f64 / truth - 1.0).abs());
                        signed.push(estimate.value as f64 / truth - 1.0);
                        widths.push((estimate.high - estimate.low) as f64 / truth);
                        misses += usize::from(truth < estimate.low as f64 || truth > estimate.high as f64);
                        octets += cost.octets as f64 / 10.0;
                        time += cost.time.as_secs_f64() / 10.0;
                    }
                    println!(
                        "{quick} {full_size} {kind} {load}: |e| {:.1} % of A, max {:.1}, bias {:+.1} width {:.1} miss {misses}/10 {:.1} MB {time:.1} s",
                        stat::median(&errors).unwrap() * 100.0,
                        stat::quantile(&errors, 1.0).unwrap() * 100.0,
                        stat::median(&signed).unwrap() * 100.0,
                        stat::median(&widths).unwrap() * 100.0,
                        octets / 1e6
                    );
                }
            }
        }
    }
}
