//! One run: trains of small packets, and on a short path one so dense that batches show.

use narrows_units::{Delta, Sender, Stamp};

use super::{DENSE, DENSE_GAP, Params, SHORT_PATH, analyse, directions, round_trip, stamp_error};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::{AnswerLimit, Answering};
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Caveat, Outcome, Reason};
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_train::train_method::refusal_reason;

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    params: Params,
    facts: Option<PathFacts>,
    began: Option<Stamp<Sender>>,
    reports: Vec<TrainReport>,
    sent: u32,
    serial: u32,
    densely: bool,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, facts: None, began: None, reports: Vec::new(), sent: 0, serial: 0, densely: false }
    }

    fn proceed(&mut self, now: Stamp<Sender>) -> Step {
        let late = self.began.is_some_and(|began| now.since(began) >= self.params.duration);
        if self.sent >= self.params.probes || late {
            return self.dense().unwrap_or_else(|| Step::Done(self.conclude()));
        }
        let train = self.params.train;
        let most = self.limit().map_or(train, |limit| limit.burst().clamp(1, train));
        let count = (self.params.probes - self.sent).min(most);
        self.serial += 1;
        let id = TrainId(self.serial);
        let packets = usize::try_from(count).unwrap_or(usize::MAX);
        let train = Train::uniform(id, packets, self.params.ip_octets, self.params.spacing);
        self.sent += count;
        Step::Send(Probe::Train(self.answered(train)))
    }

    fn limit(&self) -> Option<AnswerLimit> {
        self.facts.as_ref().and_then(|facts| facts.answer_limit)
    }

    /// The train, answered by what there is.
    fn answered(&self, train: Train) -> Train {
        let answering = self.facts.as_ref().map_or(Answering::Server, |facts| facts.answering);
        Train { peer_kind: answering.peer_kind(), ..train }
    }

    /// On a short path, one train of packets so close that batches show.
    fn dense(&mut self) -> Option<Step> {
        let times = self.reports.iter().flat_map(|report| &report.arrivals).filter_map(round_trip);
        let least = times.min().filter(|least| *least < Delta::from(SHORT_PATH))?;
        // Where every delay is asked for, all packets are to be evenly spaced.
        if self.densely || self.params.delays || least <= Delta::ZERO || self.limit().is_some() {
            return None;
        }
        self.densely = true;
        self.serial += 1;
        let gap = self.facts.as_ref().map_or(DENSE_GAP, |facts| facts.sender.min_gap.max(DENSE_GAP));
        let packets = usize::try_from(DENSE).unwrap_or(usize::MAX);
        let train = Train::uniform(TrainId(self.serial), packets, self.params.ip_octets, gap);
        Some(Step::Send(Probe::Train(self.answered(train))))
    }

    fn conclude(&self) -> Outcome {
        let Some(facts) = &self.facts else { return Outcome::inconclusive(Reason::UnexpectedEvent) };
        let mut outcome = analyse(facts, &self.reports);
        if let Outcome::Estimated(estimate) = &mut outcome
            && self.params.delays
        {
            let rows = self.reports.iter().flat_map(|report| &report.arrivals);
            directions::series(rows, stamp_error(facts), self.params.spacing, &mut estimate.diagnostics);
        }
        outcome
    }

    fn stop(&self, reason: Reason) -> Outcome {
        match self.conclude() {
            Outcome::Estimated(estimate) => estimate.caveat(Caveat::StoppedEarly).into(),
            Outcome::Inconclusive { caveats, details, diagnostics, .. } => {
                Outcome::Inconclusive { reason, caveats, details, diagnostics }
            }
        }
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        match refusal {
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > self.params.ip_octets => {
                self.params.ip_octets = min_ip_octets;
                self.sent = self.sent.saturating_sub(self.params.train);
                self.proceed(now)
            }
            other => Step::Done(self.stop(refusal_reason(other, "small packets that the peer sends back"))),
        }
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("rtt", "echoed trains");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        matches!(asked, Probe::Train(_))
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => {
                self.facts = Some(facts);
                self.began = Some(now);
                self.proceed(now)
            }
            Event::Train(report) if self.began.is_some() && report.id == TrainId(self.serial) => {
                self.reports.push(report);
                self.proceed(now)
            }
            Event::Refused(refusal) if self.began.is_some() => self.refused(now, refusal),
            Event::Stop(reason) => Step::Done(self.stop(reason)),
            _ => Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent)),
        }
    }
}
