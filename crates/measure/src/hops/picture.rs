//! What lines of hops add to one another.

use super::by_tailgating_probes::Known;
use super::line::{Alike, DirectionSlopes, Line};
use super::plan::STANDS_OUT;
use super::remote;
use super::route::{is_no_hop, passes_on};
use super::session::MethodRun;
use super::stages::{Pairs, Slowest, Stages, is_standard, judge_pairs, slowest, stages};

/// Either side of a value: 95 % of Student's distribution with the five degrees of freedom that
/// eight sizes leave.
pub(super) const EITHER: f64 = 2.57;
/// Of a bound: 99 % of the same, one side.
const BOUND: f64 = 3.36;
/// What an interval is at least, of the value, either side: crystals, and queues that are hardly
/// ever empty (ours).
const LEAST_WIDTH: f64 = 0.002;

/// Half of an interval over its value from which on a hop may be read as of one rate both ways, and
/// the share of its error that this must leave at most (ours).
const ALIKE_FROM: f64 = 0.04;
const BETTER: f64 = 0.85;

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
    /// Trains told it, or what is left of a longer stretch by what they told of the rest.
    pub(super) by_trains: bool,
    /// It is known only that it adds no more than this.
    pub(super) at_most: Option<f64>,
    /// What sizes see there beyond what pairs do: a link of a row, or the router's own, which then
    /// is not in the next hop's line.
    pub(super) excess: f64,
    /// Pairs say that its links are no slower than those before it, ns per octet.
    pub(super) not_slower: Option<f64>,
    /// What it is if it has one rate both ways, where that tells it better.
    pub(super) alike: Option<Alike>,
    /// What a second link may take of it where tails say that it is one, ns per octet.
    pub(super) unseen: f64,
}

/// Everything that is said of hops rests on.
pub(super) struct Picture {
    pub(super) lines: Vec<Option<Line>>,
    /// Hops whose routers were slow.
    pub(super) slow: Vec<bool>,
    /// From round trips over sizes alone.
    pub(super) by_sizes: Vec<Added>,
    /// The same, with what trains told of hops of which sizes tell too little.
    pub(super) added: Vec<Added>,
    /// The peer's own stamps stand for its answers.
    pub(super) by_stamps: bool,
    /// Hops (from zero) of which trains should have told whether routers copy, and could not.
    pub(super) unchecked: Vec<usize>,
}

impl Picture {
    pub(super) fn line(&self, hop: usize) -> Option<Line> {
        self.lines.get(hop).copied().flatten()
    }

    /// What a hop of its own adds, over the error that `error` makes of its line's and of the one's
    /// before; `None` for what is no hop of its own.
    pub(super) fn stands_out_by(&self, hop: usize, error: fn(&Line) -> f64) -> Option<f64> {
        let added = self.added.iter().find(|added| added.hop == hop + 1 && added.after == hop)?;
        if added.by_trains {
            return added.at_most.is_none().then(|| added.slope / added.se);
        }
        let here = error(&self.line(hop)?);
        let before = hop.checked_sub(1).and_then(|before| self.line(before));
        Some(added.slope / here.hypot(before.map_or(0.0, |line| error(&line))))
    }

    /// Half of the interval over the value, of this hop or the one behind it, whichever is known
    /// less well.
    pub(super) fn error_about(&self, hop: usize) -> f64 {
        let of = |added: &Added| {
            if added.slope > 0.0 { added.half_width() / added.slope } else { f64::INFINITY }
        };
        let about = self.by_sizes.iter().filter(|added| added.hop == hop + 1 || added.after == hop + 1);
        about.map(of).fold(0.0, f64::max)
    }
}

impl Added {
    /// Half of the interval, ns per octet.
    pub(super) fn half_width(&self) -> f64 {
        (EITHER * self.se).max(LEAST_WIDTH * self.slope)
    }

