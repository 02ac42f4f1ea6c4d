//! From bursts to an outcome.

use std::time::Duration;

use stat::Sorted;
use units::{BitRate, Layer, Metric};

use super::analyse::{Seen, Together, effective, together};
use crate::methods::bulk;
use crate::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Reason};

/// Everything that bursts have told.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// Departure rates of bursts, bit/s.
    departures: Vec<f64>,
    /// Rates at which bursts arrived.
    arrivals: Vec<f64>,
    /// The slowest of them.
    pub(super) slowest_arrival: Option<BitRate>,
    /// Shares of the expected queueing delay that cut bursts showed.
    queueing: Vec<f64>,
    /// Largest delay growth in a burst without loss.
    growth: Duration,
    local_drops: u64,
    spoilt: u32,
    /// Packets that the last cut burst of the search let through.
    pub(super) last_cut: Option<usize>,
    /// The sample: packets ahead of the first loss.
    pub(super) first_losses: Vec<Option<usize>>,
    sampled_packets: usize,
}

/// Fewer bursts than this are few; so are fewer than that, if they were cut at different places (ours).
const FEWEST_BURSTS: usize = 5;
const SCATTERED_BURSTS: usize = 10;
/// Bursts that the receiving host spoils before the method takes it for the limit (ours).
const SPOILT_BURSTS: u32 = 3;
/// Share of the expected queueing delay below which a cut burst met a policer.
const POLICED_BELOW: f64 = 0.3;
/// A burst that arrives within this share of the rate at which it left has overrun nothing.
const OVERRUN: f64 = 0.98;

impl Ledger {
    pub(super) fn note(&mut self, seen: &Seen) {
        self.local_drops += u64::from(seen.local_drops);
        // Few packets make poor rates: a single gap would decide.
        if seen.arrived >= 4 {
            self.departures.extend(seen.departure.map(BitRate::as_f64));
            self.arrivals.extend(seen.arrival.map(BitRate::as_f64));
            self.slowest_arrival = [self.slowest_arrival, seen.arrival].into_iter().flatten().min();
        }
        if seen.first_loss.is_none() && !seen.spoilt_by_receiver {
            self.growth = self.growth.max(seen.delay_growth);
        }
        self.queueing.extend(seen.queueing);
    }

    /// One more burst with drops by the receiving host; true if there have been too many.
    pub(super) fn receiver_spoils(&mut self) -> bool {
        self.spoilt += 1;
        self.spoilt >= SPOILT_BURSTS
    }

    pub(super) fn sample(&mut self, packets: usize, first_loss: Option<usize>) {
        self.sampled_packets = packets;
        self.first_losses.push(first_loss);
    }

    fn policed(&self) -> Option<bool> {
        Some(stat::median(&self.queueing)? < POLICED_BELOW)
    }
}

/// What the outcome is made of.
pub(super) struct Known<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) ip_octets: u16,
    pub(super) survived: usize,
    pub(super) cap: usize,
    pub(super) wanted: usize,
    pub(super) sampled: bool,
    pub(super) answered: bool,
    /// Rate in bit/s and octets ahead of the first loss, per cut burst of the rate line.
    pub(super) line: &'a [(f64, f64)],
    pub(super) rates: usize,
    pub(super) reason: Option<Reason>,
}

pub(super) fn outcome(known: &Known<'_>) -> Outcome {
    if !known.answered {
        return Outcome::inconclusive(known.reason.clone().unwrap_or(Reason::NoAnswer));
    }
    let ledger = known.ledger;
    let sample = together(&ledger.first_losses, ledger.sampled_packets);
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
    evidence(estimate, known, sample.as_ref()).into()
}

fn octets(known: &Known<'_>, packets: u64) -> u64 {
    packets * u64::from(known.ip_octets)
}

fn burst(value: u64, low: u64, high: u64) -> Estimate {
    Estimate::new(Metric::MaximumBurstOctets, Some(Layer::Ip), value, low, high)
}

