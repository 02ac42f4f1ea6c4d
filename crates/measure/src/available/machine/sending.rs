//! The next train: its rate, its length, its head.

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use super::super::params::Mode;
use super::super::pooled::PooledEstimate;
use super::super::sizes::{Allowed, FIRST_PACKETS, SHORTEST, Scale};
use super::ending::FAIR;
use super::{FLOOR, Machine, Phase};
use narrows_probe::Step;
use narrows_probe::probes::{PacketPlan, Probe, Train, TrainId};
use narrows_train::train_method::whole_packets;

/// Rates of a curve's train, relative to the estimate, in shares of the path's rate.
const CURVE: (f64, f64) = (-0.3, 0.35);

/// The load of a run whose trains disagree is up to so many times the usual.
const MORE: f64 = 6.0;
/// A head is sent at so many times the train's rate, or not at all (ours).
const HEADED: f64 = 1.2;
/// A train that exceeds the estimate by this share of the path's rate builds its queue by itself
/// (ours).
const OWN_QUEUE: f64 = 0.2;
/// The queue of a train stood for this share of its time at least (ours).
const STOOD: f64 = 0.4;
/// No more is drained than from a tight link so many times as fast as the narrow one (ours).
const FASTER: f64 = 2.0;

impl Machine {
    /// Sends a train of packets of one size at even gaps, with nothing in front of it.
    pub(super) fn send_even(&mut self, now: Stamp<Sender>, packets: usize, octets: u16, rate: BitRate) -> Step {
        let train = Train::at_rate(TrainId(self.next_id), packets, octets, rate);
        self.next_id = self.next_id.wrapping_add(1);
        self.train_began = now;
        Step::Send(Probe::Train(train))
    }

    /// Rates that grow geometrically from below the turning point to above it.
    pub(super) fn curve_train(&self, id: TrainId) -> Train {
        let scale = self.seen.scale().unwrap_or(self.available);
        let top = self.rate.unwrap_or(self.available).max(1.0);
        let bottom = (self.available + CURVE.0 * scale).max(0.3 * self.available).clamp(0.02 * top, 0.9 * top);
        let steps = self.packets.saturating_sub(1).max(1) as f64;
        let mut train = Train::uniform(id, self.packets, self.seen.packet_octets, Duration::ZERO);
        for (index, packet) in train.packets.iter_mut().enumerate() {
            let rate = bottom * (top / bottom).powf(index as f64 / steps);
            let gap = Duration::try_from_secs_f64(self.packet_bits() / rate).unwrap_or(Duration::from_millis(100));
            *packet = PacketPlan { gap, ..*packet };
        }
        train
    }

    /// The first packets leave faster, so that the tight link's queue stands when the others come.
    pub(super) fn headed(&self, mut train: Train) -> Train {
        let rate = self.priming_burst_rate();
        let gap = Duration::try_from_secs_f64(self.packet_bits() / rate).unwrap_or(Duration::ZERO);
        for packet in train.packets.iter_mut().take(self.priming_packets.0) {
            packet.gap = packet.gap.min(gap);
        }
        train
    }

    /// Rate of the next train's head: what the narrow link surely passes, if that builds a queue.
    /// What waits before the narrow link would go while the train passes, and look like more that
    /// is available behind it.
    fn priming_burst_rate(&self) -> f64 {
        let scale = self.scale();
        if scale.rate >= HEADED * self.rate.unwrap_or(scale.rate) {
            return self.seen.max_rate.map_or(scale.rate, |most| scale.rate.min(most));
        }
        scale.priming_burst_rate(self.seen.max_rate)
    }

    /// Gives the next train its head.
    pub(super) fn prime(&mut self) {
        let (Phase::Near, Mode::Slope, Some(rate)) = (self.phase, self.params.mode, self.rate) else {
            return;
        };
        let scale = self.scale();
        let priming_burst_rate = self.priming_burst_rate();
        if priming_burst_rate < HEADED * rate || rate >= self.available + OWN_QUEUE * scale.rate {
            return;
        }
        let length = self.packets as f64 * self.packet_bits() / rate.max(1.0);
        let burst = self.burst.unwrap_or(scale.burst(&self.params));
        let (packets, delay) = scale.priming_packets(self.available, priming_burst_rate, length, self.wander(), burst);
        self.priming_packets = (packets.min(self.packets), delay);
    }

