//! One run: which train goes out, and when a round is over.

use std::time::Duration;

use narrows_units::BitRate;

use super::round::{Round, RoundAccount, RoundVerdict, rate, spacing};
use super::{LONGEST, Length, MIN_PACKETS, Rule, Settings, answer};
use crate::fac2::observation::{Flaw, TrainObservation, observation};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Train, TrainId, TrainReport};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason, uneven, whole_packets};

/// What a rule wants next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Turn {
    /// A round at this mean spacing, ns.
    Gap(f64),
    /// The same with smaller packets.
    Smaller(u16, f64),
    /// It is done.
    Stop(Ending),
}

/// Why a run ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flawed {
    /// Too many trains had to be thrown away.
    Trains(Reason),
    /// The rounds came to an end by themselves.
    Rule(Ending),
}

/// Why a rule ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At the turning point.
    Settled,
    /// The rounds allowed are spent.
    Exhausted,
    /// The first rate went through, and it may not go higher.
    BelowStart,
    /// Even the widest spacing was stretched.
    TooLow,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun<R> {
    pub(super) rule: R,
    pub(super) settings: Settings,
    pub(super) seen: RoundAccount,
    pub(super) ended: Option<Flawed>,
    /// Spacing of the round under way, ns; `None` is as fast as the sender can.
    gap_ns: Option<f64>,
    ip_octets: u16,
    /// Packets that batches ask for.
    least_packets: usize,
    /// Packets to which trains have doubled.
    doubled: usize,
    burst_octets: f64,
    serial: u32,
    resized: u32,
}

impl<R: Rule> MethodRun<R> {
    pub(crate) fn new(rule: R, settings: Settings) -> Self {
        Self {
            rule,
            burst_octets: f64::from(settings.burst_octets),
            settings,
            seen: RoundAccount::default(),
            ended: None,
            gap_ns: None,
            ip_octets: 0,
            least_packets: 0,
            doubled: 0,
            serial: 0,
            resized: 0,
        }
    }

    fn resize(&mut self, ip_octets: u16) {
        self.ip_octets = ip_octets;
        self.seen.rounds.push(Round::new(ip_octets));
    }

    fn bits(&self) -> f64 {
        f64::from(self.ip_octets) * 8.0
    }

    fn planned_rate(&self) -> Option<f64> {
        self.gap_ns.map(|gap| rate(self.bits(), gap)).filter(|rate| rate.is_finite())
    }

    /// Packets of the next train: as set, enough for stamps and batches, and no more queue than
    /// allowed.
    fn packets(&self) -> usize {
        let rate = self.planned_rate();
        let wanted = match (self.settings.length, rate) {
            (Length::Packets(packets), _) => packets,
            (Length::Doubling { first, .. }, _) => self.first_packets(first).max(self.doubled),
            (Length::Time(time), Some(rate)) => {
                whole_packets(rate * time.as_secs_f64() / self.bits()).clamp(MIN_PACKETS, LONGEST)
            }
            (Length::Time(_), None) => MIN_PACKETS,
        };
        let for_stamps = rate.map_or(0, |rate| {
            let resolved = RESOLVED * (1.0 - TYPICAL_USE);
            whole_packets(2.0 * self.seen.stamp_error_ns() * 1e-9 * rate / (self.bits() * resolved))
        });
        let wanted = wanted.max(for_stamps).max(self.least_packets).min(self.settings.max_packets);
        let growth = self.seen.rounds.iter().rev().find(|round| !round.looks.is_empty());
        let growth = growth.map_or(1.0, |round| (round.stretch() / round.gap_out()).max(0.02));
        let allowed = whole_packets(self.burst_octets / f64::from(self.ip_octets.max(1)) / growth);
        let extra = if self.seen.tally.overflows > 0 { 0 } else { self.least_packets };
        wanted.min(allowed.max(extra).max(SHORTEST))
    }

    fn first_packets(&self, given: Option<usize>) -> usize {
        let fast = self.seen.max_rate.is_none_or(|max| max >= FAST);
        given.unwrap_or(if fast { FIRST_FAST } else { FIRST })
    }

    fn discard(&mut self, flaw: Flaw) {
        let packets = self.packets();
        let tally = &mut self.seen.tally;
        let (count, reason) = match flaw {
            Flaw::AllLost => {
                self.burst_octets /= 2.0;
                (&mut tally.all_lost, Reason::NoAnswer)
            }
            Flaw::Pacing => (&mut tally.broken, Reason::SenderCannotPace),
            Flaw::ClockStep => (&mut tally.clock_steps, Reason::NoAgreement),
            Flaw::FewBatches => {
                self.least_packets = self.least_packets.max(2 * packets).min(self.settings.max_packets);
                (&mut tally.few_batches, Reason::ReceiveBatching)
            }
        };
        *count = count.saturating_add(1);
        if *count > RETRY_LIMIT {
            self.ended = Some(Flawed::Trains(reason));
        }
    }

