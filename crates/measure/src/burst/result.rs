//! From bursts to an outcome.

use std::time::Duration;

use narrows_units::{BitRate, Delta, Layer, Metric, Octets, rounded, rounded_signed};

use super::analyse::{Together, together};
use super::ledger::Ledger;
use super::policy::{self, Policy, Shown, policy};
use super::queue::{self, Counted, CurvePoint};
use narrows_probe::outcome::{
    BurstFinding, BurstPoint, BurstSample, Caveat, Confidence, Estimate, Finding, Limit, Outcome, QueueFinding, Ranged,
    Reason,
};

/// Fewer bursts than this are few; so are fewer than that, if they were cut at different places
/// (ours).
const FEWEST_BURSTS: usize = 5;
const SCATTERED_BURSTS: usize = 10;

/// A burst that arrives within this share of the rate at which it left has overrun nothing.
const OVERRUN: f64 = 0.98;

/// What the outcome is made of.
pub(super) struct Known<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) ip_octets: u16,
    pub(super) small_octets: u16,
    pub(super) survived: usize,
    /// Octets of the largest burst that may be sent.
    pub(super) cap: u64,
    pub(super) wanted: usize,
    pub(super) answered: bool,
    /// Rates of the line.
    pub(super) rates: usize,
    pub(super) rtt: Duration,
    pub(super) available: Option<BitRate>,
    pub(super) reason: Option<Reason>,
}

pub(super) fn outcome(known: &Known<'_>) -> Outcome {
    if !known.answered {
        return Outcome::inconclusive(known.reason.clone().unwrap_or(Reason::NoAnswer));
    }
    let ledger = known.ledger;
    let sample = together(&ledger.sample.cuts);
    let estimate = match (&sample, ledger.last_cut) {
        (Some(all), _) => Some(from_sample(known, all)),
        (None, Some(cut)) => Some(from_search(known, cut)),
        (None, None) => from_survivors(known),
    };
    let Some(mut estimate) = estimate else {
        return Outcome::inconclusive(known.reason.clone().unwrap_or(Reason::NotConverged));
    };
    if known.reason.is_some() {
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    let mut found = BurstFinding::default();
    estimate = diagnostics(estimate, known, sample.as_ref(), &mut found);
    estimate = what_drops(estimate, known, sample.as_ref(), &mut found.queue);
    found.curve = curve(known);
    estimate = queue_behind(estimate, known, sample.as_ref(), &mut found);
    found.tell(&mut estimate.diagnostics);
    estimate.found(Finding::Burst(Box::new(found))).into()
}

fn octets(known: &Known<'_>, packets: u64) -> u64 {
    packets * u64::from(known.ip_octets)
}

fn rate_of(bps: f64) -> BitRate {
    BitRate::from_bps(rounded(bps))
}

fn burst(value: u64, low: u64, high: u64) -> Estimate {
    let range = Ranged::new(value, low, high).map(Octets::new);
    Estimate::new(Metric::MaximumBurstOctets, Some(Layer::Ip), range)
}

fn from_sample(known: &Known<'_>, all: &Together) -> Estimate {
    let mut estimate = burst(octets(known, all.median), octets(known, all.p10), octets(known, all.max + 1));
    if all.median_is_bound {
        let limit = if octets(known, all.max + 1) > known.cap { Limit::Budget } else { Limit::Path };
        estimate = estimate.at_least(limit).caveat(Caveat::LargestTried);
    }
    // Bursts that were all cut at the same place need no company.
    let scattered = all.p10 * 20 < all.max * 19;
    if all.bursts < FEWEST_BURSTS || (scattered && all.bursts < known.wanted.min(SCATTERED_BURSTS)) {
        let samples = u32::try_from(all.bursts).unwrap_or(u32::MAX);
        estimate = estimate.caveat(Caveat::FewSamples { samples });
    }
    estimate
}

/// The search alone: what the last cut burst let through, between what survived and that plus a
/// packet.
fn from_search(known: &Known<'_>, cut: usize) -> Estimate {
    let cut = octets(known, cut as u64);
    let survived = octets(known, known.survived as u64);
    let (low, high) = (survived.min(cut), survived.max(cut) + u64::from(known.ip_octets));
    let mut estimate = burst(cut, low, high).caveat(Caveat::FewSamples { samples: 1 }).caveat(Caveat::NotConverged);
    estimate.confidence = Confidence::Low;
    estimate
}

/// Nothing was ever lost on the path.
fn from_survivors(known: &Known<'_>) -> Option<Estimate> {
    let ledger = known.ledger;
    if known.survived == 0 {
        return None;
    }
    let value = octets(known, known.survived as u64);
    let estimate = burst(value, value, value);
    if ledger.spoilt > 0 {
        let packets = ledger.local_drops;
        return Some(
            estimate.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited).caveat(Caveat::LocalDrops { packets }),
        );
    }
    if sender_cannot_overrun(ledger) {
        let bound = estimate.at_least(Limit::Sender);
        return Some(bound.caveat(Caveat::LargestTried).caveat(Caveat::SenderLimited));
    }
    Some(estimate.at_least(Limit::Budget).caveat(Caveat::LargestTried))
}

