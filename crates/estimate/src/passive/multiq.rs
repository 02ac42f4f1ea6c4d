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
//!   samples and stand `mode_significance` standard deviations above the dips around them. Code: `stat::biweight_density`.
//! - From `least_scale` up to the tallest mode, at most `most_scale`: one mode is a transmission time, and the end; two are settled by
//!   their heights from `settle` on; of three and more the density of distances between neighbours is taken (the first counted
//!   from zero for data), and if its first mode is the tallest it is a transmission time, from which the scale goes on. Code: `families`.
//! - The largest transmission time `T` is the narrow link's; `C = 8 L / T`, with `L` the connection's own full size, or
//!   where `T` is the one mode of acknowledgements what the typical one covers. Gaps about the narrow link's time are then averaged. The others are told as `congested_bps`.
//!
//! # Parameters
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `cutoff` | time | 35 ms | 100 us to 1 s | `[MultiQ04]`, as its Click element has it |
//! | `least_scale`, `most_scale` | time | 10 us, 10 ms | 1 us to 1 s | the same |
//! | `step`, `no_mode_step` | 1 | 1.1, 1.5 | 1.01 to 4 | the same |
//! | `mode_significance`, `gap_significance` | 1 | 2, 1 | 0 to 10 | the same |
//! | `mode_points`, `gap_points` | 1 | 10, 2 | 1 to 1000 | the same |
//! | `settle` | time | 2.5 ms | 10 us to 1 s | the same |
//! | `samples` | 1 | 50 | 8 to 100 000 | the same: fewest data packets of a significant flow |
//! | `label` | word | false | true, false | names the standard link whose range the rate falls into; never changes the rate |
//! | `guard` | word | true | true, false | ours: only gaps known to have waited count, see the crate's `passive/series.rs` |
//! | `vantage` | word | `receiver` | `here`, `sender`, `receiver`, `hop` and a number | where the simulator listens |
//! | `duration` | time | 10 s | 100 ms to 10 min | how long it listens |
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

use super::log::FlowLog;
use super::series::{self, Sample, Series, Source};
use super::{Conclusion, PassiveMethod, Sight, judge, listen};
use crate::outcome::{Caveat, Confidence, Outcome, Reason};
use crate::registry::{MethodInfo, ParamError, RawParams};
use families::Rules;

/// The method.
pub(crate) struct Multiq;

static INFO: MethodInfo = MethodInfo {
    name: "multiq",
    summary: "IP-layer capacities of congested links from a TCP connection that passes: equally spaced modes of gaps",
    parameters: &[
        ("cutoff", "longest gap; default 35 ms"),
        ("least_scale", "finest kernel; default 10 us"),
        ("most_scale", "widest kernel; default 10 ms"),
        ("step", "growth of the kernel; default 1.1"),
        ("no_mode_step", "the same where no mode was found; default 1.5"),
        (
            "mode_significance",
            "standard deviations of a mode above its dips; default 2",
        ),
        ("gap_significance", "the same of distances; default 1"),
        ("mode_points", "fewest samples of a mode; default 10"),
        ("gap_points", "the same of distances; default 2"),
        (
            "settle",
            "kernel from which on two modes are settled by their heights; default 2.5 ms",
        ),
        ("samples", "fewest samples; default 50"),
        ("label", "name the standard link of that rate; default false"),
        ("guard", listen::GUARD),
        ("vantage", listen::VANTAGE),
        ("duration", listen::DURATION),
    ],
    source: include_str!("multiq.rs"),
    ..listen::INFO
};

/// Parameters, as in the table above.
#[derive(Debug, Clone, Copy)]
pub(super) struct Params {
    rules: Rules,
    cutoff: f64,
    samples: usize,
    label: bool,
    guard: bool,
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let time = |name, default, low| listen::nanos_within(raw, name, default, low, Duration::from_secs(1));
        let us = Duration::from_micros;
        Ok(Self {
            rules: Rules {
                least_scale: time("least_scale", us(10), us(1))?,
                most_scale: time("most_scale", us(10_000), us(1))?,
                step: listen::within(raw, "step", 1.1, 1.01, 4.0)?,
                no_mode_step: listen::within(raw, "no_mode_step", 1.5, 1.01, 4.0)?,
                mode_significance: listen::within(raw, "mode_significance", 2.0, 0.0, 10.0)?,
                gap_significance: listen::within(raw, "gap_significance", 1.0, 0.0, 10.0)?,
                mode_points: listen::within(raw, "mode_points", 10.0, 1.0, 1000.0)?,
                gap_points: listen::within(raw, "gap_points", 2.0, 1.0, 1000.0)?,
                settle: time("settle", us(2500), us(10))?,
            },
            cutoff: time("cutoff", us(35_000), us(100))?,
            samples: listen::count_within(raw, "samples", 50, 8, 100_000)?,
            label: raw.get("label", false)?,
            guard: raw.get("guard", true)?,
        })
    }
}

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
    let times = families::transmission_times(&gaps, &params.rules, series.source == Source::Acks, series.resolution);
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
