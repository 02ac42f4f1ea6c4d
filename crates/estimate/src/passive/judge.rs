//! What stands behind a rate, and what is said of it.

use units::Metric;

use super::log::FlowLog;
use super::math::bit_rate;
use super::series::{LEAST_QUEUED, Sample, Series, Source};
use super::{Conclusion, Sight};
use crate::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Reason};

/// Relative distance from a mode within which samples are of it (ours: half of nettimer's kernel).
const CORE: f64 = 0.05;
/// Stamps coarser than this part of a gap show no single gaps (ours).
const COARSEST: f64 = 0.2;
/// Share of merged packets from which on single gaps say nothing (ours).
const MOST_MERGED: f64 = 0.02;
/// No interval is narrower, whatever the samples say (ours: clocks, and links that count other octets than IP's).
const LEAST_HALF_WIDTH: f64 = 0.003;

/// Why no method of single gaps can read this series; `None` if they can.
pub(super) fn refusal(log: &FlowLog, series: &Series, guard: bool) -> Option<Reason> {
    let have = series.samples.len();
    if series.merged > MOST_MERGED {
        return Some(Reason::ReceiveBatching);
    }
    if have < LEAST_QUEUED {
        return Some(Reason::TooFewSamples {
            samples: u64::try_from(have).unwrap_or(u64::MAX),
        });
    }
    if is_batched(series) {
        return Some(Reason::ReceiveBatching);
    }
    if !guard {
        return None;
    }
    if !series.judged {
        // A queue that overflowed was a queue.
        return (log.counts.holes + log.counts.resent == 0).then_some(Reason::GapsUnproven);
    }
    (series.queued_count() < LEAST_QUEUED).then_some(Reason::NeverQueued)
}

/// Samples of a rate: those that waited and lie about it.
fn core<'a>(series: &'a Series, rate: f64, width: f64, guard: bool) -> impl Iterator<Item = &'a Sample> {
    series
        .samples
        .iter()
        .filter(move |sample| !guard || sample.queued || !series.judged)
        .filter(move |sample| (sample.rate() / rate).ln().abs() <= width)
}

/// A rate made of a mode: octets over time of the samples about it, and what is said of it.
pub(super) struct Verdict {
    pub(super) rate: f64,
    low: f64,
    high: f64,
    samples: usize,
    /// Of those that waited.
    share: f64,
}

/// Refines a mode; the reason if too little stands behind it, or if more than it has crossed the path.
pub(super) fn verdict(log: &FlowLog, series: &Series, mode: f64, guard: bool) -> Result<Verdict, Reason> {
    let gap = typical_gap(series, mode);
    if series.resolution > COARSEST * gap {
        return Err(Reason::StampsTooCoarse);
    }
    let mut width = CORE.max(1.5 * series.resolution / gap);
    let mut rate = mode;
    for _ in 0..3 {
        let (octets, time) = core(series, rate, width, guard).fold((0.0, 0.0), |(octets, time), sample| {
            (octets + sample.octets, time + sample.gap)
        });
        if time > 0.0 {
            rate = octets * 8e9 / time;
        }
        width = (0.6 * CORE).max(1.5 * series.resolution / gap);
    }
    let rates: Vec<f64> = core(series, rate, width, guard).map(Sample::rate).collect();
    let all = series
        .samples
        .iter()
        .filter(|sample| !guard || sample.queued || !series.judged)
        .count();
    if rates.len() < LEAST_QUEUED {
        return Err(Reason::NoAgreement);
    }
    if guard && rate < log.carried() {
        return Err(Reason::NoAgreement);
    }
    let count = rates.len() as f64;
    let spread = stat::mad(&rates).map_or(0.0, |mad| mad * stat::MAD_TO_SD / rate);
    let half = (3.0 * (spread + series.resolution / gap) / count.sqrt()).max(LEAST_HALF_WIDTH);
    Ok(Verdict {
        rate,
        low: rate * (1.0 - half),
        high: rate * (1.0 + half),
        samples: rates.len(),
        share: count / all.max(1) as f64,
    })
}

/// Nanoseconds that a sample of this rate spans.
fn typical_gap(series: &Series, rate: f64) -> f64 {
    let octets = series.samples.first().map_or(1500.0, |sample| sample.octets);
    octets * 8e9 / rate.max(1.0)
}

