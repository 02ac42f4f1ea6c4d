//! The two parts of a run: pairs and short trains, and, where those look odd, trains of all
//! lengths.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::odd;
use crate::capacity::{pathrate, signature};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::observations::{AnalyseError, Observation, Observations};
use narrows_probe::outcome::{Caveat, Confidence, Outcome, Reason};
use narrows_probe::probes::{Probe, TrainId, TrainReport};
use narrows_probe::registry::{Method, RawParams};

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    first: pathrate::Run,
    facts: Option<PathFacts>,
    reports: Vec<TrainReport>,
    second: Option<Second>,
}

#[derive(Debug, Clone)]
struct Second {
    run: signature::Run,
    /// What the first part came to.
    found: Outcome,
    /// Trains that came back.
    trains: u32,
}

impl Run {
    pub(super) fn new(params: pathrate::Params) -> Self {
        Self { first: pathrate::Run::new(params), facts: None, reports: Vec::new(), second: None }
    }

    fn first_step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        let asked_more = matches!(event, Event::Train(_) | Event::TimerFired);
        match &event {
            Event::Started(facts) => self.facts = Some(facts.clone()),
            Event::Train(report) => self.reports.push(report.clone()),
            _ => {}
        }
        let step = self.first.step(now, event);
        let (Step::Done(found), Some(facts), true) = (&step, &self.facts, asked_more) else {
            return step;
        };
        if !odd::worth_asking(facts, &self.reports, found) {
            return step;
        }
        let facts = facts.clone();
        let second = Second { run: signature::Run::new(second_params()), found: found.clone(), trains: 0 };
        self.second.insert(second).step(now, Event::Started(facts))
    }
}

impl Second {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        let event = match event {
            Event::Train(mut report) => {
                report.id = TrainId(report.id.0 & !SECOND);
                self.trains += 1;
                Event::Train(report)
            }
            Event::Stop(reason) if self.trains == 0 => return Step::Done(cut_short(self.found.clone(), &reason)),
            other => other,
        };
        match self.run.step(now, event) {
            Step::Send(Probe::Train(mut train)) => {
                train.id = TrainId(train.id.0 | SECOND);
                Step::Send(Probe::Train(train))
            }
            Step::Done(outcome) => Step::Done(odd::combine(self.found.clone(), outcome)),
            other => other,
        }
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match &mut self.second {
            Some(second) => second.step(now, event),
            None => self.first_step(now, event),
        }
    }
}

/// What both parts of a recording say.
pub(super) fn analyse(observations: &Observations, params: pathrate::Params) -> Result<Outcome, AnalyseError> {
    let (second, first): (Vec<Observation>, Vec<Observation>) =
        observations.rows.iter().cloned().partition(|row| is_second(&row.asked));
    if second.is_empty() {
        return pathrate::analyse_recorded(observations, params);
    }
    let stopped = observations.stopped.clone();
    let first = Observations { rows: first, stopped: None, ..observations.clone() };
    let found = pathrate::analyse_recorded(&first, params)?;
    let came = second.iter().any(|row| matches!(row.reported, Event::Train(_)));
    if let (false, Some(reason)) = (came, &stopped) {
        return Ok(cut_short(found, reason));
    }
    let second = Observations { rows: second, stopped, ..observations.clone() };
    let long = signature::SignatureMethod.analyse(&second, &RawParams::new())?;
    Ok(odd::combine(found, long))
}

fn is_second(asked: &Probe) -> bool {
    matches!(asked, Probe::Train(train) if train.id.0 & SECOND == SECOND)
}

/// As `pathrate` ends what is stopped.
fn cut_short(found: Outcome, stopped: &Reason) -> Outcome {
    match found {
        Outcome::Estimated(mut estimate) => {
            estimate.confidence = Confidence::Low;
            (*estimate).caveat(Caveat::StoppedEarly).into()
        }
        Outcome::Inconclusive { caveats, details, diagnostics, .. } => {
            Outcome::Inconclusive { reason: stopped.clone(), caveats, details, diagnostics }
        }
    }
}

/// One flow, and no more than the cause needs (ours).
fn second_params() -> signature::Params {
    signature::Params {
        trains: 6,
        longest: 600,
        flows: 1,
        span: Duration::from_millis(300),
        ..signature::Params::default()
    }
}

/// Marks the trains of the second part; the first part's phases have smaller numbers in these bits.
const SECOND: u32 = 0xf << 24;
