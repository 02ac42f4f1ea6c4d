//! Tailgating probes: what a hop takes for a large packet, told without its router.
//!
//! ```text
//!  r [====] q ─▶ narrow ─▶ r  [====]q ─▶ link h ─▶ x (no answer)  r     q ─▶ k ─▶ answers of r, q
//! ```
//!
//! A small packet `r`, a large one that dies after link h, and another small one `q` right behind
//! it; both small ones are answered by one router or host further on. While the large packet lives
//! it falls behind `r` by what each link takes for it, and `q` cannot pass it. So with the large
//! packet dead one link sooner, `q` comes back sooner by `max(0, P(h) - x(h-1))`: `P` what link h
//! takes for the large packet, `x` by how much `q` is behind it already. Whatever queue the three
//! met together, at the narrow link or in front of it, is in both spacings and drops out; and what
//! the router at h does (nothing, or late, or once a second) is not looked at.
//!
//! `x` is what limits it: behind a link of rate C two packets are apart by what C takes for the
//! second, and nothing that is sent from here changes that. A link behind that takes less than this
//! for the large packet, `C_h > C W(P) / W(q)`, does not hold `q` back, and trains see nothing of
//! it but that. From hop to hop: `x(h) = max(0, x(h-1) - P(h)) + w P(h)`, `w = W(q) / W(P)`
//! (tailgating of `[Lai00]` with a leader as clock; the recursion is derived).

use std::collections::BTreeSet;
use std::time::Duration;

use super::by_tailgating_probes::Known;
use super::picture::{Added, Picture, picture};
use super::round::{ProbeFate, hop_limit, reported};
use super::route::{is_no_hop, passes_on};
use super::session::MethodRun;
use super::spacings::{Course, Kind, LEADS_MS};
use super::stages::{Pairs, is_standard};
use super::trailing_packets::MOST_TRAILING_PACKETS;
use narrows_probe::probes::{Arrival, PacketPlan, Train, TrainReport};
use narrows_units::nanos_f64;

/// Trains per place where large packets die: for the first look, at most, and at most where the one
/// who answers limits that (ours).
const PROBE_ROUND: u32 = 7;
const MOST: u32 = 40;
const MOST_LIMITED: u32 = 12;
/// Either side of a hop's time over the time, from which on more trains are not worth it (ours).
const GOAL: f64 = 0.01;
/// Who may answer, of those that can (ours).
const ANCHORS: usize = 4;
/// Share of `x` that a difference must be (as `quartets`).
pub(super) const CAUGHT: f64 = 0.05;
/// Beyond what the small packet's answer takes on the reverse direction, by which it must follow
/// another answer (ours).
const FREE: f64 = 1.3;
/// Error of a line over its slope up to which it is clear (ours).
const CLEAR: f64 = 0.1;
/// The first look by trains lasts no longer (ours).
const LONGEST_PROBE_ROUND: Duration = Duration::from_secs(20);
/// Slope of the reverse direction over that of the forward direction from which on it is taken for
/// what it is (ours).
const KNOWN: f64 = 0.2;
/// Of lines that are not clear at most so many ns per octet (ours).
const UNCLEAR: f64 = 5000.0;

/// Least and most ns by which the small packet is behind the large one after a link; the first: as
/// it leaves.
type Behind = (f64, f64);

/// After link h, of which the time is known to be within `time`. Several links in a row are one
/// here but for the least, which the last of them alone may leave.
fn after(behind: Behind, time: (f64, f64), ratio: f64, row: bool) -> Behind {
    let least = if row { 0.0 } else { ratio * time.0 };
    ((behind.0 - time.1).max(0.0) + least, (behind.1 - time.0).max(0.0) + ratio * time.1)
}

impl MethodRun {
    pub(super) fn wire(&self, octets: u16) -> f64 {
        f64::from(self.params.framing.wire_octets(u32::from(octets)))
    }

    pub(super) fn ratio(&self) -> f64 {
        self.wire(self.plan.smallest()) / self.wire(self.plan.largest())
    }

