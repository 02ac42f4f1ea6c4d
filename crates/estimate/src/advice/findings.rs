//! What was found of one way, gathered from a job's entries: plain figures, `None` where nothing was measured.

use std::time::Duration;

use units::{Direction, Metric};

use super::HostEnvironment;
use crate::facts::{HostFacts, PathFacts};
use crate::job::Entry;
use crate::limits::Blame;
use crate::outcome::{Caveat, Estimate, Evidence, EvidenceValue, Limit, Outcome, Verdict};

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
    pub tcp: Tcp,
    /// What one connection gets the other way.
    pub other_way_tcp_bps: Option<u64>,
    /// Most octets back to back, and what nine of ten bursts survive.
    pub burst_octets: Option<u64>,
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

/// What a transfer over one connection showed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tcp {
    /// Payload, bit/s.
    pub bps: Option<u64>,
    /// Verdicts, the binding one first.
    pub limits: Vec<Blame>,
    /// Shares of the time: stalled by the peer's window, by the send buffer, application idle.
    pub share_peer_window: Option<f64>,
    /// Stalled by the send buffer.
    pub share_send_buffer: Option<f64>,
    /// The application was idle.
    pub share_idle: Option<f64>,
    /// Share of what was sent that was sent again.
    pub retransmitted: Option<f64>,
    /// Segments sent again, and without need; overtaken segments.
    pub retransmitted_segments: Option<f64>,
    /// Sent again without need.
    pub needless: Option<f64>,
    /// Events of overtaking.
    pub reordered: Option<f64>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Payload of a full segment.
    pub mss_octets: Option<f64>,
    /// Shortest round trip of the connection, ns.
    pub rtt_min_ns: Option<f64>,
    /// Median round trip under its own load, ns.
    pub rtt_loaded_ns: Option<f64>,
    /// The peer scales its window.
    pub window_scaled: Option<bool>,
    /// Shares of a processor.
    pub sender_cpu: Option<f64>,
    /// Of the receiving thread.
    pub receiver_cpu: Option<f64>,
    /// Variation of the rate over slots, and their length in seconds.
    pub variation: Option<f64>,
    /// Slow start began with a threshold from an earlier connection.
    pub threshold_cached: Option<bool>,
    /// Share of the long-term mean that the test may have shown at worst.
    pub worst_case_share: Option<f64>,
    /// How losses lie in time.
    pub pattern: Option<LossPattern>,
}

