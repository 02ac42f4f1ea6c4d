//! From trials to an outcome.

use narrows_units::{BitRate, Delta, Framing, Layer, Metric};

use super::bracket::Bracket;
use super::trial::{HELD_UP, Trial};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{
    Caveat, Confidence, Estimate, Finding, Limit, Outcome, Ranged, Reason, TwoStreams, UdpFinding,
};

/// What the trials have told, beside the bracket.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The best rate, confirmed.
    pub(super) confirmed: Option<Trial>,
    /// The last trial with two sockets.
    pub(super) two: Option<Trial>,
    /// There was no time for the next trial.
    pub(super) out_of_time: bool,
    /// The bracket was as narrow as asked for.
    pub(super) narrow: bool,
    /// The trial that delivered least and yet lost too much.
    pub(super) best_failure: Option<Trial>,
    trials: u32,
    /// Sum over the trials.
    held_up: f64,
    arrived: u64,
    local_drops: u64,
    rates: Vec<f64>,
    delivered: Vec<f64>,
    losses: Vec<f64>,
}

/// A share of a CPU from which a thread counts as the limit, and gains of two sockets over one
/// (limits of Netest's verdict, ours).
const BUSY: f32 = 0.9;
const HELPS: f64 = 1.15;
const HARMS: f64 = 0.9;
/// A sender that did not run for more than this share makes confidence low; and if all trials
/// together had more than the second, nobody knows what failed by the hosts (ours).
const HELD_UP_LONG: f64 = 0.1;
const HELD_UP_MOSTLY: f64 = 0.45;
/// Packets that change order beyond this share are worth a caveat (ours).
const REORDERING: f64 = 0.001;

impl Known {
    pub(super) fn note(&mut self, trial: &Trial) {
        self.trials += 1;
        self.held_up += trial.held_up;
        self.arrived += trial.arrived;
        self.local_drops += trial.local_drops;
        self.rates.push(trial.sent.as_f64());
        self.delivered.push(trial.delivered.as_f64());
        self.losses.push(trial.sustained_loss());
    }
}

pub(super) fn outcome(
    known: &Known,
    bracket: &Bracket,
    facts: &PathFacts,
    ip_octets: u16,
    reason: Option<Reason>,
) -> Outcome {
    if known.arrived == 0 {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NoAnswer));
    }
    let Some(best) = known.confirmed.or(bracket.passed).or(known.best_failure) else {
        return Outcome::inconclusive(reason.unwrap_or(Reason::NotConverged));
    };
    if known.held_up / f64::from(known.trials.max(1)) > HELD_UP_MOSTLY {
        return Outcome::inconclusive(reason.unwrap_or(Reason::SenderCannotPace));
    }
    let payload = |rate: BitRate| {
        Framing::BARE.convert(rate, Layer::Ip, Layer::UdpPayload, u32::from(ip_octets), facts.ipv6).unwrap_or(rate)
    };
    // No end of the interval is nearer than the resolution: trials vary by that much where traffic
    // does.
    let wide = |rate: BitRate, factor: f64| rate.scaled(factor).unwrap_or(rate);
    let lowest = bracket.passed.map_or(best.delivered, |trial| trial.delivered);
    let lowest = lowest.min(wide(best.delivered, 1.0 - bracket.resolution));
    let highest = bracket.ceiling.unwrap_or(best.delivered);
    let highest = highest.max(wide(best.delivered, 1.0 + bracket.resolution));
    // A path that rested while the sender did not run may have carried more than it carries for
    // long, by that share: the truth is between the rate over all of the time and that over the
    // rest.
    let mean = wide(lowest, 1.0 - best.held_up);
    let value = wide(best.delivered, 1.0 - best.held_up / 2.0);
    let range = Ranged::new(payload(value), payload(mean), payload(highest));
    let mut estimate = Estimate::new(Metric::UdpAchievable, Some(Layer::UdpPayload), range);
    estimate.interval = Some(best.lasted);
    estimate = limits(estimate, known, bracket, &best);
    if best.held_up > HELD_UP {
        let most = if best.held_up > HELD_UP_LONG { Confidence::Low } else { Confidence::Medium };
        estimate.confidence = estimate.confidence.min(most);
        estimate = estimate.caveat(Caveat::HostStall);
    }
    if known.confirmed.is_none() {
        estimate.confidence = Confidence::Low;
        if bracket.passed.is_none() {
            // Nothing passed: what was delivered, with too much loss, bounds what can be.
            estimate = estimate.at_most();
        }
        if !known.narrow {
            estimate = estimate.caveat(Caveat::NotConverged);
        }
    }
    if reason.is_some() || known.out_of_time {
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    diagnostics(estimate, known, &best, ip_octets).into()
}

/// What kept the rate from being higher.
fn limits(mut estimate: Estimate, known: &Known, bracket: &Bracket, best: &Trial) -> Estimate {
    let busy = best.sender_cpu.is_some_and(|share| share > BUSY);
    if bracket.ceiling.is_none() {
        // Else a cap, the user's or the method's, or time ran out on the way up.
        if bracket.sender_limits || busy {
            return estimate.at_least(Limit::Sender).caveat(Caveat::SenderLimited);
        }
        return estimate.at_least(Limit::Budget);
    }
    if bracket.receiver_limits {
        estimate = estimate.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited);
    }
    if known.local_drops > 0 {
        let packets = known.local_drops;
        estimate = estimate.caveat(Caveat::LocalDrops { packets });
    }
    estimate
}

fn diagnostics(mut estimate: Estimate, known: &Known, best: &Trial, ip_octets: u16) -> Estimate {
    if best.reordered > REORDERING {
        let ratio = best.reordered;
        estimate = estimate.caveat(Caveat::Reordering { ratio });
    }
    estimate = estimate
        .with("ip_octets", u32::from(ip_octets))
        .with("delivered_ip_bps", best.delivered)
        .with("offered_ip_bps", best.sent)
        .with("loss_ratio", best.loss)
        .with("sustained_loss_ratio", best.sustained_loss())
        .with("queue_delay_ns", Delta::from(best.delay))
        .with("trials", known.trials)
        .with("trial_offered_bps", known.rates.clone())
        .with("trial_delivered_bps", known.delivered.clone())
        .with("trial_sustained_loss_ratio", known.losses.clone());
    if let Some(share) = best.sender_cpu {
        estimate = estimate.with("sender_cpu", f64::from(share));
    }
    if let Some(two) = known.two {
        let gain = two.delivered.as_f64() / best.delivered.as_f64().max(1.0);
        let busy = best.sender_cpu.is_some_and(|share| share > BUSY);
        let verdict = match (gain, busy) {
            (gain, true) if gain >= HELPS => "recommended: one socket is bound to one CPU",
            (gain, false) if gain >= HELPS => "recommended: the path or the receiver treats each flow apart",
            (gain, _) if gain > HARMS => "not recommended",
            _ => "harmful: the sockets contend",
        };
        estimate = estimate
            .with("two_streams_delivered_bps", two.delivered)
            .with("two_streams_gain", gain)
            .with("two_streams", verdict)
            .found(Finding::Udp(Box::new(UdpFinding {
                two_streams: Some(TwoStreams { delivered_bps: two.delivered, verdict: verdict.to_owned() }),
            })));
    }
    estimate
}
