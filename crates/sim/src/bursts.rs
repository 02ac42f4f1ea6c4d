//! The burst that a path takes beside traffic of others, or where chance drops: by asking the
//! simulator.
//!
//! On an idle path that is a matter of arithmetic ([`narrows_scenario::Truth::burst`]). Beside
//! others' traffic it is random, and its median is found as it is defined: bursts far longer than
//! any that survives, at moments far apart, of which each tells how much it brought through ahead
//! of its first loss. Nothing of a method is used here, and the seed is no run's.

use std::time::Duration;

use narrows_probe::probes::{Fate, Probe, Train, TrainId};
use narrows_probe::{Event, World};
use narrows_scenario::{PathDirection, Scenario};

use crate::SimWorld;

/// Bursts: the median of so many lies within a tenth of their scatter.
const BURSTS: u32 = 101;
/// The longest that are tried, as many as [`narrows_scenario::Truth::burst`] follows.
const LONGEST: usize = 100_000;
/// What the seed is mixed with, so that no run of a method sees the same packets.
const OTHER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The median burst in IP octets, of packets of this length; `None` if half of the bursts survive
/// whatever their length.
pub fn burst_median(scenario: &Scenario, way: PathDirection, ip_octets: u16) -> Option<u64> {
    let mut asker =
        Asker { world: SimWorld::new(scenario, way, scenario.seed ^ OTHER), ip_octets, sent: 0, slowest: None };
    // Twice the first size that is cut, so that nearly all are.
    let mut packets = 16;
    while asker.burst(packets)? == packets {
        packets *= 2;
        if packets > LONGEST {
            return None;
        }
    }
    packets *= 2;
    let mut through = Vec::new();
    for _ in 0..BURSTS {
        through.push(asker.burst(packets)?);
    }
    through.sort_unstable();
    let middle = *through.get(through.len() / 2)?;
    (middle < packets).then_some(middle as u64 * u64::from(ip_octets))
}

struct Asker {
    world: SimWorld,
    ip_octets: u16,
    sent: u32,
    /// Slowest arrival so far, bit/s.
    slowest: Option<f64>,
}

impl Asker {
    /// Packets ahead of the first loss, all if none was lost. Then waits until the queue has surely
    /// drained.
    fn burst(&mut self, packets: usize) -> Option<usize> {
        self.sent += 1;
        let train = Train::uniform(TrainId(self.sent), packets, self.ip_octets, Duration::ZERO);
        let Ok(Event::Train(report)) = self.world.send(Probe::Train(train)) else {
            return None;
        };
        if let Some(rate) = report.arrival_rate() {
            self.slowest = Some(self.slowest.map_or(rate.as_f64(), |slowest| slowest.min(rate.as_f64())));
        }
        let octets = packets as f64 * f64::from(self.ip_octets);
        let drain = self.slowest.map_or(1.0, |rate| octets * 8.0 / rate);
        // A generous pause at moments in step with nothing.
        let pause = (10.0 * drain).clamp(0.02, 10.0) * (1.0 + (f64::from(self.sent) * 0.618_033_988_75).fract());
        let until = self.world.now() + Duration::from_secs_f64(pause);
        let Ok(()) = self.world.wait(until);
        let lost = report.arrivals.iter().position(|row| row.fate == Fate::Lost);
        Some(lost.unwrap_or(packets))
    }
}
