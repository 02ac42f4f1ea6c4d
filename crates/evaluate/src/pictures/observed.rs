//! What the kept observations of one run show.

mod readings;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use narrows_probe::probes::{StreamReport, TrainReport, TransferReport};
use narrows_report::page::Figure;
use narrows_report::picture::{
    DelayTrend, DelayedPacket, DispersionHistogram, HopRegression, Picture, Point, Quantity, Response, ResponseCurve,
    Series, SizeFit, SizeRegression, SizedRoundTrip, TransferOverTime,
};
use narrows_scenario::PathDirection;
use narrows_trace::{Answer, Recording, Request};
use narrows_units::Metric;

use crate::cell::{Cell, Run};
use crate::truth;

/// Fewest values that a histogram, and packets that a trend, are drawn from: ours; less would look
/// like noise.
const ENOUGH: usize = 10;
/// IPv4 and TCP header with timestamps.
const TCP_HEADERS: u64 = 52;

/// Pictures of the run whose observations are in the file at `path`. A file that cannot be read
/// gives none: the numbers stand without.
pub(super) fn figures(cell: &Cell, run: &Run, path: &Path) -> Vec<Figure> {
    let recording = File::open(path).ok().and_then(|file| Recording::read(file).ok());
    let Some(recording) = recording else { return Vec::new() };
    let mut seen = SortedRecording::default();
    for exchange in recording.runs.iter().flat_map(|run| &run.exchanges) {
        let hop_limit = match &exchange.asked {
            Request::Probe(narrows_probe::Probe::Train(train)) => {
                train.packets.first().and_then(|packet| packet.hop_limit)
            }
            Request::Probe(_) | Request::Wait { .. } => None,
        };
        match &exchange.answer {
            Answer::Train(report) => seen.train(report, hop_limit.map(std::num::NonZeroU8::get)),
            Answer::Load(report) => seen.responses.extend(readings::of_load(report)),
            Answer::Transfer(report) => seen.transfer(report),
            _ => {}
        }
    }
    let what = format!("{}, {}", cell.subject.label(), cell.world.name());
    let pictures = [
        seen.dispersion(cell, run, &what),
        seen.response(cell, run, &what),
        seen.delays(&what),
        seen.sizes(&what),
        seen.transfers(run, &what),
    ];
    let figure = |(picture, caption): (Picture, &str)| Figure {
        scenario: Some(cell.scenario.name.clone()),
        caption: format!("{caption} From the kept observations of one run."),
        picture,
    };
    pictures.into_iter().flatten().map(figure).collect()
}

/// What a recording holds, sorted by what it can show.
#[derive(Default)]
struct SortedRecording {
    /// Rates of pairs, and of longer trains, bit/s.
    pairs: Vec<f64>,
    trains: Vec<f64>,
    /// Rate in and rate out of every train long enough, and of every load segment, bit/s.
    responses: Vec<(f64, f64)>,
    /// The longest train that arrived.
    longest: Option<TrainReport>,
    /// Round-trip times in nanoseconds by hop limit (0: the peer) and size.
    round_trips: BTreeMap<u8, BTreeMap<u64, Vec<f64>>>,
    /// Per connection: time, payload rate; time, window.
    rates: Vec<Vec<Point>>,
    windows: Vec<Vec<Point>>,
    /// When the first segment began.
    began: Option<i64>,
}

impl SortedRecording {
    fn train(&mut self, report: &TrainReport, hop_limit: Option<u8>) {
        if let Some(rate) = report.arrival_rate() {
            let into = if report.arrivals.len() == 2 { &mut self.pairs } else { &mut self.trains };
            into.push(rate.as_f64());
        }
        let count = report.received().count();
        if count >= ENOUGH {
            let rates = report.departure_rate().zip(report.arrival_rate());
            self.responses.extend(rates.map(|(sent, got)| (sent.as_f64(), got.as_f64())));
        }
        let longest = self.longest.as_ref().map_or(0, |longest| longest.received().count());
        // The last of equals: searches end near the answer.
        if count >= longest.max(ENOUGH) {
            self.longest = Some(report.clone());
        }
        for (row, time) in report.round_trips() {
            let sizes = self.round_trips.entry(hop_limit.unwrap_or(0)).or_default();
            sizes.entry(u64::from(row.ip_octets)).or_default().push(time.as_nanos() as f64);
        }
    }

