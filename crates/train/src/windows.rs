//! How a quantity that varies is distributed: its means over windows of one length, and their
//! percentiles.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{Sender, Stamp};

/// Means over consecutive windows of one length, counted in bins of 0.1 %: bounded, however long it
/// goes on.
///
/// A window counts when the next one begins; values of one window are averaged without weights.
/// Windows without a value are counted apart. Percentiles are by nearest rank (type 1 of `[HF96]`)
/// and right to half a bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Windows {
    length: Duration,
    began: Option<Stamp<Sender>>,
    open: Open,
    bins: BTreeMap<i32, u64>,
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Open {
    index: u64,
    sum: f64,
    values: u64,
}

/// A bin's upper end over its lower end, as a logarithm.
const BIN: f64 = 1e-3;

impl Windows {
    /// Of this length, at least a millisecond.
    pub fn new(length: Duration) -> Self {
        Self {
            length: length.max(Duration::from_millis(1)),
            began: None,
            open: Open::default(),
            bins: BTreeMap::new(),
            count: 0,
            sum: 0.0,
            least: f64::INFINITY,
            most: 0.0,
        }
    }

    /// Their length.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Windows with a value that are over.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One value, not negative, at this time; the first one's is when the first window begins.
    /// Values of windows that are over are left out.
    pub fn add(&mut self, at: Stamp<Sender>, value: f64) {
        if !(value.is_finite() && value >= 0.0) {
            return;
        }
        let began = *self.began.get_or_insert(at);
        let index = at.since(began).as_nanos() / self.length.as_nanos();
        let index = u64::try_from(index).unwrap_or(u64::MAX);
        if index < self.open.index {
            return;
        }
        if index > self.open.index {
            self.close();
            self.open.index = index;
        }
        self.open.sum += value;
        self.open.values += 1;
    }

    /// The window that is open counts, too: there will be no more values.
    pub fn close(&mut self) {
        if self.open.values > 0 {
            let mean = self.open.sum / self.open.values as f64;
            *self.bins.entry(bin(mean)).or_default() += 1;
            self.count += 1;
            self.sum += mean;
            self.least = self.least.min(mean);
            self.most = self.most.max(mean);
        }
        if self.began.is_none() {
            return;
        }
        self.open = Open { index: self.open.index.saturating_add(1), ..Open::default() };
    }

    /// Mean over the windows.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count as f64).clamp(self.least, self.most))
    }

    /// The value that a share `p` of the windows does not exceed; `None` without windows, or unless
    /// `0 <= p <= 1`.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        if self.count == 0 || !(0.0..=1.0).contains(&p) {
            return None;
        }
        let mut below = 0;
        for (bin, count) in &self.bins {
            below += count;
            if below as f64 >= p * self.count as f64 * (1.0 - 4.0 * f64::EPSILON) {
                return Some(middle(*bin).clamp(self.least, self.most));
            }
        }
        Some(self.most)
    }
}

/// Below one nothing is told apart.
fn bin(value: f64) -> i32 {
    if value < 1.0 {
        return -1;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite number is below 710")]
    let bin = (value.ln() / BIN).floor() as i32;
    bin
}

fn middle(bin: i32) -> f64 {
    if bin < 0 { 0.0 } else { ((f64::from(bin) + 0.5) * BIN).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Stamp<Sender> {
        Stamp::from_nanos(ms * 1_000_000)
    }

    /// By hand: windows of 1 s with means 10, 30, (none), 20.
    #[test]
    fn percentiles_are_of_means_over_windows() {
        let mut windows = Windows::new(Duration::from_secs(1));
        for (ms, value) in [(0, 5.0), (999, 15.0), (1000, 30.0), (3500, 20.0), (2000, 999.0)] {
            windows.add(at(ms), value * 1e6);
        }
        windows.close();
        assert_eq!(windows.count(), 3);
        let close = |p: f64, expected: f64| {
            let value = windows.percentile(p).unwrap();
            assert!((value / (expected * 1e6) - 1.0).abs() < 1e-3, "{p}: {value}");
        };
        close(0.0, 10.0);
        close(0.33, 10.0);
        close(0.5, 20.0);
        close(0.67, 30.0);
        close(1.0, 30.0);
        assert!((windows.mean().unwrap() - 20e6).abs() < 1.0);
        assert_eq!(windows.percentile(1.5), None);
    }

    #[test]
    fn nothing_is_nothing() {
        let mut windows = Windows::new(Duration::ZERO);
        windows.close();
        windows.add(at(0), f64::NAN);
        windows.add(at(0), -1.0);
        windows.close();
        assert_eq!((windows.count(), windows.mean(), windows.percentile(0.5)), (0, None, None));
        windows.add(at(5), 0.0);
        windows.close();
        assert_eq!((windows.mean(), windows.percentile(0.5)), (Some(0.0), Some(0.0)));
    }

    /// Millions of windows take no more room than their spread has bins.
    #[test]
    fn bounded() {
        let mut windows = Windows::new(Duration::from_secs(1));
        for second in 0..100_000 {
            windows.add(at(second * 1000), 1e9 * (1.0 + 1e-6 * (second % 1000) as f64));
        }
        assert!(windows.bins.len() <= 2, "{}", windows.bins.len());
    }
}
