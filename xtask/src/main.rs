//! The project's own chores: `cargo xtask ci | tidy | lab | accuracy | bench | fuzz`.

mod accuracy;
mod bench;
mod ci;
mod fuzz;
mod install;
mod room;
mod shell;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask ci         everything below but bench, in order, with what it needs installed where possible
cargo xtask tidy       the rules of the house that no compiler checks
cargo xtask lab        tests that need namespaces and stock programs
cargo xtask fuzz       every fuzz target for a while [--seconds N]
cargo xtask accuracy   simulate every scenario of every method [--runs N] [--write docs/accuracy.md]
cargo xtask bench      ratios to iperf3, nuttcp, D-ITG, ns-3 and tbf [throughput|pacing|udp|tcp|traffic|sim|links|captures] [--rounds N] [--seconds N] [--short]
                       [--write docs/benchmarks.md]; needs root but for sim; leaves out what is not installed
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let ended = match command.as_str() {
        "ci" => ci::run(),
        "tidy" => tidy::run(),
        "lab" => ci::lab_alone(),
        "fuzz" => fuzz::run(&rest),
        "bench" => bench::run(&rest),
        "accuracy" => accuracy::run(&rest),
        _ => {
            shell::say(USAGE);
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            shell::say(&format!("xtask: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}