    /// By how much a small packet of that share of a large one's length is behind in front of the
    /// hop at `hop` (from zero), as far as `added` tells.
    pub(super) fn behind(&self, added: &[Added], hop: usize, ratio: f64) -> Behind {
        let large = self.wire(self.plan.largest());
        let left = narrows_stat::median(&self.tailgating_probes.behind_ns);
        let cost = self.facts.as_ref().map_or(0.0, |facts| nanos_f64(facts.sender.send_cost));
        let mut behind = (0.0, 2.0 * left.unwrap_or(cost) + self.floor_ns());
        for link in 1..=hop {
            let time = match added.iter().find(|added| added.covers(link)) {
                Some(added) if added.stands_alone() => {
                    let half = added.half_width();
                    ((added.slope - half) * large, (added.slope + half) * large)
                }
                Some(added) => (0.0, added.most() * large),
                None => (0.0, f64::INFINITY),
            };
            // What nothing says is one link may be several.
            let several = |added: &Added| {
                added.stages.is_some()
                    || (added.pairs == Pairs::Unknown && !is_standard(added.slope, added.half_width()))
            };
            let row = added.iter().any(|added| added.hop == link && several(added));
            behind = after(behind, time, ratio, row);
        }
        behind
    }

    /// Hops (from zero) of which the sizes tell too little, and trains may tell more: what the hop
    /// may take at most is more than what the small packet is behind by.
    pub(super) fn worth_tailgating_probes(&self, picture: &Picture) -> Vec<usize> {
        let last = self.answering().last().copied();
        let large = self.wire(self.plan.largest());
        let usable = |hop: usize| !passes_on(&self.hops, hop) && !is_no_hop(&self.hops, hop);
        let worth = |&hop: &usize| {
            let Some(own) = picture.by_sizes.iter().find(|added| added.covers(hop + 1)) else {
                return false;
            };
            let held = (1.0 + CAUGHT) * self.behind(&picture.by_sizes, hop, self.ratio()).0 + 4.0 * self.floor_ns();
            usable(hop) && usable(hop - 1) && !own.stands_alone() && own.most() * large > held
        };
        (behind_narrow(&picture.by_sizes)..last.unwrap_or(0)).filter(worth).collect()
    }

    /// Hops (from zero) that answer, and are hops of their own.
    fn answering(&self) -> Vec<usize> {
        let fit =
            |&hop: &usize| self.hops[hop].answers > 0 && !passes_on(&self.hops, hop) && !is_no_hop(&self.hops, hop);
        (0..self.hops.len()).filter(fit).collect()
    }

    /// Who answers the small packets of trains to a hop: the furthest that answers freely and not
    /// in the way of other answers, for its answers have least to do with those about large
    /// packets; where all behind the hop limit their answers, the furthest. And with which lead,
    /// the least that keeps answers apart.
    pub(super) fn responder(&self, hop: usize, trailing_packet: u16) -> Option<(usize, usize)> {
        let behind: Vec<usize> = self.answering().into_iter().filter(|&other| other > hop).collect();
        let free = |other: &usize| self.hops[*other].pace.every().is_none();
        let clear = |responder: usize, replay: usize| {
            let kind = |died| Kind { responder, replay, died, trailing_packet };
            !(hop.saturating_sub(1)..=hop).any(|died| self.tailgating_probes.is_in_the_way(kind(died)))
        };
        let furthest = behind.iter().rev().copied();
        let limited = behind.iter().all(|other| !free(other));
        let first = |replay: usize| {
            let found = furthest.clone().filter(free).take(ANCHORS).find(|responder| clear(*responder, replay));
            let found =
                found.or_else(|| furthest.clone().take(1).find(|responder| limited && clear(*responder, replay)));
            found.map(|responder| (responder, replay))
        };
        // In front of the narrow link the small packets would come so close together that they wait
        // for each other there.
        let least = usize::from(hop < self.tailgating_probes.front);
        (least..LEADS_MS.len()).find_map(first)
    }

    /// Who answers, and where the large packets die: the two kinds of trains that tell a hop.
    pub(super) fn kinds(&self, hop: usize, trailing_packet: u16) -> Vec<Kind> {
        let Some((responder, replay)) = self.responder(hop, trailing_packet) else {
            return Vec::new();
        };
        let kind = |died| Kind { responder, replay, died, trailing_packet };
        vec![kind(hop - 1), kind(hop)]
    }

    /// Hops (from zero) of which trains may tell whether their routers copy what they answer for,
    /// octet by octet, which sizes take for a slower link: those that answer freely, in front of
    /// one that does.
    pub(super) fn worth_a_check(&self) -> Vec<usize> {
        let answering = self.answering();
        let free = |hop: usize| answering.contains(&hop) && self.hops[hop].pace.every().is_none();
        let last = answering.iter().rev().copied().find(|&hop| free(hop));
        let hops = 1..last.unwrap_or(0);
        hops.filter(|&hop| free(hop) && free(hop - 1)).collect()
    }

