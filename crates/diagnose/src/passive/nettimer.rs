#![doc = include_str!("nettimer.md")]

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
    manual: include_str!("nettimer.md"),
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
        /// Whose stamps are read: both ends' (RBPP), the sender's (SBPP), the receiver's (ROPP), or
        /// what there is in this order.
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
const RUNNER_UP: f64 = 0.5;

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
    if let Some(second) = peak.second.filter(|second| second.ratio >= RUNNER_UP) {
        estimate = estimate.caveat(Caveat::Multimodal { other: bit_rate(second.at) });
        estimate.confidence = Confidence::Low;
    }
    Conclusion { outcome: Outcome::from(estimate), samples: verdict.samples() }
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
