#![doc = include_str!("assolo.md")]

mod filter;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use crate::chirps;
use crate::chirps::excursions::Rule;
use crate::chirps::weigh::weigh;
use crate::chirps::{Chirp, ChirpReading, Common, Flavour, Settings, Shared, ladder};
use filter::Filter;
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Parameter, Privilege,
    Protocol, RawParams, Scope, joined, params,
};
use narrows_train::train_method;
use narrows_train::train_method::within;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Assolo;

/// What is its own.
#[derive(Debug, Clone, PartialEq)]
struct Reflected {
    spread: f64,
    density: f64,
    decrease: f64,
    busy: usize,
    filter: Filter,
}

impl Flavour for Reflected {
    const READS: (&'static str, &'static str) = ("assolo", "trains of rising rates to the receiver");
    // Ours, from sweeps in the simulator.
    const CHIRPS: usize = 33;

    fn rates(&self, low: f64, high: f64) -> Vec<f64> {
        ladder::reflected(low, high, self.spread, self.density)
    }

    fn range(&self) -> (f64, f64) {
        (1.0 - AROUND, 1.0 + AROUND)
    }

    fn place(&self, rate: f64, low: f64, high: f64) -> f64 {
        (rate - low) / (high - low)
    }

    fn step(&self) -> f64 {
        1.0 + self.density * AROUND
    }

    fn find(&self, chirp: &Chirp) -> Option<ChirpReading> {
        let rule = Rule { decrease: self.decrease, busy: self.busy, from: 1, noise: 0.0 };
        weigh(chirp, &rule, 1)
    }

    fn combine(&self, rates: &[f64]) -> Option<f64> {
        self.filter.apply(rates)
    }

    fn blur(&self) -> (f64, f64) {
        // Away from the middle steps are longer.
        let step = self.step() * self.step();
        (step, step)
    }

    fn hidden(&self) -> (f64, f64) {
        (BURSTS_BELOW, BURSTS_ABOVE)
    }

    fn most_batched(&self) -> Option<f64> {
        None
    }
}

/// Half of the fine range over its middle (ours).
const AROUND: f64 = 0.6;
/// As for `pathchirp` (ours, from sweeps in the simulator).
const BURSTS_BELOW: f64 = 0.75;
const BURSTS_ABOVE: f64 = 0.25;

type Params = Settings<Reflected>;
type MethodRun = chirps::MethodRun<Reflected>;

params! {
    /// What can be set of this method alone, as it is typed.
    #[derive(Debug)]
    #[allow(dead_code, reason = "the preset only picks the defaults of the others")]
    struct Typed {
        /// Constants and rules: ours, or those of ASSOLO 0.9e.
        tool: bool = "ours" is { "ours" => false, "tool" => true } { name: "preset", source: "ours" },
        /// Ratio of neighbouring distances of rates.
        spread: f64 = "1.2" { unit: "factor", range: Between("1.001", "2"), source: "ASSOLO 0.9e" },
        /// Sigma: first distance over half the range.
        density: f64 = "0.05" { unit: "share", range: Between("0.02", "0.1"), source: "ASSOLO 0.9e" },
        /// F: an excursion ends below its height over this; above 1.
        decrease: f64 = "1.5" { unit: "factor", range: Between("1", "10"), source: "ASSOLO 0.9e" },
        /// L: steps of an excursion that counts.
        busy: usize = "5" { unit: "steps", range: Between("1", "100"), source: "ASSOLO 0.9e" },
        /// What chirps are put together with; in vhf-source the gain is on the old value.
        filter: Filter = "vhf" is { "vhf" => Filter::Vhf, "vhf-source" => Filter::VhfSource, "mean" => Filter::Mean } {
            presets: &[("tool", "mean")], source: "see Formula",
        },
        /// Chirps that the answer rests on.
        chirps: usize = "33" { range: Between("3", "1000"), presets: &[("tool", "11")], source: "ours; the tool" },
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
const PARAMETERS: [Parameter; 13] = joined(Typed::PARAMETERS, Shared::ROWS);

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        Ok(Self {
            common: Common::read(raw, typed.chirps, LEAST_GROUP, false)?,
            flavour: Reflected {
                spread: typed.spread,
                density: typed.density,
                decrease: typed.decrease,
                busy: typed.busy,
                filter: typed.filter,
            },
        })
    }
}

/// Packets per rate at the least (ours, from sweeps in the simulator).
const LEAST_GROUP: u32 = 8;

train_method::method!(Assolo);

static INFO: MethodInfo = MethodInfo {
    name: "assolo",
    summary: "available bandwidth from reflected exponential chirps, densest where it is expected",
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
        typical_octets: 9_000_000,
        max_octets: 150_000_000,
        typical_time: Duration::from_secs(15),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    manual: include_str!("assolo.md"),
};
