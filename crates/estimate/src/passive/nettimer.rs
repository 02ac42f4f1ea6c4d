//! nettimer, passive: estimates IP-layer capacity from pairs of a TCP connection's packets that pass.
//!
//! # Model
//! Two packets that wait behind each other at the narrow link leave it `8 L / C` apart:
//! ```text
//!   RBPP  stamps at both ends      sent gap and received gap of the same pair: knows what was offered
//!   ROPP  the receiver's alone     received gap: must take it that the pair was offered fast enough
//!   SBPP  the sender's alone       data out, acknowledgements back: knows what was offered, and meets the way back too
//! ```
//! Errors of cross traffic spread, the capacity repeats: it is where samples are densest.
//!
//! # Assumptions
//! - A1 Pairs left closer together than the narrow link lets them through.
//! - A2 Stamps resolve a gap; the capturing hosts neither merge nor batch.
//! - A3 One rate repeats more than any other: the load is not heavy.
//! - A4 SBPP: the way back neither queues nor compresses; every acknowledgement leaves when the segment that it covers last has come.
//!
//! # Formula
//! - `received = 8 L / gap`, `potential = 8 L / sent gap`. A sample whose potential does not exceed what was received says nothing.
//!   Where no sent gap is known (ROPP), a pair counts if timestamps show that it waited. Code: `series.rs`.
//! - Density `d(x)`: kernel `1 - |t|` of half-width `kernel * x` over the last `window` samples. Code: `stat::relative_density`.
//! - Ratio `p(x) = 1 - ln x / ln s(x)`, `s` the sample's potential; recency `r(x)`: place in the window, newest one. All scaled to at most 1.
//! - `f = weight_density * d + weight_ratio * p + weight_recency * r`; the capacity is where `f` is greatest. Where no potential is known its weight
//!   goes to the others. The answer is octets over time of the samples about it.
//! - A delayed acknowledgement gives one sample of all that it covers; one sent by the timer (it covers a single segment where two are
//!   usual) gives none. Retransmitted and reordered segments give none.
//!
//! # Parameters
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `stamps` | word | `auto` | `auto`, `both`, `sender`, `receiver` | RBPP, SBPP, ROPP; `auto`: what there is, in this order for the place of the capture |
//! | `kernel` | 1 | 0.10 | 0.01 to 0.5 | `[Nettimer01]`, recalled |
//! | `window` | 1 | 128 | 8 to 4096 | the same |
//! | `weight_density`, `weight_ratio`, `weight_recency` | 1 | 0.4, 0.3, 0.3 | 0 to 1 | the same; its authors did not optimise them |
//! | `guard` | word | true | true, false | ours: only pairs known to have waited count, see the crate's `passive/series.rs` |
//! | `vantage` | word | by `stamps` | `here`, `sender`, `receiver`, `hop` and a number | where the simulator listens |
//! | `duration` | time | 10 s | 100 ms to 10 min | how long it listens |
//!
//! # Cost
//! No probes. It listens for `duration`, or reads a capture.
//!
//! # Fails when
//! - A1: inconclusive, `never_queued`; ROPP without TCP timestamps: `gaps_unproven`, unless losses show that a queue overflowed.
//! - A2: inconclusive, `stamps_too_coarse` or `receive_batching`.
//! - A3: `multimodal` from a second peak of half the first's height on.
//! - A4: `asymmetric_limit` always stands beside SBPP; samples that waited on the way back are left out where timestamps show it.
//!   Over 10 % more than a connection without losses carried may be its window's rhythm: what was carried is a lower bound (`guard`).
//!
//! Departs from `[Nettimer01]`: the window holds samples that count, not all; the value is refined from the peak's samples.
//!
//! # References
//! - `[Nettimer01]` Lai, Baker: Nettimer: a tool for measuring bottleneck link bandwidth, 2001.
//! - `[Lai99]` Lai, Baker: Measuring bandwidth, 1999.
//! - `[Abut18]` Abut, Leischner: An experimental evaluation of tools for estimating bandwidth-related metrics, 2018; table 6.

use super::log::FlowLog;
use super::math::bit_rate;
use super::series::{self, Sample, Series};
use super::{Conclusion, PassiveMethod, Sight, judge, listen};
use crate::outcome::{Caveat, Confidence, Outcome, Reason};
use crate::registry::{MethodInfo, ParamError, RawParams};

/// The method.
pub(crate) struct NettimerPassive;

static INFO: MethodInfo = MethodInfo {
    name: "nettimer-passive",
    summary: "IP-layer capacity from a TCP connection that passes: density of packet pairs (RBPP, SBPP, ROPP)",
    parameters: &[
        (
            "stamps",
            "auto, both (RBPP), sender (SBPP) or receiver (ROPP); default auto",
        ),
        ("kernel", "half-width of the kernel, relative; default 0.10"),
        ("window", "samples looked back on; default 128"),
        ("weight_density", "weight of the density; default 0.4"),
        (
            "weight_ratio",
            "weight of the potential over the received rate; default 0.3",
        ),
        ("weight_recency", "weight of recency; default 0.3"),
        ("guard", listen::GUARD),
        (
            "vantage",
            "where to listen: here, sender, receiver or a hop's number; default by stamps",
        ),
        ("duration", listen::DURATION),
    ],
    source: include_str!("nettimer.rs"),
    ..listen::INFO
};