/// How losses lie in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossPattern {
    /// How many times more segments are lost together than chance would have it.
    pub burstiness: f64,
    /// Variation of the time from loss to loss; `None` with few.
    pub spacing_variation: Option<f64>,
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
            tcp: Tcp::default(),
            other_way_tcp_bps: None,
            burst_octets: None,
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

    /// What entries say. `here` is this host, which sends in the forward direction and receives in the reverse one; `there` is the far one.
    pub fn new(
        direction: Direction,
        facts: &PathFacts,
        entries: &[Entry],
        here: &HostEnvironment,
        there: &HostEnvironment,
    ) -> Self {
        let mut found = Self::nothing(direction, facts.clone());
        let (sender, receiver) = if direction == Direction::Reverse {
            (there, here)
        } else {
            (here, there)
        };
        found.sender = sender.clone();
        found.receiver = receiver.clone();
        found.streams_asked = sender.sending_connections;
        for entry in entries.iter().filter(|entry| entry.direction == direction) {
            found.take(entry);
        }
        found.set_buffers_gain = gain(entries, found.tcp.bps);
        found
    }

    fn take(&mut self, entry: &Entry) {
        let caveats = entry.outcome.caveats().iter().cloned();
        self.caveats.extend(caveats.map(|caveat| (entry.metric, caveat)));
        let evidence = evidence(&entry.outcome);
        match entry.metric {
            Metric::TcpAchievableSingle => self.tcp = tcp(&entry.outcome),
            Metric::PathMtu => self.black_hole = flag(evidence, "black_hole"),
            Metric::TcpWindowOctets => self.buffer_clamped = flag(evidence, "buffer_clamped"),
            Metric::RoundTripTime => {
                let spread = number(evidence, "p95_ns").zip(number(evidence, "median_ns"));
                self.rtt_spread_ns = spread.map(|(late, middle)| whole(late - middle));
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
        let value = Some(estimate.value);
        match metric {
            Metric::RoundTripTime => self.rtt_ns = value,
            Metric::IpCapacity => self.capacity_bps = value,
            Metric::AvailableIpCapacity => self.available_bps = value,
            Metric::UdpAchievable => self.udp_bps = value,
            Metric::PathMtu => self.path_mtu_octets = value,
            Metric::PeakRate => self.bucket.0 = value,
            Metric::CommittedBurstOctets => self.bucket.1 = value,
            // A lower bound says that the path takes more than was tried: nothing to warn of.
            Metric::MaximumBurstOctets if estimate.verdict == Verdict::Estimated => {
                let safe = number(&estimate.evidence, "burst_p10_octets").map(whole);
                self.burst_octets = safe.filter(|&octets| octets > 0).or(value);
            }
            Metric::TcpStreamsToFill if estimate.verdict != Verdict::UpperBound => {
                let more = |name: &str| number(&estimate.evidence, name).map(whole);
                self.streams = (value, more("intrusive_streams"), more("harmful_streams"));
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
        if is_sender {
            &self.facts.sender
        } else {
            &self.facts.receiver
        }
    }

    /// Share of a processor that the thread of the transfer had there.
    pub fn thread(&self, is_sender: bool) -> Option<f64> {
        if is_sender {
            self.tcp.sender_cpu
        } else {
            self.tcp.receiver_cpu
        }
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

fn tcp(outcome: &Outcome) -> Tcp {
    let evidence = evidence(outcome);
    let of = |name: &str| number(evidence, name);
    let mut limits: Vec<Blame> = text(evidence, "all_limits")
        .unwrap_or_default()
        .split("; ")
        .filter_map(Blame::from_name)
        .collect();
    if limits.is_empty() {
        limits.extend(text(evidence, "limit").and_then(Blame::from_name));
    }
    Tcp {
        bps: outcome.estimate().map(|estimate| estimate.value),
        limits,
        share_peer_window: of("share_peer_window"),
        share_send_buffer: of("share_send_buffer"),
        share_idle: of("share_idle"),
        retransmitted: of("retransmitted_share"),
        retransmitted_segments: of("retransmitted_segments"),
        needless: of("needless_retransmissions"),
        reordered: of("reordered"),
        congestion: text(evidence, "congestion").map(str::to_owned),
        mss_octets: of("mss_octets"),
        rtt_min_ns: of("rtt_min_ns"),
        rtt_loaded_ns: of("rtt_loaded_ns"),
        window_scaled: flag(evidence, "window_scaled"),
        sender_cpu: of("sender_cpu_share"),
        receiver_cpu: of("receiver_cpu_share"),
        variation: series(evidence, "slot_bps").and_then(stat::coefficient_of_variation),
        threshold_cached: flag(evidence, "threshold_cached"),
        worst_case_share: of("worst_case_share"),
        pattern: of("loss_burstiness").map(|burstiness| LossPattern {
            burstiness,
            spacing_variation: of("loss_spacing_variation"),
        }),
    }
}

/// What a window that was asked for (which sets both buffers of both hosts) gains over buffers that tune themselves.
fn gain(entries: &[Entry], single: Option<u64>) -> Option<f64> {
    let entry = entries.iter().find(|entry| entry.metric == Metric::TcpWindowOctets)?;
    let best = series(evidence(&entry.outcome), "tried_bps")?
        .iter()
        .copied()
        .fold(0.0, f64::max);
    let single = single.filter(|&bps| bps > 0)?;
    (best > 0.0).then(|| best / single as f64)
}

fn evidence(outcome: &Outcome) -> &Evidence {
    match outcome {
        Outcome::Estimated(estimate) => &estimate.evidence,
        Outcome::Inconclusive { evidence, .. } => evidence,
    }
}

fn number(evidence: &Evidence, name: &str) -> Option<f64> {
    evidence.get(name)?.as_f64().filter(|value| value.is_finite())
}

fn flag(evidence: &Evidence, name: &str) -> Option<bool> {
    match evidence.get(name)? {
        EvidenceValue::Flag(is) => Some(*is),
        _ => None,
    }
}

fn text<'a>(evidence: &'a Evidence, name: &str) -> Option<&'a str> {
    match evidence.get(name)? {
        EvidenceValue::Text(text) => Some(text),
        _ => None,
    }
}

fn series<'a>(evidence: &'a Evidence, name: &str) -> Option<&'a [f64]> {
    match evidence.get(name)? {
        EvidenceValue::Series(values) => Some(values),
        _ => None,
    }
}

/// A figure of evidence as a count; below zero is zero.
pub(super) fn whole(value: f64) -> u64 {
    Duration::try_from_secs_f64(value.max(0.0))
        .unwrap_or_default()
        .as_secs()
}
