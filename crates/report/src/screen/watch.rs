//! The screen of `available --watch`: what was available over time, and how it was distributed.

use narrows_probe::progress::WatchPoint;

use super::canvas::{Canvas, Tone};
use super::chart::{Column, Place, Scale, bands};
use super::figures;
use super::state::State;

const WIDE: usize = 110;
const SIDE: usize = 60;
/// A change by more than this share of the scale, that lasts, is told.
const CHANGE: f64 = 0.2;
/// Intervals on both sides of a change that must agree on it.
const LASTS: usize = 3;

pub(super) fn view(canvas: &mut Canvas, state: &State) -> &'static str {
    let wide = canvas.width >= WIDE && canvas.height >= 30;
    let end = canvas.height - 3;
    let table_at = end - if wide { 12 } else { 5 };
    summary(canvas, state);
    let place = Place { x: 0, y: 4, width: canvas.width - 3, height: table_at - 5 };
    // Older intervals are joined, so that all of the watch is seen.
    let joined = state.watch.len().div_ceil(place.columns().max(1)).max(1);
    let columns: Vec<Column> = state.watch.chunks(joined).map(column).collect();
    let most = state.watch.iter().filter_map(|point| point.available.map(|(_, _, high)| high)).max().unwrap_or(0);
    let most = most.max(state.watch.iter().filter_map(|point| point.capacity_bps).max().unwrap_or(0));
    // Nothing known has no scale of its own.
    let scale = Scale::rates(if most > 0 { most as f64 } else { 1e6 });
    let step = state.watch.last().map_or(0, |point| point.interval_ns) * narrows_units::to_u64(joined);
    let text = format!("{}, {} a column; ░ interval, ● value, blank: not known", scale.name, figures::time(step));
    canvas.put(1, 3, Tone::Plain, &text);
    bands(canvas, place, scale, &columns);
    canvas.rule(table_at - 1, 0, canvas.width);
    table(canvas, state, table_at);
    if wide {
        canvas.fence(SIDE, table_at, end);
        side(canvas, state, SIDE + 2, table_at);
    }
    changes(canvas, state, table_at + 3, wide, end);
    canvas.rule(end, 0, canvas.width);
    let total = state.total();
    let doubts = if state.doubts.is_empty() { "none".to_owned() } else { format!("{} (d)", state.doubts.len()) };
    canvas.put(
        1,
        end + 1,
        Tone::Plain,
        &format!("spent {}, {} packets; doubts: {doubts}", figures::octets(total.octets), total.packets),
    );
    if wide {
        "q end and summarise   p pause probing   f freeze   d doubts   t theme   ? help"
    } else {
        "q end and summarise   p pause probing   f freeze   ? help"
    }
}

/// For one line.
pub(super) fn line(point: &WatchPoint) -> String {
    point
        .available
        .map_or_else(|| "nothing known now".to_owned(), |(value, ..)| format!("{} available", figures::rate(value)))
}

fn column(points: &[WatchPoint]) -> Column {
    let known = || points.iter().filter_map(|point| point.available);
    let count = known().count();
    let Some(low) = known().map(|(_, low, _)| low).min() else {
        return Column { shade: None, value: None, marked: false };
    };
    let high = known().map(|(_, _, high)| high).max().unwrap_or(low);
    let mean = known().map(|(value, ..)| value as f64).sum::<f64>() / count as f64;
    Column { shade: Some((low as f64, high as f64)), value: Some(mean), marked: false }
}

fn values(state: &State) -> Vec<u64> {
    state.watch.iter().filter_map(|point| point.available.map(|(value, ..)| value)).collect()
}

fn summary(canvas: &mut Canvas, state: &State) {
    let Some(last) = state.watch.last() else {
        canvas.put(1, 2, Tone::Faint, "nothing is known yet");
        return;
    };
    let now = last.available.map_or_else(
        || "now unknown".to_owned(),
        |available| format!("now {}", figures::rate_with_range(available, narrows_probe::BoundKind::Estimated)),
    );
    let capacity = state.watch.iter().rev().find_map(|point| point.capacity_bps).filter(|&bps| bps > 0);
    let of = capacity.map_or_else(String::new, |capacity| format!(" of {}", figures::rate(capacity)));
    let values = values(state);
    let mean = values.iter().map(|&value| u128::from(value)).sum::<u128>().checked_div(values.len() as u128);
    let mean = mean.and_then(|mean| u64::try_from(mean).ok()).map_or_else(|| "-".to_owned(), figures::rate);
    let octets: u64 = state.watch.iter().map(|point| point.octets).sum();
    let span: u64 = state.watch.iter().map(|point| point.interval_ns).sum();
    let load =
        (u128::from(octets) * 8_000_000_000).checked_div(u128::from(span)).and_then(|bps| u64::try_from(bps).ok());
    let load = match (load, capacity) {
        (Some(load), Some(capacity)) => format!("{:.1} %", 100.0 * load as f64 / capacity as f64),
        (Some(load), None) => figures::rate(load),
        (None, _) => "-".to_owned(),
    };
    canvas.put(1, 2, Tone::Plain, &format!("{now}{of}   mean {mean}   load {load}"));
}

