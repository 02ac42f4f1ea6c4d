//! What came back, by hop limit.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use narrows_units::{Framing, Sender, Stamp};

use super::line::{Line, Point, draw, shares};
use super::pace::Pace;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) octets: u16,
    pub(super) reply_octets: u16,
    pub(super) round_trip_ns: i64,
}

/// Which answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    All,
    Even,
    Odd,
}

/// A line through `all`, as sure as halves of the answers agree: each has half as many to be quick
/// among, and they differ by more than the whole is off.
fn surer(all: &[Point], halves: [&[Point]; 2], floor_ns: f64) -> Option<Line> {
    let all = draw(all, floor_ns)?;
    let halves = halves.map(|half| draw(half, floor_ns));
    let apart = match halves {
        [Some(even), Some(odd)] => (even.forward - odd.forward) / 2.0,
        _ => 0.0,
    };
    let known = halves.iter().flatten().map(|half| half.least_se.powi(2) / 2.0).sum::<f64>();
    let scatter = (apart.powi(2) - known).max(0.0).sqrt();
    Some(all.unsure(all.se.hypot(scatter)))
}

/// One hop limit.
#[derive(Debug, Clone)]
pub(super) struct HopTable {
    pub(super) samples: BTreeMap<IpAddr, Vec<Sample>>,
    /// Who answered last, the latest last.
    recent: VecDeque<IpAddr>,
    /// Probes sent, by size; all of them, and those that nobody answered although the router's
    /// limit would have let it.
    pub(super) sent: BTreeMap<u16, u32>,
    pub(super) probes: u32,
    pub(super) answers: u32,
    pub(super) lost: u32,
    /// It was the peer.
    pub(super) remote: bool,
    pub(super) pace: Pace,
    /// Spacing of the answers to two full packets sent at once, ns.
    pub(super) pairs: Vec<i64>,
    pub(super) pairs_sent: u32,
    pub(super) route_changed: bool,
}

/// Answers of each length from which on usual ones are looked at; errors over what stamps alone
/// leave from which on; and the share of the quickest ones' error that theirs must stay below
/// (ours).
const LEAST_USUAL: usize = 10;
const BLURRED: f64 = 3.0;
const NEARER: f64 = 0.7;
/// From the span between the first and the sixth tenth to the standard deviation of one (ours: 0.75
/// of normal, 0.9 of exponential waits).
const SPAN_TO_ERROR: f64 = 0.9;
/// Answers in a row from another router than most so far that make it a new route (ours).
const NEW_ROUTE: usize = 6;

impl HopTable {
    pub(super) fn new() -> Self {
        Self {
            samples: BTreeMap::new(),
            recent: VecDeque::new(),
            sent: BTreeMap::new(),
            probes: 0,
            answers: 0,
            lost: 0,
            remote: false,
            pace: Pace::new(),
            pairs: Vec::new(),
            pairs_sent: 0,
            route_changed: false,
        }
    }

    pub(super) fn sending(&mut self, octets: u16, at: Stamp<Sender>) {
        self.probes = self.probes.saturating_add(1);
        let sent = self.sent.entry(octets).or_default();
        *sent = sent.saturating_add(1);
        self.pace.sent(at);
    }

    pub(super) fn take(&mut self, from: IpAddr, sample: Sample) {
        self.answers = self.answers.saturating_add(1);
        self.samples.entry(from).or_default().push(sample);
        self.recent.push_back(from);
        if self.recent.len() > NEW_ROUTE {
            self.recent.pop_front();
        }
    }

    /// The router that answers most, and its answers.
    pub(super) fn main_router(&self) -> Option<(IpAddr, &[Sample])> {
        let most = self.samples.iter().rev().max_by_key(|(_, samples)| samples.len())?;
        Some((*most.0, most.1))
    }

