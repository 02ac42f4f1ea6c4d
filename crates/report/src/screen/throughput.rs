//! The screen of `throughput`: the rate over time, round trips, and the streams.

use narrows_probe::progress::{Interval, RatePoint, StreamInterval};
use narrows_units::{Layer, to_usize};

use super::canvas::{Canvas, Tone};
use super::chart::{Column, Place, Scale, bars};
use super::figures;
use super::printable;
use super::state::State;

const WIDE: usize = 110;
const TALL: usize = 24;
/// Column of the side pane.
const SIDE: usize = 73;
/// Time that a column may stand for.
const STEPS_NS: [u64; 10] = [
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
    600_000_000_000,
];

pub(super) fn view(canvas: &mut Canvas, state: &State) -> &'static str {
    // The side takes eight rows, and a chart above it six.
    let wide = canvas.width >= WIDE && canvas.height >= TALL;
    let end = canvas.height - 3;
    let rows = state.streams.len() + usize::from(state.streams.len() > 1) + 1;
    // Of many streams only the sum and the first ones: a chart needs six rows.
    let rows = rows.min(end.saturating_sub(14).max(2));
    let streams_at = end - rows.max(if wide { 8 } else { 0 });
    summary(canvas, state);
    let place = |y: usize, to: usize| Place { x: 0, y, width: canvas.width - 5, height: to - y };
    if wide && streams_at > 20 {
        let middle = 3 + (streams_at - 3) / 2;
        let (upper, lower) = (place(4, middle - 1), place(middle + 1, streams_at - 1));
        rates(canvas, state, upper);
        canvas.rule(middle - 1, 0, canvas.width);
        round_trips(canvas, state, lower);
    } else {
        rates(canvas, state, place(4, streams_at - 3));
        canvas.rule(streams_at - 3, 0, canvas.width);
        canvas.put(1, streams_at - 2, Tone::Plain, &round_trip_line(state));
    }
    canvas.rule(streams_at - 1, 0, canvas.width);
    streams(canvas, state, streams_at, rows);
    if wide {
        canvas.fence(SIDE, streams_at, end);
        side(canvas, state, SIDE + 2, streams_at);
    }
    canvas.rule(end, 0, canvas.width);
    canvas.put(1, end + 1, Tone::Plain, &spent(state));
    if wide {
        "q end and report   f freeze view   d doubts   t theme   ? help"
    } else {
        "q end and report   f freeze view   ? help"
    }
}

/// For one line.
pub(super) fn line(interval: &Interval) -> String {
    let now = bps(interval.streams.iter().map(|stream| stream.octets).sum(), interval.to_ns - interval.from_ns);
    now.map_or_else(|| "nothing yet".to_owned(), figures::rate)
}

fn bps(octets: u64, span_ns: u64) -> Option<u64> {
    let bits = u128::from(octets) * 8_000_000_000;
    bits.checked_div(u128::from(span_ns)).and_then(|bps| u64::try_from(bps).ok())
}

/// The sum is that of one direction: the one that this host sends in, if it does.
fn counted(interval: &Interval) -> impl Iterator<Item = &StreamInterval> {
    let sends = interval.streams.iter().any(|stream| stream.sends);
    interval.streams.iter().filter(move |stream| stream.sends == sends)
}

fn octets_of(interval: &Interval) -> u64 {
    counted(interval).map(|stream| stream.octets).sum()
}

fn mean(state: &State) -> Option<u64> {
    let counts = || state.intervals.iter().filter(|interval| !interval.omitted);
    bps(counts().map(octets_of).sum(), counts().map(|interval| interval.to_ns - interval.from_ns).sum())
}

