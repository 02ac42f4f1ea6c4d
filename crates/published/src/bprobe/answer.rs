//! From spacings to an answer.

use std::collections::BTreeMap;

use narrows_units::{BitRate, Framing, Metric, to_u32};

use super::filter::{Common, Interval, Joined, intersect, union};
use super::session::{MethodRun, Spacing};
use crate::conclusion::{self, RunSummary};
use crate::spacing::{Stamped, Trust, mean_bound, outruns};
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Limit, Outcome, Reason, SampleCounts};

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let seen = RunSummary {
        caveats: caveats(session),
        stamped_by_remote: session.spacings.last().is_some_and(|last| last.stamped == Stamped::PeerKind),
        samples: samples(session),
        diagnostics: diagnostics(session),
    };
    conclusion::conclude(conclusion::cut_short_echoes(judge(session), &seen, stopped), seen, stopped)
}

/// What each packet size said, by octets.
type Phases = BTreeMap<u16, Vec<Spacing>>;

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    let facts = session.facts.as_ref().ok_or(Reason::UnexpectedEvent)?;
    let loss = Reason::TooMuchLoss { lost: session.lost, sent: session.packets };
    let Some(last) = session.spacings.last() else {
        let none = session.lost == session.packets;
        return Err(if none { Reason::NoAnswer } else { loss });
    };
    if session.lost * 2 > session.packets {
        return Err(loss);
    }
    let trust = Trust::new(facts, last.stamped, last.source);
    let mut phases = Phases::new();
    for spacing in &session.spacings {
        phases.entry(spacing.ip_octets).or_default().push(*spacing);
    }
    check_stamps(session, &phases, &trust)?;
    let open = session.spacings.iter().filter(|spacing| is_open(spacing)).count();
    if open * 2 > session.spacings.len() {
        return sender_limited(session, &phases);
    }
    let sets: Vec<(u16, Vec<Joined>)> =
        phases.iter().map(|(octets, spacings)| (*octets, union(estimates(session, spacings, &trust)))).collect();
    let joined: Vec<Vec<Joined>> = sets.iter().map(|(_, set)| set.clone()).collect();
    let usable = joined.iter().filter(|set| !set.is_empty()).count();
    let agreed = intersect(&joined).filter(|common| {
        let ambiguous = common.second.is_some_and(|(phases, _)| phases >= common.phases);
        let share = common.weight as f64 / session.spacings.len() as f64;
        common.phases >= LEAST_PHASES.max((2 * usable).div_ceil(3)) && !ambiguous && share >= LEAST_SHARE
    });
    let outrun = |common: &Common| {
        let (octets, largest) = phases.iter().next_back()?;
        let spans: Vec<f64> = largest.iter().map(|spacing| spacing.gap_ns as f64).collect();
        Some(outruns(f64::midpoint(common.low, common.high), wire_octets(session, *octets), &spans))
    };
    match agreed {
        Some(common) if outrun(&common) == Some(true) => at_least(session),
        Some(common) => state(session, &sets, &common, &trust),
        None => at_least(session),
    }
}

/// Sizes that do not agree still say what the path carries at least. Neighbours of one train meet
/// the same queue, so trains are what can be averaged.
fn at_least(session: &MethodRun) -> Result<Estimate, Reason> {
    let mut trains: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for spacing in &session.spacings {
        let (octets, time) = trains.entry(spacing.train).or_default();
        *octets += wire_octets(session, spacing.ip_octets);
        *time += spacing.gap_ns as f64;
    }
    let per_octet: Vec<f64> = trains.values().map(|(octets, time)| time / octets).collect();
    let rate = mean_bound(1.0, &per_octet).ok_or(Reason::NoAgreement)?;
    let rate = restated(session, rate)?;
    let estimate = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).at_least(Limit::Path);
    Ok(estimate.caveat(Caveat::NotConverged))
}

/// The largest packets have the largest spacings: if stamps fail those they fail all.
fn check_stamps(session: &MethodRun, phases: &Phases, trust: &Trust) -> Result<(), Reason> {
    let Some((octets, largest)) = phases.iter().next_back() else {
        return Err(Reason::NoAnswer);
    };
    let spans: Vec<f64> = largest.iter().map(|spacing| spacing.gap_ns as f64).collect();
    let median = narrows_stat::median(&spans).unwrap_or(0.0);
    let sent: Vec<f64> = largest.iter().map(|spacing| spacing.sent_ns.max(0) as f64).collect();
    let sent = narrows_stat::median(&sent).unwrap_or(0.0);
    let together = spans.iter().filter(|span| **span <= 0.0).count();
    if together as f64 > MOST_TOGETHER * spans.len() as f64 {
        let mean = narrows_stat::mean(&spans).unwrap_or(0.0).max(sent);
        let fine = mean <= 0.0 || trust.resolves(mean);
        return Err(if fine { Reason::ReceiveBatching } else { Reason::StampsTooCoarse });
    }
    let wire = wire_octets(session, *octets);
    let by_host = spans.iter().filter(|span| trust.by_host(wire, **span)).count();
    if by_host as f64 > MOST_TOGETHER * spans.len() as f64 {
        return Err(Reason::ReceiverTooSlow);
    }
    if trust.resolves(median) { Ok(()) } else { Err(Reason::StampsTooCoarse) }
}

