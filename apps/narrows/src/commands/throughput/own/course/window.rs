//! Quick mode's window as what counts.

use std::time::Duration;

use narrows_measure::tcp::{Stop, over_20_s};
use narrows_net::iperf3::Snapshot;
use narrows_probe::probes::{Congestion, TcpSample};

use super::super::super::quick::Quickened;
use super::Course;

impl Course<'_> {
    /// Each stream as it was at a time: what had been acknowledged by the newest sample before.
    fn stood(&self, at_ns: i64) -> Vec<Snapshot> {
        let newest = |place: usize| {
            let streams = self.parts.kept().iter().filter_map(|part| part.streams.get(place));
            let samples = streams.flat_map(|stream| &stream.samples);
            let before = samples.filter(|sample| sample.at.nanos() <= at_ns);
            before.max_by_key(|sample| sample.at.nanos()).copied()
        };
        let with = |(place, snapshot): (usize, &Snapshot)| {
            let sample: Option<TcpSample> = newest(place);
            Snapshot { at_ns, octets: sample.map_or(0, |sample| sample.acked_octets), tcp: sample, ..snapshot.clone() }
        };
        self.last.iter().enumerate().map(with).collect()
    }

    /// Makes the window of quick mode what counts, as if the ramp had been left out on request.
    pub(super) fn count_window(&mut self, stop: &Stop) {
        let began = self.began_ns.unwrap_or(0);
        let since = |at_ns: i64| Duration::from_nanos(u64::try_from(at_ns.saturating_sub(began)).unwrap_or(0));
        let (from, to) = (stop.from.nanos(), stop.to.nanos());
        self.counting = Some((since(from), self.stood(from)));
        self.last = self.stood(to);
        self.at = since(to);
        for part in self.parts.kept_mut() {
            part.omitted |= part.to <= since(from);
        }
    }

    /// What 20 s would have shown, the ramp counted.
    fn over_20_s(&self, stop: &Stop) -> Option<f64> {
        let samples = || self.last.iter().filter_map(|at| at.tcp);
        let acked = samples().map(|sample| sample.acked_octets).fold(0, u64::saturating_add);
        let first = samples().next()?;
        let congestion = Congestion::from_name(self.congestion.as_deref()?);
        let floor = first.min_rtt.unwrap_or(first.rtt);
        Some(over_20_s(&congestion, floor, acked, self.at.as_secs_f64(), stop.bps))
    }

    pub(super) fn quickened(&self) -> Option<Quickened> {
        let quick = self.quick.as_ref()?;
        let began = self.began_ns.unwrap_or(0);
        let sent = self.last.iter().filter_map(|at| at.tcp?.sent_octets);
        Some(Quickened {
            stop: self.stop.clone(),
            from_seconds: self.stop.as_ref().map(|stop| stop.from.nanos().saturating_sub(began) as f64 / 1e9),
            ended_seconds: self.at.as_secs_f64(),
            planned_seconds: self.options.omit.saturating_add(self.options.duration).as_secs_f64(),
            octets: sent.fold(0, u64::saturating_add),
            over_20_s_bps: self.stop.as_ref().and_then(|stop| self.over_20_s(stop)),
            ramp_end: quick.ramp_end(),
        })
    }
}
