//! PPrate: estimates IP-layer capacity passively, from the spacing of a TCP connection's packets, with pathrate's logic.
//!
//! # Model
//! A TCP sender's packets leave in bursts of two and more, so neighbours often wait behind one another at the narrow link and leave it
//! as far apart as it needs for one:
//! ```text
//!   sent      ##....##......##          received   #..#..#..x..#..x.x.#      x: cross traffic between two
//!                    narrow link  8 L / C  ---->   |--|  capacity mode; wider gaps make lower modes
//! ```
//! The distribution of `8 L / gap` has several modes; the asymptotic dispersion rate, which long groups of gaps show, lies below the
//! capacity, and tells the modes that come of cross traffic from the capacity's.
//!
//! # Assumptions
//! - A1 Pairs waited at the narrow link: the sender was limited by neither its application nor its window.
//! - A2 The capture sees the gaps as the narrow link left them: it sits behind it (or sees acknowledgements of what crossed it).
//! - A3 Stamps resolve a single gap; the capturing host neither merges nor batches.
//! - A4 The capacity mode is the strongest above the asymptotic dispersion rate.
//!
//! # Formula
//! - `c_k = 8 L / gap_k` of neighbours of equal, full size; kept from `q25 - iqr` to `q75 + iqr`.
//! - Bin width `width * iqr`, at most `bins` bins; local modes of the histogram, at least `least` of the tallest; a neighbour joins if its rise
//!   from the valley is at most `join_right` or `join_left` of its height. Code: `histogram.rs`.
//! - One mode: its centre. Else groups of 3, 4, ... 39 gaps: rates of groups, until they have one mode (the asymptotic dispersion rate), or
//!   fewer than 15 samples are in the tallest. The strongest mode whose upper edge exceeds it; none: the highest below.
//! - The answer is octets over time of the samples about that mode.
//!
//! # Parameters
//! Declared below; `narrows methods pprate` prints the table.
//!
//! # Cost
//! No probes. It listens for `duration`, or reads a capture.
//!
//! # Fails when
//! - A1: inconclusive, `never_queued`; without TCP timestamps `gaps_unproven`, unless losses show that a queue overflowed.
//! - A2: before the narrow link acknowledgements are read instead, and say so (`asymmetric_limit`). Where they come over 10 % faster than
//!   what a connection without losses carried, its window may set their rhythm: what was carried is a lower bound (`guard`).
//! - A3: inconclusive, `stamps_too_coarse` or `receive_batching`.
//! - A4: several connections that share the narrow link for the whole time, packet by packet: `multimodal`.
//!
//! Departs from the port: a mode whose upper edge exceeds the asymptotic dispersion rate is a candidate, as in pathrate (`[Pathrate04]`); the port asks for
//! its peak to lie above that rate's mode, and so leaves out the capacity of an idle link, where the two coincide. Sizes count at the IP layer,
//! not as TCP payload.
//!
//! # References
//! - `[PPrate06]` En-Najjary, Urvoy-Keller: PPrate: a passive capacity estimation tool, E2EMON 2006.
//! - `[Pathrate04]` Dovrolis, Ramanathan, Moore: Packet dispersion techniques and a capacity-estimation methodology, 2004.

mod histogram;

use super::listen::Listening;
use super::log::FlowLog;
use super::math::bit_rate;
use super::series::{self, Sample, Series};
use super::{Conclusion, PassiveMethod, Sight, judge, listen};
use histogram::{Mode, Shape};
use narrows_probe::outcome::{Caveat, Confidence, Outcome, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, Parameter, Range, RawParams, joined, params};

/// The method.
pub struct Pprate;

static INFO: MethodInfo = MethodInfo {
    name: "pprate",
    summary: "IP-layer capacity from a TCP connection that passes: modes of packet spacing above the dispersion rate",
    parameters: &PARAMETERS,
    source: include_str!("pprate.rs"),
    ..listen::INFO
};

params! {
    /// What can be set of the reading.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Params {
        /// Bin width, of the interquartile range.
        width: f64 = "0.05" {
            unit: "share", range: Between("0.005", "1"), source: "[PPrate06], as its open port has it",
        },
        /// Most bins.
        bins: usize = "1000" { range: Between("10", "100000"), source: "the same" },
        /// Lowest mode, of the tallest.
        least: f64 = "0.15" { unit: "share", range: Between("0", "1"), source: "the same" },
        /// Rise that keeps modes apart on the right.
        join_right: f64 = "0.2" { range: Between("0", "1"), source: "the same" },
        /// Rise that keeps modes apart on the left.
        join_left: f64 = "0.15" { range: Between("0", "1"), source: "the same" },
        /// Fewest samples.
        samples: usize = "250" {
            range: Between("8", "100000"), source: "the same; the port repeats short samples instead, which adds nothing",
        },
        /// Counts only gaps known to have waited.
        guard: bool = "true" { range: Range::SWITCH, source: "ours: see the crate's `passive/series.rs`" },
    }
}

impl Params {
    fn shape(&self) -> Shape {
        Shape {
            width: self.width,
            bins: self.bins,
            least: self.least,
            join_right: self.join_right,
            join_left: self.join_left,
        }
    }
}

