//! The screen of `test`: stages, a chart of the one under way, and the path so far.

use narrows_probe::progress::{Sample, TrainSample};
use narrows_probe::{BoundKind, Limit};
use narrows_units::{Direction, Metric};

use super::canvas::{Canvas, Tone};
use super::chart::{Column, Place, Scale, bands, bars};
use super::figures;
use super::state::{Stage, State};
use super::{name, printable};

/// Columns of the table, or of all that stands left of the side pane.
const TABLE: usize = 72;
/// Columns of the path's figures beside a chart.
const FIGURES: usize = 33;
/// From this width on there is a side pane.
const WIDE: usize = 110;
/// Rows above the stages, and below the charts.
const HEAD: usize = 3;
const TAIL: usize = 3;

pub(super) fn view(canvas: &mut Canvas, state: &State) -> &'static str {
    let wide = canvas.width >= WIDE;
    let left = if wide { TABLE } else { canvas.width };
    // A rule, a title and four rows of a chart stay free.
    let shown = state.stages.len().min(canvas.height.saturating_sub(HEAD + TAIL + 6)).max(1);
    table(canvas, state, shown);
    let below = HEAD + shown;
    canvas.rule(below, 0, left);
    let end = canvas.height - TAIL;
    if wide {
        let tall = end - below > 16;
        let middle = if tall { below + (end - below) * 3 / 5 } else { end };
        chart(canvas, state, Place { x: 0, y: below + 1, width: left - 6, height: middle - below - 1 });
        if tall {
            canvas.rule(middle, 0, left);
            delays(canvas, state, Place { x: 0, y: middle + 1, width: left - 6, height: end - middle - 1 });
        }
        canvas.fence(left, 2, end);
        side(canvas, state, left + 2, (below + 1).min(16), middle.min(end));
    } else {
        let chart_width = left.saturating_sub(FIGURES);
        chart(canvas, state, Place { x: 0, y: below + 1, width: chart_width, height: end - below - 1 });
        canvas.put(chart_width + 1, below + 1, Tone::Plain, "path so far");
        for (row, (label, text)) in path(state).iter().take(end - below - 2).enumerate() {
            let y = below + 2 + row;
            canvas.put(chart_width + 1, y, Tone::Faint, label);
            canvas.put(chart_width + 12, y, Tone::Plain, text);
        }
    }
    canvas.rule(end, 0, canvas.width);
    canvas.put(1, end + 1, Tone::Plain, &spent(state));
    if wide {
        "q end and report   p pause   f freeze   d doubts   t theme   ? help"
    } else {
        "q end and report   p pause   d doubts   ? help"
    }
}

/// What was spent, of what may be.
pub(super) fn spent(state: &State) -> String {
    let total = state.total();
    let mut text = format!("spent {}, {} packets", figures::octets(total.octets), total.packets);
    if total.peak_bps > 0 {
        text += ", peak ";
        text += &figures::rate(total.peak_bps);
    }
    let (octets, time) = (state.plan.most_octets.map(figures::octets), state.plan.most_ns.map(figures::time));
    let budget: Vec<String> = [octets, time].into_iter().flatten().collect();
    if budget.is_empty() { text } else { format!("{text}; budget {}", budget.join(", ")) }
}

fn table(canvas: &mut Canvas, state: &State, shown: usize) {
    canvas.put(1, 2, Tone::Faint, "stage");
    canvas.put(16, 2, Tone::Faint, "state");
    canvas.put(23, 2, Tone::Faint, "value");
    canvas.put(38, 2, Tone::Faint, "interval");
    // On a narrow terminal the last columns move to the left.
    let right = canvas.width.min(TABLE);
    canvas.put_right(right - 9, 2, Tone::Faint, "cost");
    canvas.put_right(right - 1, 2, Tone::Faint, "time");
    // The stage under way is always to be seen.
    let first = state.current.map_or(0, |place| (place + 2).saturating_sub(shown));
    let first = first.min(state.stages.len().saturating_sub(shown));
    for (row, stage) in state.stages.iter().skip(first).take(shown).enumerate() {
        stage_row(canvas, state, stage, HEAD + row, right);
    }
}

