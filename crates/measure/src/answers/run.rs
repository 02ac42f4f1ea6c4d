//! The machine: one train to learn the rate, trains that measure, and one of small packets that
//! tells how fast the remote host answers.

use std::time::Duration;

use narrows_units::nanos_f64;

use super::Params;
use super::gaps::{self, gaps};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::mindelay::{Via, duration};
use narrows_train::peer_kinds::{PeerKinds, SizeBounds};
use narrows_train::train_method::{Next, TrainMethod, reply_octets, returned_ns, uneven, whole_packets};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    peer_kinds: PeerKinds,
    bounds: SizeBounds,
    stage: Stage,
    serial: u32,
    /// Trains of full-size packets.
    pub(super) trains: Vec<TrainReport>,
    /// The train of small packets.
    pub(super) small: Option<TrainReport>,
    pub(super) reply_octets: Option<u16>,
    pub(super) tally: Tally,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Measure,
    Small,
    Over,
}

/// What all trains together saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) disordered: u64,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            facts: None,
            peer_kinds: PeerKinds::new([]),
            bounds: SizeBounds::ANY,
            stage: Stage::Measure,
            serial: 0,
            trains: Vec::new(),
            small: None,
            reply_octets: None,
            tally: Tally::default(),
        }
    }

    /// IP octets of the packets that measure.
    pub(super) fn octets(&self) -> u16 {
        let mtu = self.facts.as_ref().map_or(0, |facts| facts.path_mtu);
        self.params.octets.map_or(mtu, |octets| octets.min(mtu)).clamp(self.least_octets(), self.bounds.most_octets)
    }

    fn least_octets(&self) -> u16 {
        self.bounds.least_octets.min(self.bounds.most_octets)
    }

    pub(super) fn wake_ns(&self) -> f64 {
        nanos_f64(self.params.wake)
    }

    /// Standard deviation of the error of a gap, ns. What hosts measure is a 99th percentile.
    pub(super) fn noise_ns(&self) -> f64 {
        const NINETY_NINTH: f64 = 2.326;
        let host = self.facts.as_ref().map(|facts| &facts.sender);
        let stamp = host.map_or(0.0, |host| nanos_f64(host.stamp_error) / NINETY_NINTH);
        let step = host.map_or(0.0, |host| nanos_f64(host.clock_resolution) / 12f64.sqrt());
        std::f64::consts::SQRT_2 * stamp.hypot(step)
    }

    /// What one packet takes, ns: the median of the gaps.
    pub(super) fn typical_ns(&self) -> Option<f64> {
        let all: Vec<f64> = self.trains.iter().flat_map(|train| gaps(train, 0.0)).map(|gap| gap.ns).collect();
        narrows_stat::median(&all)
    }

    /// Gaps that are taken together, so that stamps blur them by little.
    pub(super) fn together(&self) -> usize {
        let typical = self.typical_ns().unwrap_or(f64::INFINITY);
        whole_packets(4.0 * self.noise_ns() / (BLUR * typical)).clamp(1, MOST_TOGETHER)
    }

    /// Packets of the next train: what passes while the remote host wakes up, and the gaps.
    fn packets(&self) -> usize {
        let wakes = self.typical_ns().map_or(FIRST_PACKETS, |gap| whole_packets(self.wake_ns() / gap).min(MOST_WAKES));
        let packets = 1 + wakes + self.params.gaps + self.together();
        self.answers_at_once().map_or(packets, |most| packets.min(most))
    }

    fn answers_at_once(&self) -> Option<usize> {
        let limit = self.facts.as_ref()?.answer_limit?;
        usize::try_from(limit.burst()).ok()
    }

    fn train(&mut self, packets: usize, ip_octets: u16) -> Option<Next> {
        let peer_kind = self.peer_kinds.first()?;
        let facts = self.facts.as_ref()?;
        let busy = self.typical_ns().map(|gap| duration(gap * packets as f64).div_f64(self.params.utilisation));
        let tokens = facts
            .answer_limit
            .map_or(Duration::ZERO, |limit| limit.every().saturating_mul(u32::try_from(packets).unwrap_or(u32::MAX)));
        self.serial += 1;
        let spacing = uneven(busy.unwrap_or(FIRST_SPACING).clamp(LEAST_SPACING, MOST_SPACING), self.serial);
        let packet = PacketPlan { gap: Duration::ZERO, ip_octets, hop_limit: None };
        Some(Next { packets: vec![packet; packets], peer_kind, spacing: spacing.max(tokens), rest: LEAST_SPACING })
    }

    /// Trains that the remote host has the time to answer.
    fn trains_wanted(&self) -> usize {
        let limit = self.facts.as_ref().and_then(|facts| facts.answer_limit);
        limit.map_or(self.params.trains, |_| self.params.trains.min(LIMITED_TRAINS))
    }

    fn is_hopeless(&self) -> bool {
        let silent = self.trains.iter().all(|train| train.arrivals.iter().all(|row| returned_ns(row).is_none()));
        let silent_trains = if self.answers_at_once().is_some() { LIMITED_SILENT_TRAINS } else { SILENT_TRAINS };
        (silent && self.trains.len() >= silent_trains)
            || (self.tally.sent >= JUDGED_PACKETS && 2 * self.tally.lost > self.tally.sent)
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) =
        ("answers", "trains of packets of one size that the remote host answers");

    fn begin(&mut self, facts: &PathFacts) {
        let peer_kind = match self.params.via.met_by(facts.answering) {
            Via::ClosedPort => PeerKind::ClosedPort,
            Via::Syn => PeerKind::TcpSyn,
            Via::Auto | Via::Receiver | Via::Echo | Via::Reflector => PeerKind::Echo,
        };
        self.peer_kinds = PeerKinds::new([peer_kind]);
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        if self.stage == Stage::Measure
            && (self.trains.len() >= self.trains_wanted() || self.is_hopeless() || self.is_settled())
        {
            let limited = self.facts.as_ref().is_some_and(|facts| facts.answer_limit.is_some());
            self.stage = if limited || self.is_hopeless() { Stage::Over } else { Stage::Small };
        }
        match self.stage {
            Stage::Measure => self.train(self.packets(), self.octets()),
            Stage::Small => self.train(SMALL_PACKETS, self.least_octets().max(SMALL_OCTETS)),
            Stage::Over => None,
        }
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.tally.sent += report.arrivals.len() as u64;
        self.tally.lost += report.lost() as u64;
        self.tally.disordered += u64::from(gaps::disordered(report));
        if self.stage == Stage::Small {
            self.small = Some(report.clone());
            self.stage = Stage::Over;
            return;
        }
        let octets = report.arrivals.iter().find_map(|row| reply_octets(asked, row));
        self.reply_octets = octets.or(self.reply_octets);
        self.trains.push(report.clone());
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        if self.stage == Stage::Small {
            self.stage = Stage::Over;
            return Ok(());
        }
        let bounds = &mut self.bounds;
        self.peer_kinds.refused(refusal, "trains that the remote host answers", |refusal| bounds.take(refusal))
    }

    fn reads(&self, asked: &Train) -> bool {
        asked.packets.iter().all(|packet| packet.hop_limit.is_none() && packet.ip_octets == asked.packets[0].ip_octets)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        self.outcome(stopped)
    }
}

// Ours, all of them.
/// Stamps may blur a gap by so much of itself.
const BLUR: f64 = 0.2;
const MOST_TOGETHER: usize = 6;
/// Packets that pass while a host wakes up, before the rate is known, and at most.
const FIRST_PACKETS: usize = 4;
const MOST_WAKES: usize = 64;
const FIRST_SPACING: Duration = Duration::from_millis(200);
const LEAST_SPACING: Duration = Duration::from_millis(20);
const MOST_SPACING: Duration = Duration::from_secs(5);
/// At one answer a second each of these takes six seconds.
const LIMITED_TRAINS: usize = 3;
const SILENT_TRAINS: usize = 3;
/// Each of these takes six seconds too.
const LIMITED_SILENT_TRAINS: usize = 2;
const JUDGED_PACKETS: u64 = 60;
const SMALL_PACKETS: usize = 24;
/// What Ethernet does not pad.
const SMALL_OCTETS: u16 = 64;
