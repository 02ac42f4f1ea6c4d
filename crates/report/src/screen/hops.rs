//! The screen of `hops`: who answers, the path as a pipe, and one hop in detail.

use narrows_probe::BoundKind;
use narrows_probe::progress::HopSoFar;
use narrows_units::{BitRate, rounded, to_usize};

use super::canvas::{Canvas, Tone};
use super::chart::{Column, Place, Scale, bands};
use super::state::State;
use super::{ScreenView, figures, printable};

const WIDE: usize = 110;
const SIDE: usize = 72;
/// Columns of the pipe at full width.
const PIPE: usize = 30;

pub(super) fn view(canvas: &mut Canvas, state: &State, look: &ScreenView) -> &'static str {
    let wide = canvas.width >= WIDE;
    let end = canvas.height - 3;
    let count = state.hops.len().max(1);
    // Half of the screen for the table at most; the pipe gets as many rows, details the rest.
    let details = if wide && canvas.height >= 36 { 16 } else { 4 };
    let table_rows = count.min((end - 3).saturating_sub(details) / 2).max(3);
    let first = look.selected.saturating_sub(table_rows.saturating_sub(1)).min(count.saturating_sub(table_rows));
    table(canvas, state, look, (first, table_rows), wide);
    let below = 3 + table_rows;
    canvas.rule(below, 0, canvas.width);
    let pipe_end = (below + 3 + count).min(end.saturating_sub(details));
    if pipe_end > below + 2 {
        pipe(canvas, state, first, below + 1, pipe_end);
    }
    let hop = state.hops.values().nth(look.selected.min(count - 1));
    canvas.rule(pipe_end, 0, canvas.width);
    if let Some(hop) = hop {
        if details > 8 && end > pipe_end + 8 {
            by_size(canvas, hop, Place { x: 0, y: pipe_end + 1, width: SIDE - 2, height: end - pipe_end - 1 });
            canvas.fence(SIDE, pipe_end + 1, end);
            detail(canvas, hop, look, SIDE + 2, pipe_end + 1);
        } else {
            brief(canvas, hop, look, pipe_end + 1, end);
        }
    }
    canvas.rule(end, 0, canvas.width);
    let total = state.total();
    canvas.put(1, end + 1, Tone::Plain, &format!("spent {}, {} packets", figures::octets(total.octets), total.packets));
    if wide {
        "q end and report   f freeze   up/down hop   n names   t theme   ? help"
    } else {
        "q end   f freeze   up/down hop   n names   ? help"
    }
}

fn who(hop: &HopSoFar, look: &ScreenView) -> String {
    let Some(address) = hop.routers.first() else { return "???".to_owned() };
    let more = if hop.routers.len() > 1 { format!(" +{}", hop.routers.len() - 1) } else { String::new() };
    match hop.name.as_deref().filter(|_| !look.addresses) {
        Some(name) => format!("{} ({address}){more}", printable(name)),
        None => format!("{address}{more}"),
    }
}

fn claim(hop: &HopSoFar) -> String {
    match (hop.capacity, hop.verdict) {
        (Some(capacity), Some(verdict)) => figures::rate_with_range(capacity, verdict),
        _ => "-".to_owned(),
    }
}

fn mark(hop: &HopSoFar) -> &'static str {
    match (hop.narrow, hop.tight) {
        (true, true) => "narrow, tight",
        (true, false) => "narrow",
        (false, true) => "tight",
        (false, false) => "",
    }
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), figures::time)
}

