#![doc = include_str!("rapid.md")]

mod smooth;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use crate::chirps;
use crate::chirps::{Chirp, ChirpReading, Common, Flavour, Settings, Shared, ladder};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Parameter, Privilege,
    Protocol, RawParams, Scope, joined, params,
};
use narrows_train::train_method;
use smooth::{Gap, run_begins, segments};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Rapid;

/// What is its own.
#[derive(Debug, Clone, PartialEq)]
struct MultiRate {
    packets: u32,
    width: f64,
    growth: f64,
    run: usize,
    batch: f64,
}

impl Flavour for MultiRate {
    const READS: (&'static str, &'static str) = ("rapid", "trains of rising rates to the receiver");
    // Ours, from sweeps in the simulator.
    const CHIRPS: usize = 33;

    fn rates(&self, low: f64, high: f64) -> Vec<f64> {
        let steps = f64::from(self.packets.saturating_sub(2).max(1));
        ladder::geometric_to(low, high, (high / low).powf(1.0 / steps) * (1.0 + 1e-9))
    }

    fn range(&self) -> (f64, f64) {
        (1.0 / self.width.sqrt(), self.width.sqrt())
    }

    fn clipped(&self) -> (f64, bool) {
        (CLIPPED, true)
    }

    fn step(&self) -> f64 {
        // A run of the least length is as fine as it gets.
        self.width.powf(self.run as f64 / f64::from(self.packets))
    }

    fn find(&self, chirp: &Chirp) -> Option<ChirpReading> {
        let gaps = gaps(chirp);
        let noise = NOISE * chirp.blur_ns(chirp.sent_at(gaps.len() / 2));
        let begin = run_begins(&segments(&gaps), gaps.len(), self.growth, noise, self.run);
        let last = chirp.packets.len().checked_sub(2)?;
        Some(match begin {
            None => ChirpReading { rate: chirp.sent_at(last), open: true, below: false },
            Some(begin) => {
                ChirpReading { rate: chirp.sent_at(begin.saturating_sub(1)), open: false, below: begin == 0 }
            }
        })
    }

    fn combine(&self, rates: &[f64]) -> Option<f64> {
        narrows_stat::median(rates)
    }

    fn blur(&self) -> (f64, f64) {
        (self.step(), self.step())
    }

    fn hidden(&self) -> (f64, f64) {
        (BURSTS, BURSTS)
    }

    fn most_batched(&self) -> Option<f64> {
        Some(self.batch)
    }
}

/// Share of streams outside of the range from which on it is too narrow (ours).
const CLIPPED: f64 = 1.0 / 3.0;
/// Times the error of a stamp (portable rule).
const NOISE: f64 = 2.0;
/// What bursts hide, in standard deviations of single streams (ours, from sweeps in the simulator).
const BURSTS: f64 = 0.5;

fn gaps(chirp: &Chirp) -> Vec<Gap> {
    let between = chirp.packets.windows(2);
    between
        .map(|two| Gap {
            sent: (two[1].departed - two[0].departed).max(0.0),
            received: two[1].arrived - two[0].arrived,
        })
        .collect()
}

type Params = Settings<MultiRate>;
type MethodRun = chirps::MethodRun<MultiRate>;

params! {
    /// What can be set of this method alone, as it is typed.
    #[derive(Debug)]
    struct Typed {
        /// Rates of a stream, one fewer than its packets.
        packets: u32 = "64" { unit: "packets", range: Between("16", "200"), source: "[BASS14] abstract" },
        /// Highest over lowest rate.
        width: f64 = "1.5" { unit: "factor", range: Between("1.1", "4"), source: "[BASS14] abstract" },
        /// Growth of gaps that counts.
        growth: f64 = "0.01" { unit: "share", range: Between("0.001", "0.1"), source: "portable rule: 1 to 2 %" },
        /// Least length of the final run.
        run: usize = "6" { unit: "gaps", range: Between("1", "50"), source: "the authors' notes: 4 to 8" },
        /// Mean packets of a batch above which it refuses.
        batch: f64 = "5" { unit: "packets", range: Between("1", "100"), source: "portable rule" },
        /// Streams that the answer rests on.
        chirps: usize = "33" { range: Between("3", "1000"), source: "portable rule: 11 at least" },
    }
    names INFO;
}

/// With what all such methods share, less the presets that this one does not have.
const PARAMETERS: [Parameter; 12] = {
    let mut all = joined(Typed::PARAMETERS, Shared::ROWS);
    let mut at = 0;
    while at < all.len() {
        all[at] = all[at].without_presets();
        at += 1;
    }
    all
};

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        Ok(Self {
            common: Common::read(raw, typed.chirps, LEAST_GROUP, false)?,
            flavour: MultiRate {
                packets: typed.packets,
                width: typed.width,
                growth: typed.growth,
                run: typed.run,
                batch: typed.batch,
            },
        })
    }
}

/// Packets per rate at the least (ours, from sweeps in the simulator).
const LEAST_GROUP: u32 = 2;

train_method::method!(Rapid);

static INFO: MethodInfo = MethodInfo {
    name: "rapid",
    summary: "available bandwidth from multi-rate streams, gaps averaged over whole buffering events",
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
        typical_octets: 10_000_000,
        max_octets: 150_000_000,
        typical_time: Duration::from_secs(15),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    manual: include_str!("rapid.md"),
};