/// Bursts arrive as fast as they leave: nothing on the path is slower than the sender.
fn sender_cannot_overrun(ledger: &Ledger) -> bool {
    match (narrows_stat::median(&ledger.departures), narrows_stat::median(&ledger.arrivals)) {
        (Some(departure), Some(arrival)) => arrival >= departure * OVERRUN,
        _ => false,
    }
}

fn diagnostics(
    mut estimate: Estimate,
    known: &Known<'_>,
    sample: Option<&Together>,
    found: &mut BurstFinding,
) -> Estimate {
    let ledger = known.ledger;
    found.ip_octets = known.ip_octets;
    found.rate_bps = narrows_stat::median(&ledger.departures).map(rate_of);
    if let Some(rate) = narrows_stat::median(&ledger.arrivals) {
        estimate = estimate.with("arrival_rate_bps", rounded(rate));
        let queued = rate * ledger.growth.as_secs_f64() / 8.0;
        found.queue.by_delay_octets = Some(Octets::new(rounded(queued)));
    }
    estimate = estimate.with("peak_queue_delay_ns", Delta::from(ledger.growth));
    found.through_rate_bps = ledger.rate_through().map(rate_of);
    if let Some(all) = sample {
        let series = ledger.sample.cuts.iter().map(|cut| octets(known, cut.through) as f64);
        found.sample = Some(BurstSample {
            p10: Octets::new(octets(known, all.p10)),
            median: Octets::new(octets(known, all.median)),
            max: Octets::new(octets(known, all.max)),
            max_is_bound: all.max_is_bound,
        });
        estimate = estimate
            .with("first_loss_octets", series.collect::<Vec<_>>())
            .with("bursts", all.bursts)
            .with("bursts_without_loss", all.whole)
            .with("safe_octets", octets(known, all.min))
            .with("safe_loss_probability_max", all.loss_probability);
    }
    if ledger.local_drops > 0 {
        let packets = ledger.local_drops;
        estimate = estimate.caveat(Caveat::LocalDrops { packets });
    }
    estimate
}

/// Time of one packet at the rate that comes through, nanoseconds.
fn packet_ns(known: &Known<'_>) -> f64 {
    let through = known.ledger.rate_through().unwrap_or(f64::INFINITY);
    f64::from(known.ip_octets) * 8e9 / through
}

/// Which element drops, and by which rule.
fn what_drops(
    mut estimate: Estimate,
    known: &Known<'_>,
    sample: Option<&Together>,
    queue: &mut QueueFinding,
) -> Estimate {
    let ledger = known.ledger;
    if let Some(share) = narrows_stat::median(&ledger.queueing) {
        estimate = estimate.with("queueing_share", share);
    }
    let policed = ledger.policed();
    if policed == Some(true) {
        estimate.limited_by = Limit::Shaper;
        estimate = estimate.caveat(Caveat::Policed);
    }
    if sample.is_none() {
        return estimate;
    }
    let shown = Shown {
        policed,
        packet_ns: packet_ns(known),
        cut_octets: sample.map_or(0.0, |all| octets(known, all.median) as f64),
        scattered: sample.is_some_and(|all| all.p10 * 2 < all.max),
        bucket: policy::bucket(&ledger.turns),
    };
    let Some(found) = policy(&ledger.delays, &ledger.courses, shown) else {
        // What drops may be a bucket that had not filled again.
        estimate.confidence = Confidence::Low;
        queue.policy = Some("unknown".to_owned());
        return estimate;
    };
    queue.policy = Some(found.name().to_owned());
    match found {
        Policy::Shaper(_) | Policy::Policer(_) => policy::tell_bucket(estimate, found, shown.scattered, queue),
        Policy::Chance => by_chance(estimate, known, sample),
        Policy::DropTail => {
            let large = ledger.rated_sample();
            let counted = queue::counted(&large, known.ip_octets, &ledger.small, known.small_octets);
            queue.counts = counted.map(|counted| match counted {
                Counted::Octets => "octets".to_owned(),
                Counted::Packets => "packets".to_owned(),
            });
            estimate
        }
        Policy::EarlyDrop => estimate,
    }
}

