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
//! - Density `d(x)`: kernel `1 - |t|` of half-width `kernel * x` over the last `window` samples. Code: `narrows_stat::relative_density`.
//! - Ratio `p(x) = 1 - ln x / ln s(x)`, `s` the sample's potential; recency `r(x)`: place in the window, newest one. All scaled to at most 1.
//! - `f = weight_density * d + weight_ratio * p + weight_recency * r`; the capacity is where `f` is greatest. Where no potential is known its weight
//!   goes to the others. The answer is octets over time of the samples about it.
//! - A delayed acknowledgement gives one sample of all that it covers; one sent by the timer (it covers a single segment where two are
//!   usual) gives none. Retransmitted and reordered segments give none.
//!
//! # Parameters
//! Declared below; `narrows methods nettimer-passive` prints the table.
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

use super::listen::Listening;
use super::log::FlowLog;
use super::math::bit_rate;
use super::series::{self, Sample, Series};
use super::{Conclusion, PassiveMethod, Sight, judge, listen};
use narrows_probe::outcome::{Caveat, Confidence, Outcome, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, Parameter, Range, RawParams, joined, params};

/// The method.
pub struct NettimerPassive;

static INFO: MethodInfo = MethodInfo {
    name: "nettimer-passive",
    summary: "IP-layer capacity from a TCP connection that passes: density of packet pairs (RBPP, SBPP, ROPP)",
    parameters: &PARAMETERS,
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

params! {
    /// What can be set of the reading.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Params {
        /// Whose stamps are read: both ends' (RBPP), the sender's (SBPP), the receiver's (ROPP), or what there is in this order.
        pub(super) stamps: Stamps = "auto" is {
            "auto" => Stamps::Auto, "both" => Stamps::Both, "sender" => Stamps::Sender, "receiver" => Stamps::Receiver,
        } { source: "[Nettimer01]" },
        /// Half-width of the kernel.
        kernel: f64 = "0.1" { unit: "of the rate", range: Between("0.01", "0.5"), source: "[Nettimer01], recalled" },
        /// Samples looked back on.
        window: usize = "128" { range: Between("8", "4096"), source: "[Nettimer01], recalled" },
        /// Weight of the density.
        weight_density: f64 = "0.4" {
            range: Between("0", "1"), source: "[Nettimer01], recalled; its authors did not optimise it",
        },
        /// Weight of the potential over the received rate.
        weight_ratio: f64 = "0.3" { range: Between("0", "1"), source: "[Nettimer01], recalled, likewise" },
        /// Weight of recency.
        weight_recency: f64 = "0.3" { range: Between("0", "1"), source: "[Nettimer01], recalled, likewise" },
        /// Counts only gaps known to have waited.
        guard: bool = "true" { range: Range::SWITCH, source: "ours: see the crate's `passive/series.rs`" },
    }
}

/// With where and how long to listen.
const PARAMETERS: [Parameter; 9] = joined(Params::PARAMETERS, Listening::PARAMETERS);

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
    let Ok(density) = narrows_stat::relative_density(&rates, params.kernel) else {
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
fn best(window: &[&Sample], density: &narrows_stat::RelativeDensity, params: &Params) -> f64 {
    let ratio = |sample: &Sample| {
        let potential = sample.octets * 8e9 / sample.sent.map_or(sample.gap, |sent| sent.max(1.0));
        (1.0 - sample.rate().ln() / potential.ln()).max(0.0)
    };
    let densities: Vec<f64> = window.iter().map(|sample| density.at(sample.rate())).collect();
    let ratios: Vec<f64> = window.iter().map(|sample| ratio(sample)).collect();
    let greatest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (most_dense, most_ratio) = (greatest(&densities), greatest(&ratios));
    let knows = window.iter().any(|sample| sample.sent.is_some());
    let (of_density, of_ratio, of_recency) = (params.weight_density, params.weight_ratio, params.weight_recency);
    let of_ratio = if knows { of_ratio } else { 0.0 };
    let score = |place: usize| {
        let recency = (place + 1) as f64 / window.len() as f64;
        of_density * densities[place] / most_dense + of_ratio * ratios[place] / most_ratio + of_recency * recency
    };
    let scored = (0..window.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)));
    scored.map_or(0.0, |place| window[place].rate())
}