    fn transfer(&mut self, report: &TransferReport) {
        let began = *self.began.get_or_insert(report.began.nanos());
        for (index, stream) in report.streams.iter().enumerate() {
            if self.rates.len() <= index {
                self.rates.push(Vec::new());
                self.windows.push(Vec::new());
            }
            rates(stream, began, &mut self.rates[index]);
            let window = |sample: &narrows_probe::probes::TcpSample| {
                let octets = u64::from(sample.cwnd_segments) * (u64::from(sample.mss_octets) + TCP_HEADERS);
                Point::new((sample.at.nanos() - began) as f64, octets as f64)
            };
            self.windows[index].extend(stream.samples.iter().map(window));
        }
    }

    fn dispersion(&self, cell: &Cell, run: &Run, what: &str) -> Option<(Picture, &'static str)> {
        let (samples, kind) = if self.pairs.len() >= ENOUGH {
            (&self.pairs, "pairs")
        } else if self.trains.len() >= ENOUGH {
            (&self.trains, "trains")
        } else {
            return None;
        };
        let scenario = &cell.scenario.scenario;
        let capacity = scenario.truth(PathDirection::Forward).capacity(truth::path_mtu(scenario));
        let is_capacity = cell.subject.metric() == Some(Metric::IpCapacity);
        let answer = run.path.value.filter(|_| is_capacity).map(|value| value as f64);
        let picture = DispersionHistogram {
            title: format!("rates of {kind}: {what}"),
            quantity: Quantity::Rate,
            // Freedman and Diaconis: twice the interquartile range over the cube root of the count.
            bins: DispersionHistogram::bins(samples, width(samples)),
            modes: readings::modes(samples, width(samples), answer),
            truth: Some(capacity.as_f64()),
            estimate: answer,
        };
        Some((
            Picture::DispersionHistogram(picture),
            "What the dispersion at the receiver says of the rate; the line is the narrow link's capacity.",
        ))
    }

    fn response(&self, cell: &Cell, run: &Run, what: &str) -> Option<(Picture, &'static str)> {
        let points = readings::curve(&self.responses)?;
        let scenario = &cell.scenario.scenario;
        let capacity = scenario.truth(PathDirection::Forward).capacity(truth::path_mtu(scenario));
        let is_available = cell.subject.metric() == Some(Metric::AvailableIpCapacity);
        let picture = ResponseCurve {
            title: format!("rate out over rate in: {what}"),
            response: Response::Rates,
            series: vec![Series::new(cell.subject.label(), points)],
            fitted: Vec::new(),
            capacity_bps: Some(capacity.as_f64()),
            available_bps: run.path.truth.filter(|_| is_available).map(|truth| truth as f64),
        };
        Some((
            Picture::ResponseCurve(picture),
            "What arrived of what was sent, by trains and loads of like rate: median and middle half.",
        ))
    }

    fn delays(&self, what: &str) -> Option<(Picture, &'static str)> {
        let report = self.longest.as_ref()?;
        let packets: Vec<DelayedPacket> = report
            .received()
            .map(|(row, arrived)| DelayedPacket {
                packet: u64::from(row.seq),
                delay_ns: arrived.relative_to(row.departed).nanos(),
            })
            .collect();
        let (trend, tests) = readings::trend(&packets);
        let lost = report.arrivals.iter().filter(|row| row.fate == narrows_probe::probes::Fate::Lost);
        let picture = DelayTrend {
            title: format!("one-way delays along a train: {what}"),
            lost: lost.map(|row| u64::from(row.seq)).collect(),
            groups: readings::groups(&packets),
            packets,
            trend,
            tests,
        };
        Some((
            Picture::DelayTrend(picture),
            "The last of the longest trains, with pathload's two tests of whether its delays rise.",
        ))
    }

