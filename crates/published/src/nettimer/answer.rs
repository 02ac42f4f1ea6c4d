//! From pairs to an answer.

use narrows_units::{BitRate, Framing, Metric, to_u32};

use super::params::Preset;
use super::session::{MethodRun, Sample};
use crate::conclusion::{self, RunSummary};
use crate::spacing::{Stamped, Trust, mean_bound, outruns};
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Limit, Outcome, Reason, SampleCounts};
use narrows_train::pairs;
use narrows_train::pairs::{PairMode, Sifted};

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let seen = RunSummary {
        caveats: caveats(session),
        stamped_by_remote: session.samples.last().is_some_and(|last| last.stamped == Stamped::PeerKind),
        samples: samples(session),
        diagnostics: diagnostics(session),
    };
    let judged = conclusion::cut_short_echoes(judge(session), &seen, stopped);
    let stopped = stopped.filter(|_| judged.as_ref().err().is_none_or(gives_way));
    conclusion::conclude(judged, seen, stopped)
}

/// Whether what stopped the run says more than what the few pairs till then lacked.
fn gives_way(own: &Reason) -> bool {
    !matches!(own, Reason::StampsTooCoarse | Reason::ReceiveBatching | Reason::ReceiverTooSlow)
}

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    let facts = session.facts.as_ref().ok_or(Reason::UnexpectedEvent)?;
    let tally = &session.tally;
    let last = session.samples.last().ok_or(if tally.lost_packets == tally.packets {
        Reason::NoAnswer
    } else {
        too_much_loss(session)
    })?;
    if tally.lost * 2 > tally.pairs || session.samples.len() < LEAST {
        return Err(too_much_loss(session));
    }
    let trust = Trust::new(facts, last.stamped, last.source);
    check_stamps(session, &trust)?;
    let sifted = pairs::pair_mode(&session.pairs(), &session.params.filter);
    if sifted.open > sifted.closed {
        let rate = sifted.open_rate.ok_or(Reason::NoAgreement)?;
        return bound(session, rate, Limit::Sender).map(|estimate| estimate.caveat(Caveat::SenderLimited));
    }
    let peak = sifted.pair_mode.ok_or(Reason::NoAgreement)?;
    if peak.share < LEAST_SHARE || peak.runner_up().is_some() || !session.sizes_agree(&peak) {
        return at_least(session, &peak);
    }
    let wire = wire_octets(session, last);
    let seen = 8e9 * wire / peak.rate;
    let spans: Vec<f64> = session.samples.iter().map(|sample| sample.span_ns as f64).collect();
    if session.params.preset == Preset::Adaptive && outruns(peak.rate, wire, &spans) {
        return at_least(session, &peak);
    }
    let span = match session.params.preset {
        Preset::Adaptive => trust.unrounded(seen, &spans),
        Preset::Tool => seen,
    };
    let rate = 8e9 * wire / span;
    if reply_share(session) > DECIDES {
        return bound(session, rate, Limit::Path);
    }
    point(session, &sifted, &PairMode { rate, ..peak }, trust.blur(span))
}

/// Whether the stamps can tell the spacings at all.
fn check_stamps(session: &MethodRun, trust: &Trust) -> Result<(), Reason> {
    let Some(span) = typical_span_ns(&session.samples) else {
        return Err(Reason::ReceiveBatching);
    };
    let share = |count: usize| count as f64 / session.samples.len() as f64;
    let together = session.samples.iter().filter(|sample| sample.span_ns == 0).count();
    if share(together) > MOST_TOGETHER {
        let fine = trust.resolves(span.max(sent_span_ns(&session.samples)));
        return Err(if fine { Reason::ReceiveBatching } else { Reason::StampsTooCoarse });
    }
    let by_host = |sample: &&Sample| trust.by_host(wire_octets(session, sample), sample.span_ns as f64);
    if share(session.samples.iter().filter(by_host).count()) > MOST_TOGETHER {
        return Err(Reason::ReceiverTooSlow);
    }
    if trust.resolves(span) { Ok(()) } else { Err(Reason::StampsTooCoarse) }
}

/// Pairs that do not crowd at one rate still say what the path carries at least.
fn at_least(session: &MethodRun, peak: &PairMode) -> Result<Estimate, Reason> {
    let last = session.samples.last().ok_or(Reason::NoAnswer)?;
    let spans: Vec<f64> = session.samples.iter().map(|sample| sample.span_ns as f64).collect();
    let rate = mean_bound(wire_octets(session, last), &spans).ok_or(Reason::NoAgreement)?;
    let mut estimate = bound(session, rate, Limit::Path)?.with("peak_share", peak.share).with("peak_bps", peak.rate);
    let other = peak.second.map_or(peak.rate, |(rate, _)| rate);
    if let Some(other) = restated(session, other) {
        estimate = estimate.caveat(Caveat::Multimodal { other });
    }
    Ok(estimate)
}

fn too_much_loss(session: &MethodRun) -> Reason {
    Reason::TooMuchLoss { lost: session.tally.lost_packets, sent: session.tally.packets }
}

/// Median spacing of the pairs whose packets do not share a stamp.
fn typical_span_ns(samples: &[Sample]) -> Option<f64> {
    let spans: Vec<f64> = samples.iter().map(|sample| sample.span_ns as f64).filter(|span| *span > 0.0).collect();
    narrows_stat::median(&spans)
}

