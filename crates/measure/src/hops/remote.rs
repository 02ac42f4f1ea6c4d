//! The peer's own stamps: what all links take for a packet, without its answers.
//!
//! Where the remote host runs a server it says when each packet came. Sizes then tell what all
//! links there take together, `F_N`, of one way alone and of no answer; less what sizes tell of the
//! last router, `F_N-1`, that is the last hop, whatever the host needs for its answers. The two
//! clocks are apart by anything, and drift: sizes come in any order within each train, so that
//! drift and length have nothing to do with one another, and the line below all delays takes it out
//! (`[MST99]`).

use std::net::IpAddr;
use std::time::Duration;

use narrows_stat::{SkewObjective, skew_line};

use super::line::Line;
use super::picture::{EITHER, Picture};
use super::plan::{GOAL, Plan};
use super::round::hop_limit;
use super::session::MethodRun;
use super::table::{HopTable, Sample};
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::RemoteStamped;
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PacketPlan, Train, TrainReport};
use narrows_train::peer_kinds::SizeBounds;
use narrows_train::train_method::arrived_ns;
use narrows_units::rounded_signed;

/// Trains of one packet of each size: at least, and at most (ours).
const LEAST: u32 = 8;
const MOST: u32 = 24;
/// Sizes that a world names before it is left (ours).
const MOST_REFUSALS: u32 = 4;
/// Drift and slope are told one by the other so often; they settle in two.
const ROUNDS: usize = 4;
/// Between packets that ask who is on the way of this flow: most limits but Linux's own are faster
/// (ours).
const ROUTE_GAP: Duration = Duration::from_millis(20);
/// Errors by which answers take longer than stamps say before the host is called slow (as of
/// routers).
const SLOWER: f64 = 3.0;

/// One packet: its length, when it left, and how much later it came, by two clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    octets: u16,
    at_ns: f64,
    delay_ns: i64,
}

/// Whether packets to the server take the way that the probes of hops took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RouteMatch {
    #[default]
    Unasked,
    /// Nobody on it answered.
    Unknown,
    Same,
    Other,
}

/// What the peer's stamps told.
#[derive(Debug, Clone, Default)]
pub(super) struct RemoteStamps {
    wanted: bool,
    over: bool,
    refusals: u32,
    least_octets: u16,
    most_octets: Option<u16>,
    way: RouteMatch,
    trains: u32,
    sent: u32,
    rows: Vec<Row>,
}

impl RemoteStamps {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Nothing more is asked, and nothing that was told counts.
    pub(super) fn give_up(&mut self) {
        self.over = true;
        self.rows.clear();
    }

    /// The slope of delay over size, drift of the clocks taken out.
    fn table(&self, draw: impl Fn(&HopTable) -> Option<Line>) -> Option<(HopTable, Line)> {
        let first = *self.rows.first()?;
        let of = |row: &Row| (row.delay_ns.saturating_sub(first.delay_ns)) as f64;
        let times: Vec<f64> = self.rows.iter().map(|row| row.at_ns - first.at_ns).collect();
        let mut drift = 0.0;
        let mut found = None;
        for _ in 0..ROUNDS {
            let mut table = HopTable::new();
            for (row, at) in self.rows.iter().zip(&times) {
                let sample =
                    Sample { octets: row.octets, reply_octets: 0, round_trip_ns: rounded_signed(of(row) - drift * at) };
                table.take(IpAddr::from([0, 0, 0, 0]), sample);
            }
            let line = draw(&table)?;
            let above: Vec<f64> = self.rows.iter().map(|row| of(row) - line.forward * f64::from(row.octets)).collect();
            found = Some((table, line));
            drift = skew_line(&times, &above, SkewObjective::SumOfDistances).ok()?.slope;
        }
        found
    }
}

impl MethodRun {
    /// The line of all links there, by the peer's stamps; `None` where they tell nothing of the
    /// path that hops were asked on.
    pub(super) fn remote_line(&self) -> Option<Line> {
        self.remote_table().map(|(_, line)| line)
    }

    fn remote_table(&self) -> Option<(HopTable, Line)> {
        if self.remote.way == RouteMatch::Other || self.remote.trains < LEAST || !self.hops.last()?.remote {
            return None;
        }
        self.remote.table(|table| table.line(self.params.framing, self.floor_ns()))
    }

    /// Waits of the packets that the peer stamped, ns.
    pub(super) fn remote_waits(&self) -> Option<(Vec<f64>, Line)> {
        let (table, line) = self.remote_table()?;
        Some((table.waits(&line, self.params.framing)?, line))
    }

    fn remote_sizes(&self) -> Vec<u16> {
        let most = self.remote.most_octets.map_or(self.full(), |most| most.min(self.full()));
        Plan::new(&self.params, self.remote.least_octets, most).sizes
    }

    /// The next train to the peer; `None`: it has said what it can, or nobody is there who
    /// stamps.
    pub(super) fn ask_remote(&mut self) -> Option<Vec<PacketPlan>> {
        let reached = self.hops.last().is_some_and(|hop| hop.remote);
        if !self.remote.wanted || self.remote.over || !reached {
            return None;
        }
        if self.remote.way == RouteMatch::Unasked {
            let route = self.ask_way();
            if !route.is_empty() {
                return Some(route);
            }
            self.remote.way = RouteMatch::Unknown;
        }
        if self.remote.trains >= MOST || (self.remote.trains >= LEAST && self.remote_is_known()) {
            return None;
        }
        let sizes = self.remote_sizes();
        if sizes.len() < super::line::LEAST_POINTS {
            return None;
        }
        let last = self.hops.len() - 1;
        let asked = sizes.into_iter().map(|octets| (last, octets)).collect();
        let mut packets = self.round_of(asked);
        for packet in &mut packets {
            packet.hop_limit = None;
        }
        Some(packets)
    }

