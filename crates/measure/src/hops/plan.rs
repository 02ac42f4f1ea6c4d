//! Which sizes, how many of each, and what that will come to.

use std::time::Duration;

use narrows_units::{BitRate, Framing};

use super::Params;
use super::line::Line;
use super::picture::{Picture, picture};
use super::route;
use super::session::{MethodRun, PAIRS};
use narrows_probe::outcome::{Forecast, Predicted};

/// Sizes and what they are for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Ascending.
    pub(super) sizes: Vec<u16>,
    /// Probes per hop at most, and of hops whose routers limit their answers.
    most: u32,
    most_limited: u32,
}

/// What a hop wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Probe(u16),
    Nothing,
}

/// IP octets: two at each end and two where the usual quote ends (RFC 1812: 548 octets of the
/// probe), for these carry the two slopes; and two between, which show whether it is a line at all.
const USUAL_QUOTE: u16 = 548;
/// Below this Ethernet pads, and time no longer goes with length.
const SMALLEST: u16 = 48;
/// Probes of each size before anything is said, and of hops that limit their answers.
const REPEATS: u32 = 4;
const REPEATS_LIMITED: u32 = 2;
/// Half of a hop's interval over its value from which on it is known well enough (ours; a sum of
/// standard rates is told by less).
pub(super) const GOAL: f64 = 0.008;
/// Error of a line over what the stamps alone leave of it, above which the first look goes on
/// (ours).
const BLURRED: f64 = 3.0;
/// Answers of one size that must lie on the line.
const CONFIRMED: u32 = 2;
/// An answer lies on the line if it is no further above than so many times what it is off by.
const NEAR: f64 = 2.5;
/// Error of a line over what stamps alone leave from which on answers scatter so that more of them
/// help, how often as many there are then, and the share of a hop's value that its interval must be
/// either side (ours).
const SCATTERED_FROM: f64 = 4.0;
const SCATTERED: u32 = 2;
const UNSURE: f64 = 0.02;
/// Of the largest share that a length has in the slope, what each is taken to have (ours).
const OTHER_LENGTHS: f64 = 0.4;
/// Slope over its error from which a hop is given a value, and from which it is predicted one
/// (ours).
pub(super) const STANDS_OUT: f64 = 5.0;
const SURELY: f64 = 6.0;

impl Plan {
    pub(super) fn new(params: &Params, least: u16, most: u16) -> Self {
        let top = most.max(SMALLEST);
        let wanted = [
            SMALLEST,
            64,
            288,
            USUAL_QUOTE + 4,
            USUAL_QUOTE + 36,
            u16::midpoint(USUAL_QUOTE, top),
            top.saturating_sub(32),
            top,
        ];
        let mut sizes: Vec<u16> =
            wanted.into_iter().map(|octets| octets.max(least)).filter(|octets| *octets <= top).collect();
        if least > SMALLEST {
            // Two different ones at the lower end.
            sizes.push(least.saturating_add(16).min(top));
        }
        sizes.sort_unstable();
        sizes.dedup();
        Self { sizes, most: params.probes, most_limited: params.probes.div_ceil(5) }
    }

    pub(super) fn smallest(&self) -> u16 {
        self.sizes.first().copied().unwrap_or(SMALLEST)
    }

    pub(super) fn largest(&self) -> u16 {
        self.sizes.last().copied().unwrap_or(SMALLEST)
    }

    pub(super) fn is_too_narrow(&self) -> bool {
        self.sizes.len() < super::line::LEAST_POINTS
    }

    /// The size of a round of the first look: the ends first.
    pub(super) fn pilot(&self, round: u32) -> u16 {
        let count = self.sizes.len();
        let round = usize::try_from(round).unwrap_or(0);
        let turn = round / 2 % count.max(1);
        let index = if round.is_multiple_of(2) { count.saturating_sub(1 + turn) } else { turn };
        self.sizes.get(index).copied().unwrap_or(SMALLEST)
    }

