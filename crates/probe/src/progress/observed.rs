//! A world that tells what its probes bring.

use std::cell::Cell;
use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::{Feed, LONGEST_PAUSE, OnPath, Progress, Sample};
use crate::contract::Event;
use crate::facts::PathFacts;
use crate::outcome::Reason;
use crate::probes::Probe;
use crate::world::{Measured, Order, World};

/// Another world, and who is told of it.
pub struct Observed<'a, W: World> {
    inner: &'a mut W,
    feed: &'a dyn Feed,
    /// What the last probe brought, until the run reads the clock. A reading for the feed alone
    /// would be one more that a recorder within writes down, and its replay would differ.
    pending: Cell<Option<Sample>>,
}

impl<'a, W: World> Observed<'a, W> {
    /// The same world, watched.
    pub fn new(inner: &'a mut W, feed: &'a dyn Feed) -> Self {
        Self { inner, feed, pending: Cell::new(None) }
    }

    /// Waits for as long as the user wants. The path is idle, and the server free for others.
    pub(super) fn pause(&mut self) {
        const POLL: Duration = Duration::from_millis(200);
        let began = self.inner.now();
        while self.feed.paused() && !self.inner.stop_requested() && self.inner.now().since(began) < LONGEST_PAUSE {
            let until = self.inner.now() + POLL;
            if self.inner.wait(until).is_err() {
                // The next probe meets the same fault, and reports it.
                return;
            }
        }
    }
}

impl<W: World> World for Observed<'_, W> {
    type Fault = W::Fault;

    fn now(&self) -> Stamp<Sender> {
        let now = self.inner.now();
        if let Some(sample) = self.pending.take() {
            self.feed.tell(now, Progress::Sample(sample));
        }
        now
    }

    fn facts(&self) -> PathFacts {
        self.inner.facts()
    }

    fn begins(&mut self, order: &Order<'_>) {
        self.pause();
        self.inner.begins(order);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Self::Fault> {
        self.feed.on_path(match probe {
            Probe::Train(_) => OnPath::Train,
            Probe::Load(_) | Probe::Transfer(_) | Probe::Capture(_) => OnPath::Load,
        });
        let answer = self.inner.send(probe);
        self.feed.on_path(OnPath::Nothing);
        self.pending.set(answer.as_ref().ok().and_then(Sample::of));
        answer
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Self::Fault> {
        self.inner.wait(until)
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        self.inner.concluded(measured, stopped);
    }

    fn rest(&mut self) -> Result<(), Self::Fault> {
        self.inner.rest()
    }

    fn stop_requested(&self) -> bool {
        self.inner.stop_requested()
    }
}

/// Who sends a single probe reads no clock behind it.
impl<W: World> Drop for Observed<'_, W> {
    fn drop(&mut self) {
        if let Some(sample) = self.pending.take() {
            self.feed.tell(self.inner.now(), Progress::Sample(sample));
        }
    }
}
