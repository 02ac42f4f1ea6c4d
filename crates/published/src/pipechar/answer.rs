//! From trains to hops.

use std::time::Duration;

use narrows_units::{BitRate, Metric, nanos_f64, to_u32};

use super::session::{HopTrains, MethodRun};
use super::trains::shortest_mode;
use crate::conclusion;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, PathFinding, Reason};

/// Why a hop's rate is only a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    /// The sender, or the stamps, went no further.
    Sender,
    Clock,
    /// The links in front spaced the train, or the reverse direction its answers, or hops in
    /// between are unknown.
    Path,
}

/// What is known of a hop; rates in packets per ns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hop {
    number: usize,
    rate: f64,
    low: f64,
    high: f64,
    mean: f64,
    only: Option<Only>,
    load: Option<f64>,
    reply_octets: u16,
}

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let hops = hops(session);
    let caveats = caveats(session, &hops);
    conclusion::conclude(judge(session, &hops), caveats.into(), stopped)
}

/// Nine in ten answered.
fn answers(hop: &HopTrains) -> bool {
    10 * u64::from(hop.answered) >= 9 * u64::from(hop.asked) && hop.answered > 0
}

fn hops(session: &MethodRun) -> Vec<Hop> {
    let floor = session.facts.as_ref().map_or(1.0, |facts| {
        nanos_f64(facts.sender.clock_resolution)
            .max(nanos_f64(facts.sender.stamp_error))
            .max(nanos_f64(facts.receiver.clock_resolution))
            .max(1.0)
    });
    let sent = narrows_stat::median(&session.departures).unwrap_or(f64::INFINITY);
    let mut hops: Vec<Hop> = Vec::new();
    for (number, trains) in (1..).zip(&session.hops).filter(|(_, trains)| answers(trains)) {
        let (Some((found, packets)), Some(mean)) =
            (fastest(session, trains, floor), narrows_stat::median(&trains.means))
        else {
            continue;
        };
        let (rate, low, high) = (1.0 / found.0, 1.0 / found.2, 1.0 / found.1);
        // Whole trains never come faster than they did: those before answered slowly.
        for before in &mut hops {
            if mean > before.mean * SLOWER {
                before.only = Some(Only::Path);
                (before.rate, before.mean, before.load) = (before.rate.min(rate), mean, None);
            }
        }
        let known = hops.last().map_or(0, |hop| hop.number);
        // What parts of trains already were as fast as.
        let pushed = hops.last().map_or(f64::INFINITY, |hop| hop.rate);
        let in_front = hops.iter().map(|hop| hop.rate).fold(f64::INFINITY, f64::min);
        let came = hops.last().map_or(sent, |hop| hop.mean);
        // Answers on a reverse direction no faster than the forward direction.
        let reverse = in_front.min(rate) * wire(session, session.octets) / wire(session, trains.reply_octets);
        let alike = |other: f64| rate >= BESIDE * other && rate <= other / BESIDE;
        let only = if f64::from(packets - 1) / rate < TICKS * floor {
            Some(Only::Clock)
        } else if rate >= BESIDE * sent {
            Some(Only::Sender)
        } else if number - known > 1
            || alike(in_front)
            || alike(pushed)
            || (trains.reply_octets > 0 && rate > in_front && rate >= HIDDEN * reverse)
        {
            Some(Only::Path)
        } else {
            None
        };
        let others = rate * came / mean - came;
        let load =
            (only.is_none() && came.is_finite() && mean < BESIDE * came).then(|| (others / rate).clamp(0.0, 1.0));
        hops.push(Hop { number, rate, low, high, mean, only, load, reply_octets: trains.reply_octets });
    }
    hops
}

/// The shortest time per packet that many parts agree on, least and largest with it, and of how
/// many packets those parts are: pairs where they are pushed together more than longer parts, and
/// stamps tell.
fn fastest(session: &MethodRun, trains: &HopTrains, floor: f64) -> Option<((f64, f64, f64), u16)> {
    let least = session.params.least;
    let apart = f64::from(least.saturating_sub(1).max(1));
    let long = shortest_mode(&trains.parts, 2.0 * floor / apart).map(|mode| (mode, least));
    let short = shortest_mode(&trains.pairs, 2.0 * floor).filter(|mode| mode.0 >= TICKS * floor).map(|mode| (mode, 2));
    match (long, short) {
        (Some(long), Some(short)) if short.0.0 < (1.0 - PUSHED) * long.0.0 => Some(short),
        (long, short) => long.or(short),
    }
}

fn wire(session: &MethodRun, octets: u16) -> f64 {
    f64::from(session.params.framing.wire_octets(u32::from(octets)))
}