    /// Trains are for this hop: it has one before it, and somebody answers behind it.
    pub(super) fn may_check(&self, hop: usize) -> bool {
        hop > 0 && hop + 1 < self.hops.len()
    }

    /// Hops (from zero) that look like several links in a row, of which pairs do not tell.
    fn worth_a_row(&self, picture: &Picture) -> Vec<usize> {
        let check = self.worth_a_check();
        let open = picture.added.iter().filter(|added| added.stages.is_some() && added.pairs == Pairs::Unknown);
        open.map(|added| added.hop - 1).filter(|hop| check.contains(hop)).collect()
    }

    /// The next train of the first look, or of what comes after it, if any is wanted.
    fn next_tailgating_probe(&self, picture: &Picture, search: bool) -> Option<Vec<PacketPlan>> {
        let mut worth = self.worth_tailgating_probes(picture);
        worth.extend(if search { self.worth_a_check() } else { self.worth_a_row(picture) });
        let large = self.wire(self.plan.largest());
        let known = |hop: usize| match self.reported_by_tailgating_probes(&picture.added, hop) {
            Some(Known::Time { time, half }) => half <= GOAL * time,
            Some(Known::AtMost(most)) => {
                most <= (1.0 + GOAL) * self.behind(&picture.added, hop, self.ratio()).1 + large * 1e-3
            }
            None => false,
        };
        let most = |responder: usize| match (search, self.hops[responder].pace.every()) {
            (true, _) => PROBE_ROUND,
            (false, Some(_)) => MOST_LIMITED,
            (false, None) => MOST,
        };
        let wanted = worth.into_iter().filter(|&hop| search || !known(hop));
        let small = self.plan.smallest();
        let kinds: BTreeSet<Kind> = wanted.flat_map(|hop| self.kinds(hop, small)).collect();
        let sent = |kind: Kind| self.tailgating_probes.sent(kind);
        let open = kinds.into_iter().filter(|&kind| sent(kind) < most(kind.responder));
        let kind = open.min_by_key(|&kind| sent(kind));
        self.train(kind.or_else(|| self.next_trailing_packet(picture).filter(|_| !search))?)
    }

    /// The train of a kind.
    fn train(&self, kind: Kind) -> Option<Vec<PacketPlan>> {
        let (remote, near) = (hop_limit(kind.responder)?, hop_limit(kind.died)?);
        let ahead = Duration::from_millis(LEADS_MS.get(kind.replay).copied().unwrap_or(0));
        let packet = |gap, ip_octets, limit| PacketPlan { gap, ip_octets, hop_limit: Some(limit) };
        Some(vec![
            packet(Duration::ZERO, self.plan.smallest(), remote),
            packet(ahead, self.plan.largest(), near),
            packet(Duration::ZERO, kind.trailing_packet, remote),
        ])
    }

    /// The next train, no sooner than who answers may be asked twice.
    pub(super) fn tailgating_probe(&mut self, search: bool) -> Option<Vec<PacketPlan>> {
        let lasted = self.began.map_or(Duration::ZERO, |began| self.now.since(began));
        if search && lasted >= LONGEST_PROBE_ROUND {
            return None;
        }
        self.look_back();
        let picture = picture(self);
        self.tailgating_probes.front = behind_narrow(&picture.by_sizes);
        let packets = self.next_tailgating_probe(&picture, search)?;
        let responder = usize::from(packets.first()?.hop_limit?.get()).checked_sub(1)?;
        let pace = &self.hops.get(responder)?.pace;
        self.not_before = pace.due_at().map(|at| at + pace.every().unwrap_or_default());
        Some(packets)
    }

