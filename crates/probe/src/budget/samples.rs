//! What an answer rests on: the probes that went out, and what became of their packets.

use serde::{Deserialize, Serialize};

use narrows_units::to_u64;

use crate::contract::Event;
use crate::probes::PacingCheck;

/// Probes and packets of a run, counted from what the world told. What a method made of them (kept,
/// or left out and why) are the [`SampleCounts`](crate::outcome::SampleCounts) of its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Samples {
    /// Trains.
    pub trains: u64,
    /// Of these, trains whose departures left the plan.
    pub pacing_broken: u64,
    /// Load segments.
    pub loads: u64,
    /// Transfer segments.
    pub transfers: u64,
    /// Captures.
    pub captures: u64,
    /// Probes that were refused and never sent.
    pub refused: u64,
    /// Packets of trains and loads that were sent; of captures, that were seen.
    pub packets: u64,
    /// Of these, packets that were received, echoed or answered.
    pub answered: u64,
    /// Packets lost on the path.
    pub lost: u64,
    /// Packets that reached a host which dropped them or, limited, did not answer.
    pub dropped_by_host: u64,
    /// Packets that came behind one that was sent later.
    pub reordered: u64,
}

impl Samples {
    /// One run after the other.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            trains: self.trains.saturating_add(next.trains),
            pacing_broken: self.pacing_broken.saturating_add(next.pacing_broken),
            loads: self.loads.saturating_add(next.loads),
            transfers: self.transfers.saturating_add(next.transfers),
            captures: self.captures.saturating_add(next.captures),
            refused: self.refused.saturating_add(next.refused),
            packets: self.packets.saturating_add(next.packets),
            answered: self.answered.saturating_add(next.answered),
            lost: self.lost.saturating_add(next.lost),
            dropped_by_host: self.dropped_by_host.saturating_add(next.dropped_by_host),
            reordered: self.reordered.saturating_add(next.reordered),
        }
    }

    /// Counts what the world told.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Train(report) => {
                let (packets, lost) = (to_u64(report.arrivals.len()), to_u64(report.lost()));
                let dropped = u64::from(report.local_drops).min(lost);
                add(&mut self.trains, 1);
                add(&mut self.pacing_broken, u64::from(matches!(report.pacing, PacingCheck::Broken { .. })));
                add(&mut self.packets, packets);
                add(&mut self.answered, packets - lost);
                add(&mut self.lost, lost - dropped);
                add(&mut self.dropped_by_host, dropped);
                add(&mut self.reordered, u64::from(report.reordered));
            }
            Event::Load(report) => {
                let (received, _, lost, dropped) = report.totals();
                add(&mut self.loads, 1);
                add(&mut self.packets, report.sent_packets);
                add(&mut self.answered, received);
                add(&mut self.lost, lost.saturating_sub(dropped));
                add(&mut self.dropped_by_host, dropped);
                for status in &report.statuses {
                    add(&mut self.reordered, status.reordered);
                }
            }
            Event::Transfer(_) => add(&mut self.transfers, 1),
            Event::Capture(report) => {
                add(&mut self.captures, 1);
                add(&mut self.packets, to_u64(report.packets.len()));
            }
            Event::Refused(_) => add(&mut self.refused, 1),
            Event::Started(_) | Event::TimerFired | Event::Stop(_) => {}
        }
    }
}

/// A peer's reports may hold any number.
fn add(to: &mut u64, more: u64) {
    *to = to.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use narrows_units::Stamp;

    use super::*;
    use crate::StampSource;
    use crate::probes::{Arrival, Fate, TrainId, TrainReport};

    #[test]
    fn losses_are_the_paths_or_a_hosts() {
        let row = |seq, fate| Arrival { seq, departed: Stamp::from_nanos(i64::from(seq)), ip_octets: 100, fate };
        let reverse = Fate::Received(Stamp::from_nanos(7));
        let report = TrainReport {
            id: TrainId(1),
            arrivals: vec![row(0, reverse), row(1, Fate::Lost), row(2, reverse), row(3, Fate::Lost)],
            reordered: 1,
            duplicates: 0,
            local_drops: 1,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        };
        let mut samples = Samples::default();
        samples.take(&Event::Train(report.clone()));
        samples.take(&Event::Refused(crate::Refusal::NotOffered));
        let expected = Samples {
            trains: 1,
            refused: 1,
            packets: 4,
            answered: 2,
            lost: 1,
            dropped_by_host: 1,
            reordered: 1,
            ..Samples::default()
        };
        assert_eq!(samples, expected);
        let twice = samples.then(samples);
        assert_eq!((twice.packets, twice.answered, twice.trains), (8, 4, 2));
        // More drops than losses are not believed.
        let mut odd = Samples::default();
        odd.take(&Event::Train(TrainReport { local_drops: 9, ..report }));
        assert_eq!((odd.lost, odd.dropped_by_host), (0, 2));
    }
}
