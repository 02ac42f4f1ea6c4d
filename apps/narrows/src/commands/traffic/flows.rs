//! From flags and files to flows.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, SizeMix};
use narrows_traffic::{CallerError, ElasticFlow, Filter, Flow, Replay};
use narrows_units::{BitRate, Octets};

use super::failure;
use crate::exit::Failure;

/// What to send.
#[derive(Debug, clap::Args)]
pub(super) struct FlowArgs {
    /// How packets come
    #[arg(long, value_enum, requires = "rate", help_heading = "One model")]
    model: Option<Model>,
    /// Long-run IP-layer rate, of all flows of the model together, such as "30 Mbit/s"
    #[arg(long, value_name = "RATE", requires = "model", help_heading = "One model")]
    rate: Option<BitRate>,
    /// Sizes of IP packets: 1500, imix, 64-1500 (uniform), 40:7,576:4,1500:1 (weights), or @FILE
    /// with a size, or a size and a weight, per line
    #[arg(long, value_name = "SIZES", requires = "model", default_value = "1500", help_heading = "One model")]
    size: String,
    /// Flows that share the rate, each with its own port and random numbers
    #[arg(long, value_name = "N", requires = "model", default_value_t = 1, help_heading = "One model",
        value_parser = clap::value_parser!(u16).range(1..))]
    flows: u16,
    /// Pareto: IP-layer rate while on; four times the rate by default
    #[arg(long, value_name = "RATE", requires = "model", help_heading = "One model")]
    peak: Option<BitRate>,
    /// Pareto: mean on-time
    #[arg(long, value_name = "TIME", requires = "model", default_value = "10 ms", help_heading = "One model",
        value_parser = narrows_units::parse_duration_or_seconds)]
    mean_on: Duration,
    /// Pareto: tail index of on- and off-times
    #[arg(long, requires = "model", default_value_t = 1.5, help_heading = "One model")]
    shape: f64,
    /// One more flow, as in a scenario's `cross` table:
    /// `arrivals = "cbr", rate = "1 Mbit/s", ip_octets = 200`; may be repeated
    #[arg(long, value_name = "TABLE", help_heading = "Other flows")]
    flow: Vec<String>,
    /// More flows, from a file of `[[cross]]` tables as in a scenario, without hops
    #[arg(long, value_name = "FILE", help_heading = "Other flows")]
    file: Option<PathBuf>,
    /// TCP connections with this congestion control of the kernel, such as cubic, reno or bbr
    #[arg(long, value_name = "CONTROL", help_heading = "Other flows")]
    elastic: Option<String>,
    /// How many TCP connections
    #[arg(long, value_name = "N", requires = "elastic", default_value_t = 1, help_heading = "Other flows",
        value_parser = clap::value_parser!(u16).range(1..))]
    streams: u16,
    /// Most payload octets in flight per TCP connection, such as "256 kB"
    #[arg(long, value_name = "OCTETS", requires = "elastic", help_heading = "Other flows")]
    window: Option<Octets>,
    /// A capture (pcap or pcapng) whose packets' sizes and times are sent again
    #[arg(long, value_name = "FILE", help_heading = "Other flows")]
    replay: Option<PathBuf>,
    /// So many times as fast
    #[arg(long, value_name = "FACTOR", requires = "replay", default_value_t = 1.0, help_heading = "Other flows")]
    replay_factor: f64,
    /// Only the capture's packets from this address
    #[arg(long, value_name = "ADDRESS", requires = "replay", help_heading = "Other flows")]
    replay_from: Option<IpAddr>,
    /// Only the capture's packets to this address
    #[arg(long, value_name = "ADDRESS", requires = "replay", help_heading = "Other flows")]
    replay_to: Option<IpAddr>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The names of the scenarios.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Model {
    /// Evenly
    Cbr,
    /// Independently
    Poisson,
    /// In bursts with Pareto distributed on- and off-times
    Pareto,
}

/// What to send, and what ought to be said of it.
pub(super) struct TrafficRequest {
    pub(super) flows: Vec<Flow>,
    pub(super) notes: Vec<String>,
    /// Each flow ends by itself.
    pub(super) ends: bool,
}

