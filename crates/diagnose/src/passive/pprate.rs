#![doc = include_str!("pprate.md")]

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
    manual: include_str!("pprate.md"),
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
    let mut estimate = verdict.estimate(log, sight, series).with("modes", choice.modes).with("group", choice.group);
    if let Some(rate) = choice.dispersion_rate {
        estimate = estimate.with("asymptotic_dispersion_rate_bps", bit_rate(rate));
    }
    if let Some(other) = choice.other {
        estimate = estimate.caveat(Caveat::Multimodal { other: bit_rate(other) });
        estimate.confidence = Confidence::Low;
    }
    Conclusion { outcome: Outcome::from(estimate), samples: verdict.samples() }
}

fn used(series: &Series, guard: bool) -> impl Iterator<Item = &Sample> {
    series.samples.iter().filter(move |sample| !guard || sample.queued || !series.judged)
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
const RUNNER_UP: f64 = 0.5;

fn choose(series: &Series, rates: &[f64], params: &Params) -> Option<Choice> {
    let modes = histogram::modes(rates, &params.shape());
    let strongest = *modes.iter().max_by(|a, b| a.height.total_cmp(&b.height))?;
    if modes.len() == 1 {
        return Some(Choice { rate: strongest.centre, modes: 1, group: 0, dispersion_rate: None, other: None });
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
    let runner_up = |winner: &Mode, among: &mut dyn Iterator<Item = &Mode>| {
        among
            .filter(|mode| !std::ptr::eq(*mode, winner) && mode.height >= RUNNER_UP * winner.height)
            .max_by(|a, b| a.height.total_cmp(&b.height))
            .map(|mode| mode.centre)
    };
    let Some((group, dispersion_rate)) = found else {
        let other = modes.iter().filter(|mode| **mode != strongest).max_by(|a, b| a.height.total_cmp(&b.height));
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
        other: runner_up(winner, &mut above()),
    })
}
