//! The recorder: any world, with everything that passes written down.

use std::cell::Cell;
use std::fmt::Display;
use std::io::Write;

use narrows_probe::probes::Probe;
use narrows_probe::{Event, Measured, Order, PathFacts, Reason, World};
use narrows_units::{Sender, Stamp};

use crate::error::WriteError;
use crate::header::{Header, Setting};
use crate::run::{Answer, End, Exchange, Request};
use crate::write::Writer;

/// Passes everything through to the world within, and writes it down.
///
/// A run is recorded from [`World::begins`] to [`World::concluded`]: the main job calls the first,
/// [`narrows_probe::run`] the second; who calls [`narrows_probe::run`] alone calls
/// [`World::begins`] before. What passes outside of a run is not recorded. When the file cannot be
/// written the measurement goes on, and [`Recorder::into_parts`] tells.
#[derive(Debug)]
pub struct Recorder<W, S: Write> {
    world: W,
    writer: Option<Writer<S>>,
    setting: Setting,
    fault: Option<WriteError>,
    /// Reports that have passed, recorded or not.
    reports: u64,
    /// The run under way.
    run: Option<Open>,
    true_time: fn(&W) -> Option<u64>,
}

/// A run under way.
#[derive(Debug)]
struct Open {
    facts: PathFacts,
    read: Cell<Option<(Stamp<Sender>, Stamp<Sender>)>>,
    began_true: Option<u64>,
}

impl<W: World, S: Write> Recorder<W, S> {
    /// Records what passes through `world`.
    pub fn new(world: W, writer: Writer<S>, setting: Setting) -> Self {
        Self::maybe(world, Some(writer), setting)
    }

    /// Records if there is a writer: for callers that record only when asked to.
    pub fn maybe(world: W, writer: Option<Writer<S>>, setting: Setting) -> Self {
        Self { world, writer, setting, fault: None, reports: 0, run: None, true_time: |_| None }
    }

    /// Notes the path's own time, in nanoseconds, at both ends of each run, where the world can
    /// tell it.
    #[must_use]
    pub fn with_true_time(mut self, true_time: fn(&W) -> Option<u64>) -> Self {
        self.true_time = true_time;
        self
    }

    /// The world within.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// Reports that have passed, recorded or not: zero if nothing has been measured.
    pub fn reports(&self) -> u64 {
        self.reports
    }

    /// Why nothing more is written, if so.
    pub fn fault(&self) -> Option<&WriteError> {
        self.fault.as_ref()
    }

    /// The world, the writer (`None` if nothing was to be recorded, or it failed), and what went
    /// wrong with it.
    pub fn into_parts(self) -> (W, Option<Writer<S>>, Option<WriteError>) {
        (self.world, self.writer, self.fault)
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer<S>) -> Result<(), WriteError>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = write(writer) {
            self.fault = Some(error);
            self.writer = None;
        }
    }

    fn note(&mut self, asked: Request, answer: impl FnOnce() -> Option<Answer>) {
        if self.writer.is_none() {
            return;
        }
        let Some(open) = &self.run else { return };
        let read = open.take_read(self.world.now());
        let Some(answer) = answer() else { return };
        let exchange = Exchange { read, asked, answer };
        self.write(|writer| writer.exchange(&exchange));
    }
}

impl Open {
    fn read(&self, now: Stamp<Sender>) {
        let first = self.read.get().map_or(now, |(first, _)| first);
        self.read.set(Some((first, now)));
    }

    /// The readings since the last answer; `now` if there was none.
    fn take_read(&self, now: Stamp<Sender>) -> (Stamp<Sender>, Stamp<Sender>) {
        self.read.take().unwrap_or((now, now))
    }
}

impl<W, S> World for Recorder<W, S>
where
    W: World,
    W::Fault: Display,
    S: Write,
{
    type Fault = W::Fault;

    fn now(&self) -> Stamp<Sender> {
        let now = self.world.now();
        if let Some(open) = &self.run {
            open.read(now);
        }
        now
    }

    /// During a run: what was written in its head.
    fn facts(&self) -> PathFacts {
        match &self.run {
            Some(open) => open.facts.clone(),
            None => self.world.facts(),
        }
    }

    fn begins(&mut self, order: &Order<'_>) {
        self.world.begins(order);
        let facts = self.world.facts();
        let header = Header::new(&self.setting, order, facts.clone());
        self.write(|writer| writer.header(&header));
        self.run = Some(Open { facts, read: Cell::new(None), began_true: (self.true_time)(&self.world) });
    }

    fn send(&mut self, probe: Probe) -> Result<Event, W::Fault> {
        let asked = self.writer.as_ref().map(|_| Request::Probe(probe.clone()));
        let answer = self.world.send(probe);
        self.reports += u64::from(matches!(&answer, Ok(event) if !matches!(event, Event::Refused(_))));
        if let Some(asked) = asked {
            self.note(asked, || match &answer {
                Ok(event) => Answer::of(event),
                Err(fault) => Some(Answer::Fault(fault.to_string())),
            });
        }
        answer
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), W::Fault> {
        let answer = self.world.wait(until);
        self.note(Request::Wait { until }, || match &answer {
            Ok(()) => Some(Answer::TimerFired),
            Err(fault) => Some(Answer::Fault(fault.to_string())),
        });
        answer
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        self.world.concluded(measured, stopped);
        let Some(open) = self.run.take() else { return };
        let ended_true = (self.true_time)(&self.world);
        let end = End {
            read: open.take_read(self.world.now()),
            stopped: stopped.cloned(),
            outcome: measured.outcome.clone(),
            cost: measured.cost,
            true_ns: open.began_true.zip(ended_true),
        };
        self.write(|writer| writer.end(&end));
    }

    fn rest(&mut self) -> Result<(), W::Fault> {
        self.world.rest()
    }

    fn stop_requested(&self) -> bool {
        self.world.stop_requested()
    }
}
