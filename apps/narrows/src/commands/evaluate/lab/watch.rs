//! A world that looks over the sender's shoulder.

use std::time::Duration;

use narrows_probe::probes::{PacingCheck, Probe};
use narrows_probe::{Event, Measured, Order, PathFacts, Reason, World};
use narrows_units::{Sender, Stamp};

use super::host_pair::PathClock;

/// Passes everything through, counts in how many trains the sender paused, and knows the path's own
/// time.
pub(super) struct Watch<W> {
    world: W,
    clock: PathClock,
    trains: u32,
    paused: u32,
}

/// Share of trains in which the sender may pause before a run does not count, in hundredths.
/// Methods discard such trains and send others, so a few do no harm; where it is one in ten, the
/// machine is at work on something else (ours).
const PAUSED_PERCENT: u32 = 10;
/// A gap that much longer or shorter than planned is a pause of the host: what methods take for
/// one, too. Smaller departures from the plan are a host's usual lot; the rows hold the true times,
/// and it is the methods' business to live with them (ours).
const PAUSE: Duration = Duration::from_micros(500);

impl<W: World> Watch<W> {
    pub(super) fn new(world: W, clock: PathClock) -> Self {
        Self { world, clock, trains: 0, paused: 0 }
    }

    pub(super) fn path_time(&self) -> Duration {
        self.clock.now()
    }

    /// What the sender says against the run, if anything.
    pub(super) fn complaint(&self) -> Option<String> {
        (self.paused * 100 > self.trains * PAUSED_PERCENT)
            .then(|| format!("the sender paused for {PAUSE:?} or more in {} of {} trains", self.paused, self.trains))
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

    fn begins(&mut self, order: &Order<'_>) {
        self.world.begins(order);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, W::Fault> {
        let event = self.world.send(probe)?;
        if let Event::Train(report) = &event {
            self.trains += 1;
            self.paused += u32::from(matches!(report.pacing, PacingCheck::Broken { worst } if worst >= PAUSE));
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
