//! Local modes of a sample by a sliding window, after pathrate 2.4.1 (`[Pathrate04]`).

use std::ops::Range;

use crate::error::Error;
use crate::interval::Interval;
use crate::order::{Sorted, mean_of};

/// Parameters of the mode search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModeParams {
    /// Width of the window, in units of the sample; zero or more. Zero finds exact repeats.
    pub width: f64,
    /// A neighbouring window belongs to the bell while its count stays below `1 + bell_tolerance`
    /// times the last one's; pathrate 0.10.
    pub bell_tolerance: f64,
    /// A mode is kept if its central window holds more values than this; pathrate 15.
    pub noise_count: usize,
    /// Whether a bell may continue beyond a stretch wider than `width` that holds no value at all.
    pub across_gaps: bool,
}

impl ModeParams {
    /// pathrate's tolerance and noise count, with the window width given; bells end at gaps.
    ///
    /// Departs from pathrate, which compares windows by index and so lets the strongest mode of a
    /// clean, quantised sample swallow every weaker one however far away.
    pub fn new(width: f64) -> Self {
        Self { width, bell_tolerance: 0.10, noise_count: 15, across_gaps: false }
    }

    /// As [`new`](Self::new), but bells cross gaps as pathrate's do.
    pub fn pathrate(width: f64) -> Self {
        Self { across_gaps: true, ..Self::new(width) }
    }
}

/// One local mode: a central window and the bell around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalMode {
    /// First and last value in the central window.
    pub central: Interval,
    /// Values in the central window, S.
    pub count: usize,
    /// First and last value of the bell.
    pub bell: Interval,
    /// Values in the bell, B. Neighbouring bells may share values.
    pub bell_count: usize,
    /// Sum over the bell of the fourth power of the deviation, in units of the bell's (population)
    /// standard deviation: B times the kurtosis. Infinite for a bell of no width or fewer than
    /// three values.
    pub fourth_moment: f64,
    /// Values in the whole sample, n.
    pub sample_count: usize,
}

/// Which figure of merit ranks the modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merit {
    /// `(S / B) (S / n)`: how much of the bell lies in its centre, times how much of the sample.
    /// Free of scale and of fourth moments, hence our default; pathrate before 2.3.2.
    #[default]
    Density,
    /// `fourth_moment * S / n`: pathrate from 2.3.2 on. Grows with the size of the bell.
    Kurtosis,
}

impl LocalMode {
    /// Figure of merit: positive, possibly infinite for [`Merit::Kurtosis`].
    pub fn merit(&self, merit: Merit) -> f64 {
        let strength = self.count as f64 / self.sample_count as f64;
        match merit {
            Merit::Density => self.count as f64 / self.bell_count as f64 * strength,
            Merit::Kurtosis => self.fourth_moment * strength,
        }
    }

    /// Middle of the central window.
    pub fn centre(&self) -> f64 {
        self.central.low().midpoint(self.central.high())
    }
}

/// The mode of largest merit; the earlier (stronger) one of equals. `None` if there is none.
pub fn best_mode(modes: &[LocalMode], merit: Merit) -> Option<&LocalMode> {
    modes.iter().reduce(|best, mode| if mode.merit(merit) > best.merit(merit) { mode } else { best })
}

/// Local modes, strongest first; possibly none.
///
/// The central window of a mode is the fullest one among values not yet claimed; its bell grows on
/// either side from window to window until one holds clearly more values, which is another mode's;
/// what the bell covers is claimed. Two departures from pathrate (a third is [`ModeParams::new`]):
/// the right side of a bell starts from the central window's tolerance, not from what the left side
/// left over, and a bell without width counts as infinitely narrow instead of as an error
/// (quantised clocks produce such bells).
pub fn local_modes(sample: &Sorted, params: &ModeParams) -> Result<Vec<LocalMode>, Error> {
    if !(params.width >= 0.0 && params.width.is_finite()) {
        return Err(Error::Parameter("width"));
    }
    if !(params.bell_tolerance >= 0.0 && params.bell_tolerance.is_finite()) {
        return Err(Error::Parameter("bell_tolerance"));
    }
    let search = Search { values: sample.values(), params };
    let mut valid = vec![true; sample.len()];
    let mut modes = Vec::new();
    while let Some(central) = search.central(&valid) {
        let bell = search.left_end(&central)..search.right_end(&central);
        valid[bell.clone()].fill(false);
        if central.len() > params.noise_count {
            modes.extend(search.describe(&central, &bell));
        }
    }
    Ok(modes)
}

