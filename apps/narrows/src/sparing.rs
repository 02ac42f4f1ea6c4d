//! No second of a measurement above its share, as far as single trains allow.
//!
//! A train goes out at about the rate of the link, or it would tell nothing of it: what it takes of
//! a second is its length. So trains wait until the second before has room for them. One that is
//! longer than a second's share waits until that second was empty, and what comes next waits for as
//! many seconds as it is shares long (docs/design/adr/0043).

use std::collections::VecDeque;
use std::time::Duration;

use narrows_probe::{Event, Measured, Order, PathFacts, Probe, Reason, World};
use narrows_units::{BitRate, Sender, Stamp};

/// A world whose trains spare the path.
pub(crate) struct Sparing<'a, W> {
    world: &'a mut W,
    /// Octets of a second.
    share: u64,
    /// Until when each train counts, and its octets.
    recent: VecDeque<(Stamp<Sender>, u64)>,
}

impl<'a, W: World> Sparing<'a, W> {
    /// At most this rate over any second.
    pub(crate) fn new(world: &'a mut W, over_second: BitRate) -> Self {
        Self { world, share: over_second.octets_in(SECOND).max(1), recent: VecDeque::new() }
    }

    /// When so many octets have room: with all that touched the second before, they are no more
    /// than a share. So no second has more, whichever it is: of all trains that touch it, the one
    /// that began last was held against all others.
    fn room_for(&self, octets: u64, now: Stamp<Sender>) -> Stamp<Sender> {
        let mut counted: u64 = self.recent.iter().map(|(_, octets)| octets).sum();
        let mut at = now;
        for (until, octets_of_one) in &self.recent {
            if counted == 0 || counted + octets <= self.share {
                break;
            }
            at = at.max(*until);
            counted -= octets_of_one;
        }
        at
    }

    fn sent(&mut self, octets: u64) {
        let shares = octets.div_ceil(self.share).max(1);
        let counts_for = SECOND * u32::try_from(shares).unwrap_or(u32::MAX);
        self.recent.push_back((self.world.now() + counts_for, octets));
    }
}

impl<W: World> World for Sparing<'_, W> {
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
        let Probe::Train(train) = &probe else { return self.world.send(probe) };
        let octets = train.ip_octets();
        let now = self.world.now();
        while self.recent.front().is_some_and(|(until, _)| *until <= now) {
            self.recent.pop_front();
        }
        let at = self.room_for(octets, now);
        if at > now {
            self.world.wait(at)?;
        }
        let event = self.world.send(probe)?;
        self.sent(octets);
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

const SECOND: Duration = Duration::from_secs(1);
