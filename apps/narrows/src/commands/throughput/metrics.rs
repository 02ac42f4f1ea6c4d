//! RFC 6349's metrics and the round trip under load, out of a TCP test's samples.

use std::time::Duration;

use narrows_net::iperf3::{Finished, Part};
use narrows_probe::probes::TcpSample;
use narrows_report::LoadedDelay;
use narrows_units::{BitRate, Framing, format_duration, nanos};
use serde_json::{Value, json};

use super::own::Beside;
use super::streams::both;

/// The metrics of RFC 6349 §4, and what the load did to the round trip. In-band: the load's own
/// connections measure it, so that flow queueing does not hide it; what other connections saw is
/// not measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metrics {
    /// Unloaded round trip: the shortest known.
    baseline: Duration,
    /// Under load: mean, and quantiles 50, 95, 99 %.
    mean: Duration,
    quantiles: [Duration; 3],
    samples: usize,
    /// Share of the payload that did not have to be sent again; `None` where the kernel does not
    /// say.
    efficiency: Option<f64>,
    /// Payload rate, bit/s, and what the narrow link would carry of it.
    actual_bps: f64,
    ideal_bps: Option<f64>,
    /// Round trips per minute under load, of the shortest 95 %.
    responsiveness: Option<f64>,
    foreign: Option<Foreign>,
}

/// What connections that are not the load's saw of it: the time from SYN to its answer.
#[derive(Debug, Clone, PartialEq)]
struct Foreign {
    /// Quantiles 50, 95, 99 %.
    quantiles: [Duration; 3],
    opened: usize,
    failed: usize,
    /// Connections per minute, one behind the other, of the shortest 95 %.
    responsiveness: f64,
}

impl Foreign {
    /// `None` where none was opened.
    fn of(took: &[Option<Duration>]) -> Option<Self> {
        let mut times: Vec<f64> = took.iter().flatten().map(Duration::as_secs_f64).collect();
        times.sort_by(f64::total_cmp);
        let mean = narrows_stat::mean(&times[..rank(times.len(), KEPT)]).filter(|mean| *mean > 0.0)?;
        let quantile = |share: f64| times.get(rank(times.len(), share).saturating_sub(1)).copied().unwrap_or(0.0);
        Some(Self {
            quantiles: [0.5, 0.95, 0.99].map(|share| Duration::try_from_secs_f64(quantile(share)).unwrap_or_default()),
            opened: times.len(),
            failed: took.len() - times.len(),
            responsiveness: 60.0 / mean,
        })
    }

    fn text(&self) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} did not open"),
        };
        format!(
            "other connections: {} p50, {} p95, {} p99 to open under load ({} opened{failed}, {:.0} a minute one by one)\n",
            format_duration(self.quantiles[0]),
            format_duration(self.quantiles[1]),
            format_duration(self.quantiles[2]),
            self.opened,
            self.responsiveness
        )
    }

    fn json(&self) -> Value {
        json!({
            "p50_ns": nanos(self.quantiles[0]),
            "p95_ns": nanos(self.quantiles[1]),
            "p99_ns": nanos(self.quantiles[2]),
            "opened": self.opened,
            "failed": self.failed,
            "responsiveness_rpm": self.responsiveness.round(),
            "basis": "tcp-handshake",
        })
    }
}

/// Share of the round trips that responsiveness keeps, the shortest ones.
const KEPT: f64 = 0.95;
/// Mean increase of the round trip, milliseconds, below which a grade is given (as public speed
/// tests print it).
const GRADES: [(f64, &str); 5] = [(5.0, "A+"), (30.0, "A"), (60.0, "B"), (200.0, "C"), (400.0, "D")];

