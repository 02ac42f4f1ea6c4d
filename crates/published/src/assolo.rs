//! assolo: estimates available IP-layer capacity from reflected exponential chirps (REACH), which probe most densely where it is expected.
//!
//! # Model
//!
//! As `pathchirp`: rates rise within a train, and where they exceed what is available delays grow for good. But the rates lie symmetric about
//! the middle of the range and densest there, and the series of estimates is filtered by how steadily it moves.
//!
//! ```text
//!  rates  |      |    |   |  | | || M || | |  |   |    |      |
//!         low                      ▲                       high
//!                        what was expected is measured best
//! ```
//!
//! # Assumptions
//!
//! - A1 to A5 as `pathchirp`.
//! - A6 What is available lies near the middle of the range: the range is centred on the last estimate.
//!
//! # Formula
//!
//! - Rates: `M = (low + high)/2`, `s = density (high - low)/2`; `M +- s`, `M +- s(1 + spread)`, ..: `2k + 1` rates with the largest `k` for which
//!   `s (spread^k - 1)/(spread - 1) < (high - low)/2`. With 5 % and 1.2: `k = 8`, 18 packets at one per rate, whatever the range.
//! - Excursions as `pathchirp`'s, from the second packet on. The one that does not end, at `l`, gives `E = R_(l-1)`: the rate before. So a fluid
//!   path gives the last rate that is not above what is available.
//! - The vertical-horizontal filter over a window of 11 estimates: `v = (max - min)/sum |D_i - D_(i-1)|`, `a = v/3` (1/2 if all are
//!   one), `S := a D + (1 - a) S` (`filter=vhf`).
//! - Interval: Student's 95 % of the mean, a step more on either side, and what bursts may hide.
//!
//! Departs from ASSOLO 0.9e:
//!
//! - the source weighs the new value by `1 - a`, so that it smooths least what jitters most (`filter=vhf-source` does so), and is off unless
//!   compiled in, against its README (`filter=mean`); the ring of values is walked in order of storage there, of time here;
//! - its sender has the 5 % fixed while its receiver takes `-e`: rates here are those of the departures;
//! - delays are taken as absolute values there, so that a clock offset or a falling delay can turn into a rise; not here;
//! - its range stays as given (adaptation diverged, 1-14 became 2-98 Mbit/s, and is off); here a train and coarse chirps find it, and it
//!   moves, at most a dozen times, to stay centred;
//! - several packets of full size per rate; coalescence as in `pathchirp`, where the original counts a zero.
//!
//! # Parameters
//!
//! Declared below; `narrows methods assolo` prints the table.
//!
//! # Cost
//!
//! Chirps of 137 packets: see `docs/results/available-methods.md`.
//!
//! # Fails when
//!
//! As `pathchirp`, assumption by assumption. A6: ranges that never settle end in what the last one says; `preset=tool` with what is
//! available outside of 10 to 200 Mbit/s says a bound, or a number with [`Caveat::NotConverged`]. The authors ask for a kernel with real-time
//! priorities; here chirps that left otherwise than planned are left out, [`Caveat::PacingBroken`].
//!
//! # References
//!
//! - `[ASSOLO09]` E. Goldoni, G. Rossi, A. Torelli, ASSOLO, a New Method for Available Bandwidth Estimation, ICIMP 2009; constants and rules
//!   from the source of 0.9e. That its errors are lower than pathChirp's on a 100 Mbit/s testbed is recalled, its numbers were not at hand.
//! - `[Chirp03]` V. Ribeiro et al., pathChirp, PAM 2003.

mod filter;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use crate::chirps;
use crate::chirps::excursions::Rule;
use crate::chirps::weigh::weigh;
use crate::chirps::{Chirp, Common, Flavour, Found, Settings, Shared, ladder};
use filter::Filter;
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Parameter, Privilege,
    Protocol, RawParams, Scope, joined, params,
};
use narrows_train::campaign;
use narrows_train::campaign::within;

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

    fn find(&self, chirp: &Chirp) -> Option<Found> {
        let rule = Rule {
            decrease: self.decrease,
            busy: self.busy,
            from: 1,
            noise: 0.0,
        };
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
type Session = chirps::Session<Reflected>;

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

campaign::method!(Assolo);

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
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 9_000_000,
        max_octets: 150_000_000,
        typical_time: Duration::from_secs(15),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    source: include_str!("assolo.rs"),
};
