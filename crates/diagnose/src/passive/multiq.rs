//! MultiQ: estimates IP-layer capacities passively, of the narrow link and of other congested ones, from equally spaced modes of the gaps
//! between a TCP connection's packets.
//!
//! # Model
//! Behind a congested link two packets of a connection have none, one or more packets of others between them. Most packets that fill links
//! are of the same size, so gaps differ by whole transmission times of one full packet at that link:
//! ```text
//!   density |    |        |        |            |--------| = 1500 octets at the congested link
//!           |   /|\      /|\      /|\
//!           +--+---------+---------+-----> gap     several links: several such families, the narrow link's the widest
//! ```
//! Distances between modes carry the capacity, not their positions. Gaps of acknowledgements work too.
//!
//! # Assumptions
//! - A1 The link is congested: queues stand there while the connection runs (or it is idle and the connection fills it).
//! - A2 Cross traffic is mostly of packets as long as the connection's own.
//! - A3 Stamps resolve a single gap; the capturing host neither merges nor batches; the sender does not pace.
//! - A4 Every second segment is acknowledged, where acknowledgements are read: what one covers is counted, so others do too.
//!
//! # Formula
//! - Density of gaps `t` (of those known to have waited) with the kernel `15/16 (1 - u^2)^2` of half-width `w`, the scale; modes that hold at least `mode_points`
//!   samples and stand `mode_significance` standard deviations above the dips around them. Code: `narrows_stat::biweight_density`.
//! - From `least_scale` up to the tallest mode, at most `most_scale`: one mode is a transmission time, and the end; two are settled by
//!   their heights from `settle` on; of three and more the density of distances between neighbours is taken (the first counted
//!   from zero for data), and if its first mode is the tallest it is a transmission time, from which the scale goes on. Code: `families`.
//! - The largest transmission time `T` is the narrow link's; `C = 8 L / T`, with `L` the connection's own full size, or
//!   where `T` is the one mode of acknowledgements what the typical one covers. Gaps about the narrow link's time are then averaged. The others are told as `congested_bps`.
//!
//! # Parameters
//! Declared below; `narrows methods multiq` prints the table.
//!
//! # Cost
//! No probes. It listens for `duration`, or reads a capture.
//!
//! # Fails when
//! - A1: inconclusive, `never_queued`; without TCP timestamps `gaps_unproven`, unless losses show that a queue overflowed.
//! - A2: modes are not equally spaced; no family is found (`no_agreement`), or the connection's own mode alone.
//! - A3: `stamps_too_coarse`, `receive_batching`. The cut-off leaves links below 0.34 Mbit/s out.
//! - A link behind the narrow one that squeezes many pairs by a whole fraction of their distance is taken for it.
//!
//! Departs from the Click element: it takes 1500 octets (1552 for acknowledgements: 1500 and one of 52); ours takes the size that the connection has, and the
//! octets that acknowledgements cover. It counts a mode as odd when there are more than before, but never stores how many there were;
//! that branch is left out. Nothing is snapped to standard rates. At most 1000 gaps are used, spread over the flow.
//!
//! # References
//! - `[MultiQ04]` Katti, Katabi, Blake, Kohler, Strauss: MultiQ: automated detection of multiple bottleneck capacities along a path, 2004.

mod families;

use std::time::Duration;

use super::listen::Listening;
use super::log::FlowLog;
use super::series::{self, Sample, Series, Source};
use super::{Conclusion, PassiveMethod, Sight, judge, listen};
use families::Rules;
use narrows_probe::outcome::{Caveat, Confidence, Outcome, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, Parameter, Range, RawParams, joined, params};

/// The method.
pub struct Multiq;

static INFO: MethodInfo = MethodInfo {
    name: "multiq",
    summary: "IP-layer capacities of congested links from a TCP connection that passes: equally spaced modes of gaps",
    parameters: &PARAMETERS,
    source: include_str!("multiq.rs"),
    ..listen::INFO
};

params! {
    /// What can be set of the reading.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Params {
        /// Longest gap.
        cutoff: f64 = "35 ms" from Duration => (nanos) {
            range: Between("100 us", "1 s"), source: "[MultiQ04], as its Click element has it",
        },
        /// Finest kernel.
        least_scale: f64 = "10 us" from Duration => (nanos) {
            range: Between("1 us", "1 s"), source: "[MultiQ04], as its Click element has it",
        },
        /// Widest kernel.
        most_scale: f64 = "10 ms" from Duration => (nanos) {
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
        settle: f64 = "2.5 ms" from Duration => (nanos) {
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

fn nanos(time: Duration) -> f64 {
    narrows_units::Delta::from(time).as_f64()
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
    let alike: Vec<f64> = used
        .iter()
        .filter(|sample| (sample.octets / octets - 1.0).abs() < 0.01)
        .map(|sample| sample.gap)
        .collect();
    let gaps: Vec<f64> = alike
        .iter()
        .copied()
        .step_by(alike.len().div_ceil(MOST_GAPS).max(1))
        .collect();
    let times = families::transmission_times(&gaps, &params.rules(), series.source == Source::Acks, series.resolution);
    let Some(narrow) = times.last().copied() else {
        return judge::inconclusive(Reason::NoAgreement, log, series);
    };
    let segment = log.sizes.full().map_or(octets, |(ip_octets, _)| f64::from(ip_octets));
    let rate = |found: &families::Found| if found.is_distance { segment } else { octets } * 8e9 / found.time;
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
        estimate = estimate.caveat(Caveat::Multimodal {
            other: super::math::bit_rate(octets * 8e9 / own),
        });
        estimate.confidence = Confidence::Low;
    }
    Conclusion {
        outcome: Outcome::from(estimate),
        samples: verdict.samples(),
    }
}

/// The standard link whose range this rate, in bit/s, falls into (`[MultiQ04]`, as its Click element has them).
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
