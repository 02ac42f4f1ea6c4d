//! A path in closed form, for this crate's own tests: one link, cross traffic as a fluid, hosts
//! that may misbehave.
//!
//! The queue obeys `d' = max(0, d + L/C + u g - g)` from packet to packet, which in the overloaded
//! state is the affine response `g_out = L/C + u g_in` of the literature (`[TOPP00]`,
//! `[Dovrolis01]`).

use std::convert::Infallible;
use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use crate::probes::{Arrival, Fate, PacingCheck, Probe, Train, TrainReport};
use crate::{Event, PathFacts, Refusal, StampSource, World};

/// What happens to a report before the method sees it.
pub type Fault = Box<dyn FnMut(&mut TrainReport)>;

pub struct Fluid {
    pub capacity: BitRate,
    pub cross: BitRate,
    pub facts: PathFacts,
    /// Receiver's clock minus sender's, nanoseconds.
    pub offset_ns: i64,
    pub fault: Option<Fault>,
    /// The sender cannot go faster, whatever it is asked for and whatever its facts say.
    pub sender_rate: Option<BitRate>,
    pub trains: Vec<Train>,
    now: Stamp<Sender>,
}

impl Fluid {
    pub fn new(capacity: BitRate, cross: BitRate) -> Self {
        Self {
            capacity,
            cross,
            facts: PathFacts::ideal(1500, Duration::from_millis(10)),
            offset_ns: -40_000_000,
            fault: None,
            sender_rate: None,
            trains: Vec::new(),
            now: Stamp::from_nanos(1_000_000_000),
        }
    }

    pub fn with_fault(mut self, fault: impl FnMut(&mut TrainReport) + 'static) -> Self {
        self.fault = Some(Box::new(fault));
        self
    }

    /// What the path makes of a train, before anything happens to the report.
    pub fn report(&mut self, train: &Train) -> TrainReport {
        self.carry(train)
    }

    fn carry(&mut self, train: &Train) -> TrainReport {
        let utilisation = self.cross.as_f64() / self.capacity.as_f64();
        let (mut departed, mut queue_ns) = (self.now, 0.0f64);
        let mut arrivals = Vec::with_capacity(train.packets.len());
        let mut worst = Duration::ZERO;
        for (seq, packet) in (0u32..).zip(&train.packets) {
            let service_ns = f64::from(packet.ip_octets) * 8e9 / self.capacity.as_f64();
            if seq > 0 {
                let least = self.sender_rate.and_then(|rate| rate.time_for(u64::from(packet.ip_octets)));
                let gap = packet.gap.max(least.unwrap_or_default());
                if !packet.gap.is_zero() {
                    worst = worst.max(gap.saturating_sub(packet.gap));
                }
                let gap_ns = gap.as_nanos() as f64;
                departed = departed + gap;
                queue_ns = (queue_ns + service_ns + utilisation * gap_ns - gap_ns).max(0.0);
            }
            let delay = Duration::from_millis(5) + Duration::from_secs_f64((queue_ns + service_ns) * 1e-9);
            let arrived = (departed + delay).nanos() + self.offset_ns;
            arrivals.push(Arrival {
                seq,
                departed,
                ip_octets: packet.ip_octets,
                fate: Fate::Received(Stamp::from_nanos(arrived)),
            });
        }
        self.now = departed + Duration::from_secs_f64(queue_ns * 1e-9) + self.facts.rtt;
        TrainReport {
            id: train.id,
            arrivals,
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: if worst.is_zero() { PacingCheck::Kept } else { PacingCheck::Broken { worst } },
        }
    }
}

impl World for Fluid {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.now
    }

    fn facts(&self) -> PathFacts {
        self.facts.clone()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        let Probe::Train(train) = probe else {
            return Ok(Event::Refused(Refusal::NotOffered));
        };
        let mut report = self.carry(&train);
        self.trains.push(train);
        if let Some(fault) = &mut self.fault {
            fault(&mut report);
        }
        Ok(Event::Train(report))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.now = self.now.max(until);
        Ok(())
    }
}
