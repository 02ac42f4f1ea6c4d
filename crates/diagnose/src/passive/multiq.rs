#![doc = include_str!("multiq.md")]

mod families;

use std::time::Duration;

use super::listen::Listening;
use super::log::FlowLog;
use super::series::{self, Sample, Series, Source};
use super::{Conclusion, PassiveMethod, Sight, judge, listen};
use families::Rules;
use narrows_probe::outcome::{Caveat, Confidence, Outcome, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, Parameter, Range, RawParams, joined, params};
use narrows_units::nanos_f64;

/// The method.
pub struct Multiq;

static INFO: MethodInfo = MethodInfo {
    name: "multiq",
    summary: "IP-layer capacities of congested links from a TCP connection that passes: equally spaced modes of gaps",
    parameters: &PARAMETERS,
    manual: include_str!("multiq.md"),
    ..listen::INFO
};

params! {
    /// What can be set of the reading.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Params {
        /// Longest gap.
        cutoff: f64 = "35 ms" from Duration => (nanos_f64) {
            range: Between("100 us", "1 s"), source: "[MultiQ04], as its Click element has it",
        },
        /// Finest kernel.
        least_scale: f64 = "10 us" from Duration => (nanos_f64) {
            range: Between("1 us", "1 s"), source: "[MultiQ04], as its Click element has it",
        },
        /// Widest kernel.
        most_scale: f64 = "10 ms" from Duration => (nanos_f64) {
            range: Between("1 us", "1 s"), source: "[MultiQ04], as its Click element has it",
        },
        /// Growth of the kernel.
        step: f64 = "1.1" { range: Between("1.01", "4"), source: "[MultiQ04], as its Click element has it" },
        /// Growth of the kernel where no mode was found.
        no_mode_step: f64 = "1.5" { range: Between("1.01", "4"), source: "[MultiQ04], as its Click element has it" },
        /// Standard deviations of a mode above its dips.
        mode_significance: f64 = "2" { range: Between("0", "10"), source: "[MultiQ04], as its Click element has it" },
        /// Standard deviations of a distance above its dips.
        gap_significance: f64 = "1" { range: Between("0", "10"), source: "[MultiQ04], as its Click element has it" },
        /// Fewest samples of a mode.
        mode_points: f64 = "10" { range: Between("1", "1000"), source: "[MultiQ04], as its Click element has it" },
        /// Fewest samples of a distance.
        gap_points: f64 = "2" { range: Between("1", "1000"), source: "[MultiQ04], as its Click element has it" },
        /// Kernel from which on two modes are settled by their heights.
        settle: f64 = "2.5 ms" from Duration => (nanos_f64) {
            range: Between("10 us", "1 s"), source: "[MultiQ04], as its Click element has it",
        },
        /// Fewest samples: data packets of a significant flow.
        samples: usize = "50" { range: Between("8", "100000"), source: "[MultiQ04], as its Click element has it" },
        /// Names the standard link whose range the rate falls into; never changes the rate.
        label: bool = "false" { range: Range::SWITCH, source: "ours" },
        /// Counts only gaps known to have waited.
        guard: bool = "true" { range: Range::SWITCH, source: "ours: see the crate's `passive/series.rs`" },
    }
}

impl Params {
    fn rules(&self) -> Rules {
        Rules {
            least_scale: self.least_scale,
            most_scale: self.most_scale,
            step: self.step,
            no_mode_step: self.no_mode_step,
            mode_significance: self.mode_significance,
            gap_significance: self.gap_significance,
            mode_points: self.mode_points,
            gap_points: self.gap_points,
            settle: self.settle,
        }
    }
}

/// With where and how long to listen.
const PARAMETERS: [Parameter; 15] = joined(Params::PARAMETERS, Listening::PARAMETERS);

listen::method!(Multiq);

impl PassiveMethod for Multiq {
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

/// Gaps used at most: the density's cost grows with them, its modes do not become clearer.
const MOST_GAPS: usize = 1000;

/// The same over a series that is there already.
pub(super) fn analyse(log: &FlowLog, sight: &Sight, series: &Series, params: &Params) -> Conclusion {
    if let Some(reason) = judge::refusal(log, series, params.guard) {
        return judge::inconclusive(reason, log, series);
    }
    let used: Vec<&Sample> = series
        .samples
        .iter()
        .filter(|sample| !params.guard || sample.waited || !series.judged)
        .filter(|sample| sample.gap <= params.cutoff)
        .collect();
    if used.len() < params.samples {
        let samples = u64::try_from(used.len()).unwrap_or(u64::MAX);
        return judge::inconclusive(Reason::TooFewSamples { samples }, log, series);
    }
    let mut octets: Vec<f64> = used.iter().map(|sample| sample.octets).collect();
    octets.sort_by(f64::total_cmp);
    let octets = octets[octets.len() / 2];
    let alike: Vec<f64> =
        used.iter().filter(|sample| (sample.octets / octets - 1.0).abs() < 0.01).map(|sample| sample.gap).collect();
    let gaps: Vec<f64> = alike.iter().copied().step_by(alike.len().div_ceil(MOST_GAPS).max(1)).collect();
    let times = families::transmission_times(&gaps, &params.rules(), series.source == Source::Acks, series.resolution);
    let Some(narrow) = times.last().copied() else {
        return judge::inconclusive(Reason::NoAgreement, log, series);
    };
    let segment = log.sizes.full().map_or(octets, |(ip_octets, _)| f64::from(ip_octets));
    let rate = |found: &families::TransmissionTime| if found.is_distance { segment } else { octets } * 8e9 / found.time;
    let verdict = match judge::verdict(log, series, rate(&narrow), params.guard) {
        Ok(verdict) => verdict,
        Err(reason) => return judge::inconclusive(reason, log, series),
    };
    let congested: Vec<f64> = times.iter().rev().map(|found| rate(found).round()).collect();
    let mut estimate = verdict.estimate(log, sight, series).with("congested_bps", congested);
    if params.label
        && let Some(label) = label(verdict.rate)
    {
        estimate = estimate.with("standard_link", label);
    }
    let own = super::density::LogDensity::new(&gaps, super::density::WIDTH).map(|density| density.peak().at);
    if let Some(own) = own.filter(|own| series.source != Source::Acks && (own / narrow.time).ln().abs() > 0.1) {
        // Few gaps are one transmission time long: the family stands without its first member.
        estimate = estimate.caveat(Caveat::Multimodal { other: super::math::bit_rate(octets * 8e9 / own) });
        estimate.confidence = Confidence::Low;
    }
    Conclusion { outcome: Outcome::from(estimate), samples: verdict.samples() }
}

/// The standard link whose range this rate, in bit/s, falls into (`[MultiQ04]`, as its Click
/// element has them).
fn label(rate: f64) -> Option<&'static str> {
    const LINKS: [(&str, f64, f64); 10] = [
        ("modem", 0.0, 0.064),
        ("cable", 0.384, 0.64),
        ("T1", 1.158, 1.93),
        ("10bT", 7.0, 11.7),
        ("T3", 40.1, 49.4),
        ("100bT", 71.0, 120.0),
        ("OC3", 130.0, 165.0),
        ("OC12", 467.0, 778.0),
        ("OC48", 1866.0, 3110.0),
        ("OC192", 5599.0, 8398.0),
    ];
    let mbps = rate / 1e6;
    let found = LINKS.iter().find(|(_, low, high)| (*low..=*high).contains(&mbps));
    found.map(|(name, ..)| *name)
}