    /// Another router than most of the time before answers now, and alone.
    pub(super) fn is_rerouted(&self) -> bool {
        let Some(&last) = self.recent.back() else { return false };
        let run = self.recent.len() >= NEW_ROUTE && self.recent.iter().all(|&from| from == last);
        let others = self.samples.iter().filter(|(from, _)| **from != last).map(|(_, samples)| samples.len()).max();
        let own = self.samples.get(&last).map_or(0, Vec::len);
        // As many from the new one as were seen in a row: it had never answered before.
        run && own == NEW_ROUTE && others.unwrap_or(0) >= NEW_ROUTE
    }

    /// Forgets round trips, of a route that is no more.
    pub(super) fn forget(&mut self) {
        self.samples.clear();
        self.recent.clear();
        self.sent.clear();
        self.pairs.clear();
        self.pairs_sent = 0;
    }

    /// Round trips of each pair of lengths, ascending.
    fn cells(&self, half: Half) -> BTreeMap<(u16, u16), Vec<i64>> {
        let mut cells: BTreeMap<(u16, u16), Vec<i64>> = BTreeMap::new();
        let Some((_, samples)) = self.main_router() else {
            return cells;
        };
        let mut counts: BTreeMap<u16, u32> = BTreeMap::new();
        for sample in samples {
            let count = counts.entry(sample.octets).or_default();
            *count += 1;
            let counted = match half {
                Half::All => true,
                Half::Even => count.is_multiple_of(2),
                Half::Odd => !count.is_multiple_of(2),
            };
            if counted {
                let cell = cells.entry((sample.octets, sample.reply_octets)).or_default();
                cell.push(sample.round_trip_ns);
            }
        }
        for times in cells.values_mut() {
            times.sort_unstable();
        }
        cells
    }

    /// Lengths with what their quickest answers take.
    pub(super) fn points(&self, half: Half, framing: Framing, floor_ns: f64) -> Vec<Point> {
        let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
        let quick = self.cells(half).into_iter().filter_map(|((octets, reply), times)| {
            let least = *times.first()? as f64;
            // A steady clock that ticks gives one of two readings for one time: their mean tells
            // what lies between.
            let near: Vec<f64> =
                times.iter().map(|&time| time as f64).take_while(|time| *time <= least + 1.01 * floor_ns).collect();
            Some(Point {
                forward: wire(octets),
                reverse: wire(reply),
                quick_ns: near.iter().sum::<f64>() / near.len() as f64,
                quick: u32::try_from(near.len()).unwrap_or(u32::MAX),
                error_ns: None,
            })
        });
        quick.collect()
    }

    /// What answers to probes of each length have in the slope of the forward direction.
    pub(super) fn shares(&self, framing: Framing, floor_ns: f64) -> BTreeMap<u16, f64> {
        let points = self.points(Half::All, framing, floor_ns);
        let octets = self.cells(Half::All).into_keys().map(|(octets, _)| octets);
        octets.zip(shares(&points)).collect()
    }

    /// Lengths with what their usual answers take: the mean of the second to the sixth tenth. Waits
    /// have nothing to do with a packet's own length, so that these lie on a line with the same
    /// slopes. `None` where some length has too few.
    fn usual_points(&self, half: Half, framing: Framing, floor_ns: f64) -> Option<Vec<Point>> {
        let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
        let cells = self.cells(half);
        let least = if half == Half::All { LEAST_USUAL } else { LEAST_USUAL / 2 };
        if cells.values().any(|times| times.len() < least) {
            return None;
        }
        let usual = |times: &[i64]| {
            let (from, to) = (times.len() / 10, (6 * times.len()).div_ceil(10));
            times[from..to].to_vec()
        };
        let spans: Vec<f64> = cells
            .values()
            .filter_map(|times| {
                let usual = usual(times);
                Some(usual.last()?.saturating_sub(*usual.first()?) as f64)
            })
            .collect();
        let span = narrows_stat::median(&spans)?.max(floor_ns);
        let points = cells.iter().map(|((octets, reply), times)| {
            let usual = usual(times);
            Point {
                forward: wire(*octets),
                reverse: wire(*reply),
                quick_ns: usual.iter().map(|&time| time as f64).sum::<f64>() / usual.len().max(1) as f64,
                quick: u32::try_from(usual.len()).unwrap_or(u32::MAX),
                error_ns: Some(SPAN_TO_ERROR * span / (times.len() as f64).sqrt()),
            }
        });
        Some(points.collect())
    }