    /// It is one hop's own, and stands out of its errors.
    pub(super) fn stands_alone(&self) -> bool {
        self.hop == self.after + 1 && self.at_most.is_none() && self.slope > STANDS_OUT * self.se
    }

    /// The likeliest slope, ns per octet: of one rate both ways where that is known so much better.
    /// The interval is that of the forward direction.
    pub(super) fn likeliest(&self) -> f64 {
        self.alike.map_or(self.slope, |alike| alike.slope)
    }

    /// Whether that hop (from 1) is a part of it.
    pub(super) fn covers(&self, hop: usize) -> bool {
        (self.after + 1..=self.hop).contains(&hop)
    }

    /// What it adds at most, ns per octet: no slower than if all of this were one hop's own.
    pub(super) fn most(&self) -> f64 {
        self.at_most.unwrap_or(self.slope.max(0.0) + BOUND * self.se)
    }

    /// From trains, without anything of what links in a row there may be.
    fn reported(hop: usize, after: usize, (slope, se): (f64, f64), at_most: Option<f64>) -> Self {
        Self {
            hop,
            after,
            slope,
            se,
            stages: None,
            pairs: Pairs::Unknown,
            readings_ns: (0.0, 0.0),
            by_trains: true,
            at_most,
            excess: 0.0,
            not_slower: None,
            alike: None,
            unseen: 0.0,
        }
    }
}

pub(super) fn picture(session: &MethodRun) -> Picture {
    let (framing, floor) = (session.params.framing, session.floor_ns());
    let lines: Vec<Option<Line>> = (0..session.hops.len())
        .map(|hop| {
            let usable = !passes_on(&session.hops, hop) && !is_no_hop(&session.hops, hop);
            session.hops[hop].line(framing, floor).filter(|_| usable)
        })
        .collect();
    let mut slow = vec![false; lines.len()];
    let stamps = session.remote_line().filter(|_| !lines.is_empty());
    let slopes = lines.iter().enumerate().map(|(hop, line)| {
        let own = stamps.filter(|_| hop + 1 == lines.len());
        if let (Some(stamps), Some(answers)) = (&own, line) {
            slow[hop] = remote::answers_slowly(answers, stamps);
        }
        own.or(*line)
    });
    let slopes: Vec<Option<Line>> = slopes.collect();
    let mut known: Vec<(usize, Line)> = Vec::new();
    for (hop, line) in slopes.iter().enumerate() {
        let Some(line) = line else { continue };
        // What a router needs per octet to make its answer is not the link's, and is not there at
        // the next.
        while let Some((at, before)) = known.last()
            && before.forward - line.forward > 3.0 * before.se.hypot(line.se)
        {
            slow[*at] = true;
            known.pop();
        }
        known.push((hop, *line));
    }
    let mut by_sizes = by_sizes(session, &known);
    let copying = session.copying(&by_sizes);
    if !copying.is_empty() {
        for &hop in &copying {
            slow[hop] = true;
        }
        known.retain(|(hop, _)| !copying.contains(hop));
        by_sizes = self::by_sizes(session, &known);
    }
    for added in &mut by_sizes {
        added.at_most = added.at_most.or(added.not_slower);
    }
    let unchecked = unchecked(session, &by_sizes);
    let added = with_trains(session, &by_sizes);
    Picture { lines, slow, by_sizes, added, by_stamps: stamps.is_some(), unchecked }
}

/// Hops (from zero) whose routers, or one in front of which no later one told, may be what takes so
/// long.
fn unchecked(session: &MethodRun, by_sizes: &[Added]) -> Vec<usize> {
    let Some(from) = session.unchecked_from(by_sizes) else {
        return Vec::new();
    };
    let behind = by_sizes.iter().map(|added| added.hop - 1).filter(|hop| *hop >= from);
    behind.filter(|&hop| session.reported_by_tailgating_probes(by_sizes, hop).is_none()).collect()
}