    fn sizes(&self, what: &str) -> Option<(Picture, &'static str)> {
        let hops: Vec<HopRegression> = self
            .round_trips
            .iter()
            .filter(|(_, sizes)| sizes.len() >= 3)
            .map(|(hop, sizes)| regression(*hop, sizes))
            .collect();
        if hops.is_empty() {
            return None;
        }
        let picture = SizeRegression { title: format!("round trips over sizes: {what}"), hops };
        Some((Picture::SizeRegression(picture), "Least round trip per size, with a line through them."))
    }

    fn transfers(&self, run: &Run, what: &str) -> Option<(Picture, &'static str)> {
        if self.rates.iter().all(|points| points.len() < 2) {
            return None;
        }
        let series = |points: &[Vec<Point>]| -> Vec<Series> {
            let named = points.iter().enumerate();
            named.map(|(index, points)| Series::new(format!("connection {}", index + 1), points.clone())).collect()
        };
        let picture = TransferOverTime {
            title: format!("rate and window: {what}"),
            rates: series(&self.rates),
            windows: series(&self.windows),
            stop_ns: None,
            value_bps: run.path.value.map(|value| value as f64).filter(|_| self.rates.len() == 1),
            truth_bps: run.path.truth.map(|truth| truth as f64).filter(|_| self.rates.len() == 1),
        };
        Some((
            Picture::TransferOverTime(picture),
            "Payload acknowledged between two samples, and the congestion window.",
        ))
    }
}

/// Payload rates between samples of one connection, at the later one's time.
fn rates(stream: &StreamReport, began: i64, into: &mut Vec<Point>) {
    for pair in stream.samples.windows(2) {
        let nanos = (pair[1].at - pair[0].at).nanos();
        if nanos > 0 {
            let octets = pair[1].acked_octets.saturating_sub(pair[0].acked_octets);
            let rate = octets as f64 * 8e9 / nanos as f64;
            into.push(Point::new((pair[1].at.nanos() - began) as f64, rate));
        }
    }
}

fn width(samples: &[f64]) -> f64 {
    let at = |p| narrows_stat::quantile(samples, p).unwrap_or(0.0);
    2.0 * (at(0.75) - at(0.25)) / (samples.len() as f64).cbrt()
}

fn regression(hop: u8, sizes: &BTreeMap<u64, Vec<f64>>) -> HopRegression {
    let round_trip = |ip_octets: u64, round_trip_ns: f64| SizedRoundTrip { ip_octets, round_trip_ns };
    let least: Vec<SizedRoundTrip> = sizes
        .iter()
        .map(|(&size, times)| round_trip(size, times.iter().copied().fold(f64::INFINITY, f64::min)))
        .collect();
    let (x, y): (Vec<f64>, Vec<f64>) = least.iter().map(|point| (point.ip_octets as f64, point.round_trip_ns)).unzip();
    let fit = narrows_stat::ols(&x, &y).ok().map(|fit| SizeFit {
        intercept_ns: fit.line.intercept,
        slope_ns_per_octet: fit.line.slope,
        rate_bps: None,
    });
    let all = sizes.iter().flat_map(|(&size, times)| times.iter().map(move |&time| round_trip(size, time)));
    HopRegression {
        label: if hop == 0 { "destination".to_owned() } else { format!("hop {hop}") },
        least,
        all: all.collect(),
        fit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_seen_draws_nothing() {
        let seen = SortedRecording::default();
        assert!(seen.delays("x").is_none() && seen.sizes("x").is_none());
    }

    /// By hand: round trips of 1 ms and 8 ns per octet, twice per size, once with waiting.
    #[test]
    fn the_line_goes_through_the_least() {
        let sizes: BTreeMap<u64, Vec<f64>> =
            [64u64, 700, 1500].into_iter().map(|size| (size, vec![1e6 + 8.0 * size as f64, 9e6])).collect();
        let hop = regression(2, &sizes);
        let fit = hop.fit.unwrap();
        assert!((fit.slope_ns_per_octet - 8.0).abs() < 1e-6 && (fit.intercept_ns - 1e6).abs() < 1e-3);
        assert_eq!((hop.label.as_str(), hop.least.len(), hop.all.len()), ("hop 2", 3, 6));
    }
}
