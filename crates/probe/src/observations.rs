//! What a run saw, to be analysed again without probing again.

use std::fmt;
use std::time::Duration;

use narrows_units::{Sender, Stamp};
use serde::Serialize;
use thiserror::Error;

use crate::budget::restrain;
use crate::contract::{Estimator, Event, Step};
use crate::error::ParamError;
use crate::facts::PathFacts;
use crate::outcome::{Outcome, Reason};
use crate::probes::{PeerKind, Probe, Train, TrainReport};

/// What a run knew at its begin and was told on the way, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    /// What was known before the first probe, the user's peak rate included.
    pub facts: PathFacts,
    /// When the run began.
    pub began: Stamp<Sender>,
    /// When it ended.
    pub ended: Stamp<Sender>,
    /// What ended it, if not the method itself.
    pub stopped: Option<Reason>,
    /// Probes and their answers.
    pub rows: Vec<Observation>,
}

/// One probe and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// When it was asked.
    pub requested_at: Stamp<Sender>,
    /// What was asked.
    pub asked: Probe,
    /// When the answer was there.
    pub reported_at: Stamp<Sender>,
    /// The answer: a report, or a refusal.
    pub reported: Event,
}

/// How many probes of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Rows {
    /// Trains towards the receiver.
    pub trains: usize,
    /// Trains that were echoed.
    pub echoes: usize,
    /// Load segments.
    pub loads: usize,
    /// Transfer segments.
    pub transfers: usize,
    /// Captures.
    pub captures: usize,
    /// Probes that the world refused.
    pub refused: usize,
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.trains, "train(s) to the receiver"),
            (self.echoes, "echoed train(s)"),
            (self.loads, "load segment(s)"),
            (self.transfers, "transfer segment(s)"),
            (self.captures, "capture(s)"),
            (self.refused, "refused probe(s)"),
        ];
        let some: Vec<String> =
            kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        f.pad(&if some.is_empty() { "nothing".to_owned() } else { some.join(", ") })
    }
}

/// Observations cannot be analysed so. The caller can choose another method, other parameters, or
/// another recording.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnalyseError {
    /// A parameter.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// None of the rows is of a kind that the method reads.
    #[error("{method} needs {needs}; there is {holds}")]
    NothingToGoOn {
        /// The method.
        method: &'static str,
        /// What it reads.
        needs: &'static str,
        /// What is there.
        holds: Rows,
    },
}

impl Observations {
    /// How many probes of each kind there are.
    pub fn holds(&self) -> Rows {
        let mut rows = Rows::default();
        for row in &self.rows {
            let kind = match (&row.reported, &row.asked) {
                (Event::Refused(_), _) => &mut rows.refused,
                (_, Probe::Train(train)) if train.peer_kind == PeerKind::Receiver => &mut rows.trains,
                (_, Probe::Train(_)) => &mut rows.echoes,
                (_, Probe::Load(_)) => &mut rows.loads,
                (_, Probe::Transfer(_)) => &mut rows.transfers,
                (_, Probe::Capture(_)) => &mut rows.captures,
            };
            *kind += 1;
        }
        rows
    }

    /// Reports without what was planned: each train as it really left. Rows of one size that left
    /// evenly stand for a train at their median gap; any other for one with the gaps that it had.
    pub fn of_reports(facts: &PathFacts, reports: &[TrainReport]) -> Self {
        let rows: Vec<Observation> = reports.iter().filter_map(|report| as_asked(facts, report)).collect();
        let zero = Stamp::from_nanos(0);
        Self {
            facts: facts.clone(),
            began: rows.first().map_or(zero, |row| row.requested_at),
            ended: rows.last().map_or(zero, |row| row.reported_at),
            stopped: None,
            rows,
        }
    }

    /// None of the rows is what `method` needs.
    pub fn nothing(&self, method: &'static str, needs: &'static str) -> AnalyseError {
        AnalyseError::NothingToGoOn { method, needs, holds: self.holds() }
    }
}

/// Gaps within this share of their median, or this time of it, are even ("ours": what pacing on a
/// good host leaves).
const EVEN: (f64, f64) = (0.1, 2000.0);