/// It came no slower than it left.
fn is_open(spacing: &Spacing) -> bool {
    spacing.sent_ns as f64 > OPEN * spacing.gap_ns as f64
}

fn wire_octets(session: &MethodRun, ip_octets: u16) -> f64 {
    f64::from(session.params.framing.wire_octets(u32::from(ip_octets)))
}

/// Rates on the wire, with what each may be wrong by.
fn estimates(session: &MethodRun, spacings: &[Spacing], trust: &Trust) -> Vec<Interval> {
    let good = spacings.iter().filter(|spacing| spacing.gap_ns > 0 && !is_open(spacing));
    good.filter_map(|spacing| {
        let gap = spacing.gap_ns as f64;
        let blur = trust.blur(gap);
        let point = 8e9 * wire_octets(session, spacing.ip_octets) / gap;
        let half = session.params.tolerance;
        (blur < BLURRED).then(|| Interval {
            low: (point / (1.0 + blur)).min(point * (1.0 - half)),
            point,
            high: (point / (1.0 - blur)).max(point * (1.0 + half)),
        })
    })
    .collect()
}

/// A rate on the wire, for full-size packets at the IP layer.
fn restated(session: &MethodRun, wire_rate: f64) -> Result<BitRate, Reason> {
    let full = session.full_size();
    let share = f64::from(full) / wire_octets(session, full);
    BitRate::from_bps_f64(wire_rate * share).ok_or(Reason::NoAgreement)
}

fn sender_limited(session: &MethodRun, phases: &Phases) -> Result<Estimate, Reason> {
    let (octets, largest) = phases.iter().next_back().ok_or(Reason::NoAnswer)?;
    let spans: Vec<f64> = largest.iter().map(|spacing| spacing.gap_ns as f64).filter(|gap| *gap > 0.0).collect();
    let span = narrows_stat::median(&spans).ok_or(Reason::NoAgreement)?;
    let rate = restated(session, 8e9 * wire_octets(session, *octets) / span)?;
    let estimate = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).at_least(Limit::Sender);
    Ok(estimate.caveat(Caveat::SenderLimited))
}

fn state(session: &MethodRun, sets: &[(u16, Vec<Joined>)], common: &Common, trust: &Trust) -> Result<Estimate, Reason> {
    let inside = |rate: &f64| common.low <= *rate && *rate <= common.high;
    let of_set = |(octets, set): &(u16, Vec<Joined>)| {
        let points: Vec<f64> = set.iter().flat_map(|one| one.points.iter().copied()).filter(inside).collect();
        narrows_stat::median(&points).map(|point| (*octets, point))
    };
    let middle = f64::midpoint(common.low, common.high);
    // The largest packets have the smallest errors.
    let (octets, point) = sets.iter().rev().find_map(of_set).unwrap_or((session.full_size(), middle));
    let wire = wire_octets(session, octets);
    let all: Vec<f64> = session
        .spacings
        .iter()
        .filter(|spacing| spacing.ip_octets == octets)
        .map(|spacing| spacing.gap_ns as f64)
        .collect();
    let point = 8e9 * wire / trust.unrounded(8e9 * wire / point, &all);
    let half = session.params.tolerance;
    let estimate = Estimate::ip_rate(
        Metric::IpCapacity,
        restated(session, point)?,
        restated(session, common.low.min(point * (1.0 - half)))?,
        restated(session, common.high.max(point * (1.0 + half)))?,
    );
    let prompt = prompt_trains(session, point, (common.low, common.high));
    // A queue behind the narrow link that outlasts whole trains lets all of them come at its own
    // rate, and none of them promptly.
    if prompt < LEAST_REPORTED {
        return Err(Reason::NoAgreement);
    }
    let estimate = if prompt < LEAST_PROMPT {
        let mut unsure = estimate.caveat(Caveat::NotConverged);
        unsure.confidence = Confidence::Low;
        unsure
    } else {
        estimate
    };
    let estimate = estimate
        .with("prompt_trains", to_u32(prompt))
        .with("phases", to_u32(sets.len()))
        .with("phases_that_agree", to_u32(common.phases))
        .with("estimates_that_agree", to_u32(common.weight));
    Ok(if reply_share(session) > DECIDES { estimate.at_least(Limit::Path) } else { estimate })
}

