//! Pictures of how a metric was found, from its evidence.

use narrows_probe::outcome::Diagnostic;
use narrows_units::Metric;

use crate::picture::{
    Bin, Curve, DispersionHistogram, Mode, Picture, Point, Quantity, Response, ResponseCurve, Series,
};
use crate::rows::MetricRow;

/// Most points of a series.
const POINTS: usize = 2_000;
/// Fewer show nothing.
const LEAST: usize = 2;

/// The pictures of a metric, each with what to see in it.
pub(super) fn of(row: &MetricRow) -> Vec<(&'static str, Picture)> {
    let found = match row.metric {
        Metric::RoundTripTime => vec![round_trips(row)],
        Metric::IpCapacity => vec![dispersion(row)],
        Metric::AvailableIpCapacity => vec![response(row, "rate_in_bps", "rate_out_bps"), per_train(row)],
        Metric::MaximumBurstOctets => vec![bursts(row)],
        Metric::UdpAchievable => vec![response(row, "trial_offered_bps", "trial_delivered_bps"), udp_loss(row)],
        Metric::TcpAchievableSingle => vec![slots(row)],
        Metric::TcpStreamsToFill => vec![streams(row)],
        Metric::TcpWindowOctets => vec![windows(row)],
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

/// A series of the evidence.
fn series<'a>(row: &'a MetricRow, name: &str) -> Option<&'a [f64]> {
    let value = row.evidence.iter().find(|(known, _)| *known == name)?.1;
    match value {
        Diagnostic::Series(values) if !values.is_empty() => Some(values),
        _ => None,
    }
}

/// Two series as points, those that are no numbers left out; a longer one is thinned evenly.
fn points(x: &[f64], y: &[f64]) -> Option<Vec<Point>> {
    let pairs = x.iter().zip(y).filter(|(x, y)| x.is_finite() && y.is_finite());
    let all: Vec<Point> = pairs.map(|(x, y)| Point::new(*x, *y)).collect();
    let step = all.len().div_ceil(POINTS).max(1);
    let kept: Vec<Point> = all.into_iter().step_by(step).collect();
    (kept.len() >= LEAST).then_some(kept)
}

/// From 1 on.
fn numbers(count: usize) -> Vec<f64> {
    (1..=count).map(|number| number as f64).collect()
}

fn round_trips(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let mut samples = series(row, "round_trips_ns")?.to_vec();
    samples.sort_by(f64::total_cmp);
    let series = vec![Series::new("round trip", points(&numbers(samples.len()), &samples)?)];
    let x = ("round trips, the shortest first", Quantity::Count);
    let picture = curve("Round trips of single packets", x, ("round trip", Quantity::Time), series);
    Some((
        "The flat part on the left is the path without queues. What rises on the right waited.",
        marked(picture.above(), row),
    ))
}

