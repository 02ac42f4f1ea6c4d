//! Benchmarks: ratios to a peer or to a limit, both measured in the same run, taking turns. Never a
//! timed test: a missed goal is a line of the output, not a failure.

mod agents;
mod capture;
mod captures;
mod demos;
mod fleet;
mod host_pair;
mod links;
mod matrix;
mod ns3;
mod pacing;
mod peers;
mod program;
mod rounds;
mod sim;
mod tcp;
mod throughput;
mod traffic;
mod udp;
mod versions;
mod watch;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::provenance::Provenance;
use crate::shell::{root, say};
use host_pair::HostPair;
use program::{Program, built};

/// How to measure.
struct Options {
    /// Turns of every contender.
    rounds: usize,
    /// Length of one measurement.
    seconds: u32,
    /// Less of everything, where a comparison has so much that it knows what to leave out.
    short: bool,
}

impl Options {
    /// When a program that measures so long has hung.
    fn limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds) + 60)
    }
}

/// One comparison: its name, its heading, what it measures, and the text of its results.
struct Comparison {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    run: fn(&Options) -> Result<String>,
}

const ALL: [Comparison; 8] = [
    throughput::COMPARISON,
    Comparison { name: "pacing", title: "Paced streams", about: pacing::ABOUT, run: pacing::run },
    Comparison { name: "udp", title: "UDP", about: udp::ABOUT, run: udp::run },
    Comparison { name: "tcp", title: "TCP", about: tcp::ABOUT, run: tcp::run },
    Comparison { name: "traffic", title: "Cross traffic", about: traffic::ABOUT, run: traffic::run },
    Comparison { name: "sim", title: "Simulator", about: sim::ABOUT, run: sim::run },
    Comparison { name: "links", title: "Links of a lab", about: links::ABOUT, run: links::run },
    Comparison { name: "captures", title: "Captures", about: captures::ABOUT, run: captures::run },
];

type Own = fn(&[String]) -> Result<bool>;

/// What compares with nothing, and has a page or files of its own.
const OWN: [(&str, Own); 6] = [
    ("watch", watch::run),
    ("fleet", fleet::run),
    ("agents", agents::run),
    ("matrix", matrix::run),
    ("demos", demos::run),
    ("ns3", ns3::run),
];

/// `[throughput|pacing|udp|tcp|traffic|sim|links|captures]`, `--rounds N` (default 3, and no less),
/// `--seconds N` (default 5), `--short` (less of `throughput`: two minutes), `--write FILE` (of one
/// comparison alone: its section of the page).
///
/// `watch`, `fleet`, `agents`, `matrix` and `demos` compare with nothing and have pages of their
/// own. `ns3` makes the files anew against which a test of the simulator compares.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    if let Some((first, rest)) = args.split_first()
        && let Some((_, own)) = OWN.iter().find(|(name, _)| first == name)
    {
        return own(rest);
    }
    let mut options = Options { rounds: 3, seconds: 5, short: false };
    let (mut only, mut file) = (None, None);
    let made = Provenance::begins(&format!("cargo xtask bench {}", args.join(" ")));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--rounds" => options.rounds = value()?.parse().context("--rounds needs a number")?,
            "--seconds" => options.seconds = value()?.parse().context("--seconds needs a number")?,
            "--short" => options.short = true,
            "--write" => file = Some(PathBuf::from(value()?)),
            name if ALL.iter().any(|known| known.name == name) => only = Some(name.to_owned()),
            _ => {
                bail!(
                    "cargo xtask bench [throughput|pacing|udp|tcp|traffic|sim|links|captures] [--rounds N] [--seconds N] [--short] [--write FILE]"
                )
            }
        }
    }
    if options.rounds < 3 || options.seconds == 0 {
        bail!("fewer than 3 rounds, or no time at all, compare nothing");
    }
    let mut sections = String::new();
    for comparison in ALL.iter().filter(|known| only.as_ref().is_none_or(|name| known.name == name)) {
        say(&format!("== {}\n", comparison.title));
        // What goes wrong with one comparison is no reason to lose the others.
        let text = (comparison.run)(&options).unwrap_or_else(|error| format!("failed: {error:#}\n\n"));
        say(&format!("\n{text}"));
        let _ = write!(sections, "## {}\n\n{}\n\n{text}", comparison.title, comparison.about);
    }
    let machine = versions::list();
    say(&format!("{machine}\n"));
    if let Some(file) = file {
        let path = root().join(&file);
        let text = match only {
            None => page(&made, &options, &machine, &sections),
            Some(name) => {
                let old = std::fs::read_to_string(&path).with_context(|| file.display().to_string())?;
                let Options { rounds, seconds, short } = options;
                let short = if short { " --short" } else { "" };
                let how = format!(
                    "Measured alone: `cargo xtask bench {name} --rounds {rounds} --seconds {seconds}{short}`.\n\n"
                );
                with_section(&old, &(sections + &how))
            }
        };
        std::fs::write(path, text).with_context(|| file.display().to_string())?;
    }
    Ok(true)
}

