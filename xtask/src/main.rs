//! The project's own chores. Each has a file of its name beside this one, except that `test`,
//! `judge` and `soak` are in `suite.rs`; `cargo xtask` alone prints their flags.
//!
//! | command | for |
//! |---|---|
//! | `test` | what every change must pass; `tidy`, `book` and others are parts of it |
//! | `judge`, `soak` | what needs a quiet machine; what takes long |
//! | `accuracy`, `record`, `efficiency`, `ablate`, `bench` | figures; `--write` puts them under `docs/results/` |
//! | `fuzz` | every fuzz target for a while |
//! | `package`, `size` | packages, and how large and how slow to build the program is |
//! | `book`, `pictures` | the book of `docs/`, and the pictures in it |
//!
//! A command ends with 1 if what it checks has a fault, with 2 if there is no such command.

mod ablate;
mod accuracy;
mod bench;
mod book;
mod efficiency;
mod fuzz;
mod install;
mod package;
mod pictures;
mod provenance;
mod record;
mod room;
mod shell;
mod size;
mod sources;
mod suite;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test       what every change must pass, with what it needs installed where possible; any machine will do
cargo xtask judge      what is judged against the real clock, accuracy between real kernels above all; needs a quiet machine, and says
                       so at once on another [--anyway]
cargo xtask soak       what takes long: every method to its end, many paths, long fuzzing, 100 runs per scenario
cargo xtask tidy       the rules of the house that no compiler checks; which recorded results are older than the code [--mark]
cargo xtask fuzz       every fuzz target for a while [--seconds N]
cargo xtask accuracy   simulate every scenario of every method [--runs N] [--program PATH] [--write docs/results/accuracy.md]
                       or our own methods' between every profile of hosts/: --every-host [--write docs/results/accuracy-on-hosts.md]
cargo xtask record     pages of results with a column for ideal hosts and each profile of hosts/ [capacity|available|hops|burst|quick-mode]
                       [--runs N] [--write]; what was cut off goes on where it was
cargo xtask ablate     what each constant of the default estimators pays over a grid of paths [--method slope|capacity] [--runs N] [--seed N]
                       [--jobs N] [--write docs/results/ablation.md]
cargo xtask efficiency  the default answer for available bandwidth beside an observer of the same trains [--runs N] [--seed N] [--jobs N]
                       [--hosts ideal,NAME...] [SCENARIO.toml...] [--write docs/results/efficiency.md]
cargo xtask bench      ratios to iperf3, nuttcp, D-ITG, ns-3 and tbf [throughput|pacing|udp|tcp|traffic|sim|links|captures] [--rounds N] [--seconds N] [--short]
                       [--write docs/results/benchmarks.md]; needs root but for sim; leaves out what is not installed
                       or figures of the store and pages of narrows watch: watch [--rows N] [--seconds N] [--program-folder DIR] [--write docs/results/watch-bench.md]
                       or figures of a hub with simulated agents: fleet [--agents 50,1000,10000] [--seconds N] [--program-folder DIR] [--write]
                       or twenty agents in namespaces over a shared link: agents [--minutes N] [--program-folder DIR] [--write]
                       or the packet times of ns-3 that the simulator must reproduce: ns3
cargo xtask package    deb, rpm, static archive and OCI layout in target/package [--test: install each into an empty root]
cargo xtask book       the book of docs/, with the reference that is generated, into target/book [--program PATH]
cargo xtask size       build times of a fresh clone and size of the packaged program, of HEAD [and COMMIT before it]
cargo xtask pictures   pictures of the live screens and of the HTML report, into docs/guide/pictures [--program PATH]; needs chromium
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let ended = match command.as_str() {
        "test" => suite::test(),
        "judge" => suite::judge(&rest),
        "soak" => suite::soak(),
        "tidy" => tidy::with(&rest),
        "fuzz" => fuzz::run(&rest),
        "bench" => bench::run(&rest),
        "package" => package::run(&rest),
        "book" => book::run(&rest),
        "size" => size::run(&rest),
        "ablate" => ablate::run(&rest),
        "accuracy" => accuracy::run(&rest),
        "efficiency" => efficiency::run(&rest),
        "pictures" => pictures::run(&rest),
        "record" => record::run(&rest),
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