impl Verdict {
    /// As an estimate, with what the log and the series have against it.
    pub(super) fn estimate(&self, log: &FlowLog, sight: &Sight, series: &Series) -> Estimate {
        let mut estimate = Estimate::ip_rate(
            Metric::IpCapacity,
            bit_rate(self.rate),
            bit_rate(self.low),
            bit_rate(self.high),
        );
        estimate.confidence = Confidence::Medium;
        if self.samples < FEW {
            let samples = u32::try_from(self.samples).unwrap_or(u32::MAX);
            estimate = estimate.caveat(Caveat::FewSamples { samples });
            estimate.confidence = Confidence::Low;
        }
        if !series.judged {
            estimate = estimate.caveat(Caveat::SenderLimited);
            estimate.confidence = Confidence::Low;
            estimate.limited_by = Limit::Path;
        }
        if series.source == Source::Acks {
            estimate = estimate.caveat(Caveat::AsymmetricLimit);
        }
        if !series.closed || self.share < THIN {
            estimate = estimate.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
        }
        if sight.missed > 0 {
            estimate = estimate.caveat(Caveat::CaptureMissed { packets: sight.missed });
        }
        estimate
            .with("source", name(series.source))
            .with("samples", self.samples)
            .with("share", self.share)
            .with(
                "queued_share",
                series.queued_count() as f64 / series.samples.len().max(1) as f64,
            )
            .with("data_packets", log.counts.data)
            .with("resent_packets", log.counts.resent)
            .with("holes", log.counts.holes)
    }

    pub(super) fn samples(&self) -> u64 {
        u64::try_from(self.samples).unwrap_or(u64::MAX)
    }
}

/// Fewer samples than these make a weak case (ours).
const FEW: usize = 20;
/// A mode that holds a smaller share of those that waited makes one too (ours).
const THIN: f64 = 0.08;

fn name(source: Source) -> &'static str {
    match source {
        Source::Data => "data",
        Source::Both => "both",
        Source::Acks => "acknowledgements",
    }
}

/// No number.
pub(super) fn inconclusive(reason: Reason, log: &FlowLog, series: &Series) -> Conclusion {
    let mut evidence = crate::outcome::Evidence::default();
    evidence.insert("source", name(series.source));
    evidence.insert("data_packets", log.counts.data);
    evidence.insert("gaps", series.samples.len());
    evidence.insert("queued", series.queued_count());
    let caveats = if series.merged > MOST_MERGED {
        vec![Caveat::MergedPackets { ratio: series.merged }]
    } else {
        Vec::new()
    };
    Conclusion {
        outcome: Outcome::Inconclusive {
            reason,
            caveats,
            evidence,
        },
        samples: 0,
    }
}

/// Rates of trains of so many gaps that followed one another and waited, ascending.
pub(super) fn trains(series: &Series, gaps: usize) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut run: Vec<&Sample> = Vec::new();
    for sample in &series.samples {
        if !sample.follows || !(sample.queued || !series.judged) {
            run.clear();
        }
        if sample.queued || !series.judged {
            run.push(sample);
        }
        if run.len() == gaps {
            let octets: f64 = run.iter().map(|sample| sample.octets).sum();
            let time: f64 = run.iter().map(|sample| sample.gap).sum();
            rates.push(octets * 8e9 / time);
            run.clear();
        }
    }
    rates.sort_by(f64::total_cmp);
    rates
}

/// Gaps below this part of the mean are inside a batch (pathload's quarter).
const SMALL: f64 = 0.25;
const LEAST_BATCHES: usize = 10;

/// Packets came in batches, of the capturing host or of a link that lets them go so (a slotted or stalled one): few long gaps, each as long as the batch behind it has packets.
pub(super) fn is_batched(series: &Series) -> bool {
    let backlogged = |sample: &&Sample| sample.backlogged || !series.judged;
    let gaps: Vec<f64> = series
        .samples
        .iter()
        .filter(backlogged)
        .map(|sample| sample.gap)
        .collect();
    if series.source == Source::Acks || gaps.len() < 4 * LEAST_BATCHES {
        return false;
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let Ok(profile) = stat::gap_profile(&gaps, SMALL * mean) else {
        return false;
    };
    if profile.small_share < 0.4 {
        return false;
    }
    if profile.is_coalesced() {
        return true;
    }
    let mut batches: Vec<(f64, f64)> = Vec::new();
    for gap in &gaps {
        match batches.last_mut() {
            Some(batch) if *gap < SMALL * mean => batch.1 += 1.0,
            _ => batches.push((*gap, 1.0)),
        }
    }
    batches.len() >= LEAST_BATCHES && correlation(&batches) > 0.8
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), pair| (a + pair.0, b + pair.1));
    let (a, b) = (a / count, b / count);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for pair in pairs {
        aa += (pair.0 - a).powi(2);
        bb += (pair.1 - b).powi(2);
        ab += (pair.0 - a) * (pair.1 - b);
    }
    if aa > 0.0 && bb > 0.0 {
        ab / (aa * bb).sqrt()
    } else {
        0.0
    }
}