    /// Losses by overflow shorten the trains to come before they lower the rate. `true`: the train
    /// is not used.
    fn overflowed(&mut self, observation: &TrainObservation) -> bool {
        let (lost, late) = (observation.lost as f64, observation.lost_late as f64);
        let overflow = late > 2.0 * (lost - late) + 2.0;
        if lost <= self.settings.loss * observation.packets as f64 || !overflow {
            return false;
        }
        if observation.packets > SHORTEST && self.seen.tally.overflows < RETRY_LIMIT {
            self.seen.tally.overflows += 1;
            let sent = observation.packets as f64 * f64::from(self.ip_octets);
            let built = sent * (1.0 - (observation.rate_out / observation.rate_in).min(0.99));
            let shorter = self.burst_octets.min(built) / 2.0;
            let asked = self.least_packets as f64 * f64::from(self.ip_octets);
            if asked > shorter && observation.rate_out < 0.9 * observation.rate_in {
                // Batches ask for trains that the queue cannot hold at this rate: slower, then, not
                // shorter.
                self.begin_round(self.ip_octets, spacing(self.bits(), observation.rate_out));
            } else {
                self.burst_octets = shorter;
            }
            return true;
        }
        self.seen.tally.exceeds_burst = true;
        false
    }

    fn note_batch(&mut self, observation: &TrainObservation) -> bool {
        let Some(batch) = observation.batch else { return true };
        self.seen.batch = Some(self.seen.batch.map_or(batch, |seen| seen.max(batch)));
        let per_batch = batch.as_secs_f64() * observation.rate_in.min(observation.rate_out) / self.bits();
        let wanted = whole_packets(BATCHES * per_batch).min(self.settings.max_packets);
        self.least_packets = self.least_packets.max(wanted);
        2 * observation.packets >= wanted
    }

    fn push(&mut self, observation: TrainObservation) {
        if self.planned_rate().is_none_or(|planned| observation.rate_sent < 0.9 * planned)
            && observation.rate_sent.is_finite()
        {
            self.seen.max_rate = Some(observation.rate_sent);
        }
        self.seen.tally.stalls += u32::from(observation.stalled);
        if let Length::Doubling { first, error } = self.settings.length {
            let own = observation.sub_train_variation.unwrap_or(0.0) / 10f64.sqrt();
            if own > error {
                let most = LONGEST.max(self.first_packets(first));
                self.doubled = self.doubled.max(2 * observation.packets).min(most);
            }
        }
        if let Some(round) = self.seen.rounds.last_mut() {
            round.looks.push(observation);
        }
        self.judge();
    }

    /// Ends the round if it is clear or has all its trains, and asks the rule for the next.
    fn judge(&mut self) {
        let Some(round) = self.seen.rounds.last() else { return };
        let (verdict, clear) = self.seen.judge(&self.settings, round);
        let at_max = verdict == RoundVerdict::Matched && self.seen.at_max(round);
        let least = if at_max { LIMIT_TRAINS } else { self.settings.streams };
        let trains = round.looks.len();
        if trains < least || (!clear && trains < self.settings.most_streams) {
            return;
        }
        let head = round.looks.iter().map(|observation| observation.head_excess).collect::<Vec<f64>>();
        if verdict == RoundVerdict::Congested {
            self.seen.tally.heads.extend(head);
        }
        if let Some(round) = self.seen.rounds.last_mut() {
            round.verdict = Some(verdict);
        }
        if at_max {
            self.ended = Some(Flawed::Rule(Ending::BelowStart));
            return;
        }
        let turn = if self.seen.rounds.len() >= self.settings.max_rounds {
            Turn::Stop(Ending::Exhausted)
        } else {
            self.rule.turn(&self.settings, &self.seen)
        };
        match turn {
            Turn::Gap(gap) => self.begin_round(self.ip_octets, gap),
            Turn::Smaller(octets, gap) => self.begin_round(octets, gap),
            Turn::Stop(ending) => self.ended = Some(Flawed::Rule(ending)),
        }
    }

    fn begin_round(&mut self, ip_octets: u16, gap_ns: f64) {
        self.ip_octets = ip_octets.max(1);
        let fastest = self.seen.max_rate.map_or(0.0, |max| self.bits() * 1e9 / max);
        self.gap_ns = Some(gap_ns.max(fastest).clamp(1.0, WIDEST_NS));
        if self.seen.rounds.last().is_some_and(|round| round.looks.is_empty()) {
            self.seen.rounds.pop();
        }
        self.seen.rounds.push(Round::new(self.ip_octets));
    }
}

impl<R: Rule> TrainMethod for MethodRun<R> {
    const READS: (&'static str, &'static str) = R::READS;

