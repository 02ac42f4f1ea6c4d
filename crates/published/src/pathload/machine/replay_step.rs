//! Streams that were sent without being asked for: those of a recording.

use std::time::Duration;

use super::{INITIAL_LENGTHS, Machine, Phase};
use crate::pathload::fleet::{Fleet, Judgement, Rules};
use crate::pathload::shape::Shape;
use narrows_probe::observations::Replayable;
use narrows_probe::probes::{Probe, Train};
use narrows_units::nanos;

/// Fewest packets that make a trend: the least that the parameter allows.
const LEAST_PACKETS: usize = 40;
/// Share of the sender's highest paced rate from which a train of the right length was sent back to
/// back ("ours").
const AT_ONCE: f64 = 0.9;

impl Replayable for Machine {
    const READS: (&'static str, &'static str) = ("pathload", "periodic trains of 40 packets or more to the receiver");

    /// Neighbouring streams of one shape are a fleet. The first of another shape ends it, with the
    /// verdict of the streams that are there; streams of a fleet that was judged before its end are
    /// left out.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        let Some(shape) = periodic(train) else { return false };
        let bursts = shape.gap_ns == 0;
        if let Phase::Initial { tries, .. } = &self.phase {
            // On a real host a train that was sent back to back left in no less than its own time.
            let fast = shape.rate() >= AT_ONCE * self.limits.max_rate();
            let initial = INITIAL_LENGTHS.get(*tries).map(|length| length + 1);
            if bursts || (fast && initial == Some(train.packets.len())) {
                return true;
            }
            // No initial train: the search begins without its rate.
            self.phase = Phase::Fleets;
            drop(self.begin_search());
        }
        if bursts || train.packets.len() < LEAST_PACKETS {
            return false;
        }
        if shape != self.shape {
            if self.fleet.sent == 0 && self.judged == Some(shape) {
                return false;
            }
            self.close_fleet();
            self.fleet = Fleet::default();
            self.shape = shape;
            self.wanted = shape.rate();
            self.repeats = 0;
        }
        self.lengthened = train.packets.len() > self.params.stream_packets;
        true
    }
}

impl Machine {
    fn close_fleet(&mut self) {
        let rules = Rules { streams: self.fleet.sent, ..self.rules() };
        if self.fleet.sent > 0
            && let Judgement::FleetVerdict(verdict) = self.fleet.last(rules)
        {
            drop(self.judged(verdict));
        }
    }
}

/// The shape of a train of one size at one gap.
fn periodic(train: &Train) -> Option<Shape> {
    let (first, rest) = train.packets.split_first()?;
    let gap = rest.first()?.gap;
    let even = rest
        .iter()
        .all(|packet| packet.ip_octets == first.ip_octets && packet.gap.abs_diff(gap) <= Duration::from_nanos(1));
    even.then(|| Shape { ip_octets: first.ip_octets, gap_ns: nanos(gap) })
}
