//! Each direction alone, where echoes say when they were turned.
//!
//! `forward_i = turned_i - departed_i` and `reverse_i = returned_i - turned_i` contain the offset
//! of the peer's clock with opposite signs. The echo with the smallest round trip waited least. Of
//! it, `theta = (forward - reverse) / 2` is the offset. It is wrong by at most half of that round
//! trip, since one direction may have taken all of it (RFC 5905 §8). One-way delays have that error
//! bound. Their *variation*, the delay above the smallest of its direction (RFC 5481 §4.2), and the
//! difference of successive delays (RFC 3393) need only a steady clock.
//!
//! Over ten seconds and more, the skew of the peer's clock is the slope of the line below all
//! forward delays (`[MST99]`). It counts if the reverse delays show the same slope with the
//! opposite sign, to within [`SAME_PPM`] and the stamps' error. It is then removed from both. A
//! rise in one direction alone is no clock's.

use std::time::Duration;

use narrows_stat::{SkewObjective, Sorted, skew_line};

use narrows_probe::outcome::{Diagnostics, DirectionDelays, Directions};
use narrows_probe::probes::{Arrival, Fate};
use narrows_units::{Delta, rounded_signed};

/// One echo.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Its place among all packets, lost ones too.
    place: usize,
    /// When it left, relative to the first.
    at: f64,
    forward: f64,
    reverse: f64,
}

/// Skews are looked for in at least so many echoes over at least so long (host-and-timing §7.6),
/// ns.
const ECHOES: usize = 50;
const SPAN: f64 = 10e9;
/// Skews of both directions that agree to within this are one clock's (host-and-timing §7.6), in
/// parts per million.
const SAME_PPM: f64 = 2.0;
/// What is above is no clock (likewise).
const MOST_PPM: f64 = 500.0;

/// What the echoes say of each direction; `None` if the peer did not report when it turned them.
pub(super) fn tell<'a>(
    rows: impl Iterator<Item = &'a Arrival>,
    stamp_error: f64,
    diagnostics: &mut Diagnostics,
) -> Option<Directions> {
    let (base, turns, skew) = steady(rows, stamp_error);
    if turns.len() < 2 {
        return None;
    }
    if let Some(skew) = skew {
        diagnostics.insert("clock_skew_ppm", skew * 1e6);
    }
    let round = |turn: &Turn| turn.forward + turn.reverse;
    let best = turns.iter().min_by(|a, b| round(a).total_cmp(&round(b)));
    let best = best.copied()?;
    let theta = (best.forward - best.reverse) / 2.0;
    let forward: Vec<f64> = turns.iter().map(|turn| turn.forward - theta).collect();
    let reverse: Vec<f64> = turns.iter().map(|turn| turn.reverse + theta).collect();
    let directions = Directions {
        clock_offset_ns: Delta::from_nanos(base) + nearest(theta),
        clock_error_bound_ns: nearest(round(&best) / 2.0 + stamp_error),
        forward: statistics(&forward),
        reverse: statistics(&reverse),
        ..Directions::default()
    };
    directions.tell(diagnostics);
    Some(directions)
}

/// All delays of each direction in the order of sending, but for a constant: only their variation
/// means something. A packet without an echo is not a number, which is `null` in JSON; which
/// direction lost it, nobody tells.
pub(super) fn series<'a>(
    rows: impl Iterator<Item = &'a Arrival>,
    stamp_error: f64,
    spacing: Duration,
    diagnostics: &mut Diagnostics,
) {
    let mut packets = 0;
    let (_, turns, _) = steady(rows.inspect(|_| packets += 1), stamp_error);
    if turns.is_empty() {
        return;
    }
    let [mut forward, mut reverse] = [vec![f64::NAN; packets], vec![f64::NAN; packets]];
    for turn in &turns {
        forward[turn.place] = turn.forward;
        reverse[turn.place] = turn.reverse;
    }
    diagnostics.insert("delay_spacing_ns", Delta::from(spacing));
    diagnostics.insert("forward_delays_ns", forward);
    diagnostics.insert("reverse_delays_ns", reverse);
}

