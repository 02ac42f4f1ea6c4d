//! What a perfect estimator would say of a scenario: derived from its fields, never typed.
//!
//! Model: FIFO hops (channels, aggregation and slots at their long-run rate under load), open-loop
//! cross traffic as a fluid of its long-run rate, or, where somebody counted it, of what really
//! crossed ([`Truth::beside`]). Quantities that the fluid model cannot give (what is available
//! beside elastic flows, which take whatever is left) are `None` without that.

mod burst;

use std::time::Duration;

use narrows_units::{BitRate, Framing, Layer, nanos};

use crate::cross::{Cross, Source};
use crate::crossed::Crossed;
use crate::hop::{Hop, TokenBucket};
use crate::model::Scenario;
use crate::service::{Channels, Dealing, Service};
use crate::way::PathDirection;

pub use burst::BurstTruth;

/// The truth of one way of a scenario, averaged over a stretch of its time.
#[derive(Debug, Clone, Copy)]
pub struct Truth<'a> {
    scenario: &'a Scenario,
    way: PathDirection,
    from: Duration,
    to: Duration,
    crossed: Option<&'a [Crossed]>,
}

impl Scenario {
    /// The truth of one way, over the scenario's whole first minute.
    pub fn truth(&self, way: PathDirection) -> Truth<'_> {
        Truth { scenario: self, way, from: Duration::ZERO, to: Duration::from_secs(60), crossed: None }
    }
}

impl<'a> Truth<'a> {
    /// The same, averaged from one time of the scenario to another.
    #[must_use]
    pub fn over(self, from: Duration, to: Duration) -> Self {
        Self { from, to, ..self }
    }

    /// The same beside what really crossed each hop of the way in that time, instead of the
    /// traffic's long-run rates: so also beside elastic flows.
    #[must_use]
    pub fn beside(self, crossed: &'a [Crossed]) -> Self {
        Self { crossed: Some(crossed), ..self }
    }

    fn hops(&self) -> &[Hop] {
        self.scenario.hops(self.way)
    }

    /// IP-layer capacity of one hop for packets of `ip_octets` of one flow: its slowest link,
    /// hidden device or token bucket. Of channels it is what all carry together, unless they are
    /// dealt by flow.
    pub fn hop_capacity(&self, hop: usize, ip_octets: u16) -> Option<BitRate> {
        self.hop_limit(hop, ip_octets, 1)
    }

    /// The same where up to `flows` flows share the hop and the hash spreads them as evenly as can
    /// be.
    fn hop_limit(&self, hop: usize, ip_octets: u16, flows: u16) -> Option<BitRate> {
        let hop = self.hops().get(hop)?;
        let link = self.link_capacity(hop, ip_octets, flows);
        let devices = hop.layer2.iter().map(|device| ip_rate(device.rate, device.framing, ip_octets));
        let bucket = hop.bucket.map(|bucket| bucket.rate);
        devices.chain([link]).chain(bucket).min()
    }

    fn link_capacity(&self, hop: &Hop, ip_octets: u16, flows: u16) -> BitRate {
        let rate = self.mean_rate(hop);
        let one = ip_rate(rate, hop.framing, ip_octets);
        match hop.service {
            Service::Single | Service::Slots(_) => one,
            Service::Channels(channels) => {
                let side_by_side = match channels.by {
                    Dealing::Packet | Dealing::Load => channels.count,
                    Dealing::Flow => channels.count.min(flows.max(1)),
                };
                BitRate::from_bps(one.bps().saturating_mul(u64::from(side_by_side)))
            }
            Service::Aggregation(aggregation) => aggregation.ip_rate(rate, hop.framing, ip_octets),
        }
    }

    /// IP-layer capacity of the path for packets of `ip_octets` of one flow, the hosts' interfaces
    /// included (RFC 5136 §2.3.3).
    pub fn capacity(&self, ip_octets: u16) -> BitRate {
        self.capacity_of_flows(ip_octets, 1)
    }

    /// What any number of flows get together: above [`Truth::capacity`] where the narrow hop deals
    /// its channels by flow.
    pub fn aggregate_capacity(&self, ip_octets: u16) -> BitRate {
        self.capacity_of_flows(ip_octets, u16::MAX)
    }

    fn capacity_of_flows(&self, ip_octets: u16, flows: u16) -> BitRate {
        let hops = (0..self.hops().len()).filter_map(|hop| self.hop_limit(hop, ip_octets, flows));
        hops.chain(self.interface_capacity(ip_octets)).min().unwrap_or(BitRate::ZERO)
    }

    /// The token bucket that sets the capacity for packets of `ip_octets`: its hop, and its depth
    /// in IP octets. `None` if none does.
    pub fn committed_burst(&self, ip_octets: u16) -> Option<(usize, u64)> {
        let capacity = self.capacity(ip_octets);
        let sets = |bucket: &TokenBucket| bucket.rate <= capacity && bucket.rate < self.links(ip_octets);
        self.hops().iter().enumerate().find_map(|(index, hop)| Some((index, hop.bucket.filter(sets)?.burst.count())))
    }

