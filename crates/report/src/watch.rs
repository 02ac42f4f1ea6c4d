//! What `available --watch` prints: a row per interval, and a summary at the end.
//!
//! The JSON stream is one object per line, each with `schema` and `kind`; [`crate::schema::WATCH`]
//! is its schema.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_probe::progress::WatchPoint;
use narrows_probe::{BoundKind, Confidence, Estimate, Finding, Latest, Limit};
use narrows_train::windows::Windows;
use narrows_units::{BitRate, Octets, Sender, Stamp, format_duration, nanos};
use serde::Serialize;

use crate::rows::{MetricRow, Remark};
use crate::schema;

/// One interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchRow {
    /// Name and version of the schema.
    pub schema: &'static str,
    /// `interval`.
    pub kind: &'static str,
    /// Its end, since the watch began.
    pub at_ns: u64,
    /// Its length; longer than asked for if the program did not run meanwhile.
    pub interval_ns: u64,
    /// What was told last in it; `null` if nothing was.
    pub available_bps: Option<u64>,
    /// Lower end of that.
    pub low_bps: Option<u64>,
    /// Upper end.
    pub high_bps: Option<u64>,
    /// What it claims.
    pub verdict: BoundKind,
    /// How much stands behind it.
    pub confidence: Option<Confidence>,
    /// What set it.
    pub limited_by: Option<Limit>,
    /// The time over which it was averaged.
    pub averaged_ns: Option<u64>,
    /// How often something was told in the interval.
    pub reported: u64,
    /// IP octets sent in it.
    pub octets: u64,
    /// Why it might mislead.
    pub caveats: Vec<Remark>,
    /// What is the matter, where nothing was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchSummary {
    /// Name and version of the schema.
    pub schema: &'static str,
    /// `summary`.
    pub kind: &'static str,
    /// How long it went on.
    pub duration_ns: u64,
    /// IP octets sent.
    pub octets: u64,
    /// Mean IP-layer rate of that.
    pub mean_load_bps: u64,
    /// Intervals in which nothing was told.
    pub silent_intervals: u64,
    /// All intervals.
    pub intervals: u64,
    /// How what was available was distributed, for each length of window.
    pub windows: Vec<WindowRow>,
    /// The method's own answer at its end.
    pub result: MetricRow,
}

/// Means over consecutive windows of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowRow {
    /// The length.
    pub window_ns: u64,
    /// How many there were with a value.
    pub windows: u64,
    /// Mean over them.
    pub mean_bps: Option<u64>,
    /// Percentiles by nearest rank, to 0.05 %.
    pub p05_bps: Option<u64>,
    /// Lower quartile.
    pub p25_bps: Option<u64>,
    /// Median.
    pub p50_bps: Option<u64>,
    /// Upper quartile.
    pub p75_bps: Option<u64>,
    /// What a twentieth of the windows exceeds.
    pub p95_bps: Option<u64>,
}

/// Gathers what is told into intervals.
#[derive(Debug, Clone)]
pub struct Watch {
    interval: Duration,
    began: Stamp<Sender>,
    /// The last interval that was printed ended here.
    printed: Stamp<Sender>,
    latest: Option<Estimate>,
    reported: u64,
    octets: u64,
    all_octets: u64,
    intervals: u64,
    silent: u64,
    last_reported: Option<Stamp<Sender>>,
    windows: VecDeque<Windows>,
}

/// Window lengths, in intervals.
const LENGTHS: [u32; 2] = [1, 10];

impl Watch {
    /// A watch that begins now.
    pub fn new(interval: Duration, now: Stamp<Sender>) -> Self {
        Self {
            interval: interval.max(Duration::from_millis(1)),
            began: now,
            printed: now,
            latest: None,
            reported: 0,
            octets: 0,
            all_octets: 0,
            intervals: 0,
            silent: 0,
            last_reported: None,
            windows: LENGTHS.iter().map(|&length| Windows::new(interval * length)).collect(),
        }
    }

    /// Something is told. Single trains' values, where the method gives them, go into the windows;
    /// else the value.
    pub fn tell(&mut self, now: Stamp<Sender>, latest: &Latest) {
        self.reported += 1;
        self.last_reported = Some(now);
        let estimate = &latest.estimate;
        if estimate.verdict() == BoundKind::Estimated {
            let single = match &estimate.details.finding {
                Finding::Available(found) => found.last_train_bps,
                _ => None,
            };
            let value = single.unwrap_or(estimate.in_unit().value as f64);
            self.windows.iter_mut().for_each(|windows| windows.add(now, value));
        }
        self.latest = Some(estimate.clone());
    }