fn table(canvas: &mut Canvas, state: &State, look: &ScreenView, (first, rows): (usize, usize), wide: bool) {
    canvas.put(1, 2, Tone::Faint, "hop  who answers");
    canvas.put(28, 2, Tone::Faint, "answers");
    if wide {
        canvas.put(38, 2, Tone::Faint, "  lost  least trip      mean   waiting  capacity (IP layer)          free");
    } else {
        canvas.put(36, 2, Tone::Faint, " least trip  capacity (IP layer)");
    }
    if state.hops.is_empty() {
        canvas.put(1, 3, Tone::Faint, "  nobody has answered yet");
    }
    for (row, (index, hop)) in state.hops.values().enumerate().skip(first).take(rows).enumerate() {
        let y = 3 + row;
        let tone = if index == look.selected { Tone::Title } else { Tone::Plain };
        canvas.put(1, y, tone, &format!("{:>3}", hop.ttl));
        canvas.put_within(6, y, 27, tone, &who(hop, look));
        canvas.put_right(35, y, tone, &format!("{}/{}", hop.answered, hop.sent));
        let capacity = claim(hop);
        if wide {
            let lost = hop.sent.saturating_sub(hop.answered);
            let lost = (lost * 100).checked_div(hop.sent).map_or_else(|| "-".to_owned(), |share| format!("{share} %"));
            canvas.put_right(44, y, tone, &lost);
            canvas.put_right(56, y, tone, &time(hop.best_ns));
            canvas.put_right(66, y, tone, &time(hop.mean_ns));
            canvas.put_right(76, y, tone, &time(hop.waiting_ns));
            canvas.put(78, y, tone, &capacity);
            canvas.put(107, y, tone, &hop.available.map_or_else(|| "-".to_owned(), figures::rate));
        } else {
            canvas.put_right(47, y, tone, &time(hop.best_ns));
            canvas.put(49, y, tone, &capacity);
            let text = mark(hop);
            if !text.is_empty() {
                let x = (50 + capacity.chars().count()).max(73);
                canvas.put(x.min(canvas.width.saturating_sub(text.len())), y, Tone::Now, text);
            }
        }
    }
}

/// The path as a pipe: each hop as wide as the logarithm of its capacity, shaded as far as it is
/// free.
fn pipe(canvas: &mut Canvas, state: &State, first: usize, y: usize, end: usize) {
    let rates = || {
        state.hops.values().filter_map(|hop| hop.capacity.map(|(value, ..)| value as f64).filter(|&value| value > 0.0))
    };
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    if most <= 0.0 {
        canvas.put(1, y, Tone::Faint, "no hop's capacity is known yet");
        return;
    }
    let (low, mut high) = (least.log10().floor(), most.log10().ceil());
    if high <= low {
        high = low + 1.0;
    }
    let power = |exponent: f64| figures::rate(BitRate::from_bps_f64(10f64.powf(exponent)).map_or(0, BitRate::bps));
    canvas.put(1, y, Tone::Plain, &format!("width: capacity, {} to {} (log); shaded: free", power(low), power(high)));
    let centre = 5 + PIPE / 2;
    for (row, hop) in state.hops.values().skip(first).enumerate() {
        let y = y + 2 + row;
        if y >= end {
            return;
        }
        canvas.put(1, y, Tone::Plain, &hop.ttl.to_string());
        let Some((value, ..)) = hop.capacity else { continue };
        let share = ((value as f64).max(1.0).log10() - low) / (high - low);
        let half = to_usize(rounded(share.clamp(0.1, 1.0) * (PIPE / 2) as f64)).max(1);
        let open = hop.verdict != Some(BoundKind::Estimated);
        let wall = if open { '╎' } else { '│' };
        canvas.set(centre - half, y, Tone::Plain, wall);
        canvas.set(centre + half, y, Tone::Plain, wall);
        if let Some(free) = hop.available {
            let inside = 2 * half - 1;
            let free = to_usize(rounded(free as f64 / value.max(1) as f64 * inside as f64)).min(inside);
            let from = centre - half + 1 + (inside - free) / 2;
            canvas.put(from, y, Tone::Shade, &"▒".repeat(free));
        }
        let at_least = if hop.verdict == Some(BoundKind::LowerBound) { "at least " } else { "" };
        let claim = format!("{at_least}{}", figures::rate(value));
        let beside = centre + PIPE / 2 + 5;
        canvas.put(beside, y, Tone::Plain, &claim);
        let text = mark(hop);
        if !text.is_empty() {
            let free = hop.available.map_or_else(String::new, |free| format!(", {} free", figures::rate(free)));
            canvas.put(beside + (claim.len() + 2).max(13), y, Tone::Now, &format!("◀ {text}{free}"));
        }
    }
}