    /// The size of which a hop has least; nothing, if all sizes lie on its line and that is well
    /// known, or it has had its share.
    pub(super) fn want(&self, session: &MethodRun, picture: &Picture, hop: usize) -> Want {
        let Some(table) = session.hops.get(hop) else {
            return Want::Nothing;
        };
        let limited = table.pace.every().is_some();
        // Its stamps tell that hop better than answers at such a pace.
        if limited && table.remote && picture.by_stamps {
            return Want::Nothing;
        }
        let line = picture.line(hop);
        let scattered = session.scattered && line.is_some_and(|line| is_scattered(&line));
        let (most, repeats) = match limited {
            true => (self.most_limited, REPEATS_LIMITED),
            // Only where that brings something, and as was announced.
            false if scattered && picture.error_about(hop) > UNSURE => (SCATTERED * self.most, REPEATS),
            false => (self.most, REPEATS),
        };
        if route::is_idle(&session.hops, hop) || table.sent.values().sum::<u32>() >= most {
            return Want::Nothing;
        }
        let framing = session.params.framing;
        let floor = session.floor_ns();
        let near = line.map_or(0.0, |line| (NEAR * line.spread_ns).max(1.5 * floor));
        let on_line = |octets: u16| line.map_or(0, |line| table.confirmed(octets, &line, framing, near));
        let sent = |octets: u16| table.sent.get(&octets).copied().unwrap_or(0);
        // Those that have too few first, then those that are not on the line.
        let lacks = |octets: u16| u32::from(on_line(octets) < CONFIRMED) + 2 * u32::from(sent(octets) < repeats);
        let next = self.sizes.iter().copied();
        let lacking = next.max_by_key(|&octets| (lacks(octets), u32::MAX - sent(octets)));
        match lacking {
            Some(octets) if lacks(octets) > 0 => Want::Probe(octets),
            _ if picture.error_about(hop) <= GOAL => Want::Nothing,
            // Lengths in the order of what they have in the slope.
            _ => {
                let shares = table.shares(framing, floor);
                // Others are what shows whether it is a line.
                let least = OTHER_LENGTHS * shares.values().copied().fold(0.0, f64::max);
                let need = |octets: u16| {
                    let share = shares.get(&octets).copied().unwrap_or(0.0);
                    f64::from(on_line(octets) + 1) / share.max(least).max(1e-12)
                };
                let all = self.sizes.iter().copied();
                let next = all.min_by(|&one, &other| need(one).total_cmp(&need(other)));
                next.map_or(Want::Nothing, Want::Probe)
            }
        }
    }

    fn is_end(&self, octets: u16) -> bool {
        let quote = (USUAL_QUOTE..=USUAL_QUOTE + 64).contains(&octets);
        octets <= 64.max(self.smallest()) || quote || octets.saturating_add(64) >= self.largest()
    }

    /// Whether the first look shows too little to foretell anything by: lines blurred by queues, at
    /// routers that answer freely.
    pub(super) fn is_blurred(session: &MethodRun, picture: &Picture, hop: usize) -> bool {
        let table = &session.hops[hop];
        let free = table.answers > 0 && table.pace.every().is_none();
        let blurred =
            picture.line(hop).is_some_and(|line| line.se > BLURRED * line.least_se && line.se > line.forward * GOAL);
        free && blurred
    }

    /// What will be left of the error of a line that was drawn from the first look: of what stamps
    /// make of it, which had one or two answers of each size and will have [`REPEATS`]; of what
    /// queues make of it, a sixth at best: least round trips improve faster than means.
    fn least_error(line: &Line) -> f64 {
        (line.least_se / f64::from(REPEATS).sqrt()).max(line.se / 6.0)
    }

    /// Whether answers scatter, at any hop that is not slow to answer: there more probes are
    /// announced, and sent where they help.
    pub(super) fn scatters(session: &MethodRun) -> bool {
        let picture = picture(session);
        let unsure = |hop: usize| {
            let free = session.hops[hop].pace.every().is_none();
            free && picture.line(hop).is_some_and(|line| is_scattered(&line)) && picture.error_about(hop) > UNSURE
        };
        (0..session.hops.len()).any(unsure)
    }

