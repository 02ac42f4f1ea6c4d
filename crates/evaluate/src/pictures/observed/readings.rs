//! What the pictures of kept observations say of them, by the methods' own statistics.

use narrows_probe::probes::LoadReport;
use narrows_report::picture::{DelayGroup, DelayedPacket, Mode, Point, Trend, TrendTest};
use narrows_stat::{ModeParams, Sorted, Thresholds};

/// Most points of a response curve: ours; rates of one fleet fall together.
const POINTS: f64 = 40.0;

/// Rate sent and rate received of a load segment, bit/s. Reports lag by a round trip, so the first
/// interval, which may belong to the segment before, is left out, and so are segments of fewer than
/// four intervals.
pub(super) fn of_load(report: &LoadReport) -> Option<(f64, f64)> {
    const LEAST: usize = 4;
    let statuses = report.statuses.get(1..).filter(|rest| rest.len() + 1 >= LEAST)?;
    let (octets, nanos) = statuses.iter().fold((0u64, 0i64), |(octets, nanos), status| {
        (octets.saturating_add(status.ip_octets), nanos.saturating_add((status.to - status.from).nanos()))
    });
    let sent = rate(report.sent_ip_octets, (report.ended - report.began).nanos())?;
    Some((sent, rate(octets, nanos)?))
}

fn rate(octets: u64, nanos: i64) -> Option<f64> {
    (nanos > 0).then(|| octets as f64 * 8e9 / nanos as f64)
}

/// Rates in and out as a curve: like rates in together, with the middle half of what came out.
/// `None` unless the rates in differ by a fifth at least: one rate is no curve.
pub(super) fn curve(rates: &[(f64, f64)]) -> Option<Vec<Point>> {
    let low = rates.iter().map(|(sent, _)| *sent).fold(f64::INFINITY, f64::min);
    let high = rates.iter().map(|(sent, _)| *sent).fold(0.0, f64::max);
    if !(low > 0.0 && high >= 1.2 * low && high.is_finite()) {
        return None;
    }
    let mut sorted = rates.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let step = (high - low) / POINTS;
    let bins = sorted.chunk_by(|one, other| ((one.0 - low) / step).floor() >= ((other.0 - low) / step).floor());
    let points = bins.filter_map(|bin| {
        let sent: Vec<f64> = bin.iter().map(|(sent, _)| *sent).collect();
        let got: Vec<f64> = bin.iter().map(|(_, got)| *got).collect();
        let at = |p| narrows_stat::quantile(&got, p);
        Some(Point::between(narrows_stat::quantile(&sent, 0.5)?, at(0.5)?, at(0.25)?, at(0.75)?))
    });
    let points: Vec<Point> = points.collect();
    (points.len() >= 3).then_some(points)
}

/// Local modes as pathrate looks for them (`[Pathrate04]`), in windows as wide as the histogram's
/// bins. Its noise level is 15 of about 1000 values; ours is that share, and two values at least.
/// The mode that holds the answer is the one chosen.
pub(super) fn modes(samples: &[f64], width: f64, answer: Option<f64>) -> Vec<Mode> {
    let params = ModeParams { noise_count: (samples.len() * 15 / 1000).max(2), ..ModeParams::new(width.max(0.0)) };
    let Ok(found) = Sorted::from_slice(samples).and_then(|sorted| narrows_stat::local_modes(&sorted, &params)) else {
        return Vec::new();
    };
    let reach = width.max(0.0) / 2.0;
    let holds = |low: f64, high: f64| answer.is_some_and(|value| low - reach <= value && value <= high + reach);
    let mode = |mode: &narrows_stat::LocalMode| {
        let (low, high) = (mode.central.low(), mode.central.high());
        Mode { low, high, chosen: holds(low, high) }
    };
    found.iter().map(mode).collect()
}

