//! What stands behind a rate, and what is said of it.

use narrows_units::{BitRate, Metric};

use super::batches;
use super::log::FlowLog;
use super::math::bit_rate;
use super::series::{LEAST_QUEUED, Sample, Series, Source};
use super::{Conclusion, Sight, Vantage};
use narrows_probe::outcome::{Caveat, Confidence, Details, Estimate, Limit, Outcome, Reason};

/// Relative distance from a mode within which samples are of it (ours: half of nettimer's kernel).
const CORE: f64 = 0.05;
/// Stamps coarser than this part of a gap show no single gaps (ours).
const COARSEST: f64 = 0.2;
/// Share of merged packets from which on single gaps say nothing (ours).
const MOST_MERGED: f64 = 0.02;
/// No interval is narrower, whatever the samples say (ours: clocks, and links that count other
/// octets than IP's).
const LEAST_HALF_WIDTH: f64 = 0.003;

/// Why no method of single gaps can read this series; `None` if they can.
pub(super) fn refusal(log: &FlowLog, series: &Series, guard: bool) -> Option<Reason> {
    let have = series.samples.len();
    if series.merged > MOST_MERGED {
        return Some(Reason::ReceiveBatching);
    }
    if have < LEAST_QUEUED {
        return Some(Reason::TooFewSamples { samples: u64::try_from(have).unwrap_or(u64::MAX) });
    }
    if batches::are(series) {
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
fn core(series: &Series, rate: f64, width: f64, guard: bool) -> impl Iterator<Item = &Sample> {
    series
        .samples
        .iter()
        .filter(move |sample| !guard || sample.queued || !series.judged)
        .filter(move |sample| (sample.rate() / rate).ln().abs() <= width)
}

/// A rate made of a mode: octets over time of the samples about it, and what is said of it.
pub(super) struct ModeRate {
    pub(super) rate: f64,
    low: f64,
    high: f64,
    samples: usize,
    /// Of those that waited.
    share: f64,
}

/// Refines a mode; the reason if too little stands behind it, or if more than it has crossed the
/// path.
pub(super) fn verdict(log: &FlowLog, series: &Series, mode: f64, guard: bool) -> Result<ModeRate, Reason> {
    let gap = typical_gap(series, mode);
    if series.resolution > COARSEST * gap {
        return Err(Reason::StampsTooCoarse);
    }
    let mut width = CORE.max(1.5 * series.resolution / gap);
    let mut rate = mode;
    for _ in 0..3 {
        let (octets, time) = core(series, rate, width, guard)
            .fold((0.0, 0.0), |(octets, time), sample| (octets + sample.octets, time + sample.gap));
        if time > 0.0 {
            rate = octets * 8e9 / time;
        }
        width = (0.6 * CORE).max(1.5 * series.resolution / gap);
    }
    let rates: Vec<f64> = core(series, rate, width, guard).map(Sample::rate).collect();
    let all = series.samples.iter().filter(|sample| !guard || sample.queued || !series.judged).count();
    if rates.len() < LEAST_QUEUED {
        return Err(Reason::NoAgreement);
    }
    if guard && rate < log.delivered() {
        return Err(Reason::NoAgreement);
    }
    let count = rates.len() as f64;
    let spread = narrows_stat::mad(&rates).map_or(0.0, |mad| mad * narrows_stat::MAD_TO_SD / rate);
    let half = (3.0 * (spread + series.resolution / gap) / count.sqrt()).max(LEAST_HALF_WIDTH);
    Ok(ModeRate {
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

impl ModeRate {
    /// As an estimate, with what the log and the series have against it.
    pub(super) fn estimate(&self, log: &FlowLog, sight: &Sight, series: &Series) -> Estimate {
        let mut estimate =
            Estimate::ip_rate(Metric::IpCapacity, bit_rate(self.rate), bit_rate(self.low), bit_rate(self.high));
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
        if !series.closed || self.share < THIN || batches::doubtful(series) {
            estimate = estimate.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
        }
        if sight.missed > 0 {
            estimate = estimate.caveat(Caveat::CaptureMissed { packets: sight.missed });
        }
        if crowded(log, self.rate) {
            estimate = estimate.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
            if series.source != Source::Acks && sight.vantage != Vantage::Receiver {
                // A link behind the capture is that fast; of those ahead, only that they carried
                // what passed.
                estimate = estimate.at_most();
            }
        }
        estimate
            .with("source", name(series.source))
            .with("samples", self.samples)
            .with("share", self.share)
            .with("queued_share", series.queued_count() as f64 / series.samples.len().max(1) as f64)
            .with("data_packets", log.counts.data)
            .with("resent_packets", log.counts.resent)
            .with("holes", log.counts.holes)
    }

    pub(super) fn samples(&self) -> u64 {
        u64::try_from(self.samples).unwrap_or(u64::MAX)
    }
}

/// Times of what the connection carried beyond which its neighbours' spacing alone is a weak case
/// (ours).
const CROWDED: f64 = 4.0;

/// A link of which others take that much all the time, one that lets packets go in batches, or one
/// behind the capture of a connection that something else holds back: nothing tells which.
pub(super) fn crowded(log: &FlowLog, rate: f64) -> bool {
    let delivered = log.delivered();
    delivered > 0.0 && rate > CROWDED * delivered
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

/// Ours: a connection that nothing else holds back carries nearly what the link does.
const FULL: f64 = 1.1;

/// What takes the place of an estimate from acknowledgements that is well above what the connection
/// carried; `None` where there is nothing against it. Acknowledgements of a connection that its
/// window holds back come in a rhythm of their own, on no link's account, so what was carried is
/// all that is known: a lower bound. Of a connection so short that it is not known either, nothing.
pub(super) fn slack(log: &FlowLog, series: &Series, estimate: &Estimate) -> Option<Conclusion> {
    let delivered = log.delivered();
    if series.source != Source::Acks || bps(estimate) <= FULL * delivered {
        return None;
    }
    if delivered <= 0.0 {
        let samples = u64::try_from(series.queued_count()).unwrap_or(u64::MAX);
        return Some(inconclusive(Reason::TooFewSamples { samples }, log, series));
    }
    let value = bit_rate(delivered);
    let bound = Estimate::ip_rate(Metric::IpCapacity, value, value, value)
        .at_least(Limit::Window)
        .with("acknowledgements_bps", estimate.rate().map_or(BitRate::ZERO, |rate| rate.value))
        .with("data_packets", log.counts.data);
    Some(Conclusion { outcome: Outcome::from(bound), samples: log.counts.data })
}

/// The conclusion of a single method, or what takes its place. A connection that lost packets
/// filled a queue, so its window of congestion held it back and no other, if it carried a fair
/// share; `passive`, which has to answer for it, does not rely on that.
pub(super) fn unless_slack(log: &FlowLog, series: &Series, guard: bool, concluded: Conclusion) -> Conclusion {
    let lost = log.counts.resent + log.counts.holes > 0;
    let doubted = |estimate: &&Estimate| guard && (!lost || crowded(log, bps(estimate)));
    let estimate = concluded.outcome.estimate().filter(doubted);
    estimate.and_then(|estimate| slack(log, series, estimate)).unwrap_or(concluded)
}

/// The estimate's rate, bit/s.
pub(super) fn bps(estimate: &Estimate) -> f64 {
    estimate.rate().map_or(0.0, |rate| rate.value.as_f64())
}

/// No number.
pub(super) fn inconclusive(reason: Reason, log: &FlowLog, series: &Series) -> Conclusion {
    let mut diagnostics = narrows_probe::outcome::Diagnostics::default();
    diagnostics.insert("source", name(series.source));
    diagnostics.insert("data_packets", log.counts.data);
    diagnostics.insert("gaps", series.samples.len());
    diagnostics.insert("queued", series.queued_count());
    let caveats =
        if series.merged > MOST_MERGED { vec![Caveat::MergedPackets { ratio: series.merged }] } else { Vec::new() };
    Conclusion {
        outcome: Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics },
        samples: 0,
    }
}

/// Rates of trains of so many gaps that followed one another and waited, ascending.
pub(super) fn trains(series: &Series, gaps: usize) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut run: Vec<&Sample> = Vec::new();
    for sample in &series.samples {
        let counts = sample.queued || !series.judged;
        if !(sample.follows && counts) {
            run.clear();
        }
        if counts {
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