fn sent_span_ns(samples: &[Sample]) -> f64 {
    let spans: Vec<f64> = samples.iter().map(|sample| sample.sent_ns.max(0) as f64).collect();
    narrows_stat::median(&spans).unwrap_or(0.0)
}

fn wire_octets(session: &MethodRun, sample: &Sample) -> f64 {
    f64::from(session.params.framing.wire_octets(u32::from(sample.ip_octets)))
}

/// A rate on the wire, for full-size packets at the IP layer.
fn restated(session: &MethodRun, wire_rate: f64) -> Option<BitRate> {
    let full = u32::from(session.full_size());
    let wire = f64::from(session.params.framing.wire_octets(full));
    BitRate::from_bps_f64(wire_rate * f64::from(full) / wire)
}

fn bound(session: &MethodRun, wire_rate: f64, limit: Limit) -> Result<Estimate, Reason> {
    let rate = restated(session, wire_rate).ok_or(Reason::NoAgreement)?;
    Ok(Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).at_least(limit))
}

fn point(session: &MethodRun, sifted: &Sifted, peak: &PairMode, blur: f64) -> Result<Estimate, Reason> {
    let state = |rate: f64| restated(session, rate).ok_or(Reason::NoAgreement);
    let (low, high) = (peak.low * (1.0 - blur), peak.high * (1.0 + blur));
    let mut estimate = Estimate::ip_rate(Metric::IpCapacity, state(peak.rate)?, state(low)?, state(high)?)
        .with("peak_share", peak.share)
        .with("open_pairs", u32::try_from(sifted.open).unwrap_or(u32::MAX));
    if let Some((rate, ratio)) = peak.second {
        estimate = estimate.with("second_peak_bps", rate).with("second_peak_ratio", ratio);
    }
    let few = sifted.closed < FEW;
    if few {
        let samples = u32::try_from(sifted.closed).unwrap_or(u32::MAX);
        estimate = estimate.caveat(Caveat::FewSamples { samples });
    }
    if few || session.params.preset == Preset::Tool {
        estimate.confidence = Confidence::Low;
    }
    Ok(estimate)
}

fn caveats(session: &MethodRun) -> Vec<Caveat> {
    let tally = &session.tally;
    let mut caveats = Vec::new();
    let share = reply_share(session);
    if share > DECIDES {
        caveats.push(Caveat::AsymmetricLimit);
    } else if let Some(reply_ip_octets) = session.samples.last().and_then(|last| last.reply_octets)
        && share > 0.0
    {
        caveats.push(Caveat::ReverseInfluence { reply_ip_octets });
    }
    if tally.lost_packets > 0 && tally.packets > 0 {
        let ratio = tally.lost_packets as f64 / tally.packets as f64;
        caveats.push(Caveat::Loss { ratio });
    }
    if tally.disordered > 0 {
        let ratio = f64::from(tally.disordered) / f64::from(tally.pairs.max(1));
        caveats.push(Caveat::Reordering { ratio });
    }
    caveats
}

/// The largest reply over its probe, on an Ethernet wire; zero where the peer's own stamps
/// count. A reverse direction slower than the way there by more than this spreads the pairs.
fn reply_share(session: &MethodRun) -> f64 {
    let wire = |octets: u16| f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
    let share = |sample: &Sample| match (sample.stamped, sample.reply_octets) {
        (Stamped::Returned, Some(reply)) => wire(reply) / wire(sample.ip_octets),
        (Stamped::Returned, None) | (Stamped::PeerKind, _) => 0.0,
    };
    session.samples.iter().map(share).fold(0.0, f64::max)
}

fn samples(session: &MethodRun) -> SampleCounts {
    let together = with_one_stamp(session);
    SampleCounts::default()
        .kept("pairs", session.samples.len() - together)
        .rejected("one_stamp_pairs", together)
        .rejected("incomplete_pairs", session.tally.lost)
        .rejected("reordered_pairs", session.tally.disordered)
}

fn with_one_stamp(session: &MethodRun) -> usize {
    session.samples.iter().filter(|sample| sample.span_ns == 0).count()
}

fn diagnostics(session: &MethodRun) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("pairs", session.tally.pairs);
    diagnostics.insert("smaller_pairs", to_u32(session.smaller.len()));
    diagnostics.insert("whole_pairs", to_u32(session.samples.len()));
    diagnostics.insert("pairs_with_one_stamp", with_one_stamp(session));
    if let Some(last) = session.samples.last() {
        diagnostics.insert("probe_octets", u32::from(last.ip_octets));
        diagnostics.insert("stamped_by_remote", last.stamped == Stamped::PeerKind);
        if let (Stamped::Returned, Some(reply)) = (last.stamped, last.reply_octets) {
            diagnostics.insert("reply_octets", u32::from(reply));
        }
    }
    if let Some(span) = typical_span_ns(&session.samples) {
        diagnostics.insert("spacing_ns", span);
    }
    diagnostics
}

/// Fewest whole pairs (ours).
const LEAST: usize = 4;
/// Fewer pairs than this behind the peak are few (ours: the tool's own number).
const FEW: usize = 8;
/// More pairs than this share with one stamp for both packets: stamps are no spacing (ours).
const MOST_TOGETHER: f64 = 0.2;
/// A peak with fewer of the pairs is not the link's alone (ours: the majority).
const LEAST_SHARE: f64 = 0.5;
/// Beyond this share the value may as well be the reverse direction's, and the forward direction
/// has at least that (ours).
const DECIDES: f64 = 0.25;
