//! What was found of one way, gathered from a job's entries: plain figures, `None` where nothing
//! was measured.

use std::time::Duration;

use narrows_units::{BitRate, Direction, Metric};

use super::HostEnvironment;
use narrows_probe::Entry;
use narrows_probe::facts::{HostFacts, PathFacts};
use narrows_probe::outcome::{BoundKind, Caveat, Estimate, Finding, Limit, Quantity, TcpFinding};

/// Everything that rules look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// Which way the data went.
    pub direction: Direction,
    /// The host that sends, and the one that receives, as far as they tell of themselves.
    pub sender: HostEnvironment,
    /// The same of the receiver.
    pub receiver: HostEnvironment,
    /// What was known before the first probe.
    pub facts: PathFacts,
    /// Shortest round trip.
    pub rtt_ns: Option<u64>,
    /// How far the 95th percentile of unloaded round trips is from their median.
    pub rtt_spread_ns: Option<u64>,
    /// IP capacity.
    pub capacity_bps: Option<u64>,
    /// Available IP capacity.
    pub available_bps: Option<u64>,
    /// Highest UDP rate.
    pub udp_bps: Option<u64>,
    /// One connection.
    pub tcp: TcpFinding,
    /// What one connection gets the other way.
    pub other_way_tcp_bps: Option<u64>,
    /// Most octets back to back, and what nine of ten bursts survive.
    pub burst_octets: Option<u64>,
    /// Packets in a row that half of the bursts brought through before one was lost.
    pub burst_packets: Option<u64>,
    /// Connections that fill the path, that intrude, that harm.
    pub streams: (Option<u64>, Option<u64>, Option<u64>),
    /// Connections that programs of the sending host have to the receiving one, and send over.
    pub streams_asked: Option<u64>,
    /// Largest packet that crosses the path.
    pub path_mtu_octets: Option<u64>,
    /// A size that is too large is dropped without a word.
    pub black_hole: Option<bool>,
    /// The kernel granted a smaller buffer than was asked for.
    pub buffer_clamped: Option<bool>,
    /// Best rate with both buffers of both hosts set, against buffers that tune themselves.
    pub set_buffers_gain: Option<f64>,
    /// Peak rate of a token bucket, and what it lets through at it.
    pub bucket: (Option<u64>, Option<u64>),
    /// All caveats, with the metric that they are on.
    pub caveats: Vec<(Metric, Caveat)>,
    /// Metrics whose value a host set.
    pub host_limited: Vec<(Metric, Limit)>,
}

impl Findings {
    /// Nothing found yet.
    pub fn nothing(direction: Direction, facts: PathFacts) -> Self {
        Self {
            direction,
            sender: HostEnvironment::default(),
            receiver: HostEnvironment::default(),
            facts,
            rtt_ns: None,
            rtt_spread_ns: None,
            capacity_bps: None,
            available_bps: None,
            udp_bps: None,
            tcp: TcpFinding::default(),
            other_way_tcp_bps: None,
            burst_octets: None,
            burst_packets: None,
            streams: (None, None, None),
            streams_asked: None,
            path_mtu_octets: None,
            black_hole: None,
            buffer_clamped: None,
            set_buffers_gain: None,
            bucket: (None, None),
            caveats: Vec::new(),
            host_limited: Vec::new(),
        }
    }

    /// What one connection got, payload, bit/s.
    pub fn tcp_bps(&self) -> Option<u64> {
        self.tcp.bps.map(BitRate::bps)
    }

    /// What entries say. `here` is this host, which sends in the forward direction and receives in
    /// the reverse one; `forward` is the peer.
    pub fn new(
        direction: Direction,
        facts: &PathFacts,
        entries: &[Entry],
        here: &HostEnvironment,
        forward: &HostEnvironment,
    ) -> Self {
        let mut found = Self::nothing(direction, facts.clone());
        let (sender, receiver) = if direction == Direction::Reverse { (forward, here) } else { (here, forward) };
        found.sender = sender.clone();
        found.receiver = receiver.clone();
        found.streams_asked = sender.sending_connections;
        for entry in entries.iter().filter(|entry| entry.direction == direction) {
            found.take(entry);
        }
        found.set_buffers_gain = gain(entries, found.tcp_bps());
        found
    }