fn table(canvas: &mut Canvas, state: &State, y: usize) {
    let most = values(state).into_iter().max().unwrap_or(0);
    let (unit, name) = figures::unit(most);
    canvas.put(1, y, Tone::Faint, &format!("window    count   p05   p25   p50   p75   p95   {name}"));
    let interval = state.watch.last().map_or(0, |point| point.interval_ns);
    for (row, length) in [1usize, 10].into_iter().enumerate() {
        let mut means: Vec<u64> = state.watch.chunks_exact(length).filter_map(mean).collect();
        means.sort_unstable();
        let at = |share: usize| match means.len() {
            0 => format!("{:>5}", "-"),
            some => format!("{:>5}", figures::bare(means[(some - 1) * share / 100], unit)),
        };
        let window =
            if interval > 0 { figures::time(interval * narrows_units::to_u64(length)) } else { "-".to_owned() };
        let columns: Vec<String> = [5, 25, 50, 75, 95].into_iter().map(at).collect();
        canvas.put(1, y + 1 + row, Tone::Plain, &format!("{window:<9} {:>5} {}", means.len(), columns.join(" ")));
    }
}

/// Of a window in which all is known.
fn mean(points: &[WatchPoint]) -> Option<u64> {
    let values: Option<Vec<u64>> = points.iter().map(|point| point.available.map(|(value, ..)| value)).collect();
    let values = values?;
    values.iter().sum::<u64>().checked_div(narrows_units::to_u64(values.len()))
}

/// When, and from what to what.
fn found_changes(state: &State) -> Vec<(u64, u64, u64)> {
    let known: Vec<(u64, u64)> =
        state.watch.iter().filter_map(|point| Some((point.at_ns, point.available?.0))).collect();
    let most = known.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let median = |points: &[(u64, u64)]| {
        let mut values: Vec<u64> = points.iter().map(|(_, value)| *value).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let mut changes: Vec<(u64, u64, u64)> = Vec::new();
    let mut quiet = 0;
    for place in LASTS..known.len().saturating_sub(LASTS - 1) {
        let (before, after) = (median(&known[place - LASTS..place]), median(&known[place..place + LASTS]));
        if before.abs_diff(after) as f64 > CHANGE * most as f64 {
            if place >= quiet {
                changes.push((known[place].0, before, after));
            } else if let Some(last) =
                changes.last_mut().filter(|last| last.1.abs_diff(after) > last.1.abs_diff(last.2))
            {
                // The same change, seen better.
                *last = (last.0, last.1, after);
            }
            quiet = place + LASTS;
        }
    }
    changes
}

fn changes(canvas: &mut Canvas, state: &State, y: usize, wide: bool, end: usize) {
    let changes = found_changes(state);
    let verb = |from: u64, to: u64| if to < from { "fell" } else { "rose" };
    if wide {
        canvas.put(1, y + 1, Tone::Faint, "changes");
        let room = end.saturating_sub(y + 2);
        for (row, (at, from, to)) in changes.iter().skip(changes.len().saturating_sub(room)).enumerate() {
            let text = format!(
                "{} {} from {} to {}",
                figures::clock(*at),
                verb(*from, *to),
                figures::rate(*from),
                figures::rate(*to)
            );
            canvas.put_within(3, y + 2 + row, SIDE, Tone::Plain, &text);
        }
        return;
    }
    canvas.put(1, y, Tone::Faint, "changes");
    let newest = changes.iter().skip(changes.len().saturating_sub(2));
    let texts: Vec<String> = newest
        .map(|(at, from, to)| format!("{} {} to {}", figures::clock(*at), verb(*from, *to), figures::rate(*to)))
        .collect();
    canvas.put(11, y, Tone::Plain, &if texts.is_empty() { "none".to_owned() } else { texts.join("   ") });
}

/// Share of the time below some rates.
fn side(canvas: &mut Canvas, state: &State, x: usize, y: usize) {
    canvas.put(x, y, Tone::Title, "share of time below");
    let values = values(state);
    let most = values.iter().copied().max().unwrap_or(0) as f64;
    if values.is_empty() {
        return;
    }
    let step = Scale::rates(most / 5.0).top;
    for row in 0..6usize {
        let limit = step * (row + 1) as f64;
        let below = values.iter().filter(|&&value| (value as f64) < limit).count();
        let share = below as f64 / values.len() as f64;
        let bar = "█".repeat(narrows_units::to_usize(narrows_units::rounded(share * 25.0)));
        let rate = figures::rate(narrows_units::rounded(limit));
        canvas.put(x, y + 1 + row, Tone::Plain, &format!("{rate:<11}"));
        canvas.put(x + 12, y + 1 + row, Tone::Value, &bar);
        canvas.put(x + 13 + bar.chars().count(), y + 1 + row, Tone::Plain, &format!("{:.0} %", share * 100.0));
        if below == values.len() {
            break;
        }
    }
}