/// Windows are ranges of indices into the sorted values, never empty.
struct Search<'a> {
    values: &'a [f64],
    params: &'a ModeParams,
}

impl Search<'_> {
    /// The fullest window of valid values; the first of equals.
    fn central(&self, valid: &[bool]) -> Option<Range<usize>> {
        let mut best: Option<Range<usize>> = None;
        let mut end = 0;
        for start in 0..valid.len() {
            if !valid[start] {
                continue;
            }
            // The end never moves back while the start moves on, so the search is linear.
            end = end.max(start);
            while end < valid.len() && valid[end] && self.values[end] <= self.values[start] + self.params.width {
                end += 1;
            }
            if best.as_ref().is_none_or(|window| end - start > window.len()) {
                best = Some(start..end);
            }
        }
        best
    }

    /// First index of the bell.
    fn left_end(&self, central: &Range<usize>) -> usize {
        let mut bin = central.clone();
        let mut bell = central.start;
        while bin.start > 0 {
            // Last indices from one left of the bin's own last to one left of its first; the
            // further of equals wins.
            let furthest = if self.joined(bin.start - 1) { bin.start - 1 } else { bin.start };
            let candidates = (furthest..bin.end - 1).rev().map(|last| self.reaching_left(last));
            let Some(next) = candidates.reduce(fuller) else {
                break;
            };
            if !self.belongs(&next, &bin) {
                break;
            }
            bell = bell.min(next.start);
            bin = next;
        }
        bell
    }

    /// One past the last index of the bell.
    fn right_end(&self, central: &Range<usize>) -> usize {
        let mut bin = central.clone();
        let mut bell = central.end;
        while bin.end < self.values.len() {
            let furthest = if self.joined(bin.end - 1) { bin.end } else { bin.end - 1 };
            let candidates = (bin.start + 1..=furthest).map(|first| self.reaching_right(first));
            let Some(next) = candidates.reduce(fuller) else {
                break;
            };
            if !self.belongs(&next, &bin) {
                break;
            }
            bell = bell.max(next.end);
            bin = next;
        }
        bell
    }

    /// Whether a bell may step from value `index` to the one after it.
    fn joined(&self, index: usize) -> bool {
        self.params.across_gaps || self.values[index + 1] - self.values[index] <= self.params.width
    }

    fn belongs(&self, next: &Range<usize>, bin: &Range<usize>) -> bool {
        (next.len() as f64) < bin.len() as f64 * (1.0 + self.params.bell_tolerance)
    }

    fn reaching_left(&self, last: usize) -> Range<usize> {
        let floor = self.values[last] - self.params.width;
        self.values[..last].partition_point(|v| *v < floor)..last + 1
    }

    fn reaching_right(&self, first: usize) -> Range<usize> {
        let ceiling = self.values[first] + self.params.width;
        first..first + 1 + self.values[first + 1..].partition_point(|v| *v <= ceiling)
    }

    fn describe(&self, central: &Range<usize>, bell: &Range<usize>) -> Option<LocalMode> {
        let ends = |range: &Range<usize>| Interval::new(self.values[range.start], self.values[range.end - 1]);
        Some(LocalMode {
            central: ends(central)?,
            count: central.len(),
            bell: ends(bell)?,
            bell_count: bell.len(),
            fourth_moment: fourth_moment(&self.values[bell.clone()]),
            sample_count: self.values.len(),
        })
    }
}

fn fuller(best: Range<usize>, window: Range<usize>) -> Range<usize> {
    if window.len() >= best.len() { window } else { best }
}

/// `sum (x - m)^4 / v^2` with v the population variance; infinite for a bell of no width or fewer
/// than three values.
fn fourth_moment(bell: &[f64]) -> f64 {
    let mean = mean_of(bell);
    let variance = bell.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / bell.len() as f64;
    let width = bell[bell.len() - 1] - bell[0];
    if bell.len() < 3 || width <= 0.0 || variance <= 0.0 {
        return f64::INFINITY;
    }
    bell.iter().map(|v| ((v - mean) * (v - mean) / variance).powi(2)).sum()
}

#[cfg(test)]
mod tests;
