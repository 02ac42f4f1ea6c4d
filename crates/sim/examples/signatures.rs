//! What the method `signature` makes of scenario files: causes and rates over seeds, one line per
//! file.
//!
//! `cargo run --release -p narrows-sim --example signatures -- RUNS FILE...`

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;

use narrows_methods as methods;
use narrows_probe::{Diagnostic, Outcome, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().ok_or("how many runs?")?.parse()?;
    let method = methods::find("signature").ok_or("no such method")?;
    for file in arguments {
        let scenario = Scenario::from_toml(&std::fs::read_to_string(&file)?)?;
        let truth = scenario.truth(PathDirection::Forward);
        let truth = truth.capacity(truth.path_mtu()).as_f64();
        let mut causes: BTreeMap<String, u32> = BTreeMap::new();
        let (mut ratios, mut covered, mut octets, mut time) = (Vec::new(), 0u64, 0, 0.0);
        for seed in scenario.seed..scenario.seed + runs {
            let params = RawParams::new();
            let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
            let Ok(measured) = drive(&mut world, method.begin(&params)?.as_mut(), method.info().imposes.budget());
            octets += measured.cost.octets / runs;
            time += measured.cost.time.as_secs_f64() / runs as f64;
            let evidence = match &measured.outcome {
                Outcome::Estimated(estimate) => {
                    ratios.push(estimate.in_unit().value as f64 / truth);
                    covered +=
                        u64::from(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64);
                    &estimate.diagnostics
                }
                Outcome::Inconclusive { diagnostics: evidence, .. } => evidence,
            };
            let cause = match reported(evidence, "cause") {
                Some(Diagnostic::Text(cause)) => cause.clone(),
                _ => "none".to_owned(),
            };
            let outcome = format!("{cause}/{:?}", measured.outcome.verdict());
            *causes.entry(outcome).or_default() += 1;
            if runs == 1 {
                println!("{:#?}", measured.outcome);
            }
        }
        ratios.sort_by(f64::total_cmp);
        let at = |p: usize| ratios.get((ratios.len().max(1) - 1) * p / 100).copied().unwrap_or(f64::NAN);
        println!(
            "{:32} {:.4} {:.4} {:.4}  covered {covered}/{}  {:.1} MB {time:.1} s  {causes:?}",
            scenario.name,
            at(5),
            at(50),
            at(95),
            ratios.len(),
            octets as f64 * 1e-6,
        );
    }
    Ok(())
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
