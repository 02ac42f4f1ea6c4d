//! Which rates come next: a wide look first, then narrow ones about what it found, until readings
//! settle.

use super::{
    BELOW_ANCHOR, COARSE, ChirpReading, EDGE, Flavour, HOPELESS, LEAST_RATE, MOST_RANGES, MethodRun, OUTPUTS, Phase,
    Range, TOOL_AVERAGES, TOOL_MOST, WIDEST, WINDOW,
};

impl<F: Flavour> MethodRun<F> {
    /// After a coarse round: the fine range, or another coarse one.
    pub(super) fn look_at_coarse(&mut self) {
        let read = self.readings.len();
        if read < COARSE && (self.tries < 2 * COARSE || read < 3) {
            return;
        }
        let Some(middle) = self.middle(read) else { return };
        let open = self.open_share(read) > 0.5;
        let more = self.ranges < MOST_RANGES;
        if open && self.high < 0.99 * self.top.0 && more {
            self.enter(Phase::Coarse, self.high / 2.0, self.high * 8.0);
        } else if middle < 1.2 * self.low && self.low > 1.01 * LEAST_RATE && more {
            self.enter(Phase::Coarse, self.low / BELOW_ANCHOR, self.low * 1.5);
        } else {
            self.enter_around(middle);
        }
    }

    pub(super) fn enter_around(&mut self, middle: f64) {
        let (down, up) = self.flavour.range();
        let (down, up) = (down.powf(self.wider), up.powf(self.wider));
        let high = (middle * up).min(self.top.0);
        // Near the host's limit the range moves down as a whole.
        let low = (middle * down).min(high * (down / up).sqrt());
        self.enter(Phase::Fine, low, high);
    }

    /// Every so often: does the range still hold the estimate?
    pub(super) fn look_at_fine(&mut self) {
        let read = self.readings.len();
        if read == 0 || !read.is_multiple_of(WINDOW) || self.ranges >= MOST_RANGES {
            return;
        }
        let Some(middle) = self.middle(WINDOW) else { return };
        let place = self.flavour.place(middle, self.low, self.high);
        let open = self.open_share(WINDOW) > 0.5;
        let free = self.high < 0.99 * self.top.0;
        let (most, widens) = self.flavour.clipped();
        if widens && self.clipped(WINDOW) > most && self.open_share(WINDOW) < 0.5 && self.wider < WIDEST {
            // Much of what is available lies outside: it varies by more than the range holds.
            self.wider += 1.0;
            self.enter_around(middle);
        } else if place < EDGE && self.low > 1.01 * LEAST_RATE {
            self.enter_around(middle);
        } else if (place > 1.0 - EDGE || open) && free {
            self.enter_around(if open { 1.5 * self.high } else { middle });
        }
    }

    /// The tool's rule: three outputs in a row near an end move the range.
    pub(super) fn look_at_outputs(&mut self, moves: bool) {
        let Some(outputs) = self.outputs().filter(|_| moves && self.ranges < MOST_RANGES) else {
            return;
        };
        let (low, high) = (self.low, self.high);
        let factor = if low <= 1e6 { 4.0 } else { 7.0 };
        let next = if outputs.iter().all(|output| *output < 1.5 * low) {
            Some((low / factor, low * factor))
        } else if outputs.iter().all(|output| *output > 0.66 * high) && high < 1350e6 {
            let factor = if high <= 1e6 { 4.0 } else { 7.0 };
            Some((high / factor, high * factor))
        } else {
            None
        };
        if let Some((low, high)) = next {
            self.enter(Phase::Fine, low, high.min(TOOL_MOST));
            let (least, most) = TOOL_AVERAGES;
            self.average = self.average.clamp(low / 10.0, low / 5.0).clamp(least, most);
        }
    }

    /// The tool's last outputs: means over windows that end one chirp apart.
    pub(super) fn outputs(&self) -> Option<Vec<f64>> {
        let rates: Vec<f64> = self.readings.iter().map(|reading| reading.found.rate).collect();
        let window = self.params.chirps;
        let windows: Vec<&[f64]> = rates.windows(window).collect();
        let last = windows.len().checked_sub(OUTPUTS)?;
        windows[last..].iter().map(|window| self.flavour.combine(window)).collect()
    }

    pub(crate) fn middle(&self, last: usize) -> Option<f64> {
        let from = self.readings.len().saturating_sub(last);
        let rates: Vec<f64> = self.readings[from..].iter().map(|reading| reading.found.rate).collect();
        narrows_stat::median(&rates)
    }

    pub(crate) fn open_share(&self, last: usize) -> f64 {
        let from = self.readings.len().saturating_sub(last);
        let of = &self.readings[from..];
        let open = of.iter().filter(|reading| reading.found.open).count();
        open as f64 / of.len().max(1) as f64
    }

    /// Share of the last chirps that say that what is available lies outside of the range.
    pub(crate) fn clipped(&self, last: usize) -> f64 {
        let from = self.readings.len().saturating_sub(last);
        let of = &self.readings[from..];
        let outside = |found: &ChirpReading| found.open || found.below;
        let count = of.iter().filter(|reading| outside(&reading.found)).count();
        count as f64 / of.len().max(1) as f64
    }

    /// Chirps of the last range that the answer needs.
    pub(super) fn wanted(&self) -> usize {
        match self.params.range {
            Range::Tool { .. } => self.params.chirps + OUTPUTS - 1,
            Range::ChirpReading | Range::Given(..) => self.params.chirps,
        }
    }

    /// No use in going on.
    pub(super) fn over(&self) -> bool {
        let read = self.readings.len();
        let done = self.phase == Phase::Fine && read >= self.wanted();
        let hopeless = self.phase != Phase::Anchor && self.tries >= HOPELESS && read == 0;
        let enough = self.phase != Phase::Anchor && self.tries >= 3 * self.wanted() + 2 * COARSE;
        let silent = self.tally.sent > 0 && self.tally.lost >= self.tally.sent && self.tries >= 3;
        done || hopeless || enough || silent || self.abandoned.is_some()
    }
}