fn facts(hop: &HopSoFar) -> Vec<(&'static str, String)> {
    let limited = hop.limited.map_or_else(
        || "not seen to be limited".to_owned(),
        |(burst, every)| format!("{burst} at once, then one per {}", figures::time(every)),
    );
    let lost = hop.sent.saturating_sub(hop.answered);
    vec![
        ("capacity", claim(hop)),
        ("free", hop.available.map_or_else(|| "-".to_owned(), figures::rate)),
        ("waits", hop.waiting_ns.map_or_else(|| "-".to_owned(), |ns| format!("{} (mean)", figures::time(ns)))),
        (
            "round trip",
            format!("least {}, mean {}, longest {}", time(hop.best_ns), time(hop.mean_ns), time(hop.worst_ns)),
        ),
        ("answers", format!("{} of {}, {lost} lost", hop.answered, hop.sent)),
        ("limit", limited),
        ("doubts", if hop.doubts.is_empty() { "none".to_owned() } else { hop.doubts.join("; ") }),
    ]
}

fn detail(canvas: &mut Canvas, hop: &HopSoFar, look: &ScreenView, x: usize, y: usize) {
    canvas.put(x, y, Tone::Title, &format!("hop {}  {}", hop.ttl, who(hop, look)));
    for (row, (label, text)) in facts(hop).into_iter().enumerate() {
        canvas.put(x, y + 1 + row, Tone::Faint, label);
        canvas.put(x + 11, y + 1 + row, Tone::Plain, &text);
    }
    for (row, router) in hop.routers.iter().skip(1).take(4).enumerate() {
        canvas.put(x, y + 9 + row, Tone::Faint, &format!("also met   {router}"));
    }
}

/// The same in two or three lines.
fn brief(canvas: &mut Canvas, hop: &HopSoFar, look: &ScreenView, y: usize, end: usize) {
    let lost = hop.sent.saturating_sub(hop.answered);
    let waits = hop.waiting_ns.map_or_else(String::new, |ns| format!("   waits {} (mean)", figures::time(ns)));
    let limited = if hop.limited.is_some() { "yes" } else { "no" };
    let lines = [
        format!("hop {}  {}{waits}   lost {lost} of {}", hop.ttl, who(hop, look), hop.sent),
        format!("       round trip {} to {}   answers limited: {limited}", time(hop.best_ns), time(hop.worst_ns)),
        format!("       doubts: {}", if hop.doubts.is_empty() { "none".to_owned() } else { hop.doubts.join("; ") }),
    ];
    for (row, line) in lines.into_iter().enumerate().take(end.saturating_sub(y)) {
        canvas.put(1, y + row, Tone::Plain, &line);
    }
}

/// Least round trip over size: its slope is what the links up to there take per octet.
fn by_size(canvas: &mut Canvas, hop: &HopSoFar, place: Place) {
    canvas.put(
        1,
        place.y,
        Tone::Plain,
        &format!("hop {}: least round trip over size, above the least of all", hop.ttl),
    );
    let (Some(&(small, _)), Some(&(large, _))) = (hop.by_size.first(), hop.by_size.last()) else {
        canvas.put(1, place.y + 1, Tone::Faint, "no answer yet");
        return;
    };
    let least = hop.by_size.iter().map(|(_, ns)| *ns).min().unwrap_or(0);
    let plot = Place { y: place.y + 1, height: place.height.saturating_sub(2), ..place };
    let columns = plot.columns();
    let span = f64::from(large.saturating_sub(small).max(1));
    let mut points = vec![Column { shade: None, value: None, marked: false }; columns];
    for &(octets, ns) in &hop.by_size {
        let share = f64::from(octets.saturating_sub(small)) / span;
        let x = to_usize(rounded(share * columns.saturating_sub(1) as f64));
        if let Some(point) = points.get_mut(x) {
            point.value = Some((ns - least) as f64);
        }
    }
    let most = points.iter().filter_map(|point| point.value).fold(0.0, f64::max);
    let scale = Scale::times(most.max(1e4));
    canvas.put_right(place.x + place.width, place.y, Tone::Faint, scale.name);
    bands(canvas, plot, scale, &points);
    let y = plot.y + plot.height;
    canvas.put(place.x + 6, y, Tone::Faint, &format!("{small} B"));
    canvas.put_right(place.x + place.width, y, Tone::Faint, &format!("{large} B"));
}