fn stage_row(canvas: &mut Canvas, run: &State, stage: &Stage, y: usize, right: usize) {
    let label = name(stage.metric);
    let label = if stage.direction == Direction::Reverse { format!("{label}, rev") } else { label.to_owned() };
    canvas.put_within(1, y, 16, Tone::Plain, &label);
    let (word, tone) = match (&stage.ended, stage.began_ns) {
        (Some(ended), _) if ended.value.is_none() => ("done", Tone::Doubt),
        (Some(_), _) => ("done", Tone::Good),
        (None, Some(_)) => ("now", Tone::Now),
        (None, None) => ("next", Tone::Faint),
    };
    canvas.put(16, y, tone, word);
    if let Some(ended) = &stage.ended {
        if let (Some(value), Some(low), Some(high)) = (ended.value, ended.low, ended.high) {
            canvas.put_within(23, y, 37, Tone::Plain, &figures::claimed(ended.metric, ended.verdict, value));
            if ended.verdict == BoundKind::Estimated {
                let text = figures::range(ended.metric, value, low, high, " – ");
                canvas.put_within(38, y, right - 18, Tone::Plain, &text);
            }
        } else {
            let reason = ended.reason.as_deref().map_or_else(String::new, |reason| format!("unclear: {reason}"));
            canvas.put_within(23, y, right - 18, Tone::Doubt, &reason);
        }
    }
    let (cost, time) = match (&stage.ended, stage.began_ns) {
        (Some(ended), _) => (figures::octets(ended.octets), seconds(ended.time_ns)),
        (None, Some(began)) => (figures::octets(stage.octets), seconds(run.now_ns.saturating_sub(began))),
        (None, None) if stage.most.1 > 0 => {
            (format!("~ {}", figures::octets(stage.most.0)), format!("~ {:.0} s", stage.most.1 as f64 / 1e9))
        }
        (None, None) => (String::new(), String::new()),
    };
    let tone = if stage.began_ns.is_some() { Tone::Plain } else { Tone::Faint };
    canvas.put_right(right - 9, y, tone, &cost);
    canvas.put_right(right - 1, y, tone, &time);
}

fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// The stage whose samples are worth a chart: the one under way, until it has some the one before.
fn charted(state: &State) -> Option<&Stage> {
    let current = state.current?;
    let reported = |stage: &&Stage| !stage.samples.is_empty();
    state.stages.iter().take(current + 1).rev().find(reported)
}

fn chart(canvas: &mut Canvas, run: &State, place: Place) {
    let Some(stage) = charted(run) else {
        canvas.put(1, place.y, Tone::Faint, "no probe is back yet");
        return;
    };
    let columns: Vec<Column> = columns(stage);
    let times =
        stage.samples.iter().all(|sample| matches!(sample, Sample::Train(train) if train.round_trip_ns.is_some()));
    let newest = &columns[columns.len().saturating_sub(place.columns())..];
    let values = || newest.iter().filter_map(|column| column.value);
    let most = values().fold(0.0, f64::max);
    let scale = if times { Scale::times(most * 1.2) } else { Scale::rates(most * 1.15) };
    let what = match stage.samples.last() {
        Some(Sample::Train(_)) if times => "round trip by train",
        Some(Sample::Train(_)) => "by train, ░ sent ● arrived",
        Some(Sample::Load(_)) => "arrived by segment",
        Some(Sample::Transfer(_)) | None => "carried by segment",
    };
    canvas.put_within(1, place.y, place.width, Tone::Plain, &format!("{}: {}, {what}", name(stage.metric), scale.name));
    let place = Place { y: place.y + 1, height: place.height.saturating_sub(1), ..place };
    if place.height < 3 {
        return;
    }
    if matches!(stage.samples.last(), Some(Sample::Train(_))) {
        bands(canvas, place, scale, newest);
    } else {
        bars(canvas, place, scale, newest);
    }
}

fn columns(stage: &Stage) -> Vec<Column> {
    let mut acked = 0u64;
    let column = |sample: &Sample| match sample {
        Sample::Train(train) => train_column(train),
        Sample::Load(load) => {
            Column { shade: None, value: rate(load.arrived_octets, load.arrived_span_ns), marked: load.lost > 0 }
        }
        Sample::Transfer(transfer) => {
            // A new transfer counts from zero again.
            let since = if transfer.acked_octets < acked { 0 } else { acked };
            acked = transfer.acked_octets;
            Column { shade: None, value: rate(acked - since, transfer.span_ns), marked: false }
        }
    };
    stage.samples.iter().map(column).collect()
}

fn train_column(train: &TrainSample) -> Column {
    if let Some(time) = train.round_trip_ns {
        return Column { shade: None, value: Some(time as f64), marked: train.lost > 0 };
    }
    let (sent, arrived) = (train.sent_bps.map(|bps| bps as f64), train.arrived_bps.map(|bps| bps as f64));
    Column {
        shade: arrived.zip(sent).map(|(arrived, sent)| (arrived.min(sent), sent)),
        value: arrived,
        marked: train.lost > 0,
    }
}

fn rate(octets: u64, span_ns: u64) -> Option<f64> {
    (span_ns > 0).then(|| octets as f64 * 8e9 / span_ns as f64)
}