/// Whose stamps are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamps {
    Auto,
    Both,
    Sender,
    Receiver,
}

/// Parameters, as in the table above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Params {
    pub(super) stamps: Stamps,
    kernel: f64,
    window: usize,
    weights: [f64; 3],
    guard: bool,
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let stamps: String = raw.get("stamps", "auto".to_owned())?;
        let stamps = match stamps.as_str() {
            "auto" => Stamps::Auto,
            "both" => Stamps::Both,
            "sender" => Stamps::Sender,
            "receiver" => Stamps::Receiver,
            _ => {
                return Err(listen::out_of_range(
                    "stamps",
                    &stamps,
                    "auto, both, sender or receiver",
                ));
            }
        };
        Ok(Self {
            stamps,
            kernel: listen::within(raw, "kernel", 0.10, 0.01, 0.5)?,
            window: listen::count_within(raw, "window", 128, 8, 4096)?,
            weights: [
                listen::within(raw, "weight_density", 0.4, 0.0, 1.0)?,
                listen::within(raw, "weight_ratio", 0.3, 0.0, 1.0)?,
                listen::within(raw, "weight_recency", 0.3, 0.0, 1.0)?,
            ],
            guard: raw.get("guard", true)?,
        })
    }
}

listen::method!(NettimerPassive);

impl PassiveMethod for NettimerPassive {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn conclude(&self, log: &FlowLog, sight: &Sight, params: &RawParams) -> Result<Conclusion, ParamError> {
        params.check_names(&INFO)?;
        let params = Params::try_from(params)?;
        let series = match params.stamps {
            Stamps::Auto => series::both(log, sight).unwrap_or_else(|| series::best(log, sight)),
            Stamps::Both => {
                let Some(both) = series::both(log, sight) else {
                    let what = "stamps of a second capture of the same packets".to_owned();
                    let none = series::data(log, sight);
                    return Ok(judge::inconclusive(Reason::MissingInput { what }, log, &none));
                };
                both
            }
            Stamps::Sender => series::acks(log, sight),
            Stamps::Receiver => series::data(log, sight),
        };
        let concluded = analyse(log, sight, &series, &params);
        Ok(judge::unless_slack(log, &series, params.guard, concluded))
    }
}

/// A second peak of this part of the first makes a case of its own.
const RIVAL: f64 = 0.5;

/// The same over a series that is there already.
pub(super) fn analyse(log: &FlowLog, sight: &Sight, series: &Series, params: &Params) -> Conclusion {
    if let Some(reason) = judge::refusal(log, series, params.guard) {
        return judge::inconclusive(reason, log, series);
    }
    let counts = |sample: &&Sample| {
        let offered = sample.sent.is_none_or(|sent| sent < sample.gap);
        offered && (!params.guard || sample.queued || !series.judged)
    };
    let used: Vec<&Sample> = series.samples.iter().filter(counts).collect();
    let window = &used[used.len().saturating_sub(params.window)..];
    let rates: Vec<f64> = window.iter().map(|sample| sample.rate()).collect();
    let Ok(density) = stat::relative_density(&rates, params.kernel) else {
        return judge::inconclusive(Reason::TooFewSamples { samples: 0 }, log, series);
    };
    let peak = density.peak();
    let mode = best(window, &density, params);
    let verdict = match judge::verdict(log, series, mode, params.guard) {
        Ok(verdict) => verdict,
        Err(reason) => return judge::inconclusive(reason, log, series),
    };
    let mut estimate = verdict
        .estimate(log, sight, series)
        .with("peak_share", peak.share)
        .with("half_maximum_low_bps", bit_rate(peak.half_maximum.low()))
        .with("half_maximum_high_bps", bit_rate(peak.half_maximum.high()));
    if let Some(second) = peak.second.filter(|second| second.ratio >= RIVAL) {
        estimate = estimate.caveat(Caveat::Multimodal {
            other: bit_rate(second.at),
        });
        estimate.confidence = Confidence::Low;
    }
    Conclusion {
        outcome: Outcome::from(estimate),
        samples: verdict.samples(),
    }
}

/// The sample of the highest score.
fn best(window: &[&Sample], density: &stat::RelativeDensity, params: &Params) -> f64 {
    let ratio = |sample: &Sample| {
        let potential = sample.octets * 8e9 / sample.sent.map_or(sample.gap, |sent| sent.max(1.0));
        (1.0 - sample.rate().ln() / potential.ln()).max(0.0)
    };
    let densities: Vec<f64> = window.iter().map(|sample| density.at(sample.rate())).collect();
    let ratios: Vec<f64> = window.iter().map(|sample| ratio(sample)).collect();
    let greatest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (most_dense, most_ratio) = (greatest(&densities), greatest(&ratios));
    let knows = window.iter().any(|sample| sample.sent.is_some());
    let [of_density, of_ratio, of_recency] = params.weights;
    let of_ratio = if knows { of_ratio } else { 0.0 };
    let score = |place: usize| {
        let recency = (place + 1) as f64 / window.len() as f64;
        of_density * densities[place] / most_dense + of_ratio * ratios[place] / most_ratio + of_recency * recency
    };
    let scored = (0..window.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)));
    scored.map_or(0.0, |place| window[place].rate())
}
