//! From trains to an answer, or to none.

use narrows_units::{BitRate, Framing, Metric, to_u32};

use super::session::MethodRun;
use super::train::{Flaw, Sample};
use crate::conclusion::{self, RunSummary};
use crate::spacing::{Stamped, Trust};
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Outcome, Reason, SampleCounts};

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("trains", session.trains);
    diagnostics.insert("trains_that_count", to_u32(session.samples.len()));
    let seen =
        RunSummary { caveats: caveats(session), samples: samples(session), diagnostics, ..RunSummary::default() };
    conclusion::conclude(judge(session), seen, stopped)
}

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    let facts = session.facts.as_ref().ok_or(Reason::UnexpectedEvent)?;
    if session.lost == session.packets {
        return Err(Reason::NoAnswer);
    }
    let (smaller, full): (Vec<Sample>, Vec<Sample>) =
        session.samples.iter().partition(|sample| session.smaller(sample));
    let enough = full.len() >= LEAST && session.samples.len() >= session.flaws.len();
    let Some(last) = full.last().filter(|_| enough) else {
        return Err(why_not(session, facts));
    };
    let trust = Trust::new(facts, Stamped::Returned, session.source);
    let mut spans: Vec<f64> = full.iter().map(|sample| sample.span_ns as f64).collect();
    spans.sort_by(f64::total_cmp);
    let span = narrows_stat::median(&spans).ok_or(Reason::NoAgreement)?;
    let span = trust.unrounded(span, &spans);
    if !trust.resolves(span) {
        return Err(Reason::StampsTooCoarse);
    }
    let (shortest, longest) = (spans[0], spans[spans.len() - 1]);
    if longest > AGREE * shortest {
        return Err(Reason::NoAgreement);
    }
    let wire = |sample: &Sample| f64::from(session.params.framing.wire_octets(u32::from(sample.ip_octets)));
    let apart = |sample: &Sample| (sample.span_ns as f64 * wire(last) / wire(sample) / span - 1.0).abs();
    let blurred = SIZES_AGREE + 3.0 * trust.blur(span);
    let untested = smaller.is_empty() && session.has_smaller();
    if untested || smaller.iter().any(|sample| apart(sample) > blurred) {
        return Err(Reason::NoAgreement);
    }
    let rate = |span_ns: f64| restated(session, last, span_ns);
    let value = rate(span)?;
    if trust.by_host(wire(last), span) {
        return Err(Reason::ReceiverTooSlow);
    }
    let half = trust.blur(span).max(LEAST_HALF);
    let mut estimate =
        Estimate::ip_rate(Metric::IpCapacity, value, rate(longest * (1.0 + half))?, rate(shortest * (1.0 - half))?);
    if reply_share(last) > DECIDES {
        let reply_ip_octets = last.reply_octets;
        estimate = estimate.caveat(Caveat::ReverseInfluence { reply_ip_octets });
        estimate.confidence = Confidence::Low;
    }
    Ok(estimate)
}

/// What most of the trains that do not count lack.
fn why_not(session: &MethodRun, facts: &narrows_probe::PathFacts) -> Reason {
    let most = most_common(&session.flaws);
    match most {
        Some(Flaw::Lost) => Reason::TooMuchLoss { lost: session.lost, sent: session.packets },
        Some(Flaw::Together) => {
            let trust = Trust::new(facts, Stamped::Returned, session.source);
            let sent = (session.sent_ns.max(0)) as f64;
            let fine = sent > 0.0 && trust.resolves(sent);
            if fine { Reason::ReceiveBatching } else { Reason::StampsTooCoarse }
        }
        Some(Flaw::Open) => sender_too_slow(session),
        Some(Flaw::Disordered | Flaw::Spread | Flaw::Disturbed) | None => Reason::NoAgreement,
    }
}

fn sender_too_slow(session: &MethodRun) -> Reason {
    let octets = u64::from(session.full_size());
    let sent = std::time::Duration::from_nanos(session.sent_ns.max(0).unsigned_abs());
    BitRate::over(octets, sent).map_or(Reason::NoAgreement, |reached| Reason::SenderTooSlow { reached })
}

fn most_common(flaws: &[Flaw]) -> Option<Flaw> {
    let count = |flaw: Flaw| flaws.iter().filter(|other| **other == flaw).count();
    flaws.iter().copied().max_by_key(|flaw| count(*flaw))
}

/// At the IP layer, for full-size packets.
fn restated(session: &MethodRun, sample: &Sample, span_ns: f64) -> Result<BitRate, Reason> {
    let framing = session.params.framing;
    let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
    let full = session.full_size();
    let rate = 8e9 * wire(sample.ip_octets) / span_ns * f64::from(full) / wire(full);
    BitRate::from_bps_f64(rate).ok_or(Reason::NoAgreement)
}

/// An answer over its SYN, on an Ethernet wire.
fn reply_share(sample: &Sample) -> f64 {
    let wire = |octets: u16| f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
    wire(sample.reply_octets) / wire(sample.ip_octets)
}

fn caveats(session: &MethodRun) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let spread = session.flaws.iter().filter(|flaw| **flaw == Flaw::Spread).count();
    if spread * 2 > session.flaws.len() && session.samples.len() < LEAST {
        caveats.push(Caveat::AsymmetricLimit);
    }
    if session.lost > 0 {
        let ratio = session.lost as f64 / (session.packets as f64).max(1.0);
        caveats.push(Caveat::Loss { ratio });
    }
    caveats
}

fn samples(session: &MethodRun) -> SampleCounts {
    let names = [
        (Flaw::Lost, "incomplete_trains"),
        (Flaw::Disordered, "reordered_trains"),
        (Flaw::Together, "one_stamp_trains"),
        (Flaw::Open, "open_trains"),
        (Flaw::Spread, "spread_trains"),
        (Flaw::Disturbed, "disturbed_trains"),
    ];
    let mut counts = SampleCounts::default().kept("trains", session.samples.len());
    for (flaw, name) in names {
        let count = session.flaws.iter().filter(|other| **other == flaw).count();
        if count > 0 {
            counts = counts.rejected(name, count);
        }
    }
    counts
}

/// Fewest trains that must count (ours), and no fewer than those that do not: a few that agree
/// among many that were thrown away agree by chance.
pub(super) const LEAST: usize = 3;
/// Largest ratio of their spacings (ours: they must agree within a quarter).
const AGREE: f64 = 1.25;
/// By what the rate of a smaller pair may differ, beside what stamps blur (ours): traffic at a
/// steady rate behind the narrow link sets pairs of one size all alike, and another size
/// differently.
const SIZES_AGREE: f64 = 0.1;
/// The range is no narrower than this on either side (ours: framing, and what few trains leave
/// open).
const LEAST_HALF: f64 = 0.02;
/// As in `nettimer`: a larger answer may set the spacing. Smaller ones would spread the small
/// packets' answers as well, and are seen.
const DECIDES: f64 = 0.25;
