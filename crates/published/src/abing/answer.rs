//! From pairs to an answer.

use narrows_units::{BitRate, Metric};

use super::session::MethodRun;
use crate::conclusion::{self, RunSummary};
use crate::pairtrain;
use crate::pairtrain::PairGap;
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Outcome, Reason, SampleCounts};
use narrows_train::pairs::{Filter, Pair, Sifted, pair_mode};

/// The narrow link's packet time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Narrow {
    pub(super) ns: f64,
    /// Relative error.
    pub(super) error: f64,
    /// Another rate that crowds as much.
    pub(super) runner_up: Option<BitRate>,
}

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let seen = RunSummary {
        caveats: caveats(session),
        samples: samples(session),
        diagnostics: diagnostics(session),
        ..RunSummary::default()
    };
    conclusion::conclude(conclusion::cut_short(judge(session), stopped), seen, stopped)
}

fn bits(session: &MethodRun) -> f64 {
    f64::from(session.ip_octets) * 8.0
}

fn all(session: &MethodRun) -> Vec<PairGap> {
    session.measurements.iter().flatten().copied().collect()
}

fn mean(gaps: &[PairGap], of: impl Fn(&PairGap) -> f64) -> f64 {
    let values: Vec<f64> = gaps.iter().map(of).collect();
    narrows_stat::mean(&values).unwrap_or(0.0)
}

/// The pairs that tell the capacity: the first measurement's, as close as the host can send them,
/// for between those is least of others. Of paced ones more than half may hold a packet of others
/// at high load, and crowd at two packet times. All, if the first lost most.
fn closest(session: &MethodRun) -> Vec<PairGap> {
    let first = session.measurements.iter().find(|gaps| gaps.len() >= LEAST_PAIRS);
    first.cloned().unwrap_or_else(|| all(session))
}

fn sifted(session: &MethodRun) -> Sifted {
    let octets = f64::from(session.ip_octets);
    let pair = |gap: &PairGap| {
        (gap.came > 0.0).then_some(Pair { received: 8e9 * octets / gap.came, sent: Some(8e9 * octets / gap.sent) })
    };
    let pairs: Vec<Pair> = closest(session).iter().filter_map(pair).collect();
    pair_mode(&pairs, &Filter::DENSITY)
}

/// The caller's capacity, or where the spacings crowd of pairs that the path closed up.
pub(super) fn narrow(session: &MethodRun) -> Option<Narrow> {
    if let Some(capacity) = session.params.capacity {
        return Some(Narrow { ns: bits(session) * 1e9 / capacity.as_f64(), error: 0.0, runner_up: None });
    }
    let sifted = sifted(session);
    // Most of the first pairs, as close as the host can send them, must have come further apart
    // than they left: else the sender is no faster than the link, and what crowds is chance.
    let first = closest(session);
    let spread = first.iter().filter(|gap| gap.came > GROWN * gap.sent).count();
    if (spread as f64) < MOSTLY * first.len() as f64 {
        return None;
    }
    let crowd = sifted.pair_mode?;
    // The mean of what crowds at the point, for a density's point is one of the pairs.
    let near = |gap: &&PairGap| (gap.came * crowd.rate / (bits(session) * 1e9) - 1.0).abs() <= NEAR;
    let near: Vec<f64> = all(session).iter().filter(near).map(|gap| gap.came).collect();
    let spread = narrows_stat::variance_sample(&near).unwrap_or(0.0).sqrt();
    let ns = narrows_stat::median(&near)?;
    Some(Narrow {
        ns,
        error: (spread / ns / (near.len() as f64).sqrt()).max(LEAST_ERROR),
        runner_up: crowd.runner_up(),
    })
}

/// Stamps or hosts that hide what is inside pairs.
pub(super) fn hidden(session: &MethodRun) -> Option<Reason> {
    pairtrain::hidden(&all(session), session.facts.as_ref()?, session.ip_octets, session.source?)
}