fn summary(canvas: &mut Canvas, state: &State) {
    let Some(last) = state.intervals.last() else {
        canvas.put(1, 2, Tone::Faint, "nothing has come back yet");
        return;
    };
    let layer = match last.layer {
        Layer::TcpPayload => "TCP payload",
        Layer::UdpPayload => "UDP payload",
        Layer::Ip => "IP",
        Layer::Frame => "frames",
        Layer::Wire => "wire",
    };
    let now = bps(octets_of(last), last.to_ns - last.from_ns).map_or_else(|| "-".to_owned(), figures::rate);
    let mean = mean(state).map_or_else(|| "-".to_owned(), figures::rate);
    let limited = last.limited_by.as_deref().unwrap_or("-");
    let omitted = if last.omitted { "   (not counted)" } else { "" };
    canvas.put(
        1,
        2,
        Tone::Plain,
        &format!("now {now}   mean {mean}   {layer}   limited by: {}{omitted}", printable(limited)),
    );
}

/// Octets, length, round trip, and whether segments were sent again, of equal steps of time.
struct Step {
    octets: f64,
    span: f64,
    rtt_ns: Option<u64>,
    again: bool,
}

/// The steps so far, and their length.
fn steps(points: &[RatePoint], columns: usize) -> (Vec<Step>, u64) {
    let last = points.last().map_or(0, |point| point.to_ns);
    let longest = points.iter().map(|point| point.span_ns).max().unwrap_or(0);
    let wanted = (last / to_u64(columns).max(1)).max(longest * 4 / 5);
    let step = STEPS_NS.into_iter().find(|&step| step >= wanted).unwrap_or(STEPS_NS[9]);
    let mut steps: Vec<Step> = Vec::new();
    for point in points {
        // A point belongs to the step that its middle lies in.
        let place = to_usize((point.to_ns.saturating_sub(point.span_ns / 2)) / step);
        while steps.len() <= place {
            steps.push(Step { octets: 0.0, span: 0.0, rtt_ns: None, again: false });
        }
        let into = &mut steps[place];
        into.octets += point.octets as f64;
        into.span += point.span_ns as f64;
        into.rtt_ns = into.rtt_ns.max(point.rtt_ns);
        into.again |= point.again > 0;
    }
    (steps, step)
}

fn to_u64(count: usize) -> u64 {
    narrows_units::to_u64(count)
}

fn rates(canvas: &mut Canvas, state: &State, place: Place) {
    let (steps, step) = steps(&state.points, place.columns());
    let column = |step: &Step| Column {
        shade: None,
        value: (step.span > 0.0).then(|| step.octets * 8e9 / step.span),
        marked: step.again,
    };
    let columns: Vec<Column> = steps.iter().map(column).collect();
    let most = columns.iter().filter_map(|column| column.value).fold(0.0, f64::max);
    let scale = Scale::rates(most);
    let marked = if columns.iter().any(|column| column.marked) { "; underlined: segments were sent again" } else { "" };
    canvas.put(1, place.y - 1, Tone::Plain, &format!("{}, {} a column{marked}", scale.name, figures::time(step)));
    bars(canvas, place, scale, &columns);
}

fn round_trips(canvas: &mut Canvas, state: &State, place: Place) {
    let (steps, _) = steps(&state.points, place.columns());
    let column = |step: &Step| Column { shade: None, value: step.rtt_ns.map(|ns| ns as f64), marked: false };
    let columns: Vec<Column> = steps.iter().map(column).collect();
    let most = columns.iter().filter_map(|column| column.value).fold(0.0, f64::max);
    let scale = Scale::times(most);
    canvas.put(1, place.y - 1, Tone::Plain, &format!("{}   ({})", round_trip_line(state), scale.name));
    bars(canvas, place, scale, &columns);
}

fn round_trip_line(state: &State) -> String {
    let mut all: Vec<u64> = state.points.iter().filter_map(|point| point.rtt_ns).collect();
    let Some(&now) = all.last() else { return "round trip -".to_owned() };
    all.sort_unstable();
    let at = |share: usize| figures::time(all[(all.len() - 1) * share / 100]);
    format!(
        "round trip   least {}   now {}   p95 {}   p99 {}",
        figures::time(all[0]),
        figures::time(now),
        at(95),
        at(99)
    )
}