    /// Small packets of the server's flow to each hop: who answers them?
    fn ask_way(&self) -> Vec<PacketPlan> {
        let octets = self.remote_sizes().first().copied().unwrap_or(0);
        let asked = (0..self.hops.len().saturating_sub(1)).filter(|&hop| self.hops[hop].answers > 0);
        let packet = |hop| Some(PacketPlan { gap: ROUTE_GAP, ip_octets: octets, hop_limit: Some(hop_limit(hop)?) });
        asked.filter_map(packet).collect()
    }

    /// The last hop will not be known better by more of them.
    fn remote_is_known(&self) -> bool {
        let Some(line) = self.remote_line() else { return false };
        let lines = self.hops.iter().rev().skip(1);
        let before =
            lines.filter_map(|table| table.line(self.params.framing, self.floor_ns())).map(|line| line.forward).next();
        EITHER * line.se <= GOAL / 2.0 * (line.forward - before.unwrap_or(0.0))
    }

    /// What became of a train to the peer.
    pub(super) fn take_remote(&mut self, asked: &Train, report: &TrainReport) {
        if asked.packets.iter().any(|plan| plan.hop_limit.is_some()) {
            return self.take_way(asked, report);
        }
        self.remote.trains = self.remote.trains.saturating_add(1);
        let mut came = false;
        for row in &report.arrivals {
            self.remote.sent = self.remote.sent.saturating_add(1);
            let Some(arrived) = arrived_ns(row) else { continue };
            came = true;
            self.remote.rows.push(Row {
                octets: row.ip_octets,
                at_ns: row.departed.nanos() as f64,
                delay_ns: arrived.saturating_sub(row.departed.nanos()),
            });
        }
        // Nothing comes through to it.
        self.remote.over |= !came && self.remote.rows.is_empty();
    }

    fn take_way(&mut self, asked: &Train, report: &TrainReport) {
        let mut way = RouteMatch::Unknown;
        for (plan, row) in asked.packets.iter().zip(&report.arrivals) {
            let Some(hop) = plan.hop_limit.map(|limit| usize::from(limit.get()) - 1) else {
                continue;
            };
            let Some(table) = self.hops.get_mut(hop) else { continue };
            // It has cost a limited router an answer.
            table.pace.sent(row.departed);
            let known = |from: IpAddr| table.samples.contains_key(&from);
            match who(row) {
                Some(from) if known(from) && way != RouteMatch::Other => way = RouteMatch::Same,
                Some(from) if !known(from) => way = RouteMatch::Other,
                _ => {}
            }
        }
        self.remote.way = way;
    }

    /// The world does not carry out a train to the peer.
    pub(super) fn remote_refused(&mut self, refusal: Refusal) {
        self.remote.refusals = self.remote.refusals.saturating_add(1);
        let mut bounds = SizeBounds {
            least_octets: self.remote.least_octets,
            most_octets: self.remote.most_octets.unwrap_or(u16::MAX),
        };
        if self.remote.refusals > MOST_REFUSALS || !bounds.take(refusal) {
            return self.remote.give_up();
        }
        self.remote.least_octets = bounds.least_octets;
        self.remote.most_octets = Some(bounds.most_octets).filter(|most| *most < u16::MAX);
    }

    /// What the peer's stamps told, if there were any.
    pub(super) fn remote_stamped(&self, picture: &Picture) -> Option<RemoteStamped> {
        if !self.remote.wanted || self.remote.rows.is_empty() {
            return None;
        }
        let found = self.remote_waits();
        let mean = |waits: &[f64]| narrows_stat::mean(&waits.iter().map(|wait| wait.max(0.0)).collect::<Vec<_>>());
        let waits = found.as_ref().and_then(|(waits, _)| mean(waits));
        let full = f64::from(self.params.framing.wire_octets(u32::from(self.full())));
        let came = u32::try_from(self.remote.rows.len()).unwrap_or(u32::MAX);
        Some(RemoteStamped {
            packets: self.remote.sent,
            lost: self.remote.sent.saturating_sub(came),
            other_way: self.remote.way == RouteMatch::Other,
            last_hop: picture.by_stamps,
            all_links_ns: found.map(|(_, line)| line.forward * full),
            queueing_ns: waits,
        })
    }
}

/// Who answered a packet on the way.
fn who(row: &Arrival) -> Option<IpAddr> {
    match row.fate {
        Fate::Answered(reply) if reply.kind == HopReplyKind::TimeExceeded => Some(reply.from),
        Fate::Answered(_) | Fate::Received(_) | Fate::Echoed { .. } | Fate::Lost => None,
    }
    .filter(|from| !from.is_unspecified())
}

/// The remote host's answers take longer than the packets took to get there.
pub(super) fn answers_slowly(answers: &Line, stamps: &Line) -> bool {
    answers.forward - stamps.forward > SLOWER * answers.se.hypot(stamps.se)
}