/// Packets are lost whether they wait or not: what got through says that a queue takes as much, not
/// that it takes no more.
fn by_chance(estimate: Estimate, known: &Known<'_>, sample: Option<&Together>) -> Estimate {
    let Some(all) = sample else { return estimate };
    let lost = all.bursts - all.whole;
    let through: u64 = known.ledger.sample.cuts.iter().map(|cut| cut.through).sum();
    let ratio = lost as f64 / (through.saturating_add(lost as u64)).max(1) as f64;
    estimate.at_least(Limit::Path).caveat(Caveat::Loss { ratio })
}

/// The curve over rates.
fn curve(known: &Known<'_>) -> Vec<BurstPoint> {
    if known.rates == 0 {
        return Vec::new();
    }
    let point = |point: CurvePoint| BurstPoint {
        rate_bps: rate_of(point.rate_bps),
        p10: Octets::new(octets(known, point.p10)),
        median: Octets::new(octets(known, point.median)),
        max: Octets::new(octets(known, point.max)),
        bursts: point.bursts as u64,
    };
    known.ledger.curve().into_iter().map(point).collect()
}

/// The queue: by the line if there is one, else by the fluid model, and by delay.
fn queue_behind(
    mut estimate: Estimate,
    known: &Known<'_>,
    sample: Option<&Together>,
    found: &mut BurstFinding,
) -> Estimate {
    let ledger = known.ledger;
    let points = queue::telling(&ledger.curve(), known.ip_octets);
    let fit = queue::effective(&points);
    if known.rates > 0 {
        found.queue.available_bps = fit.as_ref().map(|fit| rate_of(fit.available_bps));
        if fit.is_none() {
            estimate = estimate.with("effective_queue", "the rates tried give no line");
        }
        estimate = estimate.with("rate_line_points", points.len());
    }
    if sample.is_none() {
        return estimate;
    }
    // Bursts that leave at rates that are known, slower than the first link: their delays are the
    // queue's alone.
    let by_delay: Vec<f64> = ledger.line.iter().filter_map(|rated| rated.queue_by_delay(known.ip_octets)).collect();
    // Of others the delay begins where the sender's own link does.
    let own = || {
        let known_rate = ledger.burst_rate().is_some();
        ledger.sample.queue_by_delay(known.ip_octets).filter(|_| known_rate)
    };
    let by_delay = narrows_stat::median(&by_delay).or_else(own);
    found.queue.by_delay_octets = by_delay.map(|queued| Octets::new(rounded(queued))).or(found.queue.by_delay_octets);
    let by_model = ledger.rated_sample().queue_by_rate().map(|packets| packets * f64::from(known.ip_octets));
    let (queue, basis) = match (&fit, by_model) {
        (Some(fit), _) => (fit.queue_octets, "line"),
        (None, Some(octets)) => (octets, "rate"),
        (None, None) => return estimate,
    };
    found.queue.effective_octets = Some(Octets::new(rounded(queue)));
    found.queue.basis = Some(basis.to_owned());
    let drains = [known.available.map(BitRate::as_f64), fit.map(|fit| fit.available_bps), ledger.rate_through()];
    let drain = drains.into_iter().flatten().find(|rate| *rate > 0.0);
    found.queue.drain_ns = drain.map(|rate| Delta::from_nanos(rounded_signed(queue * 8e9 / rate)));
    found.rtt_ns = Some(Delta::from(known.rtt));
    estimate
}
