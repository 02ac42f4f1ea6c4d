//! What a test counted, as the server is told.

use std::time::Duration;

use narrows_wire::iperf3::{Results, StreamResult, Transport};

use super::super::cpu_since;
use super::super::stream::{Snapshot, Stream};
use super::Test;

impl Test<'_> {
    pub(super) fn results(&self) -> Results {
        let now = self.snapshots();
        let clock = self.clock.as_ref();
        let began = clock.map_or(0, |clock| clock.began_ns);
        let (counted_ns, before) = clock.and_then(|clock| clock.counting.clone()).unwrap_or((began, now.clone()));
        let over_ns = clock.and_then(|clock| clock.over_ns).unwrap_or(began);
        let seconds = |at: i64| (at - began).max(0) as f64 / 1e9;
        let span = (seconds(counted_ns), seconds(over_ns));
        let sends = self.streams.iter().any(|stream| stream.sends);
        let tcp = self.parameters.transport == Transport::Tcp;
        let elapsed = Duration::from_nanos(u64::try_from(over_ns - began).unwrap_or(0));
        Results {
            cpu: clock.map(|clock| cpu_since(clock.cpu, elapsed)).unwrap_or_default(),
            knows_retransmits: sends.then_some(tcp),
            congestion: self.streams.iter().find_map(Stream::congestion).map(str::to_owned),
            server_output: None,
            streams: now.iter().zip(&before).map(|(now, before)| stream_result(now, before, span)).collect(),
        }
    }
}

/// What a stream counted since `before`, as the other side is told.
pub(in crate::iperf3) fn stream_result(now: &Snapshot, before: &Snapshot, span: (f64, f64)) -> StreamResult {
    let arrivals = now.arrivals.unwrap_or_default();
    let omitted = before.arrivals.unwrap_or_default();
    let retransmits = now.tcp.map(|tcp| {
        let before = before.tcp.map_or(0, |tcp| tcp.retransmitted_segments);
        u64::from(tcp.retransmitted_segments.saturating_sub(before))
    });
    StreamResult {
        id: now.id,
        octets: now.octets.saturating_sub(before.octets),
        retransmits,
        jitter_seconds: arrivals.jitter_seconds,
        lost: arrivals.lost(),
        lost_omitted: Some(omitted.lost()),
        datagrams: if now.sends { now.datagrams } else { arrivals.highest },
        datagrams_omitted: Some(if now.sends { before.datagrams } else { omitted.highest }),
        span_seconds: Some(span),
    }
}