    /// So many octets went out.
    pub fn spend(&mut self, octets: u64) {
        self.octets += octets;
        self.all_octets += octets;
    }

    /// When the interval that is open ends.
    pub fn next(&self) -> Stamp<Sender> {
        self.printed + self.interval
    }

    /// The row of the interval that is over, if one is. One row stands for all that ended since the
    /// last.
    pub fn tick(&mut self, now: Stamp<Sender>) -> Option<WatchRow> {
        let since = now.since(self.printed);
        let whole = u32::try_from(since.as_nanos() / self.interval.as_nanos()).unwrap_or(u32::MAX);
        if whole == 0 {
            return None;
        }
        let length = self.interval.saturating_mul(whole);
        self.printed = self.printed + length;
        self.intervals += u64::from(whole);
        let latest = self.latest.take();
        if latest.is_none() {
            self.silent += u64::from(whole);
        }
        let estimate = latest.as_ref();
        let range = estimate.map(Estimate::in_unit);
        let row = WatchRow {
            schema: schema::WATCH_NAME,
            kind: "interval",
            at_ns: nanos(self.printed.since(self.began)),
            interval_ns: nanos(length),
            available_bps: range.map(|range| range.value),
            low_bps: range.map(|range| range.low),
            high_bps: range.map(|range| range.high),
            verdict: range.map_or(BoundKind::Inconclusive, |range| range.verdict),
            confidence: estimate.map(|estimate| estimate.confidence),
            limited_by: estimate.map(|estimate| estimate.limited_by),
            averaged_ns: estimate.and_then(|estimate| estimate.interval).map(nanos),
            reported: std::mem::take(&mut self.reported),
            octets: std::mem::take(&mut self.octets),
            caveats: estimate.map_or_else(Vec::new, |estimate| estimate.caveats.iter().map(Remark::from).collect()),
            note: estimate.is_none().then(|| self.silence()),
        };
        Some(row)
    }

    fn silence(&self) -> String {
        match self.last_reported {
            None => "nothing is known yet".to_owned(),
            Some(reported) => format!(
                "no usable train for {}: nothing came back, or a host stalled",
                format_duration(self.printed.since(reported))
            ),
        }
    }

    /// The end: `result` is what the method says of the whole.
    pub fn summary(&mut self, now: Stamp<Sender>, result: MetricRow) -> WatchSummary {
        let duration = now.since(self.began);
        let rows = self.windows.iter_mut().map(|windows| {
            windows.close();
            let rate = |value: Option<f64>| value.and_then(BitRate::from_bps_f64).map(BitRate::bps);
            WindowRow {
                window_ns: nanos(windows.length()),
                windows: windows.count(),
                mean_bps: rate(windows.mean()),
                p05_bps: rate(windows.percentile(0.05)),
                p25_bps: rate(windows.percentile(0.25)),
                p50_bps: rate(windows.percentile(0.5)),
                p75_bps: rate(windows.percentile(0.75)),
                p95_bps: rate(windows.percentile(0.95)),
            }
        });
        WatchSummary {
            schema: schema::WATCH_NAME,
            kind: "summary",
            duration_ns: nanos(duration),
            octets: self.all_octets,
            mean_load_bps: BitRate::over(self.all_octets, duration).map_or(0, BitRate::bps),
            silent_intervals: self.silent,
            intervals: self.intervals,
            windows: rows.collect(),
            result,
        }
    }
}