/// The train of a report, as it left.
fn as_asked(facts: &PathFacts, report: &TrainReport) -> Option<Observation> {
    let (first, last) = (report.arrivals.first()?, report.arrivals.last()?);
    let gaps: Vec<Duration> = report.arrivals.windows(2).map(|pair| pair[1].departed.since(pair[0].departed)).collect();
    let in_ns: Vec<f64> = gaps.iter().map(|gap| gap.as_nanos() as f64).collect();
    let usual = narrows_stat::median(&in_ns).unwrap_or(0.0);
    let near = in_ns.iter().filter(|gap| (*gap - usual).abs() <= (EVEN.0 * usual).max(EVEN.1));
    // Pauses of the sender are no plan.
    let even = near.count() * 5 >= in_ns.len() * 4;
    let sizes = report.arrivals.iter().all(|row| row.ip_octets == first.ip_octets);
    let mut train = Train::uniform(report.id, report.arrivals.len(), first.ip_octets, Duration::ZERO);
    for (index, (packet, row)) in train.packets.iter_mut().zip(&report.arrivals).enumerate() {
        packet.ip_octets = row.ip_octets;
        let own = index.checked_sub(1).and_then(|before| gaps.get(before)).copied();
        packet.gap =
            if even && sizes { Duration::from_secs_f64(usual.max(0.0) * 1e-9) } else { own.unwrap_or_default() };
    }
    Some(Observation {
        requested_at: first.departed,
        asked: Probe::Train(train),
        // About when the last packet had arrived and its report was back.
        reported_at: last.departed + facts.rtt,
        reported: Event::Train(report.clone()),
    })
}

/// What a machine makes of reports alone: see [`Observations::of_reports`].
pub fn lead_reports<M: Replayable>(machine: M, facts: &PathFacts, reports: &[TrainReport]) -> Outcome {
    replay(machine, &Observations::of_reports(facts, reports))
        .unwrap_or_else(|_| Outcome::inconclusive(Reason::TooFewSamples { samples: 0 }))
}

/// A state machine that can be led through observations.
pub trait Replayable: Estimator {
    /// Its method's name, and what it reads.
    const READS: (&'static str, &'static str);

    /// Takes it that `asked` is what went out, though it would have asked something else: the
    /// answer comes next. `false` if that is nothing it can read; the answer is then left out.
    fn replay_step(&mut self, asked: &Probe) -> bool;
}

/// Feeds observations to a state machine as if it had asked for them, and returns what it makes of
/// them.
///
/// Where the machine asks what was really asked (in its own run with its own parameters that is
/// everywhere) this is the run again, step for step; elsewhere [`Replayable::replay_step`] decides
/// what the answer means to it.
pub fn replay<M: Replayable>(mut machine: M, observations: &Observations) -> Result<Outcome, AnalyseError> {
    let facts = &observations.facts;
    let mut step = machine.step(observations.began, Event::Started(facts.clone()));
    let mut used = 0;
    for row in &observations.rows {
        step = past_waits(&mut machine, step, row.requested_at);
        let wanted = match step {
            Step::Done(outcome) => return Ok(outcome),
            Step::Send(probe) => restrain(probe, facts.rate_cap),
            // It waits for something else than time.
            Step::Wait { .. } => break,
        };
        let name = match &wanted {
            Probe::Train(train) => Some(train.id),
            _ => None,
        };
        let follows = same(&wanted, &row.asked) || (reads(&wanted, &row.asked) && machine.replay_step(&row.asked));
        if !follows {
            step = Step::Send(wanted);
            continue;
        }
        let mut reported = row.reported.clone();
        if let (Event::Train(report), Some(name)) = (&mut reported, name) {
            report.id = name;
        }
        step = machine.step(row.reported_at, reported);
        used += 1;
    }
    if let Step::Wait { until } = step
        && until <= observations.ended
    {
        step = machine.step(observations.ended, Event::TimerFired);
    }
    if let Step::Done(outcome) = step {
        return Ok(outcome);
    }
    if used == 0 && observations.stopped.is_none() {
        let (method, needs) = M::READS;
        return Err(observations.nothing(method, needs));
    }
    let reason = observations.stopped.clone().unwrap_or(Reason::RowsSpent);
    match machine.step(observations.ended, Event::Stop(reason.clone())) {
        Step::Done(outcome) => Ok(outcome),
        Step::Send(_) | Step::Wait { .. } => Ok(Outcome::inconclusive(reason)),
    }
}

/// Waits that a machine may chain; each ends at once here.
const MOST_WAITS: u32 = 100;

fn past_waits(machine: &mut dyn Estimator, mut step: Step, now: Stamp<Sender>) -> Step {
    for _ in 0..MOST_WAITS {
        match step {
            Step::Wait { .. } => step = machine.step(now, Event::TimerFired),
            other => return other,
        }
    }
    step
}

/// Alike but for a train's name.
fn same(wanted: &Probe, asked: &Probe) -> bool {
    match (wanted, asked) {
        (Probe::Train(wanted), Probe::Train(asked)) => {
            wanted.packets == asked.packets && wanted.peer_kind == asked.peer_kind
        }
        _ => wanted == asked,
    }
}

/// Of one kind, so that the answer to one can stand for an answer to the other.
fn reads(wanted: &Probe, asked: &Probe) -> bool {
    match (wanted, asked) {
        (Probe::Train(wanted), Probe::Train(asked)) => {
            (wanted.peer_kind == PeerKind::Receiver) == (asked.peer_kind == PeerKind::Receiver)
        }
        _ => std::mem::discriminant(wanted) == std::mem::discriminant(asked),
    }
}