pub(super) fn silent(session: &MethodRun) -> Reason {
    if session.lost >= session.packets {
        Reason::NoAnswer
    } else if 2 * session.lost > session.packets {
        Reason::TooMuchLoss { lost: session.lost, sent: session.packets }
    } else {
        Reason::TooFewSamples { samples: 0 }
    }
}

/// What the law makes of pairs: available, bit/s, and the standard error from what they differ by.
pub(super) fn law(bits: f64, narrow_ns: f64, gaps: &[PairGap]) -> Option<(f64, f64)> {
    let (sent, came) = (mean(gaps, |gap| gap.sent), mean(gaps, |gap| gap.came));
    if gaps.len() < 2 || sent <= 0.0 || narrow_ns <= 0.0 {
        return None;
    }
    let capacity = bits * 1e9 / narrow_ns;
    let values: Vec<f64> = gaps.iter().map(|gap| gap.came).collect();
    let error = (narrows_stat::variance_sample(&values)? / values.len() as f64).sqrt();
    Some((capacity * (1.0 - (came - narrow_ns) / sent), capacity * error / sent))
}

/// The pairs that were closer than the narrow link's packet time and not so close that the law
/// divides by next to nothing.
fn useful(session: &MethodRun, narrow_ns: f64) -> Vec<PairGap> {
    let apart = |gap: &PairGap| gap.sent > 0.0 && gap.sent <= OPEN * narrow_ns;
    let paced: Vec<PairGap> =
        all(session).into_iter().filter(|gap| apart(gap) && gap.sent >= CLOSE * narrow_ns).collect();
    if paced.len() >= session.params.pairs {
        return paced;
    }
    all(session).into_iter().filter(apart).collect()
}

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    if let Some(reason) = &session.hopeless {
        return Err(reason.clone());
    }
    let gaps = all(session);
    if gaps.len() < LEAST_PAIRS || 2 * session.lost > session.packets {
        return Err(match gaps.len() {
            0 => silent(session),
            _ if 2 * session.lost > session.packets => silent(session),
            samples => Reason::TooFewSamples { samples: samples as u64 },
        });
    }
    if let Some(reason) = hidden(session) {
        return Err(reason);
    }
    let too_slow = || {
        let sent = mean(&gaps, |gap| gap.sent);
        let reached = BitRate::from_bps_f64(bits(session) * 1e9 / sent.max(1.0)).unwrap_or(BitRate::ZERO);
        Reason::SenderTooSlow { reached }
    };
    let narrow = narrow(session).ok_or_else(too_slow)?;
    let pairs = useful(session, narrow.ns);
    if pairs.len() < LEAST_PAIRS {
        return Err(too_slow());
    }
    let (available, error) = law(bits(session), narrow.ns, &pairs).ok_or(Reason::NoAgreement)?;
    let capacity = bits(session) * 1e9 / narrow.ns;
    let lever = (mean(&pairs, |gap| gap.came) / mean(&pairs, |gap| gap.sent) - 1.0).abs();
    let half = (SPANNED * error).hypot(lever * narrow.error * capacity).max(FLOOR * capacity);
    // More than the link carries is no answer either.
    if half > WIDEST * capacity || available - half > (1.0 + 2.0 * FLOOR) * capacity {
        return Err(Reason::NoAgreement);
    }
    state(session, narrow, available, half)
}

