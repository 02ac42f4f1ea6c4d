//! Rates, losses and delays out of `TCP_INFO` samples. Pure.

use std::time::Duration;

use narrows_probe::probes::{StreamReport, TcpSample, TransferReport};

/// What happened between two samples, over all streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Length, seconds.
    pub seconds: f64,
    /// Acknowledged payload, bit/s.
    pub bps: f64,
    /// Mean of the streams' smoothed round-trip times at its end.
    pub rtt: Duration,
    /// Smallest congestion window of a stream at its end, segments.
    pub cwnd_segments: u32,
    /// Segments retransmitted in it.
    pub retransmitted: u64,
    /// Sum of the streams' delivery rates at its end, bit/s: what arrives counts, also behind a
    /// hole that holds back what is acknowledged. None of it where a kernel does not say.
    pub delivery_bps: f64,
}

/// Sums over a report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// Payload octets acknowledged.
    pub acked: u64,
    /// Payload octets sent; acknowledged ones where the kernel does not say.
    pub sent: u64,
    /// Payload octets sent again.
    pub retransmitted: u64,
}

impl Sums {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            acked: self.acked.saturating_add(other.acked),
            sent: self.sent.saturating_add(other.sent),
            retransmitted: self.retransmitted.saturating_add(other.retransmitted),
        }
    }

    /// Share of what was sent that was sent again.
    pub fn loss(self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.retransmitted as f64 / self.sent as f64 }
    }
}

/// Slots of a report. Streams are sampled together, so that the k-th samples of all make one slot.
pub fn slots(report: &TransferReport) -> Vec<Slot> {
    let count = report.streams.iter().map(|stream| stream.samples.len()).min();
    (1..count.unwrap_or(0)).filter_map(|k| slot(&report.streams, k)).collect()
}

fn slot(streams: &[StreamReport], k: usize) -> Option<Slot> {
    let mut slot = Slot {
        seconds: 0.0,
        bps: 0.0,
        rtt: Duration::ZERO,
        cwnd_segments: u32::MAX,
        retransmitted: 0,
        delivery_bps: 0.0,
    };
    let count = u32::try_from(streams.len()).ok()?;
    for stream in streams {
        let (from, to) = (&stream.samples[k - 1], &stream.samples[k]);
        let seconds = to.at.since(from.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        slot.seconds += seconds / f64::from(count);
        slot.bps += to.acked_octets.saturating_sub(from.acked_octets) as f64 * 8.0 / seconds;
        slot.rtt += to.rtt / count;
        slot.delivery_bps += to.delivery_rate.map_or(0.0, |(rate, _)| rate.as_f64());
        slot.cwnd_segments = slot.cwnd_segments.min(to.cwnd_segments);
        slot.retransmitted += u64::from(to.retransmitted_segments.saturating_sub(from.retransmitted_segments));
    }
    Some(slot)
}

/// Sums of a report, from each stream's first sample to its last.
pub fn sums(report: &TransferReport) -> Sums {
    let of_stream = |stream: &StreamReport| {
        let (Some(from), Some(to)) = (stream.samples.first(), stream.samples.last()) else {
            return Sums::default();
        };
        let acked = to.acked_octets.saturating_sub(from.acked_octets);
        let segments = to.retransmitted_segments.saturating_sub(from.retransmitted_segments);
        let by_segments = u64::from(segments) * u64::from(to.mss_octets);
        Sums {
            acked,
            sent: difference(from, to, |s| s.sent_octets).unwrap_or(acked.saturating_add(by_segments)),
            retransmitted: difference(from, to, |s| s.retransmitted_octets).unwrap_or(by_segments),
        }
    };
    report.streams.iter().map(of_stream).fold(Sums::default(), Sums::plus)
}

fn difference(from: &TcpSample, to: &TcpSample, field: impl Fn(&TcpSample) -> Option<u64>) -> Option<u64> {
    Some(field(to)?.saturating_sub(field(from)?))
}

/// Octets in flight as a share of the peer's window; `None` if the window is not known.
pub fn peer_window_used(sample: &TcpSample) -> Option<f64> {
    let in_flight = f64::from(sample.in_flight_segments) * f64::from(sample.mss_octets);
    Some(in_flight / f64::from(sample.peer_window_octets?.max(1)))
}

/// Share of the peer's window from which it counts as the limit.
pub const WINDOW_FULL: f64 = 0.9;

/// Mean rate over slots, weighted by their length, bit/s; `None` without any.
pub fn mean_bps(slots: &[Slot]) -> Option<f64> {
    let seconds: f64 = slots.iter().map(|slot| slot.seconds).sum();
    let bits: f64 = slots.iter().map(|slot| slot.bps * slot.seconds).sum();
    (seconds > 0.0).then(|| bits / seconds)
}

/// Median of the slots' round-trip times.
pub fn median_rtt(slots: &[Slot]) -> Option<Duration> {
    let times: Vec<f64> = slots.iter().map(|slot| slot.rtt.as_secs_f64()).collect();
    Duration::try_from_secs_f64(narrows_stat::median(&times)?).ok()
}

#[cfg(test)]
mod tests {
    use narrows_units::Stamp;

    use super::*;
    use narrows_probe::probes::{Probe, Then, Transfer};
    use narrows_probe::testing::fluid::Fluid;
    use narrows_probe::{Event, World};

    fn transfer(streams: u16, ms: u64) -> Probe {
        Probe::Transfer(Transfer {
            streams,
            congestion: None,
            window_octets: None,
            pacing: None,
            duration: Duration::from_millis(ms),
            sample_every: Duration::from_millis(100),
            then: Then::Continue,
        })
    }

    /// A window of 100 segments per 20 ms round trip is 57.92 Mbit/s of payload per stream.
    #[test]
    fn rates_add_up_over_streams() {
        let mut path = Fluid::new(1e9, 1e6, 0.02);
        path.tcp.peer_window = 144_800.0;
        path.send(transfer(2, 1000)).unwrap();
        let Ok(Event::Transfer(report)) = path.send(transfer(2, 500)) else {
            panic!("no transfer report");
        };
        let slots = slots(&report);
        assert_eq!(slots.len(), 5);
        let rate = mean_bps(&slots).unwrap();
        assert!((rate - 2.0 * 57.92e6).abs() < 0.6e6, "{rate}");
        let sums = sums(&report);
        assert!((sums.acked as f64 * 8.0 / 0.5 - rate).abs() < 0.01 * rate);
        assert_eq!((sums.acked, sums.retransmitted), (sums.sent, 0));
        assert!((median_rtt(&slots).unwrap().as_secs_f64() - 0.02).abs() < 1e-4);
    }

    #[test]
    fn nothing_gives_nothing() {
        let report = TransferReport {
            began: Stamp::from_nanos(0),
            ended: Stamp::from_nanos(1),
            streams: Vec::new(),
            remote_read: None,
            sender_cpu: None,
            receiver_cpu: None,
        };
        assert!(slots(&report).is_empty());
        assert_eq!(mean_bps(&[]), None);
        assert!(sums(&report).loss().abs() < 1e-12);
    }
}