    /// What is predicted at the end of the first look.
    pub(super) fn foretell(
        &self,
        session: &MethodRun,
        so_far: Duration,
        gaps: Duration,
        timeout: Duration,
    ) -> (Forecast, Vec<Predicted>) {
        let framing = session.params.framing;
        let picture = picture(session);
        let lines: Vec<Option<Line>> = (0..session.hops.len()).map(|hop| picture.line(hop)).collect();
        let predicted = (0..session.hops.len())
            .map(|hop| {
                let forward = session.hops[hop].answers > 0 && !route::is_no_hop(&session.hops, hop);
                let by_trains = picture.added.iter().any(|added| added.hop == hop + 1 && added.by_trains);
                match picture.stands_out_by(hop, Self::least_error) {
                    _ if !forward && !by_trains => Predicted::Silent,
                    Some(times) if times > SURELY => Predicted::Resolved,
                    _ => Predicted::Bounded,
                }
            })
            .collect();
        let active = session.hops.iter().filter(|hop| hop.answers > 0);
        let hops = u32::try_from(active.clone().count()).unwrap_or(u32::MAX);
        let rtt = session.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt);
        let one_round = session.params.pace.mul_f64(1.5).max(2 * gaps + rtt);
        let limited = active
            .filter_map(|hop| Some(hop.pace.every()? * self.most_limited.saturating_sub(hop.probes)))
            .max()
            .unwrap_or_default();
        let pair_rounds = one_round * PAIRS * 2 * hops;
        let (trains, unanswered) = session.tailgating_probes_left(&picture);
        let each = session.params.pace.mul_f64(1.5) + rtt + if unanswered { timeout } else { Duration::ZERO };
        let tailgating_probes = (each + session.tailgating_probe_pace(&picture)) * trains;
        // Rounds that have to be waited for, as often as so far, and one in forty.
        let (sent, lost) = session
            .hops
            .iter()
            .filter(|hop| hop.answers > 0)
            .fold((0, 0), |(sent, lost), hop| (sent + hop.probes, lost + hop.lost));
        let share = f64::from(hops) * (f64::from(lost) / f64::from(sent.max(1))).min(0.5) + 0.025;
        let most = self.most * if session.scattered { SCATTERED } else { 1 };
        let waits = (timeout + rtt).mul_f64(f64::from(most) * share.min(1.0));
        let time = so_far + (one_round * most).max(limited) + pair_rounds + tailgating_probes + waits;
        // Lengths above what answers quote come most often.
        let ends: Vec<u64> = self
            .sizes
            .iter()
            .filter(|&&octets| octets > USUAL_QUOTE && self.is_end(octets))
            .map(|&octets| u64::from(octets))
            .collect();
        let usual = ends.iter().sum::<u64>() / u64::try_from(ends.len()).unwrap_or(1).max(1);
        let mean = usual.max(u64::from(self.largest()) / 2) + 1;
        let pairs = u64::from(hops) * u64::from(PAIRS) * 2 * u64::from(self.largest());
        let forecast = Forecast {
            time,
            octets: session.octets
                + u64::from(hops) * u64::from(most) * mean
                + pairs
                + u64::from(trains) * (u64::from(self.largest()) + 256),
            ceiling: ceiling(&lines, session.full(), framing),
        };
        (forecast, predicted)
    }
}

/// Answers scatter by much more than stamps.
fn is_scattered(line: &Line) -> bool {
    line.se > SCATTERED_FROM * line.least_se
}

/// The rate at which one hop's slope would stand out of what stamps leave of the errors of two
/// usual lines.
fn ceiling(lines: &[Option<Line>], full: u16, framing: Framing) -> Option<BitRate> {
    let errors: Vec<f64> = lines.iter().flatten().map(|line| line.least_se).collect();
    let error = narrows_stat::median(&errors)? * std::f64::consts::SQRT_2 * STANDS_OUT;
    let wire = f64::from(framing.wire_octets(u32::from(full)));
    BitRate::from_bps_f64(8e9 * f64::from(full) / wire / error)
}
