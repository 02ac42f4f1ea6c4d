//! What a probe that came back is worth telling.

use std::time::Duration;

use narrows_units::{BitRate, Delta, nanos};
use serde::{Deserialize, Serialize};

use crate::contract::Event;
use crate::probes::{LoadReport, TrainReport, TransferReport};

/// A probe that came back, in few figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "probe", rename_all = "snake_case")]
pub enum Sample {
    /// A train.
    Train(TrainSample),
    /// A segment of a UDP load.
    Load(LoadSample),
    /// A segment of a TCP transfer.
    Transfer(TransferSample),
}

/// A train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainSample {
    /// Packets sent.
    pub packets: u64,
    /// Their IP octets.
    pub octets: u64,
    /// Packets without any answer.
    pub lost: u64,
    /// IP-layer rate at which they left.
    pub sent_bps: Option<u64>,
    /// IP-layer rate at which they arrived.
    pub arrived_bps: Option<u64>,
    /// Least round trip, where they came back.
    pub round_trip_ns: Option<u64>,
    /// Delay above the least, packet by packet; of long trains means over equal parts.
    pub delays_ns: Vec<u64>,
}

/// A segment of a UDP load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSample {
    /// Its length.
    pub span_ns: u64,
    /// Packets sent.
    pub packets: u64,
    /// Their IP octets.
    pub octets: u64,
    /// IP octets that arrived, as far as it is known by then.
    pub arrived_octets: u64,
    /// Time in which those arrived.
    pub arrived_span_ns: u64,
    /// Packets lost.
    pub lost: u64,
    /// Mean delay above the least.
    pub delay_ns: Option<u64>,
}

/// A segment of a TCP transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferSample {
    /// Its length.
    pub span_ns: u64,
    /// Connections.
    pub streams: u64,
    /// Payload octets acknowledged since its connections began.
    pub acked_octets: u64,
    /// Round trip of the first of them.
    pub round_trip_ns: Option<u64>,
}

/// Most delays of one train.
const DELAYS: usize = 64;

impl Sample {
    /// Of an answer to a probe; `None` of those that tell nothing of the path.
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Train(report) => Some(Self::Train(train(report))),
            Event::Load(report) => Some(Self::Load(load(report))),
            Event::Transfer(report) => Some(Self::Transfer(transfer(report))),
            Event::Started(_) | Event::Capture(_) | Event::TimerFired | Event::Refused(_) | Event::Stop(_) => None,
        }
    }
}

fn train(report: &TrainReport) -> TrainSample {
    let bps = |rate: Option<BitRate>| rate.map(BitRate::bps);
    let round_trips: Vec<Duration> = report.round_trips().map(|(_, time)| time).collect();
    let one_way = |(row, arrived): (&crate::probes::Arrival, narrows_units::Stamp<narrows_units::Receiver>)| {
        arrived.nanos().saturating_sub(row.departed.nanos())
    };
    let delays: Vec<i64> = if round_trips.is_empty() {
        report.received().map(one_way).collect()
    } else {
        round_trips.iter().map(|&time| Delta::from(time).nanos()).collect()
    };
    TrainSample {
        packets: count(report.arrivals.len()),
        octets: report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum(),
        lost: count(report.lost()),
        sent_bps: bps(report.departure_rate()),
        arrived_bps: bps(report.arrival_rate()),
        round_trip_ns: round_trips.iter().min().map(|&time| nanos(time)),
        delays_ns: above_least(&delays),
    }
}

/// At most [`DELAYS`] of them.
fn above_least(delays: &[i64]) -> Vec<u64> {
    let least = delays.iter().min().copied().unwrap_or(0);
    let part = delays.len().div_ceil(DELAYS).max(1);
    let above = |part: &[i64]| {
        let sum: u64 = part.iter().map(|delay| delay.abs_diff(least)).sum();
        sum / count(part.len()).max(1)
    };
    delays.chunks(part).map(above).collect()
}

fn load(report: &LoadReport) -> LoadSample {
    let (_, arrived_octets, lost, _) = report.totals();
    let span = report.statuses.iter().map(|status| nanos(status.to.since(status.from))).sum();
    let delays: Vec<u64> =
        report.statuses.iter().filter_map(|status| status.delay_above_min).map(|(_, mean, _)| nanos(mean)).collect();
    LoadSample {
        span_ns: nanos(report.ended.since(report.began)),
        packets: report.sent_packets,
        octets: report.sent_ip_octets,
        arrived_octets,
        arrived_span_ns: span,
        lost,
        delay_ns: delays.iter().sum::<u64>().checked_div(count(delays.len())),
    }
}

fn transfer(report: &TransferReport) -> TransferSample {
    let last = || report.streams.iter().filter_map(|stream| stream.samples.last());
    TransferSample {
        span_ns: nanos(report.ended.since(report.began)),
        streams: count(report.streams.len()),
        acked_octets: last().map(|sample| sample.acked_octets).sum(),
        round_trip_ns: last().next().map(|sample| nanos(sample.rtt)),
    }
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}