    fn take(&mut self, entry: &Entry) {
        let caveats = entry.outcome.caveats().iter().cloned();
        self.caveats.extend(caveats.map(|caveat| (entry.metric, caveat)));
        match (entry.metric, &entry.outcome.details().finding) {
            (Metric::TcpAchievableSingle, Finding::Tcp(found)) => self.tcp = found.as_ref().clone(),
            (Metric::TcpAchievableSingle, _) => {
                self.tcp = TcpFinding {
                    bps: entry.outcome.estimate().and_then(Estimate::rate).map(|rate| rate.value),
                    ..TcpFinding::default()
                };
            }
            (Metric::PathMtu, Finding::PathMtu(found)) => self.black_hole = Some(found.black_hole),
            (Metric::IpCapacity, Finding::Bucket(found)) => {
                self.bucket = (Some(found.peak_bps.bps()), Some(found.depth.count()));
            }
            (Metric::TcpWindowOctets, Finding::Window(found)) => self.buffer_clamped = found.buffer_clamped,
            (Metric::RoundTripTime, Finding::RoundTrip(found)) => {
                self.rtt_spread_ns = Some((found.p95_ns - found.median_ns).number());
            }
            _ => {}
        }
        let Some(estimate) = entry.outcome.estimate() else {
            return;
        };
        if matches!(estimate.limited_by, Limit::Sender | Limit::Receiver) {
            self.host_limited.push((entry.metric, estimate.limited_by));
        }
        self.take_value(entry.metric, estimate);
    }

    fn take_value(&mut self, metric: Metric, estimate: &Estimate) {
        let value = Some(estimate.in_unit().value);
        match metric {
            Metric::RoundTripTime => self.rtt_ns = value,
            Metric::IpCapacity => self.capacity_bps = value,
            Metric::AvailableIpCapacity => self.available_bps = value,
            Metric::UdpAchievable => self.udp_bps = value,
            Metric::PathMtu => self.path_mtu_octets = value,
            Metric::PeakRate => self.bucket.0 = value,
            Metric::CommittedBurstOctets => self.bucket.1 = value,
            // A lower bound says that the path takes more than was tried: nothing to warn of.
            Metric::MaximumBurstOctets if estimate.verdict() == BoundKind::Estimated => {
                let sampled = match &estimate.details.finding {
                    Finding::Burst(found) => found.sample.map(|sample| (found.ip_octets, sample)),
                    _ => None,
                };
                let safe = sampled.map(|(_, sample)| sample.p10.count());
                self.burst_octets = safe.filter(|&octets| octets > 0).or(value);
                self.burst_packets = sampled.map(|(size, sample)| sample.median.count() / u64::from(size.max(1)));
            }
            Metric::TcpStreamsToFill if estimate.verdict() != BoundKind::UpperBound => {
                let (intrusive, harmful) = match &estimate.details.finding {
                    Finding::Streams(found) => (found.intrusive, found.harmful),
                    _ => (None, None),
                };
                self.streams = (value, intrusive.map(u64::from), harmful.map(u64::from));
            }
            _ => {}
        }
    }

    /// The host that sends, or the one that receives.
    pub fn end(&self, is_sender: bool) -> &HostEnvironment {
        if is_sender { &self.sender } else { &self.receiver }
    }

    /// The same, of what it can do.
    pub fn end_facts(&self, is_sender: bool) -> &HostFacts {
        if is_sender { &self.facts.sender } else { &self.facts.receiver }
    }

    /// Share of a processor that the thread of the transfer had there.
    pub fn thread(&self, is_sender: bool) -> Option<f64> {
        if is_sender { self.tcp.sender_cpu } else { self.tcp.receiver_cpu }
    }

    /// The host that sends is the one that asks.
    pub fn sends_here(&self) -> bool {
        self.direction != Direction::Reverse
    }

    /// Octets in flight that fill what is available, or the capacity, over the round trip.
    pub fn product(&self) -> Option<u64> {
        let rate = u128::from(self.available_bps.or(self.capacity_bps)?);
        u64::try_from(rate * u128::from(self.rtt_ns?) / 8_000_000_000).ok()
    }

    /// The rate of so many octets per round trip.
    pub fn per_round_trip(&self, octets: u64) -> Option<u64> {
        let rtt = self.rtt_ns.filter(|&rtt| rtt > 0)?;
        u64::try_from(u128::from(octets) * 8_000_000_000 / u128::from(rtt)).ok()
    }

    /// The first caveat that something is made of.
    pub fn caveat<T>(&self, pick: impl Fn(&Caveat) -> Option<T>) -> Option<T> {
        self.caveats.iter().find_map(|(_, caveat)| pick(caveat))
    }
}

/// What a window that was asked for (which sets both buffers of both hosts) gains over buffers that
/// tune themselves.
fn gain(entries: &[Entry], single: Option<u64>) -> Option<f64> {
    let entry = entries.iter().find(|entry| entry.metric == Metric::TcpWindowOctets)?;
    let Finding::Window(found) = &entry.outcome.details().finding else {
        return None;
    };
    let best = found.tried_bps.iter().copied().fold(0.0, f64::max);
    let single = single.filter(|&bps| bps > 0)?;
    (best > 0.0).then(|| best / single as f64)
}

/// A figure of evidence as a count; below zero is zero.
pub(super) fn whole(value: f64) -> u64 {
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or_default().as_secs()
}
