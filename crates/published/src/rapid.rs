//! rapid: estimates available IP-layer capacity from multi-rate streams, by the gap from which on packets come farther apart than they left,
//! averaged over whole buffering events.
//!
//! # Model
//!
//! A stream's rates rise a little from packet to packet around what is expected. At the first rate above what is available a queue begins to
//! grow, and from there on gaps at the receiver exceed gaps at the sender for good. Hosts that hold packets back and hand them over together
//! bend single gaps, not the sum over such an event.
//!
//! ```text
//!  sent      |    |    |   |   |   |   |  |  |  |  |  |  |
//!  received  |    |    |   |   |   |   |   |   |   |   |   |   |
//!                          the last rate that was kept: A
//!  in events |             ||||            ||||              ||||     one mean gap each
//! ```
//!
//! # Assumptions
//!
//! - A1 FIFO queues, one of them tight.
//! - A2 Batches hold few packets (five at most), so that a stream sees many of them.
//! - A3 Departures keep their gaps; those that count are the real ones.
//! - A4 The sender reaches what is available, and half a step more.
//! - A5 What is available stays within a quarter of the last estimate; where a third of the streams say that it does not, the range is
//!   widened, up to the fourth power.
//!
//! # Formula
//!
//! Gaps `s_i` at the sender, `r_i` at the receiver, both as stamped.
//!
//! - Rates: 64 packets, from `Â/1.22` to `1.22 Â` in even ratios (so that the highest is half again the lowest).
//! - Events (`rapid/smooth.rs`): one begins where `r_i - r_(i-1) > max(3 x median of the smaller half of |changes|, 2 x median s)`, and ends at
//!   the next one, or where the delay is back (ours). In an event both gaps are replaced by their means; an event whose mean `r` is below
//!   half its mean `s` is the tail of the one before.
//! - Base rule: the estimate is the last rate in front of the final run of growth, `r > s` by 1 % of `s` at least and by twice a stamp's
//!   error. Of a run the mean growth from its begin to each of its later segments counts (ours), over 6 gaps at least (the authors' notes: 4
//!   to 8). No run: above the highest rate. A run from the first gap on: below the lowest.
//! - The answer is the median of the streams. Interval: Student's 95 % of their mean around it, a step, and what bursts hide.
//!
//! What this is not: BASS. That is the authors' buffering-aware spike smoothing; its full text was not at hand, and neither its exact
//! ends of events nor its limits are known here. This is the portable version that abstracts and notes allow, and it is not good enough as the
//! core where 50 us of coalescing meet 10 Gbit/s: single streams read 6 to 45 % high there, spread 8 to 30 % (worked out for this
//! version in a simulator of one hop). So it refuses there.
//!
//! # Parameters
//!
//! Declared below; `narrows methods rapid` prints the table.
//!
//! # Cost
//!
//! Streams of 129 packets: see `docs/results/available-methods.md`.
//!
//! # Fails when
//!
//! - A1: schedulers that share evenly; token buckets deeper than a stream, which nothing shows.
//! - A2: [`Reason::ReceiveBatching`]; clocks too coarse for twenty packets per rate: [`Reason::StampsTooCoarse`].
//! - A3: streams in which the sender paused are left out, [`Caveat::PacingBroken`]; most of them: [`Reason::SenderCannotPace`].
//! - A4: [`Verdict::LowerBound`](narrows_probe::Verdict), limited by the host.
//! - A5: bursts longer than a stream put most streams above or below their range; the median then says little:
//!   [`Caveat::VariableRate`], low confidence, and the interval reaches over four fifths of the streams.
//! - Loss of more than a tenth, and changed order: streams are left out; most of them: [`Reason::TooMuchLoss`], [`Reason::NoAgreement`].
//!
//! # References
//!
//! - `[RAPID09]` V. Konda, J. Kaur, RAPID: Shrinking the Congestion-Control Timescale, INFOCOM 2009: multi-rate streams (recalled).
//! - `[BASS14]` Q. Yin, J. Kaur, F. D. Smith, Can Bandwidth Estimation Tackle Noise at Ultra-High Speeds?, ICNP 2014: abstract and the
//!   authors' notes of a precursor only. They report estimates within a factor of 1.15 of the truth, with 300 Mbit/s of constant traffic on
//!   1 Gbit/s.

mod smooth;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use crate::chirps;
use crate::chirps::{Chirp, Common, Flavour, Found, Settings, Shared, ladder};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Parameter, Privilege,
    Protocol, RawParams, Scope, joined, params,
};
use narrows_train::campaign;
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

    fn find(&self, chirp: &Chirp) -> Option<Found> {
        let gaps = gaps(chirp);
        let noise = NOISE * chirp.blur_ns(chirp.sent_at(gaps.len() / 2));
        let begin = run_begins(&segments(&gaps), gaps.len(), self.growth, noise, self.run);
        let last = chirp.packets.len().checked_sub(2)?;
        Some(match begin {
            None => Found {
                rate: chirp.sent_at(last),
                open: true,
                below: false,
            },
            Some(begin) => Found {
                rate: chirp.sent_at(begin.saturating_sub(1)),
                open: false,
                below: begin == 0,
            },
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
type Session = chirps::Session<MultiRate>;

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

campaign::method!(Rapid);

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
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 10_000_000,
        max_octets: 150_000_000,
        typical_time: Duration::from_secs(15),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    source: include_str!("rapid.rs"),
};
