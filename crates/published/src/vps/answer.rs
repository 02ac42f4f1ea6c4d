//! From slopes to hops.

use std::time::Duration;

use narrows_units::{BitRate, Framing, Metric, nanos_f64, to_u32};

use super::fit::{Assumed, LEAST_SIZES, Point, Slope, slope};
use super::session::{AGREE, MethodRun};
use super::settings::{Draw, Regress};
use super::table::{Cell, Half, HopTable};
use crate::conclusion;
use crate::tailgating::{measured, of_path};
use narrows_probe::PathFacts;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, HopFinding, Limit, Outcome, PathFinding, Reason};

/// The line of one hop limit, from all probes and from each half of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) all: Slope,
    /// Even and odd probes; `None` where one of them has too few sizes.
    pub(crate) halves: Option<[Slope; 2]>,
}

impl Drawn {
    fn slopes(&self) -> Option<[f64; 2]> {
        Some(self.halves?.map(|slope| slope.forward))
    }
}

/// How lines are drawn and read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawing<'a> {
    pub(crate) facts: Option<&'a PathFacts>,
    pub(crate) framing: Framing,
    pub(crate) regress: Regress,
    pub(crate) draw: Draw,
    /// Intervals from even and odd probes, not from standard errors.
    pub(crate) halves: bool,
}

impl Drawing<'_> {
    fn of(session: &MethodRun) -> Drawing<'_> {
        let settings = &session.settings;
        Drawing {
            facts: session.facts.as_ref(),
            framing: settings.framing,
            regress: settings.regress,
            draw: settings.draw,
            halves: settings.halves,
        }
    }

    /// A size as a point; `None` if it has no answer.
    pub(crate) fn point(&self, cell: &Cell, half: Half) -> Option<Point> {
        let wire = |octets: u16| f64::from(self.framing.wire_octets(u32::from(octets)));
        Some(Point {
            forward: wire(cell.octets),
            reverse: wire(cell.reply_octets),
            least_ns: cell.least_ns(half)? as f64,
        })
    }

    /// The line through points.
    pub(crate) fn through(&self, points: &[Point]) -> Option<Slope> {
        slope(points, self.regress, self.draw, self.floor_ns())
    }

    /// What a least round trip is off by whatever it is made of: a tick, or half of what one stamp
    /// is.
    pub(crate) fn floor_ns(&self) -> f64 {
        self.facts.map_or(1.0, |facts| {
            nanos_f64(facts.sender.clock_resolution).max(nanos_f64(facts.sender.stamp_error) / 2.0).max(1.0)
        })
    }

    /// IP octets of the packets for which rates are stated.
    fn full(&self) -> u16 {
        self.facts.map_or(1500, |facts| facts.path_mtu).max(64)
    }

    fn hop(&self, hop: &HopTable) -> Option<Drawn> {
        let of = |half| {
            let points: Vec<Point> = hop.cells.iter().filter_map(|cell| self.point(cell, half)).collect();
            self.through(&points)
        };
        let all = of(Half::Both)?;
        let [even, odd] = [Half::Even, Half::Odd].map(of);
        let halves = even.zip(odd).map(|(even, odd)| [even, odd]);
        Some(Drawn { all, halves })
    }
}

/// The lines of a path's hops, each drawn once.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    pub(crate) drawing: Drawing<'a>,
    /// By hop limit, from 1.
    pub(crate) hops: &'a [HopTable],
    /// One per hop.
    pub(crate) drawn: Vec<Option<Drawn>>,
}

/// What one hop adds to the one before it that is known.
struct Added {
    /// Counted from 1.
    hop: usize,
    /// The hop before it, zero: the sender.
    after: usize,
    /// ns per octet, and its standard error.
    slope: f64,
    se: f64,
    /// From the halves: ns per octet, ascending.
    halves: Option<[f64; 4]>,
}

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    Lines::of(session).conclude(stopped)
}

impl<'a> Lines<'a> {
    pub(super) fn of(session: &'a MethodRun) -> Self {
        let drawing = Drawing::of(session);
        Self { drawing, hops: &session.hops, drawn: session.hops.iter().map(|hop| drawing.hop(hop)).collect() }
    }