/// Trains that came at the answer's rate and too soon to have been drawn together: to bring a train
/// that lasts `S` from `(1 + d) S` to `S` a queue behind the narrow link holds its first packet for
/// `d S`. How long that waited is told against the promptest train.
fn prompt_trains(session: &MethodRun, wire_rate: f64, (low, high): (f64, f64)) -> usize {
    // Of each train its size, its first packet's delay less its time on the narrow link, its
    // dispersion, and its gaps.
    let mut trains: BTreeMap<u32, (u16, f64, f64, usize)> = BTreeMap::new();
    for spacing in &session.spacings {
        let own = 8e9 * wire_octets(session, spacing.ip_octets) / wire_rate;
        let first = (spacing.ip_octets, spacing.delay_ns as f64 - own, 0.0, 0);
        let (.., span, gaps) = trains.entry(spacing.train).or_insert(first);
        *span += spacing.gap_ns as f64;
        *gaps += 1;
    }
    let least = trains.values().map(|one| one.1).fold(f64::INFINITY, f64::min);
    let prompt = trains.values().filter(|(octets, delay, span, gaps)| {
        let rate = 8e9 * wire_octets(session, *octets) * *gaps as f64 / span;
        (low..=high).contains(&rate) && delay - least <= PROMPT * span
    });
    prompt.count()
}

fn caveats(session: &MethodRun) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let share = reply_share(session);
    if share > DECIDES {
        caveats.push(Caveat::AsymmetricLimit);
    } else if let Some(reply_ip_octets) = session.spacings.last().and_then(|last| last.reply_octets)
        && share > 0.0
    {
        caveats.push(Caveat::ReverseInfluence { reply_ip_octets });
    }
    let ratio = |count: f64| count / (session.packets as f64).max(1.0);
    if session.lost > 0 {
        caveats.push(Caveat::Loss { ratio: ratio(session.lost as f64) });
    }
    if session.disordered > 0 {
        caveats.push(Caveat::Reordering { ratio: ratio(f64::from(session.disordered)) });
    }
    caveats
}

/// The largest reply over its probe on an Ethernet wire; zero where the peer's own stamps count.
fn reply_share(session: &MethodRun) -> f64 {
    let wire = |octets: u16| f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
    let share = |spacing: &Spacing| match (spacing.stamped, spacing.reply_octets) {
        (Stamped::Returned, Some(reply)) => wire(reply) / wire(spacing.ip_octets),
        _ => 0.0,
    };
    session.spacings.iter().map(share).fold(0.0, f64::max)
}

fn samples(session: &MethodRun) -> SampleCounts {
    let open = session.spacings.iter().filter(|spacing| is_open(spacing)).count();
    let together = session.spacings.iter().filter(|spacing| spacing.gap_ns == 0).count();
    SampleCounts::default()
        .kept("spacings", session.spacings.len().saturating_sub(open).saturating_sub(together))
        .rejected("open_spacings", open)
        .rejected("one_stamp_spacings", together)
        .rejected("reordered_spacings", session.disordered)
}

fn diagnostics(session: &MethodRun) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("spacings", to_u32(session.spacings.len()));
    let open = session.spacings.iter().filter(|spacing| is_open(spacing)).count();
    diagnostics.insert("open_spacings", to_u32(open));
    if let Some(last) = session.spacings.last() {
        diagnostics.insert("stamped_by_remote", last.stamped == Stamped::PeerKind);
    }
    diagnostics
}

/// More neighbours than this share with one stamp: stamps are no spacing (ours).
const MOST_TOGETHER: f64 = 0.2;
/// A spacing that left at more than this share of the time in which it came was not closed up by
/// any link (ours).
const OPEN: f64 = 0.8;
/// Estimates blurred by more than this say nothing (ours).
const BLURRED: f64 = 0.5;
/// Phases that must agree (ours); two thirds of those that say anything must as well.
const LEAST_PHASES: usize = 2;
/// Share of all estimates that must have the answer in common (ours: the majority).
const LEAST_SHARE: f64 = 0.5;
/// First packets that waited for less of their train's time than this were not held long enough to
/// draw it together by more (ours).
const PROMPT: f64 = 0.2;
/// Such trains that an answer needs to be sure (ours): the promptest of all is always one, and says
/// nothing.
const LEAST_PROMPT: usize = 3;
/// Such trains without which there is no answer (ours): the promptest and one that says the same.
const LEAST_REPORTED: usize = 2;
/// As in `nettimer`: beyond this share of the probe a reply may set the value.
const DECIDES: f64 = 0.25;
