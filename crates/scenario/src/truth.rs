//! What a perfect estimator would say of a scenario: derived from its fields, never typed.
//!
//! Model: FIFO hops (channels, aggregation and slots at their long-run rate under load), open-loop cross traffic as a fluid of its
//! long-run rate, or, where somebody counted it, of what really crossed ([`Truth::beside`]). Quantities that the fluid model cannot give
//! (what is available beside elastic flows, which take whatever is left) are `None` without that.

use std::time::Duration;

use units::{BitRate, Framing, Layer};

use crate::cross::{Cross, Source};
use crate::crossed::Crossed;
use crate::hop::{Hop, Queue};
use crate::model::{Scenario, Way};
use crate::service::{Channels, Dealing, Service};

/// The truth of one way of a scenario, averaged over a stretch of its time.
#[derive(Debug, Clone, Copy)]
pub struct Truth<'a> {
    scenario: &'a Scenario,
    way: Way,
    from: Duration,
    to: Duration,
    crossed: Option<&'a [Crossed]>,
}

/// The largest burst that an idle path takes without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstTruth {
    /// IP octets of the largest burst without loss.
    pub ip_octets: u64,
    /// The hop whose queue overflows first beyond it.
    pub hop: usize,
}

impl Scenario {
    /// The truth of one way, over the scenario's whole first minute.
    pub fn truth(&self, way: Way) -> Truth<'_> {
        Truth {
            scenario: self,
            way,
            from: Duration::ZERO,
            to: Duration::from_secs(60),
            crossed: None,
        }
    }
}

impl<'a> Truth<'a> {
    /// The same, averaged from one time of the scenario to another.
    #[must_use]
    pub fn over(self, from: Duration, to: Duration) -> Self {
        Self { from, to, ..self }
    }

    /// The same beside what really crossed each hop of the way in that time, instead of the traffic's long-run rates: so also
    /// beside elastic flows.
    #[must_use]
    pub fn beside(self, crossed: &'a [Crossed]) -> Self {
        Self {
            crossed: Some(crossed),
            ..self
        }
    }

    fn hops(&self) -> &[Hop] {
        self.scenario.hops(self.way)
    }

    /// IP-layer capacity of one hop for packets of `ip_octets` of one flow: its slowest link, hidden device or token bucket. Of channels
    /// it is what all carry together, unless they are dealt by flow.
    pub fn hop_capacity(&self, hop: usize, ip_octets: u16) -> Option<BitRate> {
        self.hop_limit(hop, ip_octets, 1)
    }

