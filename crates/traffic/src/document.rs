//! What is told of traffic that was sent: both sides, flow by flow, as JSON, text and CSV.
//!
//! Rates of UDP flows count IP octets, those of TCP flows payload octets; each row says so
//! (`layer`). Three rates stand side by side: *asked* is what the caller wanted in the long run;
//! *planned* is what the drawn packets come to (for random models it scatters around what was
//! asked, more so over short times); *achieved* is what left. Sending at fault shows as achieved
//! against planned; a short run of a random model shows as planned against asked.

mod csv;
mod text;

use std::net::SocketAddr;
use std::time::Duration;

use narrows_units::BitRate;
use serde::Serialize;

use crate::control::Transport;
use crate::histogram::Distribution;
use crate::pacing::Pacing;
use crate::received::Received;
use crate::windows::WindowMoments;

/// Name and version of the document's schema.
pub const SCHEMA_NAME: &str = "narrows.traffic/1";

/// Everything known of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The sink.
    pub sink: SocketAddr,
    /// One clock stamped departures and arrivals, so that one-way delays are known.
    pub same_clock: bool,
    /// It was ended before it was finished.
    pub interrupted: bool,
    /// From the first deadline to the end of sending.
    pub duration_ns: u64,
    /// How deadlines were waited for.
    pub pacing: Pacing,
    /// CPU time of the thread that sends UDP packets, spinning included.
    pub sending_cpu_ns: u64,
    /// Packets that the sink's host dropped for want of buffer meanwhile; `None` if the sink did
    /// not tell.
    pub local_drops: Option<u64>,
    /// Flow by flow.
    pub flows: Vec<FlowReport>,
    /// What else ought to be known.
    pub notes: Vec<String>,
}

/// One UDP flow or one TCP connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// How its packets travelled.
    pub transport: Transport,
    /// What its octets and rates count: `ip`, or `tcp_payload`.
    pub layer: &'static str,
    /// When it began, after the start.
    pub from_ns: u64,
    /// The rate asked for.
    pub requested_bps: Option<u64>,
    /// The rate of the packets that were drawn.
    pub planned_bps: Option<u64>,
    /// The rate at which they left.
    pub achieved_bps: Option<u64>,
    /// The rate at which they arrived.
    pub received_bps: Option<u64>,
    /// What left.
    pub sent: Sent,
    /// What arrived; `None` if the sink did not tell.
    pub received: Option<Received>,
}

/// What left of one flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Sent {
    /// Packets; 0 for TCP, whose kernel alone knows.
    pub packets: u64,
    /// Their octets; of TCP: those acknowledged.
    pub octets: u64,
    /// Packets whose time had come.
    pub planned_packets: Option<u64>,
    /// Their octets.
    pub planned_octets: Option<u64>,
    /// For how long the flow was open by plan.
    pub planned_span_ns: u64,
    /// Until the later of that and the last departure.
    pub span_ns: u64,
    /// Packets that this host would not send.
    pub refused_packets: u64,
    /// Packets of a capture that were raised to the smallest that can be sent.
    pub raised_packets: u64,
    /// Packets more than a capture has, because some were longer than the MTU and were cut.
    pub cut_packets: u64,
    /// Departure minus plan.
    pub late_ns: Option<Distribution>,
    /// Times between departures, as this program stamped them before each system call: packets of
    /// one call have one stamp.
    pub gap_ns: Option<Distribution>,
    /// How often each size was sent; in classes if there are more than 64 sizes.
    pub sizes: Vec<SizeCount>,
    /// Moments of the plan in windows.
    pub planned_windows: Vec<WindowMoments>,
    /// Moments of the departures in windows.
    pub windows: Vec<WindowMoments>,
    /// What the kernel says of a TCP connection.
    pub tcp: Option<TcpSent>,
    /// Length of an interval.
    pub interval_ns: u64,
    /// The flow over time.
    pub intervals: Vec<SentInterval>,
}

/// Packets of a class of sizes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// Smallest.
    pub ip_octets_low: u16,
    /// Largest.
    pub ip_octets_high: u16,
    /// How many packets.
    pub packets: u64,
}

/// What the kernel says of a TCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TcpSent {
    /// The congestion control that it really used.
    pub congestion: String,
    /// Sender's maximum segment size.
    pub mss_octets: u32,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// The smallest round-trip time seen.
    pub min_rtt_ns: Option<u64>,
}

