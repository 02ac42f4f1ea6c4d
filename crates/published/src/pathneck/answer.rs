//! From runs to choke points and bounds.

use narrows_units::{BitRate, Metric, nanos_f64, to_u32};

use super::session::{MethodRun, Run};
use super::steps::{chokes, confidence};
use crate::conclusion;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Reason};

/// What the runs on one route say of a hop.
#[derive(Debug, Clone, PartialEq)]
struct Hop {
    /// Counted from 1.
    number: usize,
    /// Median gap, ns.
    gap_ns: f64,
    /// Rate of what passed there, bit/s of full packets at the IP layer.
    rate: BitRate,
    /// Share of the runs in which it was a choke point, and the median of its confidence in those.
    detected: f64,
    confidence: f64,
    /// By how much the rate falls here, of the medians.
    fall: f64,
}

impl Hop {
    fn chokes(&self) -> bool {
        self.detected >= DETECTED
    }
}

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let route = dominant(&session.runs);
    let mut caveats = Vec::new();
    if route.len() < session.runs.len() {
        caveats.push(Caveat::VariableRate);
    }
    conclusion::conclude(judge(session, &route), caveats.into(), stopped)
}

/// The runs that agree with most others on who answered at which hop; silence agrees with
/// everything.
fn dominant(runs: &[Run]) -> Vec<&Run> {
    let agree = |one: &Run, other: &Run| {
        let both = one.hops.iter().zip(&other.hops);
        both.filter_map(|(one, other)| one.from.zip(other.from)).all(|(one, other)| one == other)
    };
    let with = |one: &Run| -> Vec<&Run> { runs.iter().filter(|other| agree(one, other)).collect() };
    let groups = runs.iter().map(with);
    groups.fold(Vec::new(), |best, group| if group.len() > best.len() { group } else { best })
}

fn judge(session: &MethodRun, route: &[&Run]) -> Result<Estimate, Reason> {
    let gaps = |run: &&&Run| run.hops.iter().any(|pass| pass.gap_ns.is_some());
    let usable: Vec<&Run> = route.iter().filter(gaps).copied().collect();
    if usable.is_empty() {
        let passes = || session.runs.iter().flat_map(|run| &run.hops);
        let answered = passes().any(|pass| pass.remote);
        return Err(if passes().any(|pass| pass.batched) {
            Reason::ReceiveBatching
        } else if answered {
            Reason::TooFewSamples { samples: 0 }
        } else {
            Reason::NoAnswer
        });
    }
    if usable.len() < LEAST_RUNS {
        return Err(Reason::TooFewSamples { samples: u64::try_from(usable.len()).unwrap_or(u64::MAX) });
    }
    let hops = hops(session, &usable);
    let last = hops.last().ok_or(Reason::NotConverged)?;
    let worst = hops.iter().filter(|hop| hop.chokes()).min_by_key(|hop| hop.rate);
    let available = |rate: BitRate| Estimate::ip_rate(Metric::AvailableIpCapacity, rate, rate, rate);
    let mut estimate = match worst {
        Some(worst) => available(worst.rate)
            .at_most()
            .with("bottleneck_hop", to_u32(worst.number))
            .with("bottleneck_confidence", worst.confidence)
            .with("bottleneck_detected", worst.detected),
        // Nothing made the train longer: all of the path has as much to spare as was sent.
        None if hops.iter().all(|hop| hop.fall <= STEADY) => {
            available(last.rate).at_least(Limit::Sender).caveat(Caveat::SenderLimited)
        }
        None => return Err(Reason::NotConverged),
    };
    let points: Vec<f64> = hops.iter().filter(|hop| hop.chokes()).map(|hop| to_u32(hop.number).into()).collect();
    let passes = usable.iter().map(|run| run.hops.len()).max().unwrap_or(0);
    estimate = estimate
        .with("runs", to_u32(usable.len()))
        .with("hops", to_u32(passes))
        .with("silent_hops", to_u32(passes.saturating_sub(hops.len())))
        .with("choke_hops", points)
        .with("gaps_ns", hops.iter().map(|hop| hop.gap_ns).collect::<Vec<f64>>());
    estimate.confidence = Confidence::Low;
    estimate.also = also(&hops);
    // No link lets a train pass faster than it is.
    let whole = Estimate::ip_rate(Metric::IpCapacity, last.rate, last.rate, last.rate);
    estimate.also.push(whole.at_least(Limit::Path));
    Ok(estimate)
}