/// With where and how long to listen.
const PARAMETERS: [Parameter; 9] = joined(Params::PARAMETERS, Listening::PARAMETERS);

listen::method!(Pprate);

impl PassiveMethod for Pprate {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn conclude(&self, log: &FlowLog, sight: &Sight, params: &RawParams) -> Result<Conclusion, ParamError> {
        params.check_names(&INFO)?;
        let params = Params::try_from(params)?;
        let series = series::best(log, sight);
        let concluded = analyse(log, sight, &series, &params);
        Ok(judge::unless_slack(log, &series, params.guard, concluded))
    }
}

/// The same over a series that is there already.
pub(super) fn analyse(log: &FlowLog, sight: &Sight, series: &Series, params: &Params) -> Conclusion {
    if let Some(reason) = judge::refusal(log, series, params.guard) {
        return judge::inconclusive(reason, log, series);
    }
    let rates: Vec<f64> = used(series, params.guard).map(Sample::rate).collect();
    if rates.len() < params.samples {
        let samples = u64::try_from(rates.len()).unwrap_or(u64::MAX);
        return judge::inconclusive(Reason::TooFewSamples { samples }, log, series);
    }
    let Some(choice) = choose(series, &rates, params) else {
        return judge::inconclusive(Reason::NoAgreement, log, series);
    };
    let verdict = match judge::verdict(log, series, choice.rate, params.guard) {
        Ok(verdict) => verdict,
        Err(reason) => return judge::inconclusive(reason, log, series),
    };
    let mut estimate = verdict
        .estimate(log, sight, series)
        .with("modes", choice.modes)
        .with("group", choice.group);
    if let Some(rate) = choice.dispersion_rate {
        estimate = estimate.with("asymptotic_dispersion_rate_bps", bit_rate(rate));
    }
    if let Some(other) = choice.other {
        estimate = estimate.caveat(Caveat::Multimodal { other: bit_rate(other) });
        estimate.confidence = Confidence::Low;
    }
    Conclusion {
        outcome: Outcome::from(estimate),
        samples: verdict.samples(),
    }
}

fn used(series: &Series, guard: bool) -> impl Iterator<Item = &Sample> {
    series
        .samples
        .iter()
        .filter(move |sample| !guard || sample.queued || !series.judged)
}

struct Choice {
    rate: f64,
    modes: usize,
    /// Gaps per group that gave the asymptotic dispersion rate; zero where one mode needed none.
    group: usize,
    dispersion_rate: Option<f64>,
    /// A mode nearly as strong, or any other where no dispersion rate was found.
    other: Option<f64>,
}

/// Longest group, and the fewest samples in its tallest mode (`[PPrate06]`, as its port has it).
const LONGEST_GROUP: usize = 39;
const LEAST_IN_MODE: f64 = 15.0;
/// A runner-up from this share of the winner on is told (nettimer's half).
const RIVAL: f64 = 0.5;

fn choose(series: &Series, rates: &[f64], params: &Params) -> Option<Choice> {
    let modes = histogram::modes(rates, &params.shape());
    let strongest = *modes.iter().max_by(|a, b| a.height.total_cmp(&b.height))?;
    if modes.len() == 1 {
        return Some(Choice {
            rate: strongest.centre,
            modes: 1,
            group: 0,
            dispersion_rate: None,
            other: None,
        });
    }
    let mut found = None;
    for group in 3..=LONGEST_GROUP {
        let grouped = judge::trains(series, group);
        let of_groups = histogram::modes(&grouped, &params.shape());
        let Some(tallest) = of_groups.iter().max_by(|a, b| a.height.total_cmp(&b.height)) else {
            break;
        };
        if of_groups.len() == 1 && !grouped.is_empty() {
            found = Some((group, tallest.centre));
            break;
        }
        if tallest.height < LEAST_IN_MODE {
            break;
        }
    }
    let rival = |winner: &Mode, among: &mut dyn Iterator<Item = &Mode>| {
        among
            .filter(|mode| !std::ptr::eq(*mode, winner) && mode.height >= RIVAL * winner.height)
            .max_by(|a, b| a.height.total_cmp(&b.height))
            .map(|mode| mode.centre)
    };
    let Some((group, dispersion_rate)) = found else {
        let other = modes
            .iter()
            .filter(|mode| **mode != strongest)
            .max_by(|a, b| a.height.total_cmp(&b.height));
        return Some(Choice {
            rate: strongest.centre,
            modes: modes.len(),
            group: 0,
            dispersion_rate: None,
            other: other.map(|mode| mode.centre),
        });
    };
    let above = || modes.iter().filter(|mode| mode.high > dispersion_rate);
    let winner = above()
        .max_by(|a, b| a.height.total_cmp(&b.height))
        .or_else(|| modes.iter().max_by(|a, b| a.centre.total_cmp(&b.centre)))?;
    Some(Choice {
        rate: winner.centre,
        modes: modes.len(),
        group,
        dispersion_rate: Some(dispersion_rate),
        other: rival(winner, &mut above()),
    })
}