    /// The same where up to `flows` flows share the hop and the hash spreads them as evenly as can be.
    fn hop_limit(&self, hop: usize, ip_octets: u16, flows: u16) -> Option<BitRate> {
        let hop = self.hops().get(hop)?;
        let link = self.link_capacity(hop, ip_octets, flows);
        let devices = hop
            .layer2
            .iter()
            .map(|device| ip_rate(device.rate, device.framing, ip_octets));
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

    /// IP-layer capacity of the path for packets of `ip_octets` of one flow, the hosts' interfaces included (RFC 5136 §2.3.3).
    pub fn capacity(&self, ip_octets: u16) -> BitRate {
        self.capacity_of_flows(ip_octets, 1)
    }

    /// What any number of flows get together: above [`Truth::capacity`] where the narrow hop deals its channels by flow.
    pub fn aggregate_capacity(&self, ip_octets: u16) -> BitRate {
        self.capacity_of_flows(ip_octets, u16::MAX)
    }

    fn capacity_of_flows(&self, ip_octets: u16, flows: u16) -> BitRate {
        let hops = (0..self.hops().len()).filter_map(|hop| self.hop_limit(hop, ip_octets, flows));
        hops.chain(self.interface_capacity(ip_octets))
            .min()
            .unwrap_or(BitRate::ZERO)
    }

    /// The token bucket that sets the capacity for packets of `ip_octets`: its hop, and its depth in IP octets. `None` if none
    /// does.
    pub fn committed_burst(&self, ip_octets: u16) -> Option<(usize, u64)> {
        let capacity = self.capacity(ip_octets);
        let sets = |bucket: &crate::hop::TokenBucket| bucket.rate <= capacity && bucket.rate < self.links(ip_octets);
        self.hops()
            .iter()
            .enumerate()
            .find_map(|(index, hop)| Some((index, hop.bucket.filter(sets)?.burst.count())))
    }

    /// IP-layer rate of a short burst of packets of `ip_octets`: the capacity of the links alone, with every bucket full.
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
            Way::Forward => &self.scenario.sender,
            Way::Reverse => &self.scenario.receiver,
        };
        host.interface_rate
    }

    /// The hop with the least capacity.
    pub fn narrow_hop(&self, ip_octets: u16) -> usize {
        (0..self.hops().len())
            .min_by_key(|&hop| self.hop_capacity(hop, ip_octets))
            .unwrap_or(0)
    }

    /// What packets of `ip_octets` find left of one hop: its capacity times the share of time that cross traffic leaves idle.
    pub fn hop_available(&self, hop: usize, ip_octets: u16) -> Option<BitRate> {
        let capacity = self.hop_capacity(hop, ip_octets)?;
        let load = self.utilisation(hop)?;
        capacity.scaled((1.0 - load).max(0.0))
    }

    /// Share of time for which cross traffic occupies the slowest stage of a hop; `None` if some of it is elastic, or if it is a hash
    /// that says which of several channels it takes.
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
            let stages = place
                .layer2
                .iter()
                .map(|device| wire(device.framing) / device.rate.as_f64());
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
        // What had begun to cross before, or ends a little after, may be one packet more than there was time for.
        share.is_finite().then_some(share.min(1.0))
    }

    /// Available IP-layer path capacity for packets of `ip_octets` (RFC 5136 §2.3.5); `None` beside elastic flows.
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
        let available: Option<Vec<BitRate>> = (0..self.hops().len())
            .map(|hop| self.hop_available(hop, ip_octets))
            .collect();
        available?
            .iter()
            .enumerate()
            .min_by_key(|(_, rate)| **rate)
            .map(|(hop, _)| hop)
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

    /// Highest UDP rate, in IP octets delivered, at which at most `loss` of the packets are dropped. Fluid FIFO: a hop offered
    /// `R + X > C` drops the share `1 − C/(R + X)` of both, so at the bound `C − X·(1 − loss)` gets through.
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

    /// Least time of one packet over the idle path: serialisation at every stage and propagation, and what a burst or a grant takes
    /// where the link needs one.
    pub fn base_delay(&self, ip_octets: u16) -> Duration {
        let first = self
            .interface()
            .map_or(Duration::ZERO, |rate| serialisation(rate, Framing::ETHERNET, ip_octets));
        self.hops().iter().fold(first, |sum, hop| {
            let link = least_service(hop, ip_octets) + hop.delay;
            let devices = hop
                .layer2
                .iter()
                .map(|device| serialisation(device.rate, device.framing, ip_octets) + device.delay);
            sum + link + devices.sum::<Duration>()
        })
    }

    /// Round trip of a packet of `out` octets answered by one of `back` octets, on the idle path, without host costs.
    pub fn base_rtt(&self, out: u16, back: u16) -> Duration {
        let other = match self.way {
            Way::Forward => Way::Reverse,
            Way::Reverse => Way::Forward,
        };
        self.base_delay(out) + self.scenario.truth(other).base_delay(back)
    }

    /// Largest IP packet that crosses.
    pub fn path_mtu(&self) -> u16 {
        self.hops().iter().map(|hop| hop.mtu).min().unwrap_or(0)
    }

    /// The largest burst of packets of `ip_octets` that the *idle* path takes without loss, sent at the pace of the first
    /// link (or of `sender`, if that is slower); `None` if no queue overflows up to 100 000 packets, or if a link gathers bursts or has
    /// slots. By the recursion of each FIFO stage, not by a formula.
    pub fn burst(&self, ip_octets: u16, sender: Option<BitRate>) -> Option<BurstTruth> {
        const PACKETS: usize = 100_000;
        if self.hops().iter().any(|hop| has_bursts(hop.service)) {
            return None;
        }
        let gap = sender
            .and_then(|rate| rate.time_for(u64::from(ip_octets)))
            .unwrap_or_default();
        let mut arrivals: Vec<u64> = (0..PACKETS).map(|k| nanos(gap) * k as u64).collect();
        // The interface holds back what its host sends faster: a socket that blocks, not a queue that drops.
        if let Some(rate) = self.interface() {
            first_drop(
                &mut arrivals,
                nanos(serialisation(rate, Framing::ETHERNET, ip_octets)),
                usize::MAX,
            );
        }
        let mut first_loss: Option<(usize, usize)> = None;
        for (index, hop) in self.hops().iter().enumerate() {
            let devices = hop
                .layer2
                .iter()
                .map(|device| (device.rate, device.framing, device.queue));
            for (rate, framing, queue) in std::iter::once((hop.rate, hop.framing, hop.queue)).chain(devices) {
                let room = match queue {
                    Queue::Octets(octets) => {
                        usize::try_from(octets.count() / u64::from(ip_octets)).unwrap_or(usize::MAX)
                    }
                    Queue::Packets(packets) => packets as usize,
                    Queue::Unlimited => usize::MAX,
                };
                let time = nanos(serialisation(rate, framing, ip_octets));
                // Devices never stand behind channels.
                let channels = side_by_side(hop.service);
                let lost = first_drop_of(&mut arrivals, time, room, channels);
                arrivals.truncate(lost.unwrap_or(PACKETS));
                if let Some(lost) = lost {
                    first_loss = Some((lost, index));
                }
            }
        }
        first_loss.map(|(packets, hop)| BurstTruth {
            ip_octets: packets as u64 * u64::from(ip_octets),
            hop,
        })
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
        if whole > 0.0 {
            until.saturating_sub(from).as_secs_f64() / whole
        } else {
            0.0
        }
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
    framing
        .convert(nominal, Layer::Wire, Layer::Ip, u32::from(ip_octets), false)
        .unwrap_or(BitRate::ZERO)
}

