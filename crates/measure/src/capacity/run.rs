//! The parts of a run: pairs and short trains; where those show a rate that moves, trains over some
//! seconds; and where they look odd, trains of all lengths.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::{odd, varying};
use crate::capacity::{pathrate, signature};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::{Caveat, Confidence, Outcome, Reason};
use narrows_probe::probes::{Probe, TrainId, TrainReport};
use narrows_probe::registry::{Method, RawParams};

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    first: pathrate::Run,
    facts: Option<PathFacts>,
    reports: Vec<TrainReport>,
    moving: Option<Moving>,
    second: Option<Second>,
}

/// Trains that look whether the link's rate moves.
#[derive(Debug, Clone)]
struct Moving {
    run: varying::Run,
    /// What the first part came to.
    found: Outcome,
}

#[derive(Debug, Clone)]
struct Second {
    run: signature::Run,
    /// What the first part came to.
    found: Outcome,
    /// Trains that came back.
    trains: u32,
    /// No train is asked for after this.
    until: Stamp<Sender>,
}

impl Run {
    pub(super) fn new(params: pathrate::Params) -> Self {
        Self { first: pathrate::Run::new(params), facts: None, reports: Vec::new(), moving: None, second: None }
    }

    fn first_step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        let asked_more = matches!(event, Event::Train(_) | Event::TimerFired);
        match &event {
            Event::Started(facts) => self.facts = Some(facts.clone()),
            Event::Train(report) => self.reports.extend(self.first.apart_again(report)),
            _ => {}
        }
        let step = self.first.step(now, event);
        let (Step::Done(found), Some(facts), true) = (&step, &self.facts, asked_more) else {
            return step;
        };
        let settled = found.caveats().iter().any(|caveat| matches!(caveat, Caveat::Shaped | Caveat::StoppedEarly));
        match varying::suspected(facts, &self.reports).filter(|_| !settled) {
            Some(swing) => {
                let run = varying::Run::new(facts, swing, now);
                let first = run.next(now);
                self.moving = Some(Moving { run, found: found.clone() });
                first.unwrap_or(step)
            }
            None => self.after(now, found.clone()),
        }
    }

    fn moving_step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        let (Some(moving), Some(facts)) = (&mut self.moving, &self.facts) else {
            return Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent));
        };
        if let Event::Stop(reason) = event {
            return Step::Done(cut_short(moving.found.clone(), &reason));
        }
        if !moving.run.heard(event) {
            return Step::Done(moving.found.clone());
        }
        if let Some(step) = moving.run.next(now) {
            return step;
        }
        let found = moving.found.clone();
        if let Some(moved) = moving.run.conclude(facts, &found) {
            return Step::Done(moved);
        }
        self.moving = None;
        self.after(now, found)
    }

    /// The second part, or the end.
    fn after(&mut self, now: Stamp<Sender>, found: Outcome) -> Step {
        let longest = self.facts.as_ref().and_then(|facts| odd::worth_asking(facts, &self.reports, &found));
        let (Some(facts), Some(longest)) = (self.facts.clone(), longest) else {
            return Step::Done(found);
        };
        let run = signature::Run::new(second_params());
        self.second.insert(Second { run, found, trains: 0, until: now + longest }).step(now, Event::Started(facts))
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
            Step::Send(_) | Step::Wait { .. } if now > self.until => {
                Step::Done(odd::combine(self.found.clone(), self.run.conclude(None)))
            }
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
        match (&mut self.second, &self.moving) {
            (Some(second), _) => second.step(now, event),
            (None, Some(_)) => self.moving_step(now, event),
            (None, None) => self.first_step(now, event),
        }
    }
}

/// What all parts of a recording say.
pub(super) fn analyse(observations: &Observations, params: pathrate::Params) -> Result<Outcome, AnalyseError> {
    let of = |part: Part| {
        let rows = observations.rows.iter().filter(|row| Part::of(&row.asked) == part).cloned();
        Observations { rows: rows.collect(), stopped: None, ..observations.clone() }
    };
    let (mut first, moving, mut second) = (of(Part::First), of(Part::Moving), of(Part::Second));
    let stopped = observations.stopped.clone();
    if moving.rows.is_empty() && second.rows.is_empty() {
        first.stopped = stopped;
        return pathrate::analyse_recorded(&first, params);
    }
    let found = pathrate::analyse_recorded(&first, params)?;
    let reports: Vec<TrainReport> = trains(&moving).cloned().collect();
    let moved = varying::conclude(&observations.facts, &reports, &found);
    match (moved, stopped) {
        (Some(moved), None) if second.rows.is_empty() => Ok(moved),
        (_, Some(reason)) if trains(&second).next().is_none() => Ok(cut_short(found, &reason)),
        (_, None) if second.rows.is_empty() => Ok(found),
        (_, stopped) => {
            second.stopped = stopped;
            Ok(odd::combine(found, signature::SignatureMethod.analyse(&second, &RawParams::new())?))
        }
    }
}

fn trains(observations: &Observations) -> impl Iterator<Item = &TrainReport> {
    observations.rows.iter().filter_map(|row| match &row.reported {
        Event::Train(report) => Some(report),
        _ => None,
    })
}

/// The parts of a run, by their trains' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Moving,
    Second,
}

impl Part {
    fn of(asked: &Probe) -> Self {
        match asked {
            Probe::Train(train) if train.id.0 & SECOND == SECOND => Self::Second,
            Probe::Train(train) if varying::is_varying(train.id) => Self::Moving,
            _ => Self::First,
        }
    }
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
const SECOND: u32 = 0x1f << 24;
