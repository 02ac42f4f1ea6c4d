//! Local modes of a histogram, as PPrate finds them (`[PPrate06]`, after its open port).

use super::super::math::size;

/// How modes are found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Bin width over the interquartile range.
    pub(super) width: f64,
    pub(super) bins: usize,
    /// Lowest mode over the tallest.
    pub(super) least: f64,
    pub(super) join_right: f64,
    pub(super) join_left: f64,
}

/// A mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mode {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Middle of the tallest bin.
    pub(super) centre: f64,
    /// Samples in the tallest bin.
    pub(super) height: f64,
}

/// A spread below this share of the rate is none (ours: simulated and hardware clocks give gaps
/// without any, and no bins).
const NO_SPREAD: f64 = 1e-3;

/// Modes of positive rates, ascending.
pub(super) fn modes(rates: &[f64], shape: &Shape) -> Vec<Mode> {
    let (Some(q25), Some(q75)) = (narrows_stat::quantile(rates, 0.25), narrows_stat::quantile(rates, 0.75)) else {
        return Vec::new();
    };
    let spread = (q75 - q25).max(NO_SPREAD * q75);
    let kept = rates.iter().filter(|rate| (q25 - spread..=q75 + spread).contains(*rate));
    let kept: Vec<f64> = kept.copied().collect();
    let most = kept.iter().copied().fold(0.0, f64::max);
    let width = (shape.width * spread).max(most / shape.bins as f64);
    let least = kept.iter().copied().fold(f64::INFINITY, f64::min);
    // Bins are laid so that none has its edge where the lowest samples are.
    let start = least - 1.5 * width;
    let mut bins = vec![0.0; size((most - start) / width) + 2];
    for rate in &kept {
        if let Some(bin) = bins.get_mut(size((rate - start) / width)) {
            *bin += 1.0;
        }
    }
    let found = merge(hills(&bins, shape.least), &bins, shape);
    let edge = |bin: usize| start + bin as f64 * width;
    let mode = |hill: &Hill| Mode {
        low: edge(hill.from),
        high: edge(hill.to + 1),
        centre: edge(hill.top) + width / 2.0,
        height: bins[hill.top],
    };
    found.iter().map(mode).collect()
}

/// A peak and its flanks down to the valleys, as places of bins.
#[derive(Debug, Clone, Copy)]
struct Hill {
    from: usize,
    top: usize,
    to: usize,
}

fn hills(bins: &[f64], least: f64) -> Vec<Hill> {
    let tallest = bins.iter().copied().fold(0.0, f64::max);
    let at = |place: usize| bins.get(place).copied().unwrap_or(0.0);
    let mut found = Vec::new();
    for top in 0..bins.len() {
        let before = if top == 0 { 0.0 } else { at(top - 1) };
        if !(at(top) > before && descends(bins, top)) || at(top) < least * tallest {
            continue;
        }
        let mut from = top;
        while from > 0 && at(from - 1) > 0.0 && at(from - 1) <= at(from) {
            from -= 1;
        }
        let mut to = top;
        while at(to + 1) > 0.0 && at(to + 1) <= at(to) {
            to += 1;
        }
        found.push(Hill { from, top, to });
    }
    found
}

/// What follows this bin and its equals is lower.
fn descends(bins: &[f64], top: usize) -> bool {
    let after = bins[top + 1..].iter().find(|bin| bin.total_cmp(&bins[top]).is_ne());
    after.is_none_or(|next| *next < bins[top])
}

/// Joins neighbours to the tallest whose rise from the valley between is small.
fn merge(mut hills: Vec<Hill>, bins: &[f64], shape: &Shape) -> Vec<Hill> {
    let tallest = |hills: &[Hill]| {
        let all = hills.iter().enumerate();
        all.max_by(|a, b| bins[a.1.top].total_cmp(&bins[b.1.top])).map(|(place, _)| place)
    };
    let rise = |from: &Hill, to: &Hill, of: &Hill| {
        let valley = bins[from.top..=to.top].iter().copied().fold(f64::INFINITY, f64::min);
        (bins[of.top] - valley) / bins[of.top]
    };
    while let Some(main) = tallest(&hills) {
        if let Some(right) = hills.get(main + 1).copied()
            && rise(&hills[main], &right, &right) <= shape.join_right
        {
            hills[main].to = right.to;
            hills.remove(main + 1);
        } else if main > 0 && rise(&hills[main - 1], &hills[main], &hills[main - 1]) <= shape.join_left {
            hills[main].from = hills[main - 1].from;
            hills.remove(main - 1);
        } else {
            break;
        }
    }
    hills
}