fn streams(canvas: &mut Canvas, state: &State, y: usize, rows: usize) {
    let again = if state.intervals.last().is_some_and(|interval| interval.layer == Layer::UdpPayload) {
        "lost"
    } else {
        "retr"
    };
    canvas.put(
        1,
        y,
        Tone::Faint,
        &format!("{:>4} {:>11} {:>12} {again:>6} {:>9} {:>9}  limited by", "ID", "octets", "rate", "window", "rtt"),
    );
    let Some(last) = state.intervals.last() else { return };
    let span = last.to_ns - last.from_ns;
    let many = last.streams.len() > 1;
    let limited = printable(last.limited_by.as_deref().unwrap_or("-"));
    let room = rows.saturating_sub(1 + usize::from(many));
    let dash = || "-".to_owned();
    for (row, stream) in last.streams.iter().take(room).enumerate() {
        let sum = state.streams.get(&stream.id).copied().unwrap_or_default();
        let text = format!(
            "{:>4} {:>11} {:>12} {:>6} {:>9} {:>9}  {}",
            stream.id,
            figures::octets(sum.octets),
            bps(stream.octets, span).map_or_else(dash, figures::rate),
            sum.again.map_or_else(dash, |again| again.to_string()),
            stream.window_octets.map_or_else(dash, figures::octets),
            stream.rtt_ns.map_or_else(dash, figures::time),
            if many { "" } else { &limited },
        );
        canvas.put(1, y + 1 + row, Tone::Plain, &text);
    }
    if many {
        let ids: Vec<u32> = counted(last).map(|stream| stream.id).collect();
        let sums = || ids.iter().filter_map(|id| state.streams.get(id));
        let again: Option<u64> = sums().map(|sum| sum.again).sum();
        let text = format!(
            "{:>4} {:>11} {:>12} {:>6} {:>9} {:>9}  {limited}",
            "SUM",
            figures::octets(sums().map(|sum| sum.octets).sum()),
            bps(octets_of(last), span).map_or_else(dash, figures::rate),
            again.map_or_else(dash, |again| again.to_string()),
            "",
            "",
        );
        canvas.put(1, y + rows - 1, Tone::Title, &text);
    }
}

/// How the time divides among what held the rate down.
fn side(canvas: &mut Canvas, state: &State, x: usize, y: usize) {
    canvas.put(x, y, Tone::Title, "limited by, share of the time");
    let mut shares: Vec<(String, u64)> = Vec::new();
    let mut all = 0;
    for interval in &state.intervals {
        let (by, span) = (interval.limited_by.as_deref().unwrap_or("-"), interval.to_ns - interval.from_ns);
        all += span;
        match shares.iter_mut().find(|(name, _)| name == by) {
            Some((_, sum)) => *sum += span,
            None => shares.push((by.to_owned(), span)),
        }
    }
    shares.sort_by_key(|(_, span)| std::cmp::Reverse(*span));
    for (row, (by, span)) in shares.iter().take(6).enumerate() {
        let share = 100.0 * *span as f64 / all.max(1) as f64;
        canvas.put(x, y + 1 + row, Tone::Plain, &format!("{:<22} {share:>3.0} %", printable(by)));
    }
}

fn spent(state: &State) -> String {
    let payload: u64 = state.streams.values().map(|stream| stream.octets).sum();
    let again: Option<u64> = state.streams.values().map(|stream| stream.again).sum();
    let udp = state.intervals.last().is_some_and(|interval| interval.layer == Layer::UdpPayload);
    let what = if udp { "packets lost" } else { "segments sent again" };
    let again =
        again.filter(|_| !state.streams.is_empty()).map_or_else(String::new, |again| format!("; {again} {what}"));
    format!("carried {} of payload{again}", figures::octets(payload))
}
