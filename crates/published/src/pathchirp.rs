#![doc = include_str!("pathchirp.md")]

#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use crate::chirps;
use crate::chirps::excursions::Rule;
use crate::chirps::weigh::weigh;
use crate::chirps::{Chirp, ChirpReading, Common, Flavour, Settings, Shared, ladder};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Parameter, Privilege,
    Protocol, RawParams, Scope, joined, params,
};
use narrows_train::train_method;
use narrows_train::train_method::within;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pathchirp;

/// What is its own.
#[derive(Debug, Clone, PartialEq)]
struct Excursionist {
    tool: bool,
    spread: f64,
    decrease: f64,
    busy: usize,
}

impl Flavour for Excursionist {
    const READS: (&'static str, &'static str) = ("pathchirp", "trains of rising rates to the receiver");
    // Ours, from sweeps in the simulator.
    const CHIRPS: usize = 22;

    fn rates(&self, low: f64, high: f64) -> Vec<f64> {
        if self.tool { ladder::geometric(low, high, self.spread) } else { ladder::geometric_to(low, high, self.spread) }
    }

    fn range(&self) -> (f64, f64) {
        (1.0 / AROUND, AROUND)
    }

    fn step(&self) -> f64 {
        self.spread
    }

    fn find(&self, chirp: &Chirp) -> Option<ChirpReading> {
        let rule = Rule { decrease: self.decrease, busy: self.busy, from: 0, noise: 0.0 };
        weigh(chirp, &rule, 0)
    }

    fn combine(&self, rates: &[f64]) -> Option<f64> {
        let mean = narrows_stat::mean(rates)?;
        Some(if self.tool { mean } else { mean / self.spread.sqrt() })
    }

    fn blur(&self) -> (f64, f64) {
        (self.spread, self.spread)
    }

    fn hidden(&self) -> (f64, f64) {
        (BURSTS_BELOW, BURSTS_ABOVE)
    }

    fn most_batched(&self) -> Option<f64> {
        None
    }
}

/// The fine range reaches this far around the estimate: the tool's 1.5 above the lowest and 0.66 of
/// the highest lie well inside.
const AROUND: f64 = 1.7;
/// Bursts end excursions above what is available: on the mean by a quarter to a half of the chirps'
/// standard deviation (ours, from sweeps in the simulator).
const BURSTS_BELOW: f64 = 0.75;
const BURSTS_ABOVE: f64 = 0.25;

type Params = Settings<Excursionist>;
type MethodRun = chirps::MethodRun<Excursionist>;

params! {
    /// What can be set of this method alone, as it is typed.
    #[derive(Debug)]
    struct Typed {
        /// Constants and rules: ours, or those of pathChirp 2.3.7.
        tool: bool = "ours" is { "ours" => false, "tool" => true } { name: "preset", source: "ours" },
        /// Ratio of neighbouring rates.
        spread: f64 = "1.05" {
            unit: "factor", range: Between("1.005", "2"), presets: &[("tool", "1.2")], source: "ours: A is known to one step",
        },
        /// F: an excursion ends below its height over this; above 1.
        decrease: f64 = "1.5" { unit: "factor", range: Between("1", "10"), source: "F, pathChirp 2.3.7" },
        /// L: steps of an excursion that counts.
        busy: usize = "5" { unit: "steps", range: Between("1", "100"), source: "L, pathChirp 2.3.7" },
        /// Chirps that the answer rests on.
        chirps: usize = "22" { range: Between("3", "1000"), presets: &[("tool", "11")], source: "ours; the tool" },
    }
    names INFO;
    check Typed::check;
}

impl Typed {
    fn check(&self) -> Result<(), ParamError> {
        within(self.decrease > 1.0, "decrease", self.decrease, "above 1, at most 10")
    }
}

/// With what all such methods share.
const PARAMETERS: [Parameter; 11] = joined(Typed::PARAMETERS, Shared::ROWS);

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        Ok(Self {
            common: Common::read(raw, typed.chirps, LEAST_GROUP, true)?,
            flavour: Excursionist {
                tool: typed.tool,
                spread: typed.spread,
                decrease: typed.decrease,
                busy: typed.busy,
            },
        })
    }
}

/// Packets per rate at the least (ours, from sweeps in the simulator).
const LEAST_GROUP: u32 = 8;

train_method::method!(Pathchirp);

static INFO: MethodInfo = MethodInfo {
    name: "pathchirp",
    summary: "available bandwidth from chirps: trains of rising rates, and the excursions of their delays",
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
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 8_000_000,
        max_octets: 150_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    manual: include_str!("pathchirp.md"),
};