fn dispersion(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let (at, counts) = (series(row, "modes_bps")?, series(row, "mode_counts")?);
    let width = row.evidence.iter().find(|(name, _)| *name == "bin_width_bps")?.1.as_f64()?;
    let value = row.value.map(|value| value as f64);
    let ends = |at: f64| (at - width / 2.0, at + width / 2.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of pairs")]
    let bin = |(&at, &count): (&f64, &f64)| Bin { low: ends(at).0, high: ends(at).1, count: count.max(0.0) as u64 };
    let chosen = |at: f64| value.is_some_and(|value| (value - at).abs() <= width / 2.0);
    let picture = DispersionHistogram {
        title: "Rates that pairs of packets showed".to_owned(),
        quantity: Quantity::Rate,
        bins: at.iter().zip(counts).map(bin).collect(),
        modes: at.iter().map(|&at| Mode { low: ends(at).0, high: ends(at).1, chosen: chosen(at) }).collect(),
        truth: None,
        estimate: value,
    };
    let caption =
        "Only rates on which several pairs agree are drawn. Traffic between two packets shows as a lower rate.";
    Some((caption, Picture::DispersionHistogram(picture)))
}

fn response(row: &MetricRow, sent: &str, received: &str) -> Option<(&'static str, Picture)> {
    let points = points(series(row, sent)?, series(row, received)?)?;
    let picture = ResponseCurve {
        title: "What left, and what arrived".to_owned(),
        response: Response::Rates,
        series: vec![Series::new(row.method.clone(), points)],
        fitted: Vec::new(),
        capacity_bps: None,
        available_bps: row.value.filter(|_| row.metric == Metric::AvailableIpCapacity).map(|bps| bps as f64),
    };
    let caption = "On the line everything came through. Below the line the path was full.";
    Some((caption, Picture::ResponseCurve(picture)))
}

fn curve(title: &str, x: (&str, Quantity), y: (&str, Quantity), series: Vec<Series>) -> Curve {
    Curve {
        title: title.to_owned(),
        x_title: x.0.to_owned(),
        x: x.1,
        y_title: y.0.to_owned(),
        y: y.1,
        series,
        marks: Vec::new(),
        from_zero: true,
    }
}

fn marked(mut curve: Curve, row: &MetricRow) -> Picture {
    curve.marks.extend(row.value.map(|value| ("answer".to_owned(), value as f64)));
    Picture::Curve(curve)
}

fn per_train(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let (at, rates) = (series(row, "per_train_at_ns")?, series(row, "per_train_bps")?);
    let first = at.iter().copied().fold(f64::INFINITY, f64::min);
    let at: Vec<f64> = at.iter().map(|at| at - first).collect();
    let series = vec![Series::new("one train", points(&at, rates)?)];
    let x = ("time since the first train", Quantity::Time);
    let picture = curve("What each train alone says is free", x, ("rate", Quantity::Rate), series);
    Some((
        "Trains differ because other traffic comes in bursts. The answer rests on all of them.",
        marked(picture, row),
    ))
}

fn bursts(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let lost = series(row, "first_loss_octets")?;
    let series = vec![Series::new("one burst", points(&numbers(lost.len()), lost)?)];
    let y = ("octets before the first loss", Quantity::Octets);
    let picture = curve("How far each burst came", ("burst", Quantity::Count), y, series);
    Some(("Bursts that all break off at one size met a queue of that size.", marked(picture, row)))
}

fn udp_loss(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let (sent, lost) = (series(row, "trial_offered_bps")?, series(row, "trial_sustained_loss_ratio")?);
    let series = vec![Series::new("one trial", points(sent, lost)?)];
    let y = ("share lost", Quantity::Ratio);
    let picture = curve("Loss over the rate that was offered", ("rate offered", Quantity::Rate), y, series);
    Some(("Loss that begins at one rate marks what the path sustains.", Picture::Curve(picture)))
}

fn slots(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let rates = series(row, "slot_bps")?;
    let series = vec![Series::new("payload", points(&numbers(rates.len()), rates)?)];
    let x = ("part of the transfer, in order", Quantity::Count);
    let picture = curve("Rate of the connection over time", x, ("rate", Quantity::Rate), series);
    Some(("A rate that still climbs at the end belongs to a test that was too short.", marked(picture, row)))
}

fn streams(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let (tried, rates) = (series(row, "streams_tried")?, series(row, "sum_bps")?);
    let series = vec![Series::new("all streams together", points(tried, rates)?)];
    let picture =
        curve("Rate over the number of streams", ("streams", Quantity::Count), ("rate", Quantity::Rate), series);
    Some(("Where the line turns flat, more streams bring no more.", Picture::Curve(picture)))
}

fn windows(row: &MetricRow) -> Option<(&'static str, Picture)> {
    let (tried, rates) = (series(row, "tried_window_octets")?, series(row, "tried_bps")?);
    let series = vec![Series::new("one connection", points(tried, rates)?)];
    let picture = curve("Rate over the window", ("window", Quantity::Octets), ("rate", Quantity::Rate), series);
    Some(("Where the line turns flat, a larger window brings no more.", Picture::Curve(picture)))
}
