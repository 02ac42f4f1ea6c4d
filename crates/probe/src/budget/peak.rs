//! The highest rate that a run imposed over 10 ms.
//!
//! Ours: 10 ms is the time of a queue of 125 kB at 100 Mbit/s, so it is the scale on which a probe
//! can hurt others; shorter windows would call every pair of packets a burst at the rate of the
//! sender's interface.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use crate::contract::Event;
use crate::probes::{LoadReport, StreamReport, TrainReport, TransferReport};

/// The window.
const WINDOW: Duration = Duration::from_millis(10);
/// An hour of them: longer segments are not looked into.
const MOST_WINDOWS: usize = 360_000;
/// IPv4 and TCP header with timestamps.
const TCP_HEADERS: u64 = 52;

/// From the departures that the reports tell, not from what was planned: a host that cannot send so
/// fast imposes less.
#[derive(Debug, Default)]
pub(super) struct Peak {
    /// Departures of the last 10 ms, and their octets.
    recent: VecDeque<(Stamp<Sender>, u64)>,
    within: u64,
    best_bps: u64,
}

impl Peak {
    pub(super) fn bps(&self) -> u64 {
        self.best_bps
    }

    pub(super) fn settle(&mut self, event: &Event) {
        match event {
            Event::Train(report) => self.train(report),
            Event::Load(report) => self.load(report),
            Event::Transfer(report) => self.transfer(report),
            Event::Started(_) | Event::Capture(_) | Event::TimerFired | Event::Refused(_) | Event::Stop(_) => {}
        }
    }

    /// Every packet counts when it left; trains that follow closely share a window.
    fn train(&mut self, report: &TrainReport) {
        for arrival in &report.arrivals {
            let (at, octets) = (arrival.departed, u64::from(arrival.ip_octets));
            while self.recent.front().is_some_and(|(old, _)| at.since(*old) >= WINDOW) {
                self.within -= self.recent.pop_front().map_or(0, |(_, octets)| octets);
            }
            self.recent.push_back((at, octets));
            self.within += octets;
            self.keep(self.within, WINDOW);
        }
    }

    /// A load is even over its segment.
    fn load(&mut self, report: &LoadReport) {
        self.keep(report.sent_ip_octets, report.ended.since(report.began).max(WINDOW));
    }

    /// All connections together; between two samples a connection is taken to send evenly.
    fn transfer(&mut self, report: &TransferReport) {
        let windows = bin(report.ended.since(report.began));
        if windows > MOST_WINDOWS {
            // No world runs a segment for so long; its report does not size our memory.
            return;
        }
        let mut bins = vec![0.0f64; 1 + windows];
        for stream in &report.streams {
            spread(stream, report.began, &mut bins);
        }
        let most = bins.into_iter().fold(0.0, f64::max);
        let rate = BitRate::from_bps_f64(most * 8.0 / WINDOW.as_secs_f64());
        self.best_bps = self.best_bps.max(rate.map_or(0, BitRate::bps));
    }

    fn keep(&mut self, octets: u64, time: Duration) {
        let rate = BitRate::over(octets, time).map_or(0, BitRate::bps);
        self.best_bps = self.best_bps.max(rate);
    }
}

/// Adds the IP octets of `stream` to windows counted from `began`.
fn spread(stream: &StreamReport, began: Stamp<Sender>, bins: &mut [f64]) {
    for pair in stream.samples.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let sent = match (from.sent_octets, to.sent_octets) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => to.acked_octets.saturating_sub(from.acked_octets),
        };
        let octets = sent as f64 + (sent.div_ceil(u64::from(to.mss_octets.max(1))) as f64) * (TCP_HEADERS as f64);
        let (start, end) = (from.at.since(began), to.at.since(began));
        let (first, last) = (bin(start), bin(end).min(bins.len() - 1));
        let length = (end.saturating_sub(start)).as_secs_f64();
        for (index, slot) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let left = (WINDOW.as_secs_f64() * index as f64).max(start.as_secs_f64());
            let right = (WINDOW.as_secs_f64() * (index + 1) as f64).min(end.as_secs_f64());
            let share = if length > 0.0 { ((right - left) / length).max(0.0) } else { 1.0 };
            *slot += octets * share;
        }
    }
}

fn bin(time: Duration) -> usize {
    usize::try_from(time.as_nanos() / WINDOW.as_nanos()).unwrap_or(usize::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::StampSource;
    use crate::probes::{Arrival, Fate, PacingCheck, TrainId};

    fn train(departures_us: &[i64]) -> Event {
        let arrival = |(seq, at): (usize, &i64)| Arrival {
            seq: u32::try_from(seq).unwrap_or(0),
            departed: Stamp::from_nanos(at * 1000),
            ip_octets: 1250,
            fate: Fate::Lost,
        };
        Event::Train(TrainReport {
            id: TrainId(0),
            arrivals: departures_us.iter().enumerate().map(arrival).collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::User,
            arrived_by: StampSource::User,
            pacing: PacingCheck::Kept,
        })
    }

    /// By hand: 1250 octets each millisecond are ten packets per window, 10 Mbit/s; two trains
    /// within one window add up.
    #[test]
    fn windows_hold_what_left_in_them() {
        let mut peak = Peak::default();
        let even: Vec<i64> = (0..100).map(|k| k * 1000).collect();
        peak.settle(&train(&even));
        assert_eq!(peak.bps(), 10_000_000);
        // Ten at 200 ms, and ten more 9.9 ms later; the third ten come too late to share their
        // window.
        peak.settle(&train(&[200_000; 10]));
        assert_eq!(peak.bps(), 10_000_000);
        peak.settle(&train(&[209_900; 10]));
        assert_eq!(peak.bps(), 20_000_000);
        peak.settle(&train(&[219_900; 10]));
        assert_eq!(peak.bps(), 20_000_000);
    }

    #[test]
    fn a_load_counts_over_its_own_time() {
        let mut peak = Peak::default();
        peak.settle(&Event::Load(LoadReport {
            began: Stamp::from_nanos(0),
            ended: Stamp::from_nanos(100_000_000),
            sent_packets: 100,
            sent_ip_octets: 125_000,
            send_failures: 0,
            sender_cpu: None,
            held_up: Duration::ZERO,
            statuses: Vec::new(),
        }));
        assert_eq!(peak.bps(), 10_000_000);
    }
}