/// Medians of groups of the square root of the count, as pathload's tests compare them.
pub(super) fn groups(packets: &[DelayedPacket]) -> Vec<DelayGroup> {
    let size = packets.len().isqrt().max(1);
    let group = |chunk: &[DelayedPacket]| {
        let delays: Vec<f64> = chunk.iter().map(|packet| packet.delay_ns as f64).collect();
        #[expect(clippy::cast_possible_truncation, reason = "a median of whole nanoseconds")]
        let median_ns = narrows_stat::median(&delays)? as i64;
        Some(DelayGroup { first: chunk.first()?.packet, last: chunk.last()?.packet, median_ns })
    };
    packets.chunks(size).filter_map(group).collect()
}

/// Pathload's verdict, and the two tests behind it; none of a train too short for them.
pub(super) fn trend(packets: &[DelayedPacket]) -> (Option<Trend>, Vec<TrendTest>) {
    let least = packets.iter().map(|packet| packet.delay_ns).min().unwrap_or(0);
    let delays: Vec<f64> = packets.iter().map(|packet| packet.delay_ns.saturating_sub(least) as f64).collect();
    let thresholds = Thresholds::PATHLOAD;
    let Ok(found) = narrows_stat::stream_trend(&delays, &thresholds) else {
        return (None, Vec::new());
    };
    let test = |name: &str, value, bands: narrows_stat::Bands| TrendTest {
        name: name.to_owned(),
        value,
        increasing_above: bands.increasing_above,
        none_below: bands.no_trend_below,
    };
    let verdict = match found.grade {
        narrows_stat::Trend::Increasing => Trend::Increasing,
        narrows_stat::Trend::NoTrend => Trend::None,
        narrows_stat::Trend::Ambiguous => Trend::Ambiguous,
    };
    let tests = vec![
        test("pairwise comparison", found.pct, thresholds.pct),
        test("pairwise difference", found.pdt, thresholds.pdt),
    ];
    (Some(verdict), tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(delay: impl Fn(i64) -> i64) -> Vec<DelayedPacket> {
        let packet = |k: i64| DelayedPacket { packet: k.unsigned_abs(), delay_ns: delay(k) };
        (0..100).map(packet).collect()
    }

    #[test]
    fn rising_delays_are_a_trend_and_level_ones_none() {
        let rising = packets(|k| 5_000_000_000 + 1000 * k);
        assert_eq!(trend(&rising).0, Some(Trend::Increasing));
        // By hand: ten groups of ten; the first is 0 to 9, whose median is 4.5 microseconds above
        // the offset.
        let groups = groups(&rising);
        assert_eq!((groups.len(), groups[0].last, groups[0].median_ns), (10, 9, 5_000_004_500));
        let level = packets(|k| 1000 * (k % 2));
        assert_eq!(trend(&level).0, Some(Trend::None));
        assert_eq!(trend(&rising[..3]), (None, Vec::new()));
    }

    /// A path of 10 units of which 6 are free: below 6 what goes in comes out; above, out = in * 10
    /// / (in + 4).
    #[test]
    fn a_curve_needs_several_rates() {
        let answer = |sent: f64| if sent <= 6.0 { sent } else { sent * 10.0 / (sent + 4.0) };
        let rates: Vec<(f64, f64)> = (1..=12).map(f64::from).map(|sent| (sent, answer(sent))).collect();
        let curve_of = curve(&rates).unwrap();
        assert_eq!(curve_of.len(), 12);
        assert!((curve_of[11].y - 7.5).abs() < 1e-9 && (curve_of[5].y - 6.0).abs() < 1e-9);
        assert!(curve(&[(5.0, 5.0), (5.1, 5.0), (5.2, 5.0)]).is_none());
        assert!(curve(&[]).is_none());
    }

    #[test]
    fn the_chosen_mode_holds_the_answer() {
        let mut samples = vec![50.0, 51.0, 50.5, 50.2, 50.7];
        samples.extend([97.0, 97.2, 97.4, 97.6, 97.8, 97.9]);
        let modes = modes(&samples, 2.0, Some(97.5));
        let chosen: Vec<bool> = modes.iter().map(|mode| mode.chosen).collect();
        assert_eq!(chosen, [true, false]);
        assert!(modes[0].low >= 97.0 && modes[1].high <= 51.0);
    }
}
