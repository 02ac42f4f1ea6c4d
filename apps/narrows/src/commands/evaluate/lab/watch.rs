//! A world that looks over the sender's shoulder.

use std::time::Duration;

use estimate::probe::{PacingCheck, Probe};
use estimate::{Beginning, Event, Measured, PathFacts, Reason, World};
use units::{Sender, Stamp};

use super::bed::PathClock;

/// Passes everything through, counts how many trains left as planned, and knows the path's own time.
pub(super) struct Watch<W> {
    world: W,
    clock: PathClock,
    trains: u32,
    broken: u32,
}

/// Share of trains that may leave otherwise than planned before a run does not count, in hundredths. Methods discard such trains and
/// send others, so a few do no harm; where one in ten breaks, the machine is at work on something else (ours).
const BROKEN_PERCENT: u32 = 10;

impl<W: World> Watch<W> {
    pub(super) fn new(world: W, clock: PathClock) -> Self {
        Self {
            world,
            clock,
            trains: 0,
            broken: 0,
        }
    }

    pub(super) fn path_time(&self) -> Duration {
        self.clock.now()
    }

    /// What the sender says against the run, if anything.
    pub(super) fn complaint(&self) -> Option<String> {
        (self.broken * 100 > self.trains * BROKEN_PERCENT)
            .then(|| format!("{} of {} trains left otherwise than planned", self.broken, self.trains))
    }
}

impl<W: World> World for Watch<W> {
    type Fault = W::Fault;

    fn now(&self) -> Stamp<Sender> {
        self.world.now()
    }

    fn facts(&self) -> PathFacts {
        self.world.facts()
    }

    fn begins(&mut self, run: &Beginning<'_>) {
        self.world.begins(run);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, W::Fault> {
        let event = self.world.send(probe)?;
        if let Event::Train(report) = &event {
            self.trains += 1;
            self.broken += u32::from(matches!(report.pacing, PacingCheck::Broken { .. }));
        }
        Ok(event)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), W::Fault> {
        self.world.wait(until)
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        self.world.concluded(measured, stopped);
    }

    fn rest(&mut self) -> Result<(), W::Fault> {
        self.world.rest()
    }

    fn stop_requested(&self) -> bool {
        self.world.stop_requested()
    }
}