impl WatchRow {
    /// For whoever follows it; `packets`: those sent in the interval.
    pub fn point(&self, packets: u64) -> WatchPoint {
        let range = self.available_bps.zip(self.low_bps).zip(self.high_bps);
        WatchPoint {
            at_ns: self.at_ns,
            interval_ns: self.interval_ns,
            available: range.map(|((value, low), high)| (value, low, high)),
            octets: self.octets,
            packets,
            capacity_bps: None,
            doubts: self.caveats.iter().map(|caveat| caveat.brief.to_owned()).collect(),
        }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// One line for people.
    pub fn text(&self) -> String {
        let at = format_duration(Duration::from_nanos(self.at_ns));
        let sent = Octets::new(self.octets);
        let said = match (self.available_bps, self.low_bps, self.high_bps) {
            (Some(value), Some(low), Some(high)) => {
                let rate = BitRate::from_bps;
                match self.verdict {
                    BoundKind::LowerBound => format!("at least {}", rate(value)),
                    BoundKind::UpperBound => format!("at most {}", rate(value)),
                    BoundKind::Estimated | BoundKind::Inconclusive => {
                        format!("{} ({} … {})", rate(value), rate(low), rate(high))
                    }
                }
            }
            _ => self.note.clone().unwrap_or_default(),
        };
        let caveats: Vec<&str> = self.caveats.iter().map(|caveat| caveat.id.as_str()).collect();
        let caveats = if caveats.is_empty() { String::new() } else { format!("  [{}]", caveats.join(" ")) };
        format!("{at:>9}  {said}  sent {sent}{caveats}")
    }
}

impl WatchSummary {
    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// Some lines for people.
    pub fn text(&self) -> String {
        let rate = |bps: Option<u64>| bps.map_or_else(|| "–".to_owned(), |bps| BitRate::from_bps(bps).to_string());
        let mut lines = vec![format!(
            "watched for {}, sent {} ({} in the mean); {} of {} intervals without a value",
            format_duration(Duration::from_nanos(self.duration_ns)),
            Octets::new(self.octets),
            BitRate::from_bps(self.mean_load_bps),
            self.silent_intervals,
            self.intervals,
        )];
        for row in self.windows.iter().filter(|row| row.windows > 0) {
            lines.push(format!(
                "means over {}, {} of them: 5 % {}, 25 % {}, median {}, 75 % {}, 95 % {}; mean {}",
                format_duration(Duration::from_nanos(row.window_ns)),
                row.windows,
                rate(row.p05_bps),
                rate(row.p25_bps),
                rate(row.p50_bps),
                rate(row.p75_bps),
                rate(row.p95_bps),
                rate(row.mean_bps),
            ));
        }
        if let Some(reason) = &self.result.reason {
            lines.push(format!("ended: {}", reason.text));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use narrows_probe::Entry;
    use narrows_probe::{AvailableFinding, Cost, Outcome, Reason};
    use narrows_units::{Direction, Metric};

    use super::*;

    fn at(ms: i64) -> Stamp<Sender> {
        Stamp::from_nanos(ms * 1_000_000)
    }

    fn latest(mbps: u64, single: f64) -> Latest {
        let rate = BitRate::from_mbps(mbps);
        let estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, rate, rate, rate);
        Latest {
            at: at(0),
            estimate: estimate.found(Finding::Available(Box::new(AvailableFinding {
                last_train_bps: Some(single * 1e6),
                ..AvailableFinding::default()
            }))),
        }
    }

    fn ended(outcome: Outcome) -> MetricRow {
        MetricRow::new(&Entry {
            metric: Metric::AvailableIpCapacity,
            direction: Direction::Forward,
            method: "track",
            outcome,
            cost: Cost::default(),
        })
    }

    #[test]
    fn intervals_hold_what_was_reported_in_them() {
        let mut watch = Watch::new(Duration::from_secs(1), at(0));
        watch.tell(at(200), &latest(50, 40.0));
        watch.spend(1000);
        watch.tell(at(700), &latest(55, 60.0));
        assert_eq!(watch.tick(at(999)), None);
        let row = watch.tick(at(1001)).unwrap();
        assert_eq!((row.at_ns, row.available_bps, row.reported), (1_000_000_000, Some(55_000_000), 2));
        assert_eq!((row.octets, row.note.is_none()), (1000, true));
        // Three seconds in which the program did not run: one row, and it says so.
        let row = watch.tick(at(4100)).unwrap();
        assert_eq!((row.interval_ns, row.available_bps), (3_000_000_000, None));
        assert!(row.note.as_ref().unwrap().contains("no usable train for"), "{row:?}");
        assert!(row.text().contains("no usable train"), "{}", row.text());
        watch.tell(at(4200), &latest(80, 80.0));
        let summary = watch.summary(at(4500), ended(latest(80, 80.0).estimate.into()));
        assert_eq!((summary.silent_intervals, summary.intervals), (3, 4));
        assert_eq!(summary.windows[0].windows, 2);
        assert_eq!(summary.windows[0].mean_bps, Some(65_000_000));
        assert!(summary.text().contains("3 of 4 intervals without a value"), "{}", summary.text());
    }

    #[test]
    fn lines_follow_the_shipped_schema() {
        let schema: serde_json::Value = serde_json::from_str(schema::WATCH).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut watch = Watch::new(Duration::from_secs(1), at(0));
        watch.tell(at(200), &latest(50, 40.0));
        let full = watch.tick(at(1000)).unwrap().json();
        let empty = watch.tick(at(2000)).unwrap().json();
        let summary = watch.summary(at(2500), ended(Outcome::inconclusive(Reason::NoAnswer))).json();
        for line in [&full, &empty, &summary] {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}: {errors:?}");
            assert!(!line.contains('\n'));
        }
        let mut wrong: serde_json::Value = serde_json::from_str(&full).unwrap();
        wrong["available_bps"] = "much".into();
        assert!(!validator.is_valid(&wrong), "the schema must be able to refuse");
    }
}
