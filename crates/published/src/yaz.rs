#![doc = include_str!("yaz.md")]

#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, nanos_f64};

use crate::turning::{Ending, Length, MethodRun, Resolution, RoundAccount, Rule, Settings, Turn, settings};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope, params,
};
use narrows_train::train_method::Machine;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Yaz;

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// What all such searches share.
    pub search: Settings,
    /// Least IP octets of a packet.
    pub min_octets: u16,
    /// Share of the stretch by which the spacing grows.
    pub step: f64,
    /// Widest spacing.
    pub max_gap: Duration,
}

params! {
    /// What can be set.
    #[derive(Debug)]
    struct Typed {
        /// Constants and the rule for spacing that shrinks: ours, or the tool's.
        compression: bool = "adaptive" is { "adaptive" => false, "tool" => true } {
            name: "preset", source: "the tool's constants, read in its source",
        },
        /// IP octets of a packet.
        ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "tool", presets: &[("tool", "1500")],
        },
        /// Rate of the first train.
        start: Option<BitRate> = "the sender's highest" {
            range: AtLeast("1 bit/s"),
            source: "tool: 40 us per packet of 1500 octets; it ignores its own option", presets: &[("tool", "300 Mbit/s")],
        },
        /// Packets of a train at most, whatever stamps and batches ask for.
        max_packets: usize = "4000" {
            name: "max-packets", range: Between("50", "20000"), source: "tool; ours", presets: &[("tool", "250")],
        },
        /// Trains of one rate, at least.
        streams: usize = "2" {
            range: Between("1", "100"), source: "tool: 1 to 5; ours: two tell what trains differ by", presets: &[("tool", "1")],
        },
        /// Trains of one rate, at most; never below streams.
        most_streams: usize = "12" {
            name: "max-streams", range: Between("0", "100"), source: "ours", presets: &[("tool", "1")],
        },
        /// The least difference of rates that counts.
        resolution: Resolution = "0.01" {
            range: Resolution::RANGE, source: "tool; a share of the rate is ours", presets: &[("tool", "500 kbit/s")],
        },
        /// Deviations of a full queue's train that the limit allows for.
        allowance: f64 = "0.8" {
            unit: "deviations", range: Between("0", "3"),
            source: "ours: what a turning point that packets round off adds", presets: &[("tool", "0")],
        },
        /// Rates tried at most.
        max_rounds: usize = "40" {
            name: "max-rounds", range: Between("3", "200"), source: "ours: the end of any search",
        },
        /// Packets lost on the path from which a rate is too high.
        loss: f64 = "0.03" { unit: "share", range: Between("0", "0.5"), source: "ours; the tool: one packet" },
        /// Octets of queue that a train may build, until losses say less.
        burst_octets: u32 = "150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer", presets: &[("tool", "10000000")],
        },
        /// Mean load that the trains impose, of the path's rate.
        load: f64 = "0.2" {
            unit: "share", range: Between("0.001", "1"), source: "ours; the tool pauses for 50 ms on the mean",
        },
        /// IP octets of a packet at least, where rates are low.
        min_octets: u16 = "200" { name: "min-size", unit: "IP octets", range: Between("68", "65535"), source: "tool" },
        /// Packets of a train.
        packets: Option<usize> = "by train-time" {
            range: Between("16", "20000"), source: "tool: 2 to 250", presets: &[("tool", "50")],
        },
        /// Send time that a train aims at.
        train_time: Duration = "25 ms" {
            name: "train-time", range: Between("100 us", "1 s"), source: "ours: 50 to 600 packets",
        },
        /// Difference of mean spacings that never counts.
        floor: Duration = "0 s" {
            range: Between("0 s", "1 ms"), source: "tool: clocks of a microsecond", presets: &[("tool", "1 us")],
        },
        /// Share of the stretch by which the spacing grows.
        step: f64 = "1" {
            unit: "share", range: Between("0.1", "1"), source: "tool; ours", presets: &[("tool", "0.5")],
        },
        /// Widest spacing before packets are halved.
        max_gap: Duration = "3.2 ms" {
            name: "max-gap", range: Between("10 us", "100 ms"), source: "tool: 1 ms, or the least packet at the resolution",
        },
    }
    names INFO;
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        // A time that was typed goes before the packets of a preset, not before packets that were
        // typed.
        let counts = raw.typed("packets").is_some() || raw.typed("train-time").is_none();
        let packets = typed.packets.filter(|_| counts);
        let length = packets.map_or(Length::Time(typed.train_time), Length::Packets);
        Ok(Self {
            search: settings!(typed, length: length, floor: typed.floor, compression: typed.compression),
            min_octets: typed.min_octets,
            step: typed.step,
            max_gap: typed.max_gap,
        })
    }
}

/// The tool's rule.
#[derive(Debug, Clone)]
struct Slower {
    min_octets: u16,
    step: f64,
    max_gap_ns: f64,
}

impl Slower {
    fn session(params: Params) -> MethodRun<Self> {
        let rule = Self { min_octets: params.min_octets, step: params.step, max_gap_ns: nanos_f64(params.max_gap) };
        MethodRun::new(rule, params.search)
    }
}

impl Rule for Slower {
    const READS: (&'static str, &'static str) =
        ("yaz", "trains of 16 packets or more to the receiver, of ever lower rates");

    fn turn(&mut self, settings: &Settings, seen: &RoundAccount) -> Turn {
        let mut all = seen.judged();
        let Some(round) = all.next_back() else {
            return Turn::Stop(Ending::Exhausted);
        };
        if !round.is_congested() {
            // At the first rate already: nothing tells how much more there is.
            let first = all.next_back().is_none() && settings.start.is_some();
            return Turn::Stop(if first { Ending::BelowStart } else { Ending::Settled });
        }
        let grown = round.stretch().abs().max(seen.limit_ns(settings, round));
        let gap = round.gap_in() + (self.step * grown).max(1.0);
        if gap < self.max_gap_ns {
            return Turn::Gap(gap);
        }
        let octets = (round.ip_octets / 2).max(self.min_octets);
        if octets >= round.ip_octets {
            return Turn::Stop(Ending::TooLow);
        }
        // The same rate in smaller packets.
        Turn::Smaller(octets, gap * f64::from(octets) / f64::from(round.ip_octets))
    }

    fn value(&self, _: &Settings, seen: &RoundAccount) -> Option<f64> {
        let last = seen.judged().next_back().filter(|round| !round.is_congested())?;
        Some(last.rate_in()).filter(|rate| rate.is_finite())
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "yaz",
    summary: "available bandwidth from trains that slow down until their mean spacing survives the path",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeRate,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 4_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Typed::PARAMETERS,
    manual: include_str!("yaz.md"),
};

impl Method for Yaz {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        Params::try_from(raw).map_or(usual.clone(), |params| params.search.imposes(&usual))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(Machine::new(Slower::session(Params::try_from(raw)?))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::replay(Machine::new(Slower::session(Params::try_from(raw)?)), observations)
    }
}