/// What each line adds to the one before.
fn by_sizes(session: &MethodRun, known: &[(usize, Line)]) -> Vec<Added> {
    let framing = session.params.framing;
    let wire = f64::from(framing.wire_octets(u32::from(session.plan.largest())));
    let mut added: Vec<Added> = Vec::new();
    let mut before: Option<(usize, Line)> = None;
    // What the slowest link so far takes for an octet.
    let mut steepest: f64 = 0.0;
    let mut excess: f64 = 0.0;
    for &(hop, line) in known {
        let (after, slope, se) = before.map_or((0, line.forward, line.se), |(at, before)| {
            (at + 1, line.forward - before.forward, line.se.hypot(before.se))
        });
        let mut here = Added {
            hop: hop + 1,
            after,
            slope,
            se,
            stages: None,
            pairs: Pairs::Unknown,
            readings_ns: (0.0, 0.0),
            by_trains: false,
            at_most: None,
            excess: 0.0,
            not_slower: None,
            alike: None,
            unseen: 0.0,
        };
        // What the router before may have taken itself is not in its line.
        here.se = here.se.hypot(excess / EITHER);
        steepest = steepest.max(read_row(session, &mut here, wire, steepest));
        excess = here.excess;
        added.push(here);
        before = Some((hop, line));
    }
    read_alike(&mut added, known);
    added
}

/// Reads hops as links of one rate both ways where this tells them much better than the forward
/// direction alone, nothing on the path speaks against it, and the slowest hop before, whose line
/// leaves them so unsure, is known to be one.
fn read_alike(added: &mut [Added], known: &[(usize, Line)]) {
    let before = std::iter::once(None).chain(known.iter().map(|(_, line)| Some(line)));
    let ways: Vec<Option<DirectionSlopes>> =
        before.zip(known).map(|(before, (_, here))| DirectionSlopes::between(before, here)).collect();
    if ways.iter().flatten().any(DirectionSlopes::differ) {
        return;
    }
    let mut slowest: Option<(f64, bool)> = None;
    for (here, ways) in added.iter_mut().zip(ways) {
        let confirmed = slowest.is_some_and(|(_, alike)| alike);
        if confirmed && here.half_width() > ALIKE_FROM * here.slope && here.excess <= 0.0 {
            here.alike = ways.and_then(|ways| ways.as_one()).filter(|alike| alike.se < BETTER * here.se);
        }
        if slowest.is_none_or(|(slope, _)| here.slope > slope) {
            slowest = Some((here.slope, ways.is_some_and(|ways| ways.are_alike())));
        }
    }
}

/// What links in a row, or what else, sizes see together, by standard rates and pairs: ns per octet
/// of the slowest link. `wire`: octets of a full packet; `steepest`: ns per octet of the slowest
/// link before.
fn read_row(session: &MethodRun, here: &mut Added, wire: f64, steepest: f64) -> f64 {
    let (slope, half) = (here.slope, here.half_width());
    if !here.stands_alone() {
        return slope;
    }
    let pairs = &session.hops[here.hop - 1].pairs;
    let reported = slowest(pairs, (wire * slope, wire * half), wire * steepest, session.floor_ns());
    here.readings_ns = (wire * slope.max(steepest), wire * steepest);
    if let Some(stages) = stages(slope, half) {
        let row = 8e9 / stages.rates[0];
        here.readings_ns = (wire * slope.max(steepest), wire * row.max(steepest));
        here.pairs = judge_pairs(pairs, here.readings_ns.0, here.readings_ns.1);
        // Of what pairs say nothing sure about standard rates decide.
        let other = here.pairs == Pairs::Unknown && !matches!(reported, Slowest::Unreported | Slowest::Doubtful(_));
        if here.pairs == Pairs::Row || (here.pairs == Pairs::Unknown && !other) {
            here.stages = Some(stages);
            return row;
        }
    }
    match reported {
        Slowest::All => here.pairs = Pairs::OneLink,
        Slowest::Takes(ns) => {
            let least = ns / wire;
            let rest = slope - least;
            here.pairs = Pairs::Row;
            if !is_standard(rest, half) {
                here.excess = rest;
            }
            here.stages = Some(Stages {
                rates: vec![8e9 / least, 8e9 / rest],
                ambiguous: !is_standard(rest, half),
                vague: false,
                measured: Some(2.0 * session.floor_ns() / ns),
            });
            return least;
        }
        // As fast as anything before it, or faster; what else takes so long is not known.
        Slowest::Hidden => {
            here.not_slower = Some(steepest);
            here.excess = slope;
            return steepest;
        }
        // The interval has both.
        Slowest::Doubtful(ns) => {
            let least = ns / wire;
            here.excess = slope - least;
            here.stages = Some(Stages {
                rates: vec![8e9 / least, 8e9 / here.excess],
                ambiguous: true,
                vague: true,
                measured: None,
            });
            return least;
        }
        Slowest::Unreported => {}
    }
    slope
}

