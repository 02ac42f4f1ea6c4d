//! pathchirp: estimates available IP-layer capacity from chirps, trains whose packets come closer and closer, by the excursions of their delays.
//!
//! # Model
//!
//! FIFO links. One train probes a whole range of rates: each gap is shorter than the one before by a factor. Where its rate stays above what
//! is available delays grow and do not come back; other traffic makes excursions that do.
//!
//! ```text
//!  departures |        |      |    |   |  | | |||
//!  delays          .'.                  .·'
//!             ....'   '....'.........··'          R of the last excursion's begin: what is available
//! ```
//!
//! # Assumptions
//!
//! - A1 FIFO queues, one of them tight.
//! - A2 Stamps resolve the growth from packet to packet, or as many packets share a rate as it takes.
//! - A3 Departures keep their gaps; the rates that count are those that really left.
//! - A4 The sender reaches what is available.
//! - A5 Other traffic varies little within a chirp; what it varies from chirp to chirp averages out.
//!
//! # Formula
//!
//! Point `k` of a chirp left at `t_k` and came with delay `q_k`; step `k` took `D_k = t_(k+1) - t_k` at rate `R_k`, all from actual departures.
//!
//! - Excursions (`chirps/excursions.rs`): one begins at the first `k` with `q_k < q_(k+1)`, and ends at the first `j` with
//!   `q_j - q_k < max(q_k..q_j - q_k)/F`; it counts if it has `L` steps. The one that does not end begins at `l`.
//! - `E_k = R_k` where `k` lies in an excursion that ended and counts, and `q_k < q_(k+1)`; everywhere else `E_k = R_l`; without an `l`
//!   the highest rate.
//! - A chirp's estimate is `sum E_k D_k / sum D_k`; the answer is the mean of chirps, at the middle of a step (the first rate above what is
//!   available is half a step too high on the mean; `preset=tool`: not corrected).
//! - Interval: Student's 95 % of the mean (correlated chirps count for fewer), and what bursts may hide, see below.
//!
//! Departs from pathChirp 2.3.7:
//!
//! - its sender counts rates from the lowest up, its receiver from the highest down, which differ by up to one spread factor (8.2 % with
//!   its defaults, all of it too high): ours are those of the departures;
//! - packets that it marks as coalesced can begin an excursion: ours are left out everywhere;
//! - "coalesced" is closer than 10 us there, so that 1000 octets at 800 Mbit/s always are; ours is closer than the path leaves, and the
//!   last packet of each batch is kept;
//! - an incomplete chirp counts as half the lowest rate if it is alone: ours are left out, up to a tenth of lost packets are borne;
//! - range by a back-to-back train and coarse chirps, not by factors of seven every few minutes; spread 1.05 and packets of full
//!   size, several per rate;
//! - delays may drift by 0.1 % of time: two clocks do, and to the tool that is an excursion from the first packet on.
//!
//! # Parameters
//!
//! Declared below; `narrows methods pathchirp` prints the table.
//!
//! # Cost
//!
//! On a 100 Mbit/s path some 50 chirps of 130 packets: see `docs/results/available-methods.md`. A chirp's last packets leave at twice what is available.
//!
//! # Fails when
//!
//! - A1: a shaper's bucket deeper than a chirp is its line rate, and nothing shows it.
//! - A2: clocks too coarse for twenty packets per rate: [`Reason::StampsTooCoarse`]; batches too far apart:
//!   [`Reason::ReceiveBatching`].
//! - A3: chirps in which the sender paused are left out, [`Caveat::PacingBroken`]; most of them: [`Reason::SenderCannotPace`].
//! - A4: [`Verdict::LowerBound`](narrows_probe::Verdict), limited by the host, never a number.
//! - A5: bursty traffic begins excursions below what is available and ends them above it.
//! - Loss: chirps with more than a tenth of it are left out; most of them: [`Reason::TooMuchLoss`]. Changed order: left out, then
//!   [`Reason::NoAgreement`].
//!
//! # References
//!
//! - `[Chirp03]` V. Ribeiro, R. Riedi, R. Baraniuk, J. Navratil, L. Cottrell, pathChirp: Efficient Available Bandwidth Estimation for Network
//!   Paths, PAM 2003; constants and rules from the source of 2.3.7.
//! - `[Jin03a]` G. Jin, B. Tierney, System Capability Effects on Algorithms for Network Bandwidth Measurement, IMC 2003: where it
//!   fails.

#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use crate::chirps;
use crate::chirps::excursions::Rule;
use crate::chirps::weigh::weigh;
use crate::chirps::{Chirp, Common, Flavour, Found, Settings, Shared, ladder};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Parameter, Privilege,
    Protocol, RawParams, Scope, joined, params,
};
use narrows_train::campaign;
use narrows_train::campaign::within;

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
        if self.tool {
            ladder::geometric(low, high, self.spread)
        } else {
            ladder::geometric_to(low, high, self.spread)
        }
    }

    fn range(&self) -> (f64, f64) {
        (1.0 / AROUND, AROUND)
    }

    fn step(&self) -> f64 {
        self.spread
    }

    fn find(&self, chirp: &Chirp) -> Option<Found> {
        let rule = Rule {
            decrease: self.decrease,
            busy: self.busy,
            from: 0,
            noise: 0.0,
        };
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

/// The fine range reaches this far around the estimate: the tool's 1.5 above the lowest and 0.66 of the highest lie well inside.
const AROUND: f64 = 1.7;
/// Bursts end excursions above what is available: on the mean by a quarter to a half of the chirps' standard deviation (ours, from sweeps in
/// the simulator).
const BURSTS_BELOW: f64 = 0.75;
const BURSTS_ABOVE: f64 = 0.25;

type Params = Settings<Excursionist>;
type Session = chirps::Session<Excursionist>;

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

campaign::method!(Pathchirp);

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
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 8_000_000,
        max_octets: 150_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    source: include_str!("pathchirp.rs"),
};