    /// IP-layer rate of a short burst of packets of `ip_octets`: the capacity of the links alone,
    /// with every bucket full.
    pub fn peak_rate(&self, ip_octets: u16) -> BitRate {
        self.links(ip_octets)
    }

    /// The slowest link, hidden device or interface.
    fn links(&self, ip_octets: u16) -> BitRate {
        let links = self.hops().iter().flat_map(|hop| {
            let devices = hop.layer2.iter().map(|device| (device.rate, device.framing));
            devices.chain([(self.mean_rate(hop), hop.framing)])
        });
        links
            .map(|(rate, framing)| ip_rate(rate, framing, ip_octets))
            .chain(self.interface_capacity(ip_octets))
            .min()
            .unwrap_or(BitRate::ZERO)
    }

    fn interface_capacity(&self, ip_octets: u16) -> Option<BitRate> {
        self.interface().map(|rate| ip_rate(rate, Framing::ETHERNET, ip_octets))
    }

    /// Nominal rate of the interface through which this way begins.
    fn interface(&self) -> Option<BitRate> {
        let host = match self.way {
            PathDirection::Forward => &self.scenario.sender,
            PathDirection::Reverse => &self.scenario.receiver,
        };
        host.interface_rate
    }

    /// The hop with the least capacity.
    pub fn narrow_hop(&self, ip_octets: u16) -> usize {
        (0..self.hops().len()).min_by_key(|&hop| self.hop_capacity(hop, ip_octets)).unwrap_or(0)
    }

    /// What packets of `ip_octets` find left of one hop: its capacity times the share of time that
    /// cross traffic leaves idle.
    pub fn hop_available(&self, hop: usize, ip_octets: u16) -> Option<BitRate> {
        let capacity = self.hop_capacity(hop, ip_octets)?;
        let load = self.utilisation(hop)?;
        capacity.scaled((1.0 - load).max(0.0))
    }

    /// Share of time for which cross traffic occupies the slowest stage of a hop; `None` if some of
    /// it is elastic, or if it is a hash that says which of several channels it takes.
    pub fn utilisation(&self, hop: usize) -> Option<f64> {
        let place = self.hops().get(hop)?;
        if let Some(crossed) = self.crossed {
            return self.realised(place, crossed.get(hop)?);
        }
        let mut load = 0.0;
        for cross in self.crossing(hop) {
            if is_hashed(place) {
                return None;
            }
            let Source::Open { rate, sizes, .. } = &cross.source else {
                return None;
            };
            let share = self.active_share(cross);
            let link = self.mean_rate(place).as_f64();
            let wire = |framing: Framing| {
                let octets = |size: u16| f64::from(framing.wire_octets(u32::from(size)));
                sizes.shares().map(|(size, part)| octets(size) * part).sum::<f64>() / sizes.mean_ip_octets()
            };
            let stages = place.layer2.iter().map(|device| wire(device.framing) / device.rate.as_f64());
            let bucket = place.bucket.map(|bucket| 1.0 / bucket.rate.as_f64());
            let own = match place.service {
                Service::Single | Service::Slots(_) => wire(place.framing) / link,
                Service::Channels(channels) => wire(place.framing) / link / f64::from(channels.count),
                Service::Aggregation(_) => {
                    let times = sizes
                        .shares()
                        .map(|(size, part)| part * f64::from(size) / self.link_capacity(place, size, 1).as_f64());
                    times.sum::<f64>() / sizes.mean_ip_octets()
                }
            };
            let slowest = stages.chain([own]).chain(bucket).fold(0.0, f64::max);
            load += rate.as_f64() * share * slowest;
        }
        Some(load)
    }

    /// The same of what really crossed it.
    fn realised(&self, place: &Hop, crossed: &Crossed) -> Option<f64> {
        if is_hashed(place) && crossed.packets() > 0 {
            return None;
        }
        let whole = self.to.saturating_sub(self.from).as_secs_f64();
        let rate = self.mean_rate(place);
        let seconds = crossed.seconds_at(place, rate, |size| self.link_capacity(place, size, 1));
        let share = seconds / whole;
        // What had begun to cross before, or ends a little after, may be one packet more than there
        // was time for.
        share.is_finite().then_some(share.min(1.0))
    }

    /// Available IP-layer path capacity for packets of `ip_octets` (RFC 5136 §2.3.5); `None` beside
    /// elastic flows.
    pub fn available(&self, ip_octets: u16) -> Option<BitRate> {
        let mut least: Option<BitRate> = self.interface_capacity(ip_octets);
        for hop in 0..self.hops().len() {
            let here = self.hop_available(hop, ip_octets)?;
            least = Some(least.map_or(here, |least| least.min(here)));
        }
        least
    }

    /// The hop with the least available capacity; `None` beside elastic flows.
    pub fn tight_hop(&self, ip_octets: u16) -> Option<usize> {
        let available: Option<Vec<BitRate>> =
            (0..self.hops().len()).map(|hop| self.hop_available(hop, ip_octets)).collect();
        available?.iter().enumerate().min_by_key(|(_, rate)| **rate).map(|(hop, _)| hop)
    }