impl Metrics {
    /// `None` without samples of `TCP_INFO` of the sending side. `ceiling` is the Ethernet rate of
    /// the narrow link.
    pub(super) fn of<'a>(finished: &'a Finished, beside: &Beside, ceiling: Option<BitRate>) -> Option<Self> {
        let idle = beside.idle_rtt;
        let parts = || finished.parts.iter();
        // Of two ways the first.
        let sends = finished.outline.streams.iter().any(|stream| stream.sends);
        let of_way = |part: &'a Part| part.streams.iter().filter(move |stream| stream.from.sends == sends);
        let counted = parts().filter(|part| !part.omitted).flat_map(of_way);
        let samples: Vec<&TcpSample> = counted.flat_map(|stream| &stream.samples).collect();
        let all = parts().flat_map(of_way).flat_map(|stream| &stream.samples);
        let least = all.map(|sample| sample.min_rtt.unwrap_or(sample.rtt)).min()?;
        let mut rtts: Vec<f64> = samples.iter().map(|sample| sample.rtt.as_secs_f64()).collect();
        rtts.sort_by(f64::total_cmp);
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let kept = &rtts[..rank(rtts.len(), KEPT)];
        let mss = samples.first()?.mss_octets;
        let received: Vec<_> = both(finished).iter().filter(|one| one.sends == sends).map(|one| one.received).collect();
        let octets: u64 = received.iter().map(|row| row.octets).fold(0, u64::saturating_add);
        let said = received.iter().find_map(|row| row.span_seconds).map(|(from, to)| to - from);
        let seconds = said
            .filter(|&seconds| seconds > 0.0)
            .unwrap_or_else(|| finished.span.1.saturating_sub(finished.span.0).as_secs_f64());
        let quantile = |share: f64| time(rtts[rank(rtts.len(), share).saturating_sub(1)]);
        Some(Self {
            baseline: idle.map_or(least, |idle| idle.min(least)),
            mean: time(narrows_stat::mean(&rtts)?),
            quantiles: [0.5, 0.95, 0.99].map(quantile),
            samples: rtts.len(),
            efficiency: efficiency(finished),
            actual_bps: if seconds > 0.0 { octets as f64 * 8.0 / seconds } else { 0.0 },
            ideal_bps: ceiling.map(|rate| ideal(rate, mss)),
            responsiveness: narrows_stat::mean(kept).filter(|mean| *mean > 0.0).map(|mean| 60.0 / mean),
            foreign: beside.foreign.as_deref().and_then(Foreign::of),
        })
    }

    /// The round trip for the answer.
    pub(super) fn delay(&self) -> LoadedDelay {
        LoadedDelay { idle: self.baseline, median: self.quantiles[0], p95: self.quantiles[1], grade: self.grade() }
    }

    fn increase_ms(&self) -> f64 {
        self.mean.saturating_sub(self.baseline).as_secs_f64() * 1e3
    }

    fn buffer_delay_percent(&self) -> f64 {
        100.0 * (self.mean.as_secs_f64() / self.baseline.as_secs_f64().max(1e-9) - 1.0)
    }

    /// Actual over ideal transfer time (RFC 6349 §4.1): ideal over actual rate.
    fn transfer_time_ratio(&self) -> Option<f64> {
        self.ideal_bps.filter(|_| self.actual_bps > 0.0).map(|ideal| ideal / self.actual_bps)
    }

    fn grade(&self) -> &'static str {
        let increase = self.increase_ms();
        GRADES.iter().find(|(below, _)| increase < *below).map_or("F", |(_, grade)| grade)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "rfc6349": {
                "transfer_time_ratio": self.transfer_time_ratio(),
                "ideal_bps": self.ideal_bps.map(f64::round),
                "actual_bps": self.actual_bps.round(),
                "efficiency_percent": self.efficiency.map(|share| 100.0 * share),
                "buffer_delay_percent": self.buffer_delay_percent(),
                "baseline_rtt_ns": nanos(self.baseline),
                "mean_rtt_ns": nanos(self.mean),
            },
            "loaded_rtt": {
                "idle_ns": nanos(self.baseline),
                "p50_ns": nanos(self.quantiles[0]),
                "p95_ns": nanos(self.quantiles[1]),
                "p99_ns": nanos(self.quantiles[2]),
                "increase_mean_ms": self.increase_ms(),
                "grade": self.grade(),
                "samples": self.samples,
                "basis": "in-band",
            },
            "responsiveness_rpm": self.responsiveness.map(f64::round),
            // `null`: no other connections were opened, as against a stock peer.
            "foreign_rtt": self.foreign.as_ref().map(Foreign::json),
        })
    }

    pub(super) fn text(&self) -> String {
        let ratio = self.transfer_time_ratio().map_or_else(
            || "unknown (name the narrow link's rate by --bottleneck)".to_owned(),
            |ratio| format!("{ratio:.2}"),
        );
        let efficiency =
            self.efficiency.map_or_else(|| "unknown".to_owned(), |share| format!("{:.2} %", 100.0 * share));
        let foreign = self.foreign.as_ref().map_or_else(String::new, Foreign::text);
        format!(
            "round trip {} idle, {} p50, {} p95, {} p99 under load (grade {}, {:.0} round trips a minute)\nRFC 6349: transfer \
             time ratio {ratio}, efficiency {efficiency}, buffer delay {:.0} %\n{foreign}",
            format_duration(self.baseline),
            format_duration(self.quantiles[0]),
            format_duration(self.quantiles[1]),
            format_duration(self.quantiles[2]),
            self.grade(),
            self.responsiveness.unwrap_or(0.0),
            self.buffer_delay_percent()
        )
    }
}