fn from_sample(known: &Known<'_>, all: &Together) -> Estimate {
    let mut estimate = burst(
        octets(known, all.median),
        octets(known, all.p10),
        octets(known, all.max + 1),
    );
    if all.median_is_bound {
        let limit = if known.ledger.sampled_packets >= known.cap {
            Limit::Budget
        } else {
            Limit::Path
        };
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

/// The search alone: what the last cut burst let through, between what survived and that plus a packet.
fn from_search(known: &Known<'_>, cut: usize) -> Estimate {
    let cut = octets(known, cut as u64);
    let survived = octets(known, known.survived as u64);
    let (low, high) = (survived.min(cut), survived.max(cut) + u64::from(known.ip_octets));
    let mut estimate = burst(cut, low, high)
        .caveat(Caveat::FewSamples { samples: 1 })
        .caveat(Caveat::NotConverged);
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
            estimate
                .at_least(Limit::Receiver)
                .caveat(Caveat::ReceiverLimited)
                .caveat(Caveat::LocalDrops { packets }),
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
    match (stat::median(&ledger.departures), stat::median(&ledger.arrivals)) {
        (Some(departure), Some(arrival)) => arrival >= departure * OVERRUN,
        _ => false,
    }
}

fn evidence(mut estimate: Estimate, known: &Known<'_>, sample: Option<&Together>) -> Estimate {
    let ledger = known.ledger;
    estimate = estimate.with("ip_octets", u32::from(known.ip_octets));
    if let Some(rate) = stat::median(&ledger.departures) {
        estimate = estimate.with("burst_rate_bps", bulk::whole(rate));
    }
    if let Some(rate) = stat::median(&ledger.arrivals) {
        estimate = estimate.with("arrival_rate_bps", bulk::whole(rate));
        let queued = rate * ledger.growth.as_secs_f64() / 8.0;
        estimate = estimate.with("queue_by_delay_octets", bulk::whole(queued));
    }
    let growth = units::Delta::from(ledger.growth);
    estimate = estimate.with("peak_queue_delay_ns", growth);
    if let Some(all) = sample {
        let series = ledger.first_losses.iter().map(|cut| {
            let through = cut.unwrap_or(ledger.sampled_packets) as u64;
            octets(known, through) as f64
        });
        estimate = estimate
            .with("burst_p10_octets", octets(known, all.p10))
            .with("burst_median_octets", octets(known, all.median))
            .with("burst_max_octets", octets(known, all.max))
            .with("first_loss_octets", series.collect::<Vec<_>>())
            .with("bursts", all.bursts)
            .with("bursts_without_loss", all.whole)
            .with("sampled_octets", octets(known, ledger.sampled_packets as u64))
            .with("safe_octets", octets(known, all.min))
            .with("safe_loss_probability_max", all.loss_probability);
    }
    if ledger.local_drops > 0 {
        let packets = ledger.local_drops;
        estimate = estimate.caveat(Caveat::LocalDrops { packets });
    }
    if let Some(share) = stat::median(&ledger.queueing) {
        estimate = estimate.with("queueing_share", share);
    }
    if ledger.policed() == Some(true) {
        estimate.limited_by = Limit::Shaper;
        estimate = estimate.caveat(Caveat::Policed);
    }
    rate_line(estimate, known)
}

/// The line in `1/R`, with the sample itself as its fastest point.
fn rate_line(mut estimate: Estimate, known: &Known<'_>) -> Estimate {
    if known.rates == 0 {
        return estimate;
    }
    let mut points = known.line.to_vec();
    if let (true, Some(rate), Ok(cuts)) = (
        known.sampled,
        stat::median(&known.ledger.departures),
        Sorted::new(
            known
                .ledger
                .first_losses
                .iter()
                .flatten()
                .map(|cut| *cut as f64)
                .collect(),
        ),
    ) && cuts.median() > 0.0
    {
        points.push((rate, cuts.median() * f64::from(known.ip_octets)));
    }
    match effective(&points) {
        Some(fit) => {
            estimate = estimate
                .with("effective_queue_octets", bulk::whole(fit.queue_octets))
                .with("effective_available_bps", bulk::whole(fit.available_bps));
        }
        None => estimate = estimate.with("effective_queue", "the rates tried give no line"),
    }
    estimate.with("rate_line_points", points.len())
}