impl FlowArgs {
    pub(super) fn read(&self) -> Result<TrafficRequest, Failure> {
        let mut flows = Vec::new();
        let mut notes = Vec::new();
        if let Some((model, rate)) = self.model.zip(self.rate) {
            flows.extend(self.model(model, rate)?.split(self.flows));
        }
        let mut tables: Vec<Cross> = Vec::new();
        for (index, table) in self.flow.iter().enumerate() {
            let text = format!("cross = [{{ {table} }}]");
            tables.extend(Cross::list_from_toml(&text).map_err(|error| usage(&format!("--flow {index}"), &error))?);
        }
        if let Some(path) = &self.file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
            tables.extend(Cross::list_from_toml(&text).map_err(|error| usage(&path.display().to_string(), &error))?);
        }
        for cross in &tables {
            flows.push(Flow::from_cross(cross, self.seed, flows.len()));
        }
        if let Some(control) = &self.elastic {
            flows.push(Flow::elastic(self.elastic(control)?));
        }
        if let Some(path) = &self.replay {
            let replay = self.replay(path)?;
            let contents = replay.contents();
            if let Some(damage) = &contents.damage {
                notes.push(format!("{}: {damage}", path.display()));
            }
            if contents.passed_over > 0 {
                notes.push(format!("{}: {} packets are no IP", path.display(), contents.passed_over));
            }
            if contents.out_of_time > 0 {
                let packets = contents.out_of_time;
                notes.push(format!("{}: {packets} packets without a time of their own", path.display()));
            }
            flows.push(Flow::replay(replay));
        }
        if flows.is_empty() {
            return Err(Failure::usage(format!(
                "{}; say --model and --rate, --flow, --file, --elastic or --replay",
                CallerError::NoFlow
            )));
        }
        let ends =
            flows.iter().all(|flow| flow.until.is_some() || matches!(flow.kind, narrows_traffic::FlowKind::Replay(_)));
        Ok(TrafficRequest { flows, notes, ends })
    }

    fn model(&self, model: Model, rate: BitRate) -> Result<Flow, Failure> {
        let arrivals = match model {
            Model::Cbr => Arrivals::Cbr,
            Model::Poisson => Arrivals::Poisson,
            Model::Pareto => Arrivals::ParetoOnOff {
                shape: self.shape,
                mean_on: self.mean_on,
                peak: self
                    .peak
                    .or_else(|| rate.scaled(4.0))
                    .ok_or_else(|| Failure::usage("--peak: the rate is too large"))?,
            },
        };
        let cross = Cross::on_hop(0, arrivals, rate, sizes(&self.size)?);
        cross.validate("--model").map_err(|error| usage("--model", &error))?;
        Ok(Flow::from_cross(&cross, self.seed, 0))
    }

    fn elastic(&self, control: &str) -> Result<ElasticFlow, Failure> {
        let window = self.window.map(|octets| u32::try_from(octets.count())).transpose();
        Ok(ElasticFlow {
            window_octets: window.map_err(|_| Failure::usage("--window must be below 4 GB"))?,
            ..ElasticFlow::greedy(self.streams, control)
        })
    }

    fn replay(&self, path: &Path) -> Result<Replay, Failure> {
        let filter = Filter { from: self.replay_from, to: self.replay_to };
        Replay::open(path, filter, self.replay_factor).map_err(|error| failure(&error.into()))
    }
}

fn usage(place: &str, error: &narrows_scenario::ScenarioError) -> Failure {
    Failure::usage(format!("{place}: {error}"))
}

/// Understands `--size`.
fn sizes(text: &str) -> Result<SizeMix, Failure> {
    let fault = || {
        Failure::usage(format!(
            "--size {text}: it must be a size of at least 20 octets, imix, LOW-HIGH, SIZE:WEIGHT,…, or @FILE"
        ))
    };
    let number = |text: &str| text.trim().parse::<u16>().ok();
    if text == "imix" {
        return Ok(SizeMix::imix());
    }
    if let Some(path) = text.strip_prefix('@') {
        let content = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("--size: cannot read {path}: {error}")))?;
        return listed(&content).map_err(|why| Failure::usage(format!("--size: {path}: {why}")));
    }
    let mix = if text.contains(':') {
        let pairs = text.split(',').map(|pair| {
            let (size, weight) = pair.split_once(':')?;
            Some((number(size)?, weight.trim().parse().ok()?))
        });
        pairs.collect::<Option<Vec<(u16, f64)>>>().and_then(SizeMix::weighted)
    } else if let Some((low, high)) = text.split_once('-') {
        number(low).zip(number(high)).and_then(|(low, high)| SizeMix::uniform(low, high))
    } else {
        number(text).and_then(|size| SizeMix::weighted([(size, 1.0)]))
    };
    mix.ok_or_else(fault)
}

/// Sizes with weights (1 where none is given), one per line; equal ones are joined. `#` begins a
/// comment.
fn listed(content: &str) -> Result<SizeMix, String> {
    let mut weights = std::collections::BTreeMap::<u16, f64>::new();
    for (index, line) in content.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(size) = words.next() else { continue };
        let weight = words.next().map_or(Some(1.0), |word| word.parse::<f64>().ok());
        let entry = size
            .parse::<u16>()
            .ok()
            .zip(weight)
            .filter(|(size, weight)| *size >= 20 && weight.is_finite() && *weight > 0.0 && words.next().is_none());
        let Some((size, weight)) = entry else {
            return Err(format!("line {} is not a size of at least 20 and a weight above 0", index + 1));
        };
        *weights.entry(size).or_default() += weight;
    }
    let mix: Vec<(u16, f64)> = weights.into_iter().collect();
    SizeMix::weighted(mix).ok_or_else(|| "it has no size".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, mean) in
            [("1500", 1500.0), ("imix", SizeMix::imix().mean_ip_octets()), ("64-1500", 782.0), ("100:1,400:2", 300.0)]
        {
            let mix = sizes(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!((mix.mean_ip_octets() - mean).abs() < 1e-9, "{text}");
        }
        for text in ["", "19", "1500-64", "70000", "40:0", "40:x", "a-b", "@/nowhere/at/all"] {
            let error = sizes(text).expect_err(text);
            assert!(error.text.contains("--size"), "{error}");
        }
    }

    #[test]
    fn files_of_sizes_are_read() {
        let mix = listed("# seen\n100\n100\n\n400 4 # often\n").expect("it is fine");
        assert!((mix.mean_ip_octets() - (200.0 + 1600.0) / 6.0).abs() < 1e-9);
        for (text, word) in [("", "no size"), ("100\n5\n", "line 2"), ("100 1 2", "line 1"), ("100 -1", "line 1")] {
            assert!(listed(text).expect_err(text).contains(word), "{text}");
        }
    }
}