/// All echoes as [`turns`] has them, on a peer's clock that runs as fast as this host's; and the
/// skew that was taken out.
fn steady<'a>(rows: impl Iterator<Item = &'a Arrival>, stamp_error: f64) -> (i64, Vec<Turn>, Option<f64>) {
    let (base, mut turns) = turns(rows);
    let skew = if turns.len() < 2 { None } else { skew(&turns, stamp_error) };
    if let Some(skew) = skew {
        for turn in &mut turns {
            turn.forward -= skew * turn.at;
            turn.reverse += skew * turn.at;
        }
    }
    (base, turns, skew)
}

fn statistics(delays: &[f64]) -> Option<DirectionDelays> {
    let steps: Vec<f64> = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let mean = steps.iter().sum::<f64>() / steps.len() as f64;
    let (delays, steps) = (Sorted::new(delays.to_vec()).ok()?, Sorted::new(steps).ok()?);
    let at = |sorted: &Sorted, p: f64| sorted.quantile(p).unwrap_or_else(|| sorted.max());
    let (least, median, p95, most) = (delays.min(), at(&delays, 0.5), at(&delays, 0.95), delays.max());
    Some(DirectionDelays {
        one_way_ns: [least, median, p95, most].map(nearest),
        variation_ns: [median - least, p95 - least, most - least].map(nearest),
        successive_ns: [mean, at(&steps, 0.95)].map(nearest),
    })
}

fn nearest(ns: f64) -> Delta {
    Delta::from_nanos(rounded_signed(ns))
}

/// The first forward delay, and all echoes with their delays relative to it, so that nanoseconds
/// stay exact whatever the clocks' offset.
fn turns<'a>(rows: impl Iterator<Item = &'a Arrival>) -> (i64, Vec<Turn>) {
    let mut first = None;
    let turn = |(place, row): (usize, &Arrival)| {
        let Fate::Echoed { returned, turned: Some(turned) } = row.fate else {
            return None;
        };
        // An echo that came back before it left: the clock was set, and tells nothing.
        if returned < row.departed {
            return None;
        }
        // A hostile peer may say whatever it likes.
        let forward = turned.nanos().checked_sub(row.departed.nanos())?;
        let reverse = returned.nanos().checked_sub(turned.nanos())?;
        let (began, base) = *first.get_or_insert((row.departed.nanos(), forward));
        Some(Turn {
            place,
            at: row.departed.nanos().checked_sub(began)? as f64,
            forward: forward.checked_sub(base)? as f64,
            reverse: reverse.checked_add(base)? as f64,
        })
    };
    let turns = rows.enumerate().filter_map(turn).collect();
    (first.map_or(0, |(_, base)| base), turns)
}

/// The far clock's skew against this host's, if both directions show it; it is no more than noise
/// if it is less than stamps can tell.
fn skew(turns: &[Turn], stamp_error: f64) -> Option<f64> {
    let span = turns.last()?.at - turns.first()?.at;
    if turns.len() < ECHOES || span < SPAN {
        return None;
    }
    let times: Vec<f64> = turns.iter().map(|turn| turn.at).collect();
    let slope = |delays: Vec<f64>| {
        let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
        let above: Vec<f64> = delays.into_iter().map(|delay| delay - least).collect();
        Some(skew_line(&times, &above, SkewObjective::SumOfDistances).ok()?.slope)
    };
    let forward = slope(turns.iter().map(|turn| turn.forward).collect())?;
    let reverse = slope(turns.iter().map(|turn| turn.reverse).collect())?;
    let doubt = SAME_PPM * 1e-6 + 4.0 * stamp_error / span;
    let skew = (forward - reverse) / 2.0;
    let a_clock = (forward + reverse).abs() <= doubt && skew.abs() <= MOST_PPM * 1e-6;
    (a_clock && skew.abs() > 4.0 * stamp_error / span).then_some(skew)
}