    /// The answer; `stopped` if it was not the method's own end.
    pub(crate) fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        let caveats = caveats(self);
        conclusion::conclude(judge(self), caveats.into(), stopped)
    }

    /// Whether even and odd probes of the last hop tell rates that differ by less than a tenth of
    /// their middle (clink's rule).
    pub(super) fn halves_agree(&self) -> bool {
        let last = self.hops.len();
        let added = added(self);
        let Some(of_last) = added.iter().find(|added| added.hop == last) else {
            return false;
        };
        of_last.halves.is_some_and(|slopes| {
            let middle = f64::midpoint(slopes[1], slopes[2]);
            middle > 0.0 && slopes[3] - slopes[0] <= AGREE * middle
        })
    }

    /// Sizes of the last hop whose least round trip is above the line.
    pub(super) fn above_line(&self) -> Vec<usize> {
        let (Some(hop), Some(Some(drawn))) = (self.hops.last(), self.drawn.last()) else {
            return Vec::new();
        };
        let line = drawn.all;
        let above = |cell: &Cell| {
            let Some(point) = self.drawing.point(cell, Half::Both) else {
                return true;
            };
            point.least_ns > line.intercept_ns + line.forward * point.forward + line.reverse * point.reverse
        };
        let cells = hop.cells.iter().enumerate();
        cells.filter(|(_, cell)| above(cell)).map(|(index, _)| index).collect()
    }
}

/// What each hop that answered adds; hops that take less than the one before them are left out
/// (their router was slow).
fn added(lines: &Lines<'_>) -> Vec<Added> {
    let mut known: Vec<(usize, Drawn)> = Vec::new();
    for (hop, drawn) in (1..).zip(&lines.drawn) {
        let Some(drawn) = *drawn else { continue };
        // What a router needs per octet to make its answer is not the link's, and is not there at
        // the next.
        while let Some((_, before)) = known.last()
            && before.all.forward - drawn.all.forward > 3.0 * before.all.se.hypot(drawn.all.se)
        {
            known.pop();
        }
        known.push((hop, drawn));
    }
    let mut added = Vec::new();
    let mut before: Option<(usize, Drawn)> = None;
    for (hop, drawn) in known {
        let (after, slope, se) = before.map_or((0, drawn.all.forward, drawn.all.se), |(at, before)| {
            (at, drawn.all.forward - before.all.forward, drawn.all.se.hypot(before.all.se))
        });
        added.push(Added {
            hop,
            after,
            slope,
            se,
            halves: crossed(drawn.halves, before.map_or(Some([0.0; 2]), |(_, before)| before.slopes())),
        });
        before = Some((hop, drawn));
    }
    added
}

/// The four differences between halves, ascending; in front of the first hop nothing takes time.
fn crossed(halves: Option<[Slope; 2]>, before: Option<[f64; 2]>) -> Option<[f64; 4]> {
    let [even, odd] = halves?.map(|slope| slope.forward);
    let [even_before, odd_before] = before?;
    let mut four = [even - even_before, even - odd_before, odd - even_before, odd - odd_before];
    four.sort_by(f64::total_cmp);
    Some(four)
}

fn judge(lines: &Lines<'_>) -> Result<Estimate, Reason> {
    let answered: u32 = lines.hops.iter().map(HopTable::answered).sum();
    if answered == 0 {
        return Err(Reason::NoAnswer);
    }
    let added = added(lines);
    let hops: Vec<Estimate> = added.iter().filter_map(|added| of_hop(lines, added)).collect();
    let Some(slowest) = hops.iter().filter(measured).min_by_key(|hop| hop.in_unit().value) else {
        let sizes = lines.hops.iter().map(|hop| hop.cells.iter().filter(|cell| cell.answered > 0).count());
        let few = sizes.max().unwrap_or(0) < LEAST_SIZES;
        return Err(if few { Reason::TooFewSamples { samples: answered.into() } } else { Reason::StampsTooCoarse });
    };
    let mut estimate = of_path(&hops, slowest).with("hops", to_u32(lines.hops.len())).with("answers", answered);
    // Switches inside a hop add their own time, and nothing here shows them.
    estimate.confidence = Confidence::Low;
    let unknown = lines.hops.len() - added.iter().filter(|added| added.hop - added.after == 1).count();
    if unknown > 0 || !lines.hops.last().is_some_and(|hop| hop.remote) {
        estimate = estimate.with("unknown_hops", to_u32(unknown)).caveat(Caveat::NotConverged);
    }
    let path = PathFinding { narrow_hop: slowest.hop(), ..PathFinding::default() };
    estimate.also = hops;
    Ok(path.put(estimate))
}

