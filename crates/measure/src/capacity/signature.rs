#![doc = include_str!("signature.md")]

mod answer;
mod batches;
mod cause;
mod classify;
mod grants;
mod params;
mod plan;
mod rungs;
#[cfg(test)]
mod tests;
mod trains;
mod turning_point;

use std::time::Duration;

use narrows_units::{Layer, Metric, Sender, Stamp};

pub use cause::{Cause, Rung, Signature, Spread};
pub use classify::classify;
pub use params::Params;

use self::plan::{Planner, RunHistory};
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::{AnalyseError, Observations};
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Probe, TrainId};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct SignatureMethod;

static INFO: MethodInfo = MethodInfo {
    name: "signature",
    summary: "capacity of parallel, aggregating and slotted links, and which of them it is",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 6_000_000,
        max_octets: 400_000_000,
        typical_time: Duration::from_millis(2500),
        max_time: Duration::from_secs(60),
        fills_path: true,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("signature.md"),
};

impl Method for SignatureMethod {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        let _: Params = Params::try_from(params)?;
        let mut reported = RunHistory::default();
        let mut stopped = observations.stopped.clone();
        for row in &observations.rows {
            match (&row.asked, &row.reported) {
                (Probe::Train(train), Event::Train(report)) if train.peer_kind == PeerKind::Receiver => {
                    reported.trains.push(report.clone());
                }
                (Probe::Load(load), Event::Load(report)) => reported.loads.push((*load, report.clone())),
                // As in the state machine: only what ended the run.
                (Probe::Train(train), Event::Refused(refusal)) if train.peer_kind == PeerKind::Receiver => {
                    stopped = refusal_reason(*refusal).or(stopped);
                }
                _ => {}
            }
        }
        if reported.trains.is_empty() && stopped.is_none() {
            return Err(observations.nothing("signature", "trains to the receiver"));
        }
        Ok(answer::conclude(&observations.facts, &reported, stopped.as_ref()))
    }
}

/// Why a refused train ends a run; a smaller size does not.
fn refusal_reason(refusal: Refusal) -> Option<Reason> {
    match refusal {
        Refusal::TooLarge { .. } => None,
        Refusal::TooSmall { .. } | Refusal::NotOffered => {
            Some(Reason::NotOffered { what: "trains of packets towards a receiver that stamps them".to_owned() })
        }
        Refusal::ForbiddenByPeer => Some(Reason::ForbiddenByPeer),
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    planner: Planner,
    facts: Option<PathFacts>,
    reported: RunHistory,
    /// What was asked last, on its way or waiting for its time.
    current: Option<Probe>,
    waits: bool,
    serial: u32,
    not_before: Option<Stamp<Sender>>,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            planner: Planner::new(params),
            facts: None,
            reported: RunHistory::default(),
            current: None,
            waits: false,
            serial: 0,
            not_before: None,
        }
    }

    fn proceed(&mut self, now: Stamp<Sender>) -> Step {
        let Some(facts) = &self.facts else {
            return unexpected();
        };
        self.serial += 1;
        self.current = self.planner.next(facts, &self.reported, self.serial);
        match (&self.current, self.not_before.filter(|until| *until > now)) {
            (None, _) => Step::Done(self.conclude(None)),
            (Some(_), Some(until)) => {
                self.waits = true;
                Step::Wait { until }
            }
            (Some(probe), None) => Step::Send(probe.clone()),
        }
    }

    /// What the trains that came say.
    pub(super) fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        match &self.facts {
            Some(facts) => answer::conclude(facts, &self.reported, stopped),
            None => Outcome::inconclusive(stopped.cloned().unwrap_or(Reason::UnexpectedEvent)),
        }
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        let asked = self.current.take();
        match (asked, refusal, &mut self.facts) {
            (Some(Probe::Train(train)), Refusal::TooLarge { max_ip_octets }, Some(facts))
                if max_ip_octets > 0
                    && train.packets.iter().any(|packet| packet.ip_octets > max_ip_octets)
                    && max_ip_octets < facts.path_mtu =>
            {
                facts.path_mtu = max_ip_octets;
                self.proceed(now)
            }
            // Several flows at once are the last question, and a luxury.
            (Some(Probe::Load(_)), _, _) => self.proceed(now),
            (Some(Probe::Train(_)), _, _) => {
                let reason = refusal_reason(refusal).unwrap_or(Reason::UnexpectedEvent);
                Step::Done(self.conclude(Some(&reason)))
            }
            _ => unexpected(),
        }
    }
}

fn unexpected() -> Step {
    Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent))
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => {
                self.facts = Some(facts);
                self.proceed(now)
            }
            Event::TimerFired if self.waits => {
                self.waits = false;
                match &self.current {
                    Some(probe) => Step::Send(probe.clone()),
                    None => unexpected(),
                }
            }
            Event::Train(report) if report.id == TrainId(self.serial) && self.current.is_some() => {
                if let Some(facts) = &self.facts {
                    self.not_before = Some(now + self.planner.pause(facts, &report));
                }
                self.reported.trains.push(report);
                self.proceed(now)
            }
            Event::Load(report) => match self.current.take() {
                Some(Probe::Load(load)) => {
                    self.reported.loads.push((load, report));
                    self.proceed(now)
                }
                _ => unexpected(),
            },
            Event::Refused(refusal) if !self.waits => self.refused(now, refusal),
            Event::Stop(reason) => Step::Done(self.conclude(Some(&reason))),
            _ => unexpected(),
        }
    }
}