/// Puts what trains tell of single hops in the place of what sizes leave open there, or of a part
/// of it.
fn with_trains(session: &MethodRun, by_sizes: &[Added]) -> Vec<Added> {
    let mut added = by_sizes.to_vec();
    let large = f64::from(session.params.framing.wire_octets(u32::from(session.plan.largest())));
    for hop in 1..session.hops.len() {
        let Some(at) = added.iter().position(|added| added.covers(hop + 1)) else {
            continue;
        };
        let open = added[at].clone();
        if open.stands_alone() && !open.by_trains {
            let unreported = !session.read_trailing_packets(&mut added, at) && open.pairs == Pairs::Unknown;
            if let Some(stages) = open.stages.as_ref().filter(|_| unreported) {
                // The row stays in the interval.
                if session.row_by_tailgating_probes(&added, &open, stages) == Pairs::OneLink
                    && let Some(stages) = &mut added[at].stages
                {
                    stages.vague = true;
                }
            }
            continue;
        }
        let Some(reported) = session.reported_by_tailgating_probes(&added, hop) else {
            continue;
        };
        let slope = reported.slope(large, session.ratio());
        let at_most = match reported {
            Known::Time { .. } => None,
            Known::AtMost(most) => Some((most / large).min(open.most())),
        };
        let mut own = Added::reported(hop + 1, hop, slope, at_most);
        own.stages = stages(own.slope, own.half_width()).filter(|_| own.stands_alone());
        if open.hop == open.after + 1 {
            if at_most.is_none() || at_most < Some(open.most()) {
                added[at] = own;
            }
            continue;
        }
        let (first, last) = (open.after + 1 == hop + 1, open.hop == hop + 1);
        let rest = (open.slope - slope.0, open.se.hypot(slope.1));
        let rest = match (first, last) {
            (true, _) => Added::reported(open.hop, hop + 1, rest, None),
            (_, true) => Added::reported(hop, open.after, rest, None),
            _ => continue,
        };
        let both = if first { [own, rest] } else { [rest, own] };
        added.splice(at..=at, both);
    }
    for rest in added.iter_mut().filter(|added| added.by_trains && added.stages.is_none()) {
        rest.stages = stages(rest.slope, rest.half_width()).filter(|_| rest.stands_alone());
    }
    added
}

/// Hops at which pairs can tell a row of links, or a router that copies, from one link: as one link
/// it would space them more than anything before it. Routers that limit their answers are asked
/// only where standard rates speak for a row.
pub(super) fn worth_pairs(session: &MethodRun) -> Vec<usize> {
    let picture = picture(session);
    let free = |added: &Added| session.hops[added.hop - 1].pace.every().is_none();
    let reported = |added: &&Added| {
        let (whole, row) = added.readings_ns;
        (added.stages.is_some() || free(added)) && whole - row > (8.0 * session.floor_ns()).max(0.05 * row)
    };
    picture.by_sizes.iter().filter(reported).map(|added| added.hop - 1).collect()
}