/// Bounds of what is available, and of capacity, at each hop.
fn also(hops: &[Hop]) -> Vec<Estimate> {
    let mut also = Vec::new();
    for hop in hops {
        let Ok(number) = u16::try_from(hop.number) else {
            continue;
        };
        let available = Estimate::ip_rate(Metric::AvailableIpCapacity, hop.rate, hop.rate, hop.rate);
        let bound = if hop.chokes() {
            Some(available.at_most())
        } else if (0.0..=STEADY).contains(&hop.fall.max(0.0)) && hop.fall >= -STEADY {
            Some(available.at_least(Limit::Sender))
        } else {
            None
        };
        if let Some(bound) = bound {
            let bound = bound.with("gap_ns", hop.gap_ns).with("detected", hop.detected);
            also.push(bound.with("choke_confidence", hop.confidence).at_hop(number));
        }
        let capacity = Estimate::ip_rate(Metric::IpCapacity, hop.rate, hop.rate, hop.rate);
        also.push(capacity.at_least(Limit::Path).at_hop(number));
    }
    also
}

/// What is known of each hop that gave gaps in half of the runs.
fn hops(session: &MethodRun, runs: &[&Run]) -> Vec<Hop> {
    let step_ns = nanos_f64(session.params.step);
    let found: Vec<Vec<(usize, f64)>> = runs.iter().map(|run| of_run(run, step_ns, session)).collect();
    let most = runs.iter().map(|run| run.hops.len()).max().unwrap_or(0);
    let sent: Vec<f64> = runs.iter().map(|run| run.sent_ns).collect();
    let mut before = rate(session, 1, narrows_stat::median(&sent).unwrap_or(0.0));
    let mut hops = Vec::new();
    for hop in 1..=most {
        let gaps: Vec<f64> = runs.iter().filter_map(|run| run.hops.get(hop - 1)?.gap_ns).collect();
        let (Some(gap_ns), true) = (narrows_stat::median(&gaps), 2 * gaps.len() >= runs.len()) else {
            continue;
        };
        let Some(rate) = rate(session, hop, gap_ns) else {
            continue;
        };
        let seen: Vec<f64> = found
            .iter()
            .flatten()
            .filter(|(at, confidence)| *at == hop && *confidence >= LEAST_CONFIDENCE)
            .map(|(_, confidence)| *confidence)
            .collect();
        hops.push(Hop {
            number: hop,
            gap_ns,
            rate,
            detected: seen.len() as f64 / runs.len() as f64,
            confidence: narrows_stat::median(&seen).unwrap_or(0.0),
            fall: before.map_or(1.0, |before| 1.0 - rate.as_f64() / before.as_f64()),
        });
        before = Some(rate);
    }
    hops
}

/// Choke points of one run: hops from 1, and confidence.
fn of_run(run: &Run, step_ns: f64, session: &MethodRun) -> Vec<(usize, f64)> {
    let with_gaps = (1..).zip(&run.hops).filter_map(|(hop, pass)| Some((hop, pass.gap_ns?)));
    let (numbers, gaps): (Vec<usize>, Vec<f64>) = with_gaps.unzip();
    let as_tool = session.params.as_tool;
    let mut found: Vec<(usize, f64)> = chokes(&gaps, step_ns, as_tool)
        .iter()
        .filter_map(|choke| Some((*numbers.get(choke.at)?, choke.confidence)))
        .collect();
    if let (Some(&first), Some(&gap)) = (numbers.first(), gaps.first())
        && (as_tool || gap - run.sent_ns > step_ns)
    {
        let own = if as_tool { 1.0 } else { confidence(run.sent_ns, gap) };
        found.insert(0, (first, own));
    }
    found
}

/// Rate of what passes a hop between head and tail, for full packets at the IP layer; the tool
/// counts the load alone.
fn rate(session: &MethodRun, hop: usize, gap_ns: f64) -> Option<BitRate> {
    let params = &session.params;
    let wire = |octets: u16| f64::from(params.framing.wire_octets(u32::from(octets)));
    let load = f64::from(params.load);
    if params.as_tool {
        return BitRate::from_bps_f64(8e9 * load * f64::from(session.load_octets) / gap_ns);
    }
    // Of the heads all but the first that is left, of the tails all that are left.
    let left = usize::from(params.hops).saturating_sub(hop - 1);
    let ends = f64::from(u32::try_from((2 * left).saturating_sub(1)).unwrap_or(0));
    let full = session.facts.as_ref().map_or(1500, |facts| facts.path_mtu).max(64);
    let octets = load * wire(session.load_octets) + ends * wire(session.small);
    BitRate::from_bps_f64(8e9 * octets / gap_ns * f64::from(full) / wire(full))
}

/// Runs on one route (tool).
const LEAST_RUNS: usize = 5;
/// Confidence that counts, and share of runs (tool).
const LEAST_CONFIDENCE: f64 = 0.1;
const DETECTED: f64 = 0.5;
/// A fall of the rate by less is none (ours).
const STEADY: f64 = 0.02;
