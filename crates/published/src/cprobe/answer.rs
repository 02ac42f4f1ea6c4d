//! From trains to a bound, or, with the capacity known, to an estimate.

use narrows_units::{BitRate, Metric};

use super::session::{MethodRun, Spread};
use crate::conclusion::{self, RunSummary};
use crate::spacing::{Stamped, Trust};
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Outcome, Reason, SampleCounts};

/// What it takes to tell the forward direction from the reverse direction.
pub(super) const NEEDED: &str = "a peer that stamps what it echoes, or answers in short packets";

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let counts = SampleCounts::default().kept("trains", session.trains.len());
    let seen = RunSummary {
        caveats: caveats(session),
        stamped_by_remote: session.stamped == Some(Stamped::PeerKind),
        samples: counts.rejected("reordered_spacings", session.disordered),
        diagnostics: diagnostics(session),
    };
    conclusion::conclude(conclusion::cut_short(judge(session), stopped), seen, stopped)
}

/// Means over trains, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Means {
    pub(super) sent: f64,
    pub(super) came: f64,
    /// As `came`, the extremes of each train left out.
    pub(super) trimmed: f64,
    /// Standard error of `came`.
    pub(super) error: f64,
}

pub(super) fn means(trains: &[Spread]) -> Option<Means> {
    let of = |which: fn(&Spread) -> f64| trains.iter().map(which).collect::<Vec<f64>>();
    let (came, sent) = (of(|train| train.came), of(|train| train.sent));
    let count = came.len() as f64;
    // Of one train nothing tells how it varies: as if it were off by a third.
    let variance = narrows_stat::variance_sample(&came).filter(|_| came.len() > 1);
    let mean = narrows_stat::mean(&came)?;
    Some(Means {
        sent: narrows_stat::mean(&sent)?,
        came: mean,
        trimmed: narrows_stat::mean(&of(|train| train.trimmed))?,
        error: variance.map_or(mean / 3.0, |variance| (variance / count).sqrt()),
    })
}

/// Available, bit/s, of a link of known capacity, by the fluid law; and the half of its interval.
pub(super) fn inverted(capacity: f64, bits: f64, means: Means) -> Option<(f64, f64)> {
    let narrow = bits * 1e9 / capacity;
    let used = (means.came - narrow) / means.sent;
    let half = SPANNED * means.error / means.sent;
    (means.sent > 0.0 && half < WIDEST).then(|| (capacity * (1.0 - used), capacity * half.max(FLOOR)))
}

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    let loss = Reason::TooMuchLoss { lost: session.lost, sent: session.packets };
    let Some(means) = means(&session.trains) else {
        let none = session.lost >= session.packets;
        return Err(if none { Reason::NoAnswer } else { loss });
    };
    if 2 * session.lost > session.packets {
        return Err(loss);
    }
    check_stamps(session, means)?;
    if !session.one_way() && !session.params.symmetric {
        return Err(Reason::NotOffered { what: NEEDED.to_owned() });
    }
    let bits = f64::from(session.ip_octets) * 8.0;
    let rate = |value: f64| BitRate::from_bps_f64(value.max(0.0)).ok_or(Reason::NoAgreement);
    if means.sent > OPEN * means.came {
        let reached = rate(bits * 1e9 / means.sent.max(1.0))?;
        return Err(Reason::SenderTooSlow { reached });
    }
    let metric = Metric::AvailableIpCapacity;
    let known = session.params.capacity;
    if let Some((capacity, (available, half))) =
        known.and_then(|capacity| Some((capacity, inverted(capacity.as_f64(), bits, means)?)))
    {
        let value = available.clamp(0.0, capacity.as_f64());
        let high = (available + half).clamp(value, 1.02 * capacity.as_f64());
        let mut estimate = Estimate::ip_rate(metric, rate(value)?, rate((available - half).min(value))?, rate(high)?);
        if half > WIDE * capacity.as_f64() {
            estimate.confidence = Confidence::Low;
        }
        return Ok(estimate.caveat(Caveat::CapacityAssumed { capacity }));
    }
    let closest = means.came.min(means.trimmed) - SPANNED * means.error;
    if closest <= means.came / 3.0 {
        return Err(Reason::NoAgreement);
    }
    let most = rate(bits * 1e9 / closest)?;
    Ok(Estimate::ip_rate(metric, most, most, most).at_most())
}

fn check_stamps(session: &MethodRun, means: Means) -> Result<(), Reason> {
    let (Some(facts), Some(stamped), Some(source)) = (session.facts.as_ref(), session.stamped, session.source) else {
        return Err(Reason::NoAnswer);
    };
    let trust = Trust::new(facts, stamped, source);
    let together = session.together as f64 > MOST_TOGETHER * session.neighbours as f64;
    if together && (means.came <= 0.0 || trust.resolves(means.came)) {
        return Err(Reason::ReceiveBatching);
    }
    if !trust.resolves(means.came) {
        return Err(Reason::StampsTooCoarse);
    }
    if trust.at_floor(means.came) {
        return Err(Reason::ReceiverTooSlow);
    }
    Ok(())
}

fn caveats(session: &MethodRun) -> Vec<Caveat> {
    let share = |count: u64| count as f64 / session.packets.max(1) as f64;
    let mut caveats = Vec::new();
    if session.stamped == Some(Stamped::Returned) {
        caveats.push(if session.one_way() {
            Caveat::ReverseInfluence { reply_ip_octets: session.reply_octets }
        } else {
            Caveat::AsymmetricLimit
        });
    }
    if session.lost > 0 {
        caveats.push(Caveat::Loss { ratio: share(session.lost) });
    }
    if session.disordered > 0 {
        caveats.push(Caveat::Reordering { ratio: share(session.disordered) });
    }
    caveats
}

fn diagnostics(session: &MethodRun) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let bits = f64::from(session.ip_octets) * 8.0;
    if let Some(stamped) = session.stamped {
        diagnostics.insert("stamped_by_remote", stamped == Stamped::PeerKind);
    }
    if let Some(means) = means(&session.trains) {
        diagnostics.insert("gap_in_ns", means.sent);
        diagnostics.insert("gap_out_ns", means.came);
        diagnostics.insert("gap_error_ns", means.error);
        if means.trimmed > 0.0 {
            diagnostics.insert("asymptotic_dispersion_bps", bits * 1e9 / means.trimmed);
        }
    }
    diagnostics
}

/// Standard errors that intervals and bounds span.
const SPANNED: f64 = 2.0;
/// Trains that left at more than this share of the time in which they came were not closed up by
/// any link (ours).
const OPEN: f64 = 0.95;
/// More neighbours than this share with one stamp: stamps are no spacing (as `bprobe`).
const MOST_TOGETHER: f64 = 0.2;
/// Half-widths, as shares of the capacity: at least; with little confidence; no estimate (ours).
const FLOOR: f64 = 0.02;
const WIDE: f64 = 0.1;
const WIDEST: f64 = 0.5;
