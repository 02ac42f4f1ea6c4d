//! Answers that a host has set: a receiver that sees packets in batches or reads them slowly, a
//! sender that is the slowest of all.

use super::batches::{self, BatchRates};
use super::params::Preset;
use super::rates::plain;
use super::sample::Sample;
use super::session::{MethodRun, half_width_of_rates};
use narrows_probe::StampSource;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, Reason};

pub(super) fn from_batches(session: &MethodRun) -> Result<Estimate, Reason> {
    let Some(rates) = batches::rates(session) else {
        // No train of batches was sent where all came as they left: pauses of the sender bunch
        // packets as well.
        let rate = sender_rate(session).ok_or(Reason::ReceiveBatching)?;
        let mut bound = plain(session, rate, rate, rate)?.at_least(Limit::Sender).caveat(Caveat::SenderLimited);
        bound.confidence = Confidence::Low;
        return Ok(bound);
    };
    let period = std::time::Duration::from_secs_f64((rates.period_ns * 1e-9).max(0.0));
    let mark = |estimate: Estimate| {
        let mut estimate = estimate.caveat(Caveat::ReceiveBatching { period }).with("branch", "batches");
        estimate.confidence = Confidence::Low;
        estimate
    };
    if sender_sets_batches(session, &rates) {
        let rate = rates.trains.min();
        return Ok(mark(plain(session, rate, rate, rate)?.at_least(Limit::Sender).caveat(Caveat::SenderLimited)));
    }
    if session.params.preset == Preset::Faithful {
        return tool_batch_answer(session, &rates).map(mark);
    }
    let full = session.full_size();
    let stamped_by = session.bursts().map(|sample| sample.stamped_by).max();
    if stamped_by.is_some_and(|by| {
        let ip = session.ip_rate(rates.trains.median());
        session.facts.receiver.stamps_limit(ip, full, by)
    }) {
        let rate = rates.trains.min();
        return Ok(mark(plain(session, rate, rate, rate)?.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited)));
    }
    let trains = rates.trains.len();
    let median = rates.trains.median();
    // An interrupt comes at a packet or between two: what passed between two interrupts is known to
    // a packet.
    let packet = 1.0 / (3f64.sqrt() * rates.packets);
    let sd = rates.trains.coefficient_of_variation().unwrap_or(1.0).max(packet);
    let half = half_width_of_rates(sd, trains, rates.span_ns) * median;
    let steady = is_steady(&rates);
    let top = rates.batches.quantile(0.9).unwrap_or(median);
    // Where single batches came clearly faster than whole trains, other traffic slowed the trains:
    // one packet more or less per batch is not "clearly".
    let packet = 8e9 * f64::from(session.framing().wire_octets(u32::from(session.full_size()))) / median;
    let uneven = top > median * (1.0 + (1.5 * packet / rates.period_ns).max(STEADY));
    let loaded = batches::loaded(session);
    // Paced trains that came unslowed say that the link is idle; what else moved the trains then is
    // not on it, and averages out.
    if (steady && !uneven && loaded != Some(true)) || (loaded == Some(false) && half < STEADY * median) {
        return Ok(mark(plain(session, median, median - half, median + half)?));
    }
    let bound = median - half;
    Ok(mark(plain(session, bound, bound, bound)?.at_least(Limit::Receiver)))
}

/// Whether trains of batches agree.
pub(super) fn is_steady(rates: &BatchRates) -> bool {
    rates.trains.coefficient_of_variation().is_some_and(|cv| cv < STEADY)
}

/// Whether the trains of the batch branch arrived no faster than they left, and the sender's own
/// interface is not why.
fn sender_sets_batches(session: &MethodRun, rates: &BatchRates) -> bool {
    rates.sent_share > HOST_LIMIT && !is_interface(session, rates.trains.median())
}

/// [pathrate]: the order statistics around the 90th percentile of the pooled burst rates.
fn tool_batch_answer(session: &MethodRun, rates: &BatchRates) -> Result<Estimate, Reason> {
    let values = rates.batches.values();
    let at = (values.len() * 9 / 10).min(values.len() - 1);
    let (low, high) = (values[at.saturating_sub(1)], values[at]);
    plain(session, low.midpoint(high), low, high)
}

/// The program reads more slowly than packets come: what it sees is its own rate.
pub(super) fn receiver_bound<'a>(
    session: &MethodRun,
    samples: impl Iterator<Item = &'a Sample>,
) -> Result<Estimate, Reason> {
    let rates: Vec<f64> = samples.filter_map(|sample| sample.wire_rate(session.framing())).collect();
    let rate = narrows_stat::median(&rates).ok_or(Reason::StampsTooCoarse)?;
    Ok(plain(session, rate, rate, rate)?.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited))
}

/// The rate that the trains left with, if that is what they arrived with and the sender's own
/// interface is not what set it.
pub(super) fn sender_rate(session: &MethodRun) -> Option<f64> {
    let share = sent_share(session)?;
    let rates: Vec<f64> = session.bursts().filter_map(|sample| sample.wire_rate(session.framing())).collect();
    let rate = narrows_stat::median(&rates)?;
    (share > HOST_LIMIT && !is_interface(session, rate)).then_some(rate)
}

/// The sender's interface is a link of the path; as its narrowest link it is the answer and no
/// excuse.
fn is_interface(session: &MethodRun, wire_bps: f64) -> bool {
    let sender = &session.facts.sender;
    let rate = sender.interface_rate.filter(|_| !sender.virtual_interface);
    rate.is_some_and(|rate| (wire_bps / rate.as_f64() - 1.0).abs() < 0.03)
}

/// Whether a host that takes packets out of a batch one by one would look like this rate: below
/// three of its receive costs per packet, the floor of `pathrate`, stamps taken on the host's
/// processor do not tell the two apart.
pub(super) fn mimicked(session: &MethodRun, wire_bps: f64) -> bool {
    let octets = session.framing().wire_octets(u32::from(session.full_size()));
    let on_host = session.bursts().any(|sample| matches!(sample.stamped_by, StampSource::Kernel | StampSource::User));
    on_host && 8e9 * f64::from(octets) / wire_bps < 3.0 * session.receive_cost_ns()
}

/// Departure time over arrival time: the median of the trains, or that of their sums, whichever is
/// larger.
pub(super) fn sent_share(session: &MethodRun) -> Option<f64> {
    let came: Vec<&Sample> = session.bursts().filter(|sample| sample.span_ns() > 0.0).collect();
    let shares: Vec<f64> = came.iter().map(|sample| sample.sent_ns / sample.span_ns()).collect();
    let sent: f64 = came.iter().map(|sample| sample.sent_ns).sum();
    let arrived: f64 = came.iter().map(|sample| sample.span_ns()).sum();
    Some(narrows_stat::median(&shares)?.max(sent / arrived))
}

/// `pathrate` practice: a host within 5 % of the answer may be the answer.
const HOST_LIMIT: f64 = 0.95;
/// Ours: trains of the batch branch that agree this well were not slowed by other traffic.
pub(super) const STEADY: f64 = 0.05;
