//! Whether the turning point is the path's or the hosts': hosts take so many packets a second,
//! links so many octets.
//!
//! A turning point near what the sender can do may be where a host stops to keep up. Trains of half
//! the size tell: a little more packets a second than at the turning point are far fewer octets.
//! Only a host lets their delays grow.

use narrows_units::{BitRate, Sender, Stamp};

use super::super::answer::Ending;
use super::super::train::analyse;
use super::Machine;
use narrows_probe::Step;
use narrows_probe::probes::TrainReport;

/// Turning points from this share of the sender's highest rate on may be a host's (ours).
const NEAR_HOSTS: f64 = 0.5;
/// Packets a second, relative to the turning point's (ours: delays grow by a fifth where a host is
/// the limit, and links have three eighths of their octets to spare).
const MORE_PACKETS: f64 = 1.25;
/// Share of the growth that a host would show which tells one from the other (ours).
const GROWS: f64 = 0.5;
/// Trains of half the size, and how many may fail (ours).
const TRAINS: usize = 3;
const TRIES: usize = 6;
/// A train of hardly more packets a second than at the turning point cannot tell (ours).
const LEAST_MORE: f64 = 1.05;

/// What is known of the turning point.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum TurningPointOf {
    /// Not asked.
    #[default]
    Unknown,
    /// Trains of half the size are under way.
    Asked { ending: Ending, tries: usize },
    /// Links decide.
    Path,
    /// A host does, or nothing tells.
    Host,
}

impl Machine {
    /// Ends the run, or first asks whose the turning point is.
    pub(super) fn end(&mut self, now: Stamp<Sender>, ending: Ending) -> Step {
        if let Some(step) = self.look_full(now, &ending) {
            return step;
        }
        let natural = matches!(ending, Ending::Settled | Ending::Exhausted);
        let watches = natural || ending == Ending::HostLimited;
        if let Some(step) = watches.then(|| self.watch_last(&ending)).flatten() {
            return step;
        }
        if natural && self.may_be_hosts() && self.turning_point_of == TurningPointOf::Unknown {
            self.turning_point_of = TurningPointOf::Asked { ending, tries: 0 };
            return self.send_half_size(now);
        }
        self.done(&ending)
    }

    /// Whether a host may be what the turning point shows, as far as rates say.
    pub(super) fn may_be_hosts(&self) -> bool {
        let narrow = self.params.narrow.map_or(f64::INFINITY, BitRate::as_f64);
        let near = |max: f64| self.available >= NEAR_HOSTS * max && narrow >= max;
        !self.replayed && self.pooled.is_some() && self.seen.max_rate.is_some_and(near)
    }

    /// A host is the limit, or may be and nobody asked.
    pub(super) fn is_hosts(&self) -> bool {
        match self.turning_point_of {
            TurningPointOf::Path => false,
            TurningPointOf::Host => true,
            TurningPointOf::Unknown | TurningPointOf::Asked { .. } => self.may_be_hosts(),
        }
    }

    fn send_half_size(&mut self, now: Stamp<Sender>) -> Step {
        let octets = self.seen.packet_octets / 2;
        let rate = BitRate::from_bps_f64(MORE_PACKETS * self.available / 2.0).unwrap_or(BitRate::ZERO);
        let packets = (2 * self.packets).min(self.params.max_packets);
        self.send_even(now, packets, octets, rate)
    }

    /// Takes a train of half the size.
    pub(super) fn take_half_size(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        self.seen.count(report);
        if let Ok(train) = analyse(report, None) {
            self.seen.half_size.push((2.0 * train.rate / self.available, train.growth));
        }
        let TurningPointOf::Asked { ending, tries } = &mut self.turning_point_of else {
            return self.send(now);
        };
        *tries += 1;
        let telling = self.seen.half_size.iter().filter(|(packets, _)| *packets >= LEAST_MORE);
        // What a host would show is 1: packets come in faster than it takes them.
        let shown: Vec<f64> = telling.map(|(packets, growth)| growth / (1.0 - 1.0 / packets)).collect();
        if shown.len() < TRAINS && *tries < TRIES {
            return self.send_half_size(now);
        }
        let ending = ending.clone();
        let grows = narrows_stat::median(&shown).is_none_or(|median| shown.len() < TRAINS || median > GROWS);
        self.turning_point_of = if grows { TurningPointOf::Host } else { TurningPointOf::Path };
        self.done(&ending)
    }
}