/// The delay along the last train.
fn delays(canvas: &mut Canvas, state: &State, place: Place) {
    let mut trains =
        state.stages.iter().rev().flat_map(|stage| stage.samples.iter().rev()).filter_map(|sample| match sample {
            Sample::Train(train) if train.delays_ns.len() > 2 => Some(train),
            Sample::Train(_) | Sample::Load(_) | Sample::Transfer(_) => None,
        });
    let Some(train) = trains.next() else { return };
    // Each packet as wide as there is room for.
    let wide = (place.columns() / train.delays_ns.len()).max(1);
    let column = |&ns: &u64| Column { shade: None, value: Some(ns as f64), marked: false };
    let columns: Vec<Column> =
        train.delays_ns.iter().map(column).flat_map(|column| std::iter::repeat_n(column, wide)).collect();
    let most = columns.iter().filter_map(|column| column.value).fold(0.0, f64::max);
    let scale = Scale::times(most.max(1e4));
    canvas.put_within(
        1,
        place.y,
        place.width + 5,
        Tone::Plain,
        &format!("last train: delay over packets, {} above the least", scale.name),
    );
    bars(canvas, Place { y: place.y + 1, height: place.height.saturating_sub(1), ..place }, scale, &columns);
}

/// What is known of the path, label and figure.
fn path(state: &State) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let claim = |metric: Metric| {
        let ended = state.found(metric)?;
        Some(figures::claimed(metric, ended.verdict, ended.value?))
    };
    let unknown = || "-".to_owned();
    lines.push(("carries", claim(Metric::IpCapacity).unwrap_or_else(unknown)));
    lines.push(("free now", claim(Metric::AvailableIpCapacity).unwrap_or_else(unknown)));
    if let Some(share) = free_share(state) {
        lines.push(("", bar(share, 12) + &format!(" {:.0} %", share * 100.0)));
    }
    lines.push(("round trip", claim(Metric::RoundTripTime).unwrap_or_else(unknown)));
    let total = state.total();
    lines.push(("lost", if total.packets > 0 { format!("{} of {}", total.lost, total.packets) } else { unknown() }));
    if let Some(limit) = state.found(Metric::TcpAchievableSingle).and_then(|ended| ended.limited_by) {
        lines.push(("TCP limit", limit.to_string()));
    }
    if state.repeated > 0 {
        lines.push(("timing", format!("{} stages repeated", state.repeated)));
    }
    lines.push((
        "doubts",
        if state.doubts.is_empty() { "none yet".to_owned() } else { format!("{} (d)", state.doubts.len()) },
    ));
    lines
}

/// Share of the capacity that is free.
fn free_share(state: &State) -> Option<f64> {
    let value = |metric| {
        let ended = state.found(metric)?;
        (ended.limited_by != Some(Limit::Sender)).then_some(ended.value?)
    };
    let (capacity, free) = (value(Metric::IpCapacity)?, value(Metric::AvailableIpCapacity)?);
    (capacity > 0).then(|| (free as f64 / capacity as f64).clamp(0.0, 1.0))
}

fn bar(share: f64, width: usize) -> String {
    let filled = narrows_units::to_usize(narrows_units::rounded(share * width as f64)).min(width);
    format!("[{}{}]", "▒".repeat(filled), " ".repeat(width - filled))
}

/// The side pane: the path as a pipe, its figures, and the log.
fn side(canvas: &mut Canvas, state: &State, x: usize, rule: usize, middle: usize) {
    canvas.put(x, 2, Tone::Title, "path so far");
    canvas.put(x + 2, 4, Tone::Plain, "this host");
    let inner = 34.min(canvas.width.saturating_sub(x + 6));
    let edge = |left: char, right: char| format!("{left}{}{right}", "─".repeat(inner));
    canvas.put(x + 2, 5, Tone::Faint, &edge('╭', '╮'));
    canvas.put(x + 2, 6, Tone::Faint, &format!("│{}│", " ".repeat(inner)));
    if let Some(share) = free_share(state) {
        let filled = narrows_units::to_usize(narrows_units::rounded(share * inner as f64)).min(inner);
        canvas.put(x + 3, 6, Tone::Shade, &"▒".repeat(filled));
    }
    canvas.put(x + 2, 7, Tone::Faint, &edge('╰', '╯'));
    canvas.put_within(x + 2, 8, canvas.width, Tone::Plain, &printable(&state.plan.target));
    let mut y = 10;
    for (label, text) in path(state).into_iter().filter(|(label, _)| !label.is_empty()) {
        canvas.put(x + 2, y, Tone::Faint, label);
        canvas.put(x + 15, y, Tone::Plain, &text);
        y += 1;
    }
    let rule = rule.max(y + 1);
    canvas.rule(rule, x - 1, canvas.width);
    canvas.put(x, rule + 1, Tone::Title, "log");
    let end = canvas.height - TAIL;
    let _ = middle;
    log(canvas, state, x + 1, rule + 2, end);
}

fn log(canvas: &mut Canvas, state: &State, x: usize, from: usize, to: usize) {
    let room = to.saturating_sub(from);
    let newest = state.log.iter().skip(state.log.len().saturating_sub(room));
    for (row, (at_ns, text)) in newest.enumerate() {
        canvas.put(x, from + row, Tone::Faint, &figures::clock(*at_ns));
        canvas.put(x + 5, from + row, Tone::Plain, text);
    }
}