    /// IP-layer rate of the cross traffic on the tight hop.
    pub fn cross_traffic(&self, ip_octets: u16) -> Option<BitRate> {
        let hop = self.tight_hop(ip_octets)?;
        if let Some(crossed) = self.crossed {
            return crossed.get(hop)?.rate(self.to.saturating_sub(self.from));
        }
        let rates: Option<Vec<BitRate>> = self
            .crossing(hop)
            .map(|cross| match &cross.source {
                Source::Open { rate, .. } => rate.scaled(self.active_share(cross)),
                Source::Elastic(_) => None,
            })
            .collect();
        Some(rates?.into_iter().sum())
    }

    /// Highest UDP rate, in IP octets delivered, at which at most `loss` of the packets are
    /// dropped. Fluid FIFO: a hop offered `R + X > C` drops the share `1 − C/(R + X)` of both, so
    /// at the bound `C − X·(1 − loss)` gets through.
    pub fn udp_achievable(&self, ip_octets: u16, loss: f64) -> Option<BitRate> {
        let mut least: Option<BitRate> = self.interface_capacity(ip_octets);
        for hop in 0..self.hops().len() {
            let capacity = self.hop_capacity(hop, ip_octets)?;
            let load = self.utilisation(hop)?;
            let through = capacity.scaled((1.0 - load * (1.0 - loss)).max(0.0))?;
            let through = if load > 0.0 { through } else { capacity };
            least = Some(least.map_or(through, |least| least.min(through)));
        }
        least
    }

    /// Least time of one packet over the idle path: serialisation at every stage and propagation,
    /// and what a burst or a grant takes where the link needs one.
    pub fn base_delay(&self, ip_octets: u16) -> Duration {
        let first = self.interface().map_or(Duration::ZERO, |rate| serialisation(rate, Framing::ETHERNET, ip_octets));
        self.hops().iter().fold(first, |sum, hop| {
            let link = least_service(hop, ip_octets) + hop.delay;
            let devices =
                hop.layer2.iter().map(|device| serialisation(device.rate, device.framing, ip_octets) + device.delay);
            sum + link + devices.sum::<Duration>()
        })
    }

    /// Round trip of a packet of `out` octets answered by one of `back` octets, on the idle path,
    /// without host costs.
    pub fn base_rtt(&self, out: u16, back: u16) -> Duration {
        self.base_delay(out) + self.scenario.truth(self.way.opposite()).base_delay(back)
    }

    /// Largest IP packet that crosses.
    pub fn path_mtu(&self) -> u16 {
        self.hops().iter().map(|hop| hop.mtu).min().unwrap_or(0)
    }

    fn crossing(&self, hop: usize) -> impl Iterator<Item = &Cross> {
        let way = self.way;
        self.scenario.cross.iter().filter(move |cross| cross.crosses(way, hop))
    }

    /// Share of this truth's time for which the traffic flows.
    fn active_share(&self, cross: &Cross) -> f64 {
        let from = cross.from.max(self.from);
        let until = cross.until.unwrap_or(self.to).min(self.to);
        let whole = self.to.saturating_sub(self.from).as_secs_f64();
        if whole > 0.0 { until.saturating_sub(from).as_secs_f64() / whole } else { 0.0 }
    }

    /// Nominal rate of a hop, averaged over this truth's time.
    fn mean_rate(&self, hop: &Hop) -> BitRate {
        let mut sum = 0.0;
        let mut at = self.from;
        let mut rate = hop.rate;
        for change in &hop.schedule {
            if change.at > self.from {
                let until = change.at.min(self.to);
                sum += rate.as_f64() * until.saturating_sub(at).as_secs_f64();
                at = until.max(at);
            }
            rate = change.rate;
            if change.at >= self.to {
                break;
            }
        }
        if at < self.to {
            sum += rate.as_f64() * self.to.saturating_sub(at).as_secs_f64();
        }
        let whole = self.to.saturating_sub(self.from).as_secs_f64();
        BitRate::from_bps_f64(sum / whole).unwrap_or(hop.rate)
    }
}

fn ip_rate(nominal: BitRate, framing: Framing, ip_octets: u16) -> BitRate {
    framing.convert(nominal, Layer::Wire, Layer::Ip, u32::from(ip_octets), false).unwrap_or(BitRate::ZERO)
}

fn serialisation(rate: BitRate, framing: Framing, ip_octets: u16) -> Duration {
    rate.time_for(u64::from(framing.wire_octets(u32::from(ip_octets)))).unwrap_or_default()
}

fn is_hashed(hop: &Hop) -> bool {
    matches!(hop.service, Service::Channels(Channels { by: Dealing::Flow, count: 2.. }))
}

/// Least time of one packet in an idle link.
fn least_service(hop: &Hop, ip_octets: u16) -> Duration {
    let sent = serialisation(hop.rate, hop.framing, ip_octets);
    match hop.service {
        Service::Single | Service::Channels(_) => sent,
        Service::Aggregation(aggregation) => sent + aggregation.contention,
        Service::Slots(slots) => {
            let period = nanos(slots.period).max(1);
            slots.grant + Duration::from_nanos(nanos(sent).div_ceil(period) * period)
        }
    }
}

#[cfg(test)]
mod tests;