    /// By how much the load is to grow, so that what the trains' disagreement asks for is spent in
    /// time.
    pub(super) fn more(&self) -> f64 {
        let found = self.pooled.as_ref().filter(|_| self.params.load.is_none());
        let Some(found) = found.filter(|found| found.per_train.len() >= self.params.min_trains) else {
            return 1.0;
        };
        let scale = self.scale().rate;
        let half = found.half_width(FLOOR * scale) / scale;
        (half / FAIR).powi(2).clamp(1.0, MORE)
    }

    /// Packets of the next train.
    pub(super) fn length(&self) -> usize {
        let scale = self.scale();
        let hard = self.seen.overflows > 0;
        let burst = self.burst.unwrap_or(scale.burst(&self.params));
        let short = FIRST_PACKETS.max(self.least_packets);
        let (Phase::Near, Some(rate)) = (self.phase, self.rate) else {
            let whole = whole_packets(burst / self.packet_bits()).max(SHORTEST);
            let extra = if hard { SHORTEST } else { self.least_packets };
            return short.min(whole.max(extra));
        };
        let mut over = rate - self.available;
        let mut packets = 1;
        if self.params.mode == Mode::Curve {
            // Its mean overload is a quarter of its highest; and the slow half takes its packets,
            // too.
            over /= 4.0;
            packets = 2;
        }
        let spread = self.pooled.as_ref().map_or(0.0, |pooled| pooled.train_spread);
        packets * scale.packets(&self.params, rate, over, self.least_packets, Allowed { burst, hard }, spread)
    }

    /// The rate of the next train near the turning point.
    pub(super) fn next_near(&mut self) {
        let scale = self.scale();
        let rate = match (self.params.mode, &self.pooled) {
            (Mode::Curve, _) => self.available + CURVE.1 * scale.rate,
            (Mode::Slope, Some(found)) => {
                let fastest = self.params.narrow.map(BitRate::as_f64).or(self.seen.scale());
                let room = fastest.map_or(0.0, |fastest| fastest - self.available);
                // Few trains do not tell bursts from chance.
                let enough = found.per_train.len() >= self.params.min_trains;
                let spread = if enough { found.train_spread } else { 0.0 };
                self.available + scale.overload(self.near_sent, spread, room, self.drain(found))
            }
            // A turning point that was missed from below is approached faster each time.
            (Mode::Slope, None) => {
                self.available + scale.least_overload(0.0) * f64::from(1u32 << self.no_congestion_seen.min(3))
            }
        };
        self.near_sent += 1;
        let rate = rate.max(0.02 * scale.rate);
        self.rate = Some(self.seen.max_rate.map_or(rate, |max| rate.min(max)));
    }

    /// By how much a train goes below the turning point to drain a standard deviation of what the
    /// traffic of others adds to the queue within it, bit/s. None where the last train's queue was
    /// gone too soon: a turning point that is believed too low would never be seen again.
    fn drain(&self, found: &PooledEstimate) -> f64 {
        let scale = self.scale().rate;
        let last = self.seen.trains.last();
        if last.is_none_or(|last| !last.backlogged || last.backlogged_time < STOOD * last.send_time) {
            return 0.0;
        }
        let rate = self.available.max(0.02 * scale);
        let length = self.packets as f64 * self.packet_bits() / rate;
        found.capacity.min(FASTER * scale) * (self.wander() / length).sqrt()
    }

    /// The path's rate, as far as this sender goes.
    pub(super) fn scale(&self) -> Scale {
        let known = self.params.narrow.map(BitRate::as_f64);
        let rate = known.or(self.seen.scale()).or(self.rate).unwrap_or(1e9);
        Scale { rate: self.seen.max_rate.map_or(rate, |max| rate.min(max)).max(1.0), packet: self.packet_bits() }
    }
}