/// A hop's rate for full-size packets at the IP layer; bounded below where it does not stand out,
/// or is several.
fn of_hop(lines: &Lines<'_>, added: &Added) -> Option<Estimate> {
    let full = lines.drawing.full();
    let wire = f64::from(lines.drawing.framing.wire_octets(u32::from(full)));
    let rate = |slope: f64| BitRate::from_bps_f64(8e9 * f64::from(full) / wire / slope).filter(|_| slope > 0.0);
    let table = lines.hops.get(added.hop - 1)?;
    let (least, most) = match added.halves {
        // Both halves may be off alike.
        Some(four) if lines.drawing.halves => (four[0] - added.se, four[3] + added.se),
        _ => (added.slope - NINETY * added.se, added.slope + NINETY * added.se),
    };
    let stands_out = added.slope > 2.0 * added.se && least > 0.0;
    let mut estimate = if stands_out && added.hop - added.after == 1 {
        Estimate::ip_rate(Metric::IpCapacity, rate(added.slope)?, rate(most)?, rate(least)?)
    } else {
        // No slower than if all of this were its own.
        let value = rate(most.max(added.slope + 2.0 * added.se))?;
        Estimate::ip_rate(Metric::IpCapacity, value, value, value).at_least(Limit::Clock)
    };
    estimate.confidence = Confidence::Low;
    if table.several_routers() {
        estimate = estimate.caveat(Caveat::VariableRate);
    }
    let least = table.cells.iter().filter_map(|cell| cell.least_ns(Half::Both)).min();
    let hop = HopFinding {
        ttl: u16::try_from(added.hop).ok()?,
        probes: table.sent().into(),
        answers: table.answered().into(),
        queueing_ns: table.queueing_ns().map(f64::round),
        round_trip_ns: least.map(|least| least as f64),
        ..HopFinding::default()
    };
    Some(hop.put(estimate.with("ns_per_octet", added.slope)))
}

fn caveats(lines: &Lines<'_>) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let assumed = |how: Assumed| lines.drawn.iter().flatten().any(|drawn| drawn.all.assumed == how);
    if assumed(Assumed::Alike) {
        caveats.push(Caveat::AsymmetricLimit);
    }
    if lines.drawing.regress == Regress::Probe && assumed(Assumed::Free) {
        let cells = lines.hops.iter().flat_map(|hop| &hop.cells);
        let reply_ip_octets = cells.map(|cell| cell.reply_octets).max().unwrap_or(0);
        caveats.push(Caveat::ReverseInfluence { reply_ip_octets });
    }
    let heard: Vec<&HopTable> = lines.hops.iter().filter(|hop| hop.answered() > 0).collect();
    let sent: u32 = heard.iter().map(|hop| hop.sent()).sum();
    let answered: u32 = heard.iter().map(|hop| hop.answered()).sum();
    if answered < sent {
        let ratio = f64::from(sent - answered) / f64::from(sent);
        caveats.push(Caveat::Loss { ratio });
    }
    if limited(&heard) {
        caveats.push(Caveat::AnswersLimited { burst: 1, every: Duration::from_secs(1) });
    }
    caveats
}

/// A router that answers some and then few, while those behind it answer all: it limits its
/// answers.
fn limited(heard: &[&HopTable]) -> bool {
    heard
        .windows(2)
        .any(|pair| 10 * pair[0].answered() < 7 * pair[0].sent() && 10 * pair[1].answered() > 9 * pair[1].sent())
}

/// Of a normal distribution, either side: 90 %.
const NINETY: f64 = 1.645;
