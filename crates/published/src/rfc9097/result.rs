//! From sub-intervals to an outcome.

use narrows_units::{BitRate, Delta, Metric, rounded};

use super::intervals::{Intervals, SubInterval, highest};
use super::search::{self, TrialVerdict};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Reason};
use narrows_probe::probes::{LoadReport, LoadStatus};

/// What the test has told.
#[derive(Debug, Clone)]
pub(super) struct Known {
    intervals: Intervals,
    /// Sub-intervals that were over when the path first was congested.
    congested_at: Option<usize>,
    clear: u32,
    congested: u32,
    held: u32,
    highest_row: usize,
    /// Segments at each rate asked for that left as asked, and that did not: rate, and whether it
    /// was kept.
    segments: Vec<(BitRate, bool)>,
    sender_cpu: f32,
    reordered: u64,
}

/// What outcomes depend on beside what was seen.
pub(super) struct Settings {
    pub(super) max_loss: f64,
    pub(super) initial: usize,
    /// The row that the search does not exceed.
    pub(super) most: usize,
    /// The user's cap set it.
    pub(super) capped: bool,
    pub(super) ip_octets: u16,
}

/// A segment kept its rate if this share of it left (ours).
const KEPT_UP: f64 = 0.95;
/// Segments of so many rates are remembered: those of an hour of trials.
const MOST_SEGMENTS: usize = 72_000;
/// A thread is busy from here on; a receiver at this share of what it can stamp is the limit
/// (ours).
const BUSY: f32 = 0.9;
const RECEIVER_FULL: f64 = 0.9;
/// Loss and reordering worth a caveat; a begin faster than the end by this is bimodal (ours).
const LOSS: f64 = 0.01;
const REORDERING: f64 = 0.001;
const BIMODAL: f64 = 1.1;

impl Known {
    pub(super) fn new(intervals: Intervals) -> Self {
        Self {
            intervals,
            congested_at: None,
            clear: 0,
            congested: 0,
            held: 0,
            highest_row: 0,
            segments: Vec::new(),
            sender_cpu: 0.0,
            reordered: 0,
        }
    }

    pub(super) fn note_segment(&mut self, asked: BitRate, report: &LoadReport) {
        let left = BitRate::over(report.sent_ip_octets, report.ended.since(report.began));
        let kept = left.is_some_and(|left| left.as_f64() >= KEPT_UP * asked.as_f64());
        if self.segments.len() < MOST_SEGMENTS {
            self.segments.push((asked, kept));
        }
        let cpu = report.sender_cpu.filter(|share| share.is_finite()).unwrap_or(0.0);
        self.sender_cpu = self.sender_cpu.max(cpu);
    }

    pub(super) fn note(&mut self, status: &LoadStatus, verdict: TrialVerdict, row: usize) {
        self.intervals.note(status);
        self.reordered = self.reordered.saturating_add(status.reordered);
        self.highest_row = self.highest_row.max(row);
        let count = match verdict {
            TrialVerdict::Clear => &mut self.clear,
            TrialVerdict::Congested => &mut self.congested,
            TrialVerdict::Hold => &mut self.held,
        };
        *count = count.saturating_add(1);
    }

    pub(super) fn congested_once(&mut self) {
        self.congested_at.get_or_insert(self.intervals.whole.len());
    }

    /// Most segments at rates as high as what arrived, or higher, did not leave as asked.
    fn sender_limits(&self, value: BitRate) -> bool {
        let high: Vec<bool> =
            self.segments.iter().filter(|(asked, _)| *asked >= value).map(|(_, kept)| *kept).collect();
        !high.is_empty() && high.iter().filter(|kept| !**kept).count() * 2 > high.len()
    }
}