/// One interval of what left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SentInterval {
    /// When it begins, since the flow did.
    pub from_ns: u64,
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
    /// Congestion window at its end.
    pub cwnd_segments: Option<u32>,
    /// Smoothed round-trip time at its end.
    pub rtt_ns: Option<u64>,
    /// Segments sent again in it.
    pub retransmitted_segments: Option<u64>,
}

impl Sent {
    /// Rate of the plan.
    pub fn planned_rate(&self) -> Option<BitRate> {
        BitRate::over(self.planned_octets?, Duration::from_nanos(self.planned_span_ns))
    }

    /// Rate at which it left.
    pub fn rate(&self) -> Option<BitRate> {
        BitRate::over(self.octets, Duration::from_nanos(self.span_ns))
    }
}

impl FlowReport {
    pub(crate) fn new(
        name: String,
        transport: Transport,
        asked: Option<BitRate>,
        from_ns: u64,
        sent: Sent,
        received: Option<Received>,
    ) -> Self {
        Self {
            name,
            transport,
            layer: match transport {
                Transport::Udp => "ip",
                Transport::Tcp => "tcp_payload",
            },
            from_ns,
            requested_bps: asked.map(BitRate::bps),
            planned_bps: sent.planned_rate().map(BitRate::bps),
            achieved_bps: sent.rate().map(BitRate::bps),
            received_bps: received.as_ref().and_then(Received::rate).map(BitRate::bps),
            sent,
            received,
        }
    }
}

/// The sum over the flows of one layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Total {
    /// What its rates count.
    pub layer: &'static str,
    /// Flows.
    pub flows: usize,
    /// Sum of the rates asked for; `None` if one flow was not asked by rate.
    pub requested_bps: Option<u64>,
    /// Sum of the planned rates; `None` if one flow has none.
    pub planned_bps: Option<u64>,
    /// Sum of the rates achieved.
    pub achieved_bps: u64,
    /// Sum of the rates received; `None` if one is not known.
    pub received_bps: Option<u64>,
    /// Packets that left.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Packets that did not.
    pub lost_packets: u64,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    sink: String,
    clocks: &'static str,
    interrupted: bool,
    duration_ns: u64,
    pacing: Pacing,
    sending_cpu_ns: u64,
    local_drops: Option<u64>,
    notes: &'a [String],
    totals: Vec<Total>,
    flows: &'a [FlowReport],
}

impl Report {
    /// Sums over all UDP flows and over all TCP connections; those without any are left out.
    pub fn totals(&self) -> Vec<Total> {
        let total = |transport: Transport| {
            let flows: Vec<&FlowReport> = self.flows.iter().filter(|flow| flow.transport == transport).collect();
            let received =
                |count: fn(&Received) -> u64| flows.iter().filter_map(|f| f.received.as_ref()).map(count).sum();
            flows.first().map(|first| Total {
                layer: first.layer,
                flows: flows.len(),
                requested_bps: flows.iter().map(|flow| flow.requested_bps).sum(),
                planned_bps: flows.iter().map(|flow| flow.planned_bps).sum(),
                achieved_bps: flows.iter().filter_map(|flow| flow.achieved_bps).sum(),
                received_bps: flows.iter().map(|flow| flow.received_bps).sum(),
                sent_packets: flows.iter().map(|flow| flow.sent.packets).sum(),
                received_packets: received(|received| received.packets),
                lost_packets: received(|received| received.lost),
            })
        };
        [Transport::Udp, Transport::Tcp].into_iter().filter_map(total).collect()
    }

    /// Nothing arrived of what left, though the sink answers: UDP does not pass.
    pub fn nothing_arrived(&self) -> bool {
        let reported = self.flows.iter().filter_map(|flow| flow.received.as_ref());
        let (flows, octets) = reported.fold((0, 0), |(flows, octets), received| (flows + 1, octets + received.octets));
        flows > 0 && octets == 0 && self.flows.iter().any(|flow| flow.sent.octets > 0)
    }

    /// One JSON object on one line, as the schema `narrows.traffic/1` has it.
    pub fn json(&self) -> String {
        let document = Document {
            schema: SCHEMA_NAME,
            sink: self.sink.to_string(),
            clocks: if self.same_clock { "same" } else { "unknown_offset" },
            interrupted: self.interrupted,
            duration_ns: self.duration_ns,
            pacing: self.pacing,
            sending_cpu_ns: self.sending_cpu_ns,
            local_drops: self.local_drops,
            notes: &self.notes,
            totals: self.totals(),
            flows: &self.flows,
        };
        // Plain data without maps cannot fail to serialise; numbers that are none become null.
        serde_json::to_string(&document).unwrap_or_default()
    }
}
