//! What really crossed a hop, and the share of time that it took there.

use std::collections::BTreeMap;
use std::time::Duration;

use units::{BitRate, Framing};

use crate::hop::Hop;
use crate::service::Service;

/// Packets of others that crossed one hop within a stretch of time: how many of each size in IP octets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Crossed {
    packets: BTreeMap<u16, u64>,
}

impl Crossed {
    /// One more packet.
    pub fn add(&mut self, ip_octets: u16) {
        *self.packets.entry(ip_octets).or_default() += 1;
    }

    /// How many.
    pub fn packets(&self) -> u64 {
        self.packets.values().sum()
    }

    /// Their IP-layer rate over a time; `None` over none.
    pub fn rate(&self, time: Duration) -> Option<BitRate> {
        let octets = self.packets.iter().map(|(size, count)| u64::from(*size) * count).sum();
        BitRate::over(octets, time)
    }

    /// Seconds for which they occupied the slowest stage of `hop`, whose link runs at `rate` and carries packets of a size at
    /// `capacity(size)`.
    pub(crate) fn seconds_at(&self, hop: &Hop, rate: BitRate, capacity: impl Fn(u16) -> BitRate) -> f64 {
        let sum = |of: &dyn Fn(u16) -> f64| {
            let each = self.packets.iter().map(|(size, count)| of(*size) * *count as f64);
            each.sum::<f64>()
        };
        let wire = |rate: BitRate, framing: Framing| {
            sum(&|size| f64::from(framing.wire_octets(u32::from(size))) * 8.0 / rate.as_f64())
        };
        let own = match hop.service {
            Service::Single | Service::Slots(_) => wire(rate, hop.framing),
            Service::Channels(channels) => wire(rate, hop.framing) / f64::from(channels.count),
            Service::Aggregation(_) => sum(&|size| f64::from(size) * 8.0 / capacity(size).as_f64()),
        };
        let devices = hop.layer2.iter().map(|device| wire(device.rate, device.framing));
        let bucket = hop.bucket.as_ref().map(|bucket| sum(&|size| f64::from(size) * 8.0 / bucket.rate.as_f64()));
        devices.chain([own]).chain(bucket).fold(0.0, f64::max)
    }
}