/// Our own server at the peer.
fn serve(host_pair: &HostPair) -> Result<Program> {
    const PORT: u16 = 8620;
    let program = built("narrows");
    Program::start(host_pair.remote(&program.to_string_lossy(), &["serve"]))?.until_listening(PORT)
}

/// A number in a JSON document.
fn number(document: &str, pointer: &str) -> Result<f64> {
    let value: serde_json::Value = serde_json::from_str(document).context("not JSON")?;
    value.pointer(pointer).and_then(serde_json::Value::as_f64).with_context(|| format!("no number at {pointer}"))
}

/// The page with one section exchanged for a new one of the same heading, or with the new one at
/// its end.
fn with_section(page: &str, section: &str) -> String {
    let heading = section.lines().next().unwrap_or_default();
    let mut parts: Vec<&str> = page.split_inclusive('\n').collect();
    let is_heading = |line: &str| line.starts_with("## ");
    let begin = parts.iter().position(|line| line.trim_end() == heading).unwrap_or(parts.len());
    let end = parts[begin..]
        .iter()
        .skip(1)
        .position(|line| is_heading(line))
        .map_or(parts.len(), |further| begin + 1 + further);
    let new = if begin == parts.len() {
        format!("\n{}\n", section.trim_end())
    } else if end == parts.len() {
        format!("{}\n", section.trim_end())
    } else {
        format!("{}\n\n", section.trim_end())
    };
    parts.splice(begin..end, [new.as_str()]);
    parts.concat()
}

fn page(made: &Provenance, options: &Options, machine: &str, sections: &str) -> String {
    let (rounds, made) = (options.rounds, made.lines());
    let page = format!(
        "# Benchmarks\n\n\
         {made}\n\
         The command writes this whole page; change the text in `xtask/src/bench.rs` and `xtask/src/bench/`.\n\
         `cargo xtask bench udp` runs one comparison alone.\n\n\
         Only ratios mean anything on another machine. In each comparison the contenders take turns, {rounds} rounds of all of\n\
         them, so that what the machine does meanwhile hits them alike. A ratio is taken within a round. Its median over the rounds\n\
         stands beside each contender's own smallest, median and largest number. Whatever is not installed is named and left out.\n\
         A goal is stated and judged, but no test depends on it. Both ends of a veth pair run on this one machine: sender,\n\
         receiver and kernel share its processors. It ought to be doing nothing else.\n\n\
         Measured on and with:\n\n{machine}\n{sections}"
    );
    format!("{}\n", page.trim_end())
}

#[cfg(test)]
mod tests {
    use super::with_section;

    #[test]
    fn a_section_is_exchanged_or_added() {
        let page = "# Page\n\n## One\n\n1\n\n## Two\n\n2\n";
        assert_eq!(with_section(page, "## One\n\nnew\n\n"), "# Page\n\n## One\n\nnew\n\n## Two\n\n2\n");
        assert_eq!(with_section(page, "## Two\n\nnew\n\n"), "# Page\n\n## One\n\n1\n\n## Two\n\nnew\n");
        assert_eq!(with_section(page, "## Three\n\n3\n\n"), format!("{page}\n## Three\n\n3\n"));
    }
}
