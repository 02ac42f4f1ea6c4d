//! What lines of hops add to one another.

use super::line::Line;
use super::plan::STANDS_OUT;
use super::route::{is_no_hop, passes_on};
use super::session::Session;
use super::stages::{Pairs, Stages, judge_pairs, stages};

/// Either side of a value: 95 % of Student's distribution with the five degrees of freedom that eight sizes leave.
const EITHER: f64 = 2.57;
/// What an interval is at least, of the value, either side: crystals, and queues that are hardly ever empty (ours).
const LEAST_WIDTH: f64 = 0.002;

/// What one hop adds to the one before it that is known.
#[derive(Debug, Clone)]
pub(super) struct Added {
    pub(super) hop: usize,
    /// The hop after which it begins; zero: the sender. Both count from 1.
    pub(super) after: usize,
    pub(super) slope: f64,
    pub(super) se: f64,
    pub(super) stages: Option<Stages>,
    pub(super) pairs: Pairs,
    /// How far pairs are apart behind it, if it is one link, and if it is the row.
    pub(super) readings_ns: (f64, f64),
}

/// Everything that is said of hops rests on.
pub(super) struct Picture {
    pub(super) lines: Vec<Option<Line>>,
    /// Hops whose routers were slow.
    pub(super) slow: Vec<bool>,
    pub(super) added: Vec<Added>,
}

impl Picture {
    pub(super) fn line(&self, hop: usize) -> Option<Line> {
        self.lines.get(hop).copied().flatten()
    }

    /// What a hop of its own adds, over the error that `error` makes of its line's and of the one's before; `None` for what is no hop of its
    /// own.
    pub(super) fn stands_out_by(&self, hop: usize, error: fn(&Line) -> f64) -> Option<f64> {
        let added = self
            .added
            .iter()
            .find(|added| added.hop == hop + 1 && added.after == hop)?;
        let here = error(&self.line(hop)?);
        let before = hop.checked_sub(1).and_then(|before| self.line(before));
        Some(added.slope / here.hypot(before.map_or(0.0, |line| error(&line))))
    }

    /// Half of the interval over the value, of this hop or the one behind it, whichever is known less well.
    pub(super) fn error_about(&self, hop: usize) -> f64 {
        let of = |added: &Added| {
            if added.slope > 0.0 {
                added.half_width() / added.slope
            } else {
                f64::INFINITY
            }
        };
        let about = self
            .added
            .iter()
            .filter(|added| added.hop == hop + 1 || added.after == hop + 1);
        about.map(of).fold(0.0, f64::max)
    }
}

impl Added {
    /// Half of the interval, ns per octet.
    pub(super) fn half_width(&self) -> f64 {
        (EITHER * self.se).max(LEAST_WIDTH * self.slope)
    }
}

pub(super) fn picture(session: &Session) -> Picture {
    let (framing, floor) = (session.params.framing, session.floor_ns());
    let lines: Vec<Option<Line>> = (0..session.hops.len())
        .map(|hop| {
            let usable = !passes_on(&session.hops, hop) && !is_no_hop(&session.hops, hop);
            session.hops[hop].line(framing, floor).filter(|_| usable)
        })
        .collect();
    let mut slow = vec![false; lines.len()];
    let mut known: Vec<(usize, Line)> = Vec::new();
    for (hop, line) in lines.iter().enumerate() {
        let Some(line) = line else { continue };
        // What a router needs per octet to make its answer is not the link's, and is not there at the next.
        while let Some((at, before)) = known.last()
            && before.there - line.there > 3.0 * before.se.hypot(line.se)
        {
            slow[*at] = true;
            known.pop();
        }
        known.push((hop, *line));
    }
    let wire = f64::from(framing.wire_octets(u32::from(session.plan.largest())));
    let mut added: Vec<Added> = Vec::new();
    let mut before: Option<(usize, Line)> = None;
    // What the slowest link so far takes for an octet.
    let mut steepest: f64 = 0.0;
    for (hop, line) in known {
        let (after, slope, se) = before.map_or((0, line.there, line.se), |(at, before)| {
            (at + 1, line.there - before.there, line.se.hypot(before.se))
        });
        let mut here = Added {
            hop: hop + 1,
            after,
            slope,
            se,
            stages: None,
            pairs: Pairs::Unknown,
            readings_ns: (0.0, 0.0),
        };
        let alone = hop == after && slope > STANDS_OUT * se;
        let mut slowest = slope;
        if let Some(stages) = stages(slope, here.half_width()).filter(|_| alone) {
            let row = 8e9 / stages.rates[0];
            here.readings_ns = (wire * slope.max(steepest), wire * row.max(steepest));
            here.pairs = judge_pairs(&session.hops[hop].pairs, here.readings_ns.0, here.readings_ns.1);
            if here.pairs != Pairs::OneLink {
                slowest = row;
                here.stages = Some(stages);
            }
        }
        steepest = steepest.max(slowest);
        added.push(here);
        before = Some((hop, line));
    }
    Picture { lines, slow, added }
}

/// Hops at which pairs can tell a row of links from one link: as one link it would space them more than anything before it.
pub(super) fn worth_pairs(session: &Session) -> Vec<usize> {
    let picture = picture(session);
    let readings = picture.added.iter().filter(|added| added.stages.is_some());
    let told = |added: &&Added| {
        added.readings_ns.0 - added.readings_ns.1 > (8.0 * session.floor_ns()).max(0.05 * added.readings_ns.1)
    };
    readings.filter(told).map(|added| added.hop - 1).collect()
}