    fn begin(&mut self, facts: &PathFacts) {
        let octets = self.settings.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.seen.ip_octets = octets;
        self.seen.facts = Some(facts.clone());
        self.seen.max_rate = facts.max_paced_rate(octets).map(BitRate::as_f64);
        self.resize(octets);
        let start = self.settings.start.map(BitRate::as_f64);
        let first = [start, self.seen.max_rate].into_iter().flatten().reduce(f64::min);
        self.gap_ns = first.map(|rate| self.bits() * 1e9 / rate.max(1.0));
    }

    fn next(&mut self) -> Option<Next> {
        if self.ended.is_some() {
            return None;
        }
        let rate = self.planned_rate().and_then(BitRate::from_bps_f64).unwrap_or(BitRate::ZERO);
        let train = Train::at_rate(TrainId(0), self.packets(), self.ip_octets, rate);
        let period = train.ip_octets() as f64 * 8.0 / (self.settings.load * self.seen.scale());
        let period = Duration::try_from_secs_f64(period).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
        self.serial = self.serial.wrapping_add(1);
        Some(Next {
            packets: train.packets,
            peer_kind: PeerKind::Receiver,
            spacing: uneven(period, self.serial),
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, _: &Train, report: &TrainReport) {
        self.seen.count(report);
        match observation(report, self.seen.fastest()) {
            Err(flaw) => self.discard(flaw),
            Ok(observation) => {
                if self.overflowed(&observation) {
                    return;
                }
                if self.note_batch(&observation) {
                    self.push(observation);
                } else {
                    self.discard(Flaw::FewBatches);
                }
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let octets = match refusal {
            Refusal::TooLarge { max_ip_octets } if max_ip_octets < self.ip_octets && max_ip_octets > 0 => max_ip_octets,
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > self.ip_octets => min_ip_octets,
            Refusal::ForbiddenByPeer => return Err(Reason::ForbiddenByPeer),
            Refusal::TooLarge { .. } | Refusal::TooSmall { .. } | Refusal::NotOffered => {
                return Err(refusal_reason(refusal, "paced trains towards a receiver"));
            }
        };
        if self.resized > MOST_RESIZED {
            return Err(refusal_reason(refusal, "packets of a size that fits"));
        }
        let rate = self.planned_rate();
        self.seen.ip_octets = octets;
        self.resize(octets);
        self.gap_ns = rate.map(|rate| self.bits() * 1e9 / rate);
        Ok(())
    }

    /// Trains of one size near the rate that it would have asked for.
    fn reads(&self, asked: &Train) -> bool {
        let Some(first) = asked.packets.first() else {
            return false;
        };
        let alike =
            asked.packets.iter().all(|packet| packet.ip_octets == first.ip_octets && packet.hop_limit.is_none());
        let near = match (self.planned_rate(), asked.planned_rate()) {
            (None, None) => true,
            (Some(wanted), Some(asked)) => (asked.as_f64() / wanted - 1.0).abs() <= SAME_RATE,
            (Some(_), None) | (None, Some(_)) => false,
        };
        alike && near && first.ip_octets == self.ip_octets && asked.packets.len() >= SHORTEST
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

impl RoundAccount {
    fn count(&mut self, report: &TrainReport) {
        self.arrived_by = Some(report.arrived_by);
        if let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last()) {
            self.began.get_or_insert(first.departed);
            self.ended = Some(last.departed);
        }
        let tally = &mut self.tally;
        tally.trains += 1;
        tally.sent += report.arrivals.len() as u64;
        tally.lost += report.lost_on_path() as u64;
        tally.reordered += u64::from(report.reordered);
        tally.local_drops += u64::from(report.local_drops);
    }
}

/// Packets of the first train of [`Length::Doubling`], and where the sender may reach 10 Gbit/s
/// (`[Kachan17]` table 2).
const FIRST: usize = 20;
const FIRST_FAST: usize = 100;
const FAST: f64 = 9.5e9;
/// Fewest packets to which losses shorten a train.
const SHORTEST: usize = 16;
/// Trains that may be thrown away for each reason.
const RETRY_LIMIT: u32 = 6;
/// Trains that must come through before the sender is called the limit (ours).
const LIMIT_TRAINS: usize = 3;
/// Batches that a train is to span.
const BATCHES: f64 = 20.0;
/// Change of the rate that a train is to resolve, and the utilisation at which (ours, for the rule
/// of the train's length).
const RESOLVED: f64 = 0.02;
const TYPICAL_USE: f64 = 0.7;
/// Spacings no wider than this: a tenth of a second from packet to packet.
const WIDEST_NS: f64 = 1e8;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const MOST_RESIZED: u32 = 8;
/// Trains of another run within this share of the rate stand for one that was not sent.
const SAME_RATE: f64 = 0.02;