    /// The line of the quickest answers, or of the usual ones where these are nearer to one: where
    /// many things each take their time now and then, hardly any answer meets none of them.
    pub(super) fn line(&self, framing: Framing, floor_ns: f64) -> Option<Line> {
        let quick = |half| self.points(half, framing, floor_ns);
        let least = surer(&quick(Half::All), [&quick(Half::Even), &quick(Half::Odd)], floor_ns)?;
        if least.se < BLURRED * least.least_se {
            return Some(least);
        }
        let usual = |half| self.usual_points(half, framing, floor_ns);
        let (Some(all), Some(even), Some(odd)) = (usual(Half::All), usual(Half::Even), usual(Half::Odd)) else {
            return Some(least);
        };
        let usual = surer(&all, [&even, &odd], floor_ns).filter(|usual| usual.se < NEARER * least.se);
        let Some(usual) = usual else { return Some(least) };
        // The line of what an empty path takes is as steep.
        let below: Vec<f64> = quick(Half::All)
            .iter()
            .map(|point| point.quick_ns - usual.forward * point.forward - usual.reverse * point.reverse)
            .collect();
        Some(Line {
            forward: usual.forward,
            se: usual.se,
            reverse: usual.reverse,
            both: usual.both,
            intercept_ns: narrows_stat::median(&below)?,
            ..least
        })
    }

    /// Answers of a size that lie within `near_ns` of the line.
    pub(super) fn confirmed(&self, octets: u16, line: &Line, framing: Framing, near_ns: f64) -> u32 {
        let Some((_, samples)) = self.main_router() else {
            return 0;
        };
        let of_size = samples.iter().filter(|sample| sample.octets == octets);
        let near = of_size.filter(|sample| Self::above(sample, line, framing) <= near_ns);
        u32::try_from(near.count()).unwrap_or(u32::MAX)
    }

    /// How far an answer lies above the line, ns.
    pub(super) fn above(sample: &Sample, line: &Line, framing: Framing) -> f64 {
        let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
        sample.round_trip_ns as f64 - line.at(wire(sample.octets), wire(sample.reply_octets))
    }

    /// Waits of the main router's answers above that line, ns.
    pub(super) fn waits(&self, line: &Line, framing: Framing) -> Option<Vec<f64>> {
        let (_, samples) = self.main_router()?;
        Some(samples.iter().map(|sample| Self::above(sample, line, framing)).collect())
    }

    pub(super) fn least_ns(&self, octets: u16) -> Option<i64> {
        let (_, samples) = self.main_router()?;
        let of_size = samples.iter().filter(|sample| sample.octets == octets);
        of_size.map(|sample| sample.round_trip_ns).min()
    }

    /// Answers of one length came to probes of one length: what a rule gives.
    pub(super) fn quotes_by_rule(&self) -> bool {
        let Some((_, samples)) = self.main_router() else {
            return true;
        };
        let mut lengths: BTreeMap<u16, u16> = BTreeMap::new();
        let same = samples
            .iter()
            .all(|sample| *lengths.entry(sample.octets).or_insert(sample.reply_octets) == sample.reply_octets);
        let mut last = 0;
        let grows = lengths.iter().all(|(_, &reply)| {
            let fine = reply >= last;
            last = reply;
            fine
        });
        // Headers of IPv6 and ICMP, and extensions of some hundred octets (RFC 4884), are the most
        // there can be on top.
        let fits = lengths.iter().all(|(&octets, &reply)| reply <= octets.saturating_add(700));
        same && grows && fits
    }
}