    /// What became of a train.
    pub(super) fn take_tailgating_probe(&mut self, kind: Kind, asked: &Train, report: &TrainReport) {
        let (died, responder) = (kind.died, kind.responder);
        let mut answers = [None; 3];
        for ((answer, hop), row) in answers.iter_mut().zip([responder, died, responder]).zip(&report.arrivals) {
            let table = &mut self.hops[hop];
            table.probes = table.probes.saturating_add(1);
            table.pace.sent(row.departed);
            match reported(asked, row) {
                Some(ProbeFate::Answer { sample, .. }) => {
                    table.answers = table.answers.saturating_add(1);
                    table.pace.reported(true);
                    *answer = Some((row.departed.nanos().saturating_add(sample.round_trip_ns), sample.reply_octets));
                }
                Some(ProbeFate::Nothing) => table.pace.reported(false),
                None => {}
            }
        }
        let [leader, large, trailing_packet] = answers;
        let [first, second, third] = report.arrivals.as_slice() else {
            return;
        };
        let since = |row: &Arrival| third.departed.nanos().saturating_sub(row.departed.nanos());
        let behind = since(second);
        // Packets that leave together part at the narrow link, whatever was between them before.
        let ahead = if kind.replay == 0 { 0 } else { since(first) };
        let wire = self.wire(trailing_packet.map_or(0, |(_, octets)| octets));
        let at = |answer: Option<(i64, u16)>| answer.map(|(at, _)| at);
        let course =
            Course { kind, leader: at(leader), large: at(large), trailing_packet: at(trailing_packet), behind, ahead };
        self.tailgating_probes.take(&course, wire);
    }

    /// By how much who answers limits the trains.
    pub(super) fn tailgating_probe_pace(&self, picture: &Picture) -> Duration {
        let anchors = self
            .worth_tailgating_probes(picture)
            .into_iter()
            .filter_map(|hop| Some(self.responder(hop, self.plan.smallest())?.0));
        let limits = anchors.filter_map(|responder| self.hops[responder].pace.every());
        limits.max().unwrap_or_default() * 2
    }

    /// What all links of the reverse direction take for an octet of an answer; where that is not
    /// known, what those there may take.
    pub(super) fn look_back(&mut self) {
        let lines = self.hops.iter().map(|table| table.line(self.params.framing, self.floor_ns()));
        let per_octet = lines.flatten().map(|line| match line.se < CLEAR * line.forward {
            true if line.reverse > KNOWN * line.forward => line.reverse,
            true => 4.0 * line.forward,
            false => (line.forward + 2.0 * line.se).min(UNCLEAR),
        });
        self.tailgating_probes.guard = FREE * per_octet.fold(0.0, f64::max);
    }

    /// Trains that are still to come in all, at most, if those hops are to be told; and whether
    /// some wait for answers that never come.
    pub(super) fn tailgating_probes_left(&self, picture: &Picture) -> (u32, bool) {
        let mut wanted = self.worth_tailgating_probes(picture);
        wanted.extend(self.worth_a_row(picture));
        let small = self.plan.smallest();
        let mut kinds: BTreeSet<Kind> = wanted.into_iter().flat_map(|hop| self.kinds(hop, small)).collect();
        kinds.extend(self.trailing_packets(picture));
        let left = |kind: &Kind| {
            let most = if kind.trailing_packet > small { MOST_TRAILING_PACKETS } else { MOST };
            most.saturating_sub(self.tailgating_probes.sent(*kind))
        };
        let unanswered = |kind: &Kind| {
            let table = self.hops.get(kind.died);
            table.is_none_or(|table| table.answers == 0 || table.pace.every().is_some())
        };
        (kinds.iter().map(left).sum(), kinds.iter().any(unanswered))
    }
}

/// The first hop (from zero) behind the narrow link.
fn behind_narrow(by_sizes: &[Added]) -> usize {
    let alone = by_sizes.iter().filter(|added| added.stands_alone());
    alone.max_by(|one, other| one.slope.total_cmp(&other.slope)).map_or(1, |narrow| narrow.hop)
}

/// The hop at which the large packet of a train dies, the one that answers the small ones, and the
/// lead.
pub(super) fn read(asked: &Train) -> Option<Kind> {
    let [leader, large, trailing_packet] = asked.packets.as_slice() else {
        return None;
    };
    let hop = |plan: &PacketPlan| plan.hop_limit.map(|limit| usize::from(limit.get()) - 1);
    let (died, responder) = (hop(large)?, hop(leader)?);
    let shaped = leader.ip_octets <= trailing_packet.ip_octets && trailing_packet.ip_octets < large.ip_octets;
    let replay = LEADS_MS.iter().position(|ms| large.gap == Duration::from_millis(*ms))?;
    let together = trailing_packet.gap.is_zero() && leader.hop_limit == trailing_packet.hop_limit;
    (shaped && together && died < responder).then_some(Kind {
        responder,
        replay,
        died,
        trailing_packet: trailing_packet.ip_octets,
    })
}

#[cfg(test)]
mod tests;