fn serialisation(rate: BitRate, framing: Framing, ip_octets: u16) -> Duration {
    rate.time_for(u64::from(framing.wire_octets(u32::from(ip_octets))))
        .unwrap_or_default()
}

fn is_hashed(hop: &Hop) -> bool {
    matches!(
        hop.service,
        Service::Channels(Channels {
            by: Dealing::Flow,
            count: 2..
        })
    )
}

fn has_bursts(service: Service) -> bool {
    matches!(service, Service::Aggregation(_) | Service::Slots(_))
}

/// Channels that the packets of one flow take in turn.
fn side_by_side(service: Service) -> usize {
    match service {
        Service::Channels(Channels {
            count,
            by: Dealing::Packet | Dealing::Load,
        }) => usize::from(count),
        _ => 1,
    }
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

/// [`first_drop`] where packets take `channels` such stages in turn.
fn first_drop_of(arrivals: &mut [u64], time: u64, room: usize, channels: usize) -> Option<usize> {
    if channels == 1 {
        return first_drop(arrivals, time, room);
    }
    let mut first = None;
    for channel in 0..channels {
        let mut own: Vec<u64> = arrivals.iter().copied().skip(channel).step_by(channels).collect();
        let lost = first_drop(&mut own, time, room).map(|index| index * channels + channel);
        first = first.into_iter().chain(lost).min();
        for (place, departure) in arrivals.iter_mut().skip(channel).step_by(channels).zip(own) {
            *place = departure;
        }
    }
    first
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Turns arrival times into departure times at a FIFO stage that serves one packet in `time` and holds `room` packets; returns
/// the index of the first packet that finds it full.
fn first_drop(arrivals: &mut [u64], time: u64, room: usize) -> Option<usize> {
    let mut free = 0;
    // Entries before k hold departures already; those before `gone` are over when packet k arrives.
    let mut gone = 0;
    for k in 0..arrivals.len() {
        let arrival = arrivals[k];
        while gone < k && arrivals[gone] <= arrival {
            gone += 1;
        }
        if k - gone >= room {
            return Some(k);
        }
        free = arrival.max(free) + time;
        arrivals[k] = free;
    }
    None
}

#[cfg(test)]
mod tests {
    use units::Octets;

    use super::*;
    use crate::cross::{Arrivals, Elastic, ElasticControl, SizeMix};
    use crate::hop::{Layer2, TokenBucket};

    const MS: Duration = Duration::from_millis(1);

    /// The demonstration path: narrow is not tight.
    fn three_hops() -> Scenario {
        let cross = Cross::on_hop(2, Arrivals::Poisson, BitRate::from_mbps(130), SizeMix::constant(1500));
        Scenario::new("three")
            .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS))
            .hop(Hop::rate(BitRate::from_mbps(100)).delay(MS))
            .hop(Hop::rate(BitRate::from_mbps(200)).delay(MS))
            .cross(cross)
            .validate()
            .unwrap()
    }

    #[test]
    fn narrow_and_tight_differ() {
        let scenario = three_hops();
        let truth = scenario.truth(Way::Forward);
        assert_eq!(truth.capacity(1500), BitRate::from_bps(97_529_259));
        assert_eq!((truth.narrow_hop(1500), truth.tight_hop(1500)), (1, Some(2)));
        // 195 058 518 − 130 000 000: same packet size, so the IP rates subtract.
        let available = truth.available(1500).unwrap().bps();
        assert!(available.abs_diff(65_058_518) <= 1, "{available}");
        assert_eq!(truth.cross_traffic(1500), Some(BitRate::from_mbps(130)));
        // At 1 % loss C − 0.99·X = 195.06 − 128.7.
        let udp = truth.udp_achievable(1500, 0.01).unwrap().bps();
        assert!(udp.abs_diff(66_358_518) <= 1, "{udp}");
    }

    #[test]
    fn round_trip_is_the_sum_of_its_stages() {
        // 1538 octets: 12.304, 123.04, 61.52 µs out; the same back for an equal echo; 6 ms of propagation.
        let rtt = three_hops().truth(Way::Forward).base_rtt(1500, 1500);
        assert_eq!(rtt, 6 * MS + 2 * Duration::from_nanos(12_304 + 123_040 + 61_520));
    }

    #[test]
    fn elastic_flows_leave_no_fluid_truth() {
        let elastic = Elastic {
            flows: 2,
            control: ElasticControl::Cubic,
            extra_rtt: MS,
            window_octets: None,
        };
        let scenario = Scenario::new("elastic")
            .hop(Hop::rate(BitRate::from_mbps(10)))
            .cross(Cross::elastic_on_hop(0, elastic))
            .validate()
            .unwrap();
        let truth = scenario.truth(Way::Forward);
        assert_eq!(truth.available(1500), None);
        assert!(truth.capacity(1500) > BitRate::from_mbps(9));
    }

    #[test]
    fn hidden_devices_and_buckets_set_the_capacity() {
        let device = Layer2 {
            rate: BitRate::from_mbps(50),
            framing: Framing::ETHERNET,
            delay: Duration::ZERO,
            queue: Queue::Packets(100),
        };
        let bucket = TokenBucket {
            rate: BitRate::from_mbps(20),
            burst: Octets::new(64_000),
            queue: None,
        };
        let base = Hop::rate(BitRate::from_mbps(100));
        let with_device = Scenario::new("device")
            .hop(base.clone().layer2(device))
            .validate()
            .unwrap();
        assert_eq!(
            with_device.truth(Way::Forward).capacity(1500),
            BitRate::from_bps(48_764_629)
        );
        let with_bucket = Scenario::new("bucket").hop(base.bucket(bucket)).validate().unwrap();
        let truth = with_bucket.truth(Way::Forward);
        assert_eq!(truth.capacity(1500), BitRate::from_mbps(20));
        assert_eq!(truth.committed_burst(1500), Some((0, bucket.burst.count())));
        assert_eq!(truth.peak_rate(1500), BitRate::from_bps(97_529_259));
    }

    /// Ten packets of room at the 100 Mbit/s hop, fed at 1 Gbit/s: packet k arrives at 12.304·(k+1) µs, departures are 123.04 µs
    /// apart from the first arrival. Packet k finds `k − floor((t_k − t_0)/123.04)` held; the eleventh finds 10 − 0 … the
    /// first to find ten is k = 11, when one has left at 10·12.304 = 123.04 µs after the first arrival.
    #[test]
    fn burst_by_recursion() {
        let scenario = Scenario::new("burst")
            .hop(Hop::rate(BitRate::from_gbps(1)))
            .hop(Hop::rate(BitRate::from_mbps(100)).queue(Queue::Packets(10)))
            .validate()
            .unwrap();
        let burst = scenario.truth(Way::Forward).burst(1500, None).unwrap();
        assert_eq!((burst.ip_octets, burst.hop), (11 * 1500, 1));
        let slow = scenario.truth(Way::Forward).burst(1500, Some(BitRate::from_mbps(50)));
        assert_eq!(slow, None);
    }

    /// The same queue behind an interface of 200 Mbit/s: arrivals are 61.52 µs apart, departures 123.04, so packet k finds
    /// k − floor(k/2) held, and k = 19 is the first to find ten. Behind an interface slower than the link nothing waits.
    #[test]
    fn an_interface_slows_a_burst() {
        let path = |rate: u64| {
            let host = crate::Host {
                interface_rate: Some(BitRate::from_mbps(rate)),
                ..crate::Host::default()
            };
            Scenario::new("interface")
                .hop(Hop::rate(BitRate::from_gbps(1)))
                .hop(Hop::rate(BitRate::from_mbps(100)).queue(Queue::Packets(10)))
                .sender(host)
                .validate()
                .unwrap()
        };
        let burst = path(200).truth(Way::Forward).burst(1500, None).unwrap();
        assert_eq!((burst.ip_octets, burst.hop), (19 * 1500, 1));
        assert_eq!(path(90).truth(Way::Forward).burst(1500, None), None);
    }

    /// Four channels of 97.529 Mbit/s at the IP layer: 390.117 for packets in turn; one of them for one flow, all for many. 42 frames
    /// of 1538 octets fit into 65 535: 504 000 bits of IP in 200 + 75 + 1722.56 us.
    #[test]
    fn capacity_of_links_that_are_no_fifo() {
        let capacity = |service| {
            let hop = Hop::rate(BitRate::from_mbps(100)).service(service);
            let scenario = Scenario::new("service").hop(hop).validate().unwrap();
            let truth = scenario.truth(Way::Forward);
            (truth.capacity(1500).bps(), truth.aggregate_capacity(1500).bps())
        };
        let channels = |by| Service::Channels(Channels { count: 4, by });
        let (one, four) = (97_529_259, 390_117_036);
        assert_eq!(capacity(channels(Dealing::Packet)), (four, four));
        assert_eq!(capacity(channels(Dealing::Flow)), (one, four));
        let slots = crate::Slots {
            period: MS,
            grant: 8 * MS,
        };
        assert_eq!(capacity(Service::Slots(slots)), (one, one));
        let aggregation = crate::Aggregation {
            frames: 64,
            octets: Octets::new(65_535),
            contention: Duration::from_micros(200),
            jitter: Duration::from_micros(150),
            inside: crate::Inside::Spaced,
        };
        assert_eq!(aggregation.full_burst(Framing::ETHERNET, 1500), 42);
        let at_300 = aggregation.ip_rate(BitRate::from_mbps(300), Framing::ETHERNET, 1500);
        let expected = 504_000.0 / (275e-6 + 42.0 * 1538.0 * 8.0 / 300e6);
        assert!((at_300.as_f64() - expected).abs() < 1.0, "{at_300}");
        // 8 ms to the grant, and one slot.
        let slotted = Hop::rate(BitRate::from_mbps(100)).service(Service::Slots(slots));
        let scenario = Scenario::new("grant").hop(slotted).validate().unwrap();
        assert_eq!(scenario.truth(Way::Forward).base_delay(1500), 9 * MS);
    }

    /// Two channels with ten packets of room each take the twofold burst that one takes.
    #[test]
    fn a_burst_over_channels() {
        let burst = |count| {
            let by = Dealing::Packet;
            let narrow = Hop::rate(BitRate::from_mbps(100)).queue(Queue::Packets(10));
            let scenario = Scenario::new("burst")
                .hop(Hop::rate(BitRate::from_gbps(100)))
                .hop(narrow.service(Service::Channels(Channels { count, by })))
                .validate()
                .unwrap();
            scenario.truth(Way::Forward).burst(1500, None).unwrap().ip_octets / 1500
        };
        assert_eq!((burst(1), burst(2)), (10, 20));
    }

    #[test]
    fn a_schedule_averages() {
        let scenario = Scenario::new("schedule")
            .hop(
                Hop::rate(BitRate::from_mbps(100))
                    .framing(Framing::BARE)
                    .then_rate(Duration::from_secs(1), BitRate::from_mbps(50)),
            )
            .validate()
            .unwrap();
        let truth = scenario.truth(Way::Forward);
        let second = Duration::from_secs(1);
        assert_eq!(
            truth.over(Duration::ZERO, second).capacity(1500),
            BitRate::from_mbps(100)
        );
        assert_eq!(
            truth.over(Duration::ZERO, 2 * second).capacity(1500),
            BitRate::from_mbps(75)
        );
        assert_eq!(
            truth.over(2 * second, 3 * second).capacity(1500),
            BitRate::from_mbps(50)
        );
    }
}