/// How many of `count` sorted values a share of them is, at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is a count")]
fn rank(count: usize, share: f64) -> usize {
    let rank = (count as f64 * share).ceil() as usize;
    rank.clamp(1, count.max(1)).min(count)
}

/// Payload rate of full segments over Ethernet: headers of 52 octets, the usual timestamps among
/// them, or 40 where the segment's length says that there are none.
fn ideal(ethernet: BitRate, mss_octets: u32) -> f64 {
    let headers = if [1460, 8960].contains(&mss_octets) { 40 } else { 52 };
    let frame = Framing::ETHERNET.wire_octets(mss_octets.saturating_add(headers));
    ethernet.as_f64() * f64::from(mss_octets) / f64::from(frame.max(1))
}

fn efficiency(finished: &Finished) -> Option<f64> {
    let mut counted = finished.parts.iter().filter(|part| !part.omitted);
    let first = counted.next()?;
    let last = counted.next_back().unwrap_or(first);
    let (mut sent, mut again) = (0u64, 0u64);
    for (from, to) in first.streams.iter().zip(&last.streams) {
        let (Some(from), Some(to)) = (from.samples.first(), to.samples.last()) else {
            continue;
        };
        sent = sent.saturating_add(to.sent_octets?.saturating_sub(from.sent_octets?));
        again = again.saturating_add(to.retransmitted_octets?.saturating_sub(from.retransmitted_octets?));
    }
    (sent > 0).then(|| 1.0 - again as f64 / sent as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        let ms = Duration::from_millis;
        Metrics {
            baseline: ms(25),
            mean: ms(32),
            quantiles: [ms(31), ms(40), ms(45)],
            samples: 100,
            efficiency: Some(0.98),
            actual_bps: 47.464e6,
            ideal_bps: Some(ideal(BitRate::from_mbps(100), 1460)),
            responsiveness: Some(60.0 / 0.032),
            foreign: None,
        }
    }

    /// RFC 6349 §4.3: 25 ms become 32 ms, 28 %. 100 Mbit/s of Ethernet carry 94.9 Mbit/s of
    /// segments of 1460 octets, 94.15 of 1448.
    #[test]
    fn the_examples_of_the_standard() {
        let metrics = metrics();
        assert!((metrics.buffer_delay_percent() - 28.0).abs() < 1e-9);
        assert!((ideal(BitRate::from_mbps(100), 1460) - 94.9285e6).abs() < 1e3);
        assert!((ideal(BitRate::from_mbps(100), 1448) - 94.1482e6).abs() < 1e3);
        assert!((metrics.transfer_time_ratio().unwrap() - 2.0).abs() < 1e-3);
        assert_eq!(metrics.json()["loaded_rtt"]["grade"], "A");
        assert_eq!(metrics.json()["responsiveness_rpm"], 1875.0);
    }

    #[test]
    fn other_connections_are_reported_of_and_failures_counted() {
        let took: Vec<Option<Duration>> = (1..=20).map(|ms| Some(Duration::from_millis(ms))).chain([None]).collect();
        let foreign = Foreign::of(&took).unwrap();
        let json = foreign.json();
        assert_eq!((&json["opened"], &json["failed"]), (&20.into(), &1.into()));
        assert_eq!((&json["p50_ns"], &json["p99_ns"]), (&10_000_000.into(), &20_000_000.into()));
        // The mean of 1 to 19 ms.
        assert_eq!(json["responsiveness_rpm"], 6_000.0);
        assert!(foreign.text().contains("20 opened, 1 did not open, 6000 a minute"), "{}", foreign.text());
        assert_eq!(Foreign::of(&[None]), None);
    }

    #[test]
    fn ranks() {
        assert_eq!((rank(100, 0.95), rank(1, 0.5), rank(0, 0.5), rank(3, 0.99)), (95, 1, 0, 3));
    }
}