fn state(session: &MethodRun, narrow: Narrow, available: f64, half: f64) -> Result<Estimate, Reason> {
    let capacity = bits(session) * 1e9 / narrow.ns;
    let rate = |value: f64| BitRate::from_bps_f64(value.max(0.0)).ok_or(Reason::NoAgreement);
    let value = available.clamp(0.0, capacity);
    let high = (available + half).clamp(FLOOR * capacity, capacity * (1.0 + narrow.error + FLOOR));
    let mut estimate =
        Estimate::ip_rate(Metric::AvailableIpCapacity, rate(value)?, rate((available - half).min(value))?, rate(high)?);
    estimate.interval = session.began.zip(session.ended).map(|(began, ended)| ended.since(began));
    if half > WIDE * capacity {
        estimate.confidence = Confidence::Low;
    }
    if let Some(other) = narrow.runner_up {
        estimate = estimate.caveat(Caveat::Multimodal { other });
        estimate.confidence = Confidence::Low;
    }
    if let Some(capacity) = session.params.capacity {
        return Ok(estimate.caveat(Caveat::CapacityAssumed { capacity }));
    }
    let unsure = |mut estimate: Estimate| {
        estimate.confidence = Confidence::Low;
        estimate
    };
    let margin = 1.0 + narrow.error + FLOOR;
    let own =
        Estimate::ip_rate(Metric::IpCapacity, rate(capacity)?, rate(capacity / margin)?, rate(capacity * margin)?);
    let cross = Estimate::ip_rate(
        Metric::CrossTraffic,
        rate(capacity - value)?,
        rate(capacity - available - half)?,
        rate(capacity - available + half)?,
    );
    estimate.also = vec![unsure(own), unsure(cross)];
    Ok(estimate)
}

fn caveats(session: &MethodRun) -> Vec<Caveat> {
    let share = |count: u64| count as f64 / session.packets.max(1) as f64;
    let (loss, reordered) = (share(session.lost), share(session.disordered));
    let all = [
        (loss > 0.001).then_some(Caveat::Loss { ratio: loss }),
        (reordered > 0.001).then_some(Caveat::Reordering { ratio: reordered }),
    ];
    all.into_iter().flatten().collect()
}

fn samples(session: &MethodRun) -> SampleCounts {
    let counts = SampleCounts::default().kept("pairs", all(session).len());
    counts.rejected("torn_pairs", session.torn).rejected("reordered_pairs", session.disordered)
}

fn diagnostics(session: &MethodRun) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let gaps = all(session);
    if gaps.is_empty() {
        return diagnostics;
    }
    diagnostics.insert("gap_in_ns", mean(&gaps, |gap| gap.sent));
    diagnostics.insert("gap_out_ns", mean(&gaps, |gap| gap.came));
    let Some(narrow) = narrow(session) else {
        return diagnostics;
    };
    diagnostics.insert("capacity_bps", bits(session) * 1e9 / narrow.ns);
    let single: Vec<f64> = session
        .measurements
        .iter()
        .filter_map(|gaps| law(bits(session), narrow.ns, gaps))
        .map(|(available, _)| available)
        .collect();
    let weight = session.params.weight;
    let smoothed = single.iter().copied().reduce(|smooth, new| (1.0 - weight) * smooth + weight * new);
    diagnostics.insert("measurements_bps", single);
    if let Some(smoothed) = smoothed {
        diagnostics.insert("smoothed_bps", smoothed);
    }
    diagnostics
}

/// Pairs behind any answer (half a measurement).
const LEAST_PAIRS: usize = 10;
/// Pairs that came this much further apart than they left were closed up (ours), and this share of
/// the first ones must be.
const GROWN: f64 = 1.05;
const MOSTLY: f64 = 0.6;
/// Pairs within this share of the crowd's point belong to it (ours: the half-width of its kernel).
const NEAR: f64 = 0.1;
/// Error of a capacity at least (ours): framing and stamps.
const LEAST_ERROR: f64 = 0.005;
/// Pairs further apart than this over the packet time let the queue empty.
const OPEN: f64 = 1.05;
/// Pairs closer than this over the packet time are left to themselves where there are others
/// (ours).
const CLOSE: f64 = 0.3;
/// Standard errors that the interval spans on either side.
const SPANNED: f64 = 2.0;
/// Half-width at least, as a share of the capacity (ours).
const FLOOR: f64 = 0.02;
/// Half-widths above this share of the capacity deserve little confidence, and above that no number
/// (ours).
const WIDE: f64 = 0.1;
const WIDEST: f64 = 0.5;