pub(super) fn outcome(
    known: &Known,
    settings: &Settings,
    facts: &PathFacts,
    row: usize,
    reason: Option<Reason>,
) -> Outcome {
    if known.intervals.arrived == 0 {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NoAnswer));
    }
    let whole = &known.intervals.whole;
    let apart = settings.initial.min(whole.len());
    let (initial, counted) = whole.split_at(apart);
    if counted.is_empty() {
        let samples = u64::try_from(whole.len()).unwrap_or(u64::MAX);
        return Outcome::inconclusive(reason.unwrap_or(Reason::TooFewSamples { samples }));
    }
    let Some(best) = highest(counted, settings.max_loss).map(|place| counted[place]) else {
        let lost = counted.iter().map(|interval| interval.lost).sum();
        let sent = counted.iter().map(|interval| interval.packets.saturating_add(interval.lost));
        return Outcome::inconclusive(Reason::TooMuchLoss { lost, sent: sent.fold(0, u64::saturating_add) });
    };
    let value = best.rate();
    let settled = known.congested_at.map_or(0, |at| at.saturating_sub(apart)).min(counted.len() - 1);
    let rates: Vec<f64> = counted.iter().map(|interval| interval.rate().as_f64()).collect();
    let low = narrows_stat::median(&rates[settled..]).unwrap_or(0.0);
    let next = search::rate(search::row_of(value) + 1);
    // What came through with losses took from others: without them it would have been less.
    let low = low.min(value.as_f64() * (1.0 - best.loss()));
    let low = BitRate::from_bps(rounded(low));
    let mut estimate = Estimate::ip_rate(Metric::UdpAchievable, value, low, next.max(value));
    estimate.interval = Some(best.lasted);
    estimate = limits(estimate, known, settings, facts, value);
    estimate = doubts(estimate, known, &best, counted);
    if reason.is_some() {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    let initial: Vec<f64> = initial.iter().map(|interval| interval.rate().as_f64()).collect();
    if !initial.is_empty() {
        estimate = estimate.with("initial_bps", initial);
    }
    diagnostics(estimate, known, settings, &best, rates, row).into()
}

/// What kept the rate from being higher.
fn limits(mut estimate: Estimate, known: &Known, settings: &Settings, facts: &PathFacts, value: BitRate) -> Estimate {
    let receiver = facts.receiver.max_stamped_rate(settings.ip_octets, facts.receiver.stamp_source);
    if known.sender_limits(value) || known.sender_cpu > BUSY {
        return estimate.at_least(Limit::Sender).caveat(Caveat::SenderLimited);
    }
    if receiver.is_some_and(|most| value.as_f64() >= RECEIVER_FULL * most.as_f64()) {
        return estimate.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited);
    }
    if known.intervals.local_drops > 0 {
        let packets = known.intervals.local_drops;
        estimate = estimate.at_least(Limit::Receiver).caveat(Caveat::LocalDrops { packets });
        return estimate.caveat(Caveat::ReceiverLimited);
    }
    if known.congested_at.is_none() {
        // The search has not met the path: its own end of the table, the user's cap, or time was
        // up.
        estimate = estimate.at_least(Limit::Budget);
        let at_end = known.highest_row >= settings.most || settings.capped;
        return estimate.caveat(if at_end { Caveat::LargestTried } else { Caveat::TestTooShort });
    }
    estimate
}

/// How much the number is worth.
fn doubts(mut estimate: Estimate, known: &Known, best: &SubInterval, counted: &[SubInterval]) -> Estimate {
    let loss = best.loss();
    if loss > LOSS {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::Loss { ratio: loss });
    }
    let reordered = known.reordered as f64 / known.intervals.arrived.max(1) as f64;
    if reordered > REORDERING {
        estimate = estimate.caveat(Caveat::Reordering { ratio: reordered });
    }
    let later = counted[counted.len() / 2..].iter().map(SubInterval::rate).max();
    let later = later.map_or(0.0, BitRate::as_f64);
    if best.rate().as_f64() > BIMODAL * later {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::VariableRate);
    }
    estimate
}

fn diagnostics(
    mut estimate: Estimate,
    known: &Known,
    settings: &Settings,
    best: &SubInterval,
    rates: Vec<f64>,
    row: usize,
) -> Estimate {
    let losses: Vec<f64> = known.intervals.whole.iter().map(SubInterval::loss).collect();
    estimate = estimate
        .with("ip_octets", u32::from(settings.ip_octets))
        .with("sub_interval_bps", rates)
        .with("sub_interval_loss_ratio", losses)
        .with("loss_ratio", best.loss())
        .with("reordered_packets", best.reordered)
        .with("duplicate_packets", best.duplicates)
        .with("trials_clear", known.clear)
        .with("trials_congested", known.congested)
        .with("trials_held", known.held)
        .with("highest_row", u64::try_from(known.highest_row).unwrap_or(u64::MAX))
        .with("last_row", u64::try_from(row).unwrap_or(u64::MAX));
    if let Some((least, most)) = best.delay {
        estimate = estimate.with("delay_least_ns", Delta::from(least)).with("delay_most_ns", Delta::from(most));
    }
    estimate
}
