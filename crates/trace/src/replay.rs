//! The world that answers from a recording.

use std::cell::Cell;

use narrows_probe::probes::Probe;
use narrows_probe::{Event, PathFacts, Reason, World};
use narrows_units::{Sender, Stamp};

use crate::error::ReplayFault;
use crate::run::{Exchange, Request, Run};

/// Answers the questions that were asked when `run` was recorded, in their order. A recording binds
/// one method and one set of parameters: another question is a fault that says what was expected.
#[derive(Debug, Clone)]
pub struct ReplayWorld<'a> {
    run: &'a Run,
    next: usize,
    /// The clock was read since the last answer.
    was_read: Cell<bool>,
}

impl<'a> ReplayWorld<'a> {
    /// At the run's begin.
    pub fn new(run: &'a Run) -> Self {
        Self { run, next: 0, was_read: Cell::new(false) }
    }

    /// Exchanges answered so far.
    pub fn answered(&self) -> usize {
        self.next
    }

    /// Exchanges that nobody asked for.
    pub fn left(&self) -> &'a [Exchange] {
        &self.run.exchanges[self.next..]
    }

    fn answer(&mut self, asked: &Request) -> Result<Event, ReplayFault> {
        let Some(held) = self.run.exchanges.get(self.next) else {
            return Err(ReplayFault::Over { steps: self.next, asked: describe(asked) });
        };
        if held.asked != *asked {
            return Err(ReplayFault::Differs {
                step: self.next + 1,
                held: describe(&held.asked),
                asked: describe(asked),
            });
        }
        self.next += 1;
        self.was_read.set(false);
        held.answer.event().map_err(|text| ReplayFault::Recorded(text.to_owned()))
    }

    /// The clock's first and last reading before the next step.
    fn readings(&self) -> (Stamp<Sender>, Stamp<Sender>) {
        if let Some(next) = self.run.exchanges.get(self.next) {
            return next.read;
        }
        if let Some(end) = &self.run.end {
            return end.read;
        }
        // The recording was cut: time stands still.
        let last = self.run.exchanges.last().map_or(Stamp::from_nanos(0), |last| last.read.1);
        (last, last)
    }
}

impl World for ReplayWorld<'_> {
    type Fault = ReplayFault;

    fn now(&self) -> Stamp<Sender> {
        let (first, later) = self.readings();
        if self.was_read.replace(true) { later } else { first }
    }

    fn facts(&self) -> PathFacts {
        self.run.header.facts.clone()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, ReplayFault> {
        self.answer(&Request::Probe(probe))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), ReplayFault> {
        self.answer(&Request::Wait { until }).map(|_| ())
    }

    fn stop_requested(&self) -> bool {
        let over = self.next == self.run.exchanges.len();
        over && self.run.end.as_ref().is_some_and(|end| end.stopped == Some(Reason::Interrupted))
    }
}

/// A question in a few words.
pub fn describe(asked: &Request) -> String {
    match asked {
        Request::Wait { until } => format!("a wait until {} ns", until.nanos()),
        Request::Probe(Probe::Train(train)) => {
            let (mut low, mut high) = (u16::MAX, 0);
            for packet in &train.packets {
                low = low.min(packet.ip_octets);
                high = high.max(packet.ip_octets);
            }
            let size = if low >= high { high.to_string() } else { format!("{low} to {high}") };
            format!(
                "train {} of {} packets of {size} octets over {}",
                train.id.0,
                train.packets.len(),
                narrows_units::format_duration(train.duration())
            )
        }
        Request::Probe(Probe::Load(load)) => format!(
            "a load of {} in packets of {} octets for {}",
            load.rate,
            load.ip_octets,
            narrows_units::format_duration(load.duration)
        ),
        Request::Probe(Probe::Transfer(transfer)) => format!(
            "a transfer over {} connection(s) for {}",
            transfer.streams,
            narrows_units::format_duration(transfer.duration)
        ),
        Request::Probe(Probe::Capture(capture)) => {
            format!("a capture for {}", narrows_units::format_duration(capture.duration))
        }
    }
}