fn judge(session: &MethodRun, hops: &[Hop]) -> Result<Estimate, Reason> {
    let narrow = hops.iter().min_by(|one, other| one.rate.total_cmp(&other.rate));
    let Some(narrow) = narrow else {
        let heard: u64 = session.hops.iter().map(|hop| u64::from(hop.answered)).sum();
        let asked: u64 = session.hops.iter().map(|hop| u64::from(hop.asked)).sum();
        return Err(if heard == 0 {
            Reason::NoAnswer
        } else if session.hops.iter().any(answers) {
            Reason::NoAgreement
        } else {
            Reason::TooMuchLoss { lost: asked - heard, sent: asked }
        });
    };
    if hops.iter().all(|hop| hop.only == Some(Only::Clock)) {
        return Err(Reason::StampsTooCoarse);
    }
    // That the narrow link is one of several does not make the path any faster.
    let only = narrow.only.filter(|only| *only != Only::Path);
    let path = Hop { only, ..*narrow };
    let mut estimate = of_hop(session, &path).ok_or(Reason::NoAgreement)?;
    estimate = estimate.with("hops", to_u32(session.hops.len())).with("packets", u32::from(session.params.packets));
    let path = PathFinding { narrow_hop: u16::try_from(narrow.number).ok(), ..PathFinding::default() };
    estimate = path.put(estimate);
    let last = session.hops.last().is_some_and(|hop| hop.remote);
    let unknown = session.hops.len() - hops.len();
    if unknown > 0 || !last {
        estimate = estimate.with("unknown_hops", to_u32(unknown)).caveat(Caveat::NotConverged);
    }
    estimate.also = hops.iter().flat_map(|hop| also(session, hop)).collect();
    Ok(estimate)
}

/// The hop's capacity for full-size packets at the IP layer.
fn of_hop(session: &MethodRun, hop: &Hop) -> Option<Estimate> {
    let rate = |packets: f64| as_rate(session, packets);
    let margin = |packets: f64, by: f64| rate(packets * by);
    let value = rate(hop.rate)?;
    let mut estimate = match hop.only {
        None => Estimate::ip_rate(
            Metric::IpCapacity,
            value,
            margin(hop.low, 1.0 - MARGIN)?,
            margin(hop.high, 1.0 + MARGIN)?,
        ),
        Some(only) => Estimate::ip_rate(Metric::IpCapacity, value, value, value).at_least(match only {
            Only::Sender => Limit::Sender,
            Only::Clock => Limit::Clock,
            Only::Path => Limit::Path,
        }),
    };
    estimate.confidence = Confidence::Low;
    Some(estimate)
}

fn also(session: &MethodRun, hop: &Hop) -> Vec<Estimate> {
    let Ok(number) = u16::try_from(hop.number) else {
        return Vec::new();
    };
    let mut also: Vec<Estimate> = of_hop(session, hop).into_iter().collect();
    if let Some(load) = hop.load {
        also = also.into_iter().map(|own| own.with("load_ratio", load)).collect();
        // The link passed the train more slowly than it came: it has no more to spare.
        let left = as_rate(session, hop.mean).map(|rate| {
            let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, rate, rate, rate);
            bound.at_most()
        });
        also.extend(left);
    }
    also.into_iter().map(|own| own.at_hop(number)).collect()
}

fn as_rate(session: &MethodRun, packets_per_ns: f64) -> Option<BitRate> {
    let full = session.facts.as_ref().map_or(1500, |facts| facts.path_mtu).max(64);
    let bits = 8e9 * wire(session, session.octets) * f64::from(full) / wire(session, full);
    BitRate::from_bps_f64(bits * packets_per_ns)
}

fn caveats(session: &MethodRun, hops: &[Hop]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if session.hops.iter().any(|hop| hop.answered > 0 && !answers(hop)) {
        caveats.push(Caveat::AnswersLimited { burst: 1, every: Duration::from_secs(1) });
    }
    if session.mixed > 0 {
        caveats.push(Caveat::VariableRate);
    }
    if hops.iter().any(|hop| hop.only == Some(Only::Sender)) {
        caveats.push(Caveat::SenderLimited);
    }
    let reply = hops.iter().map(|hop| hop.reply_octets).max().unwrap_or(0);
    if reply > 0 {
        caveats.push(Caveat::ReverseInfluence { reply_ip_octets: reply });
    }
    caveats
}

/// Pairs are closer than longer parts if by more than this (ours).
const PUSHED: f64 = 0.03;
/// A part's time in ticks or errors of stamps, at least (ours).
const TICKS: f64 = 10.0;
/// Rates above this share of another may be the other's doing (ours).
const BESIDE: f64 = 0.95;
/// The same of what a reverse direction lets through.
const HIDDEN: f64 = 0.9;
/// Means of whole trains further on that are higher by this factor say that a hop was slow to
/// answer (ours).
const SLOWER: f64 = 1.1;
/// Beyond what reproducible rates differ by (ours).
const MARGIN: f64 = 0.01;
