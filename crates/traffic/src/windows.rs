//! How evenly packets come: moments of what falls into windows of fixed length.

use serde::{Deserialize, Serialize};

/// Lengths of the windows: 1, 10 and 100 ms.
pub const WIDTHS_NS: [u64; 3] = [1_000_000, 10_000_000, 100_000_000];

/// Moments over all whole windows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowMoments {
    /// Length of a window.
    pub width_ns: u64,
    /// Whole windows.
    pub windows: u64,
    /// Mean of the octets in a window.
    pub mean_ip_octets: f64,
    /// Variance of the octets in a window (divisor *n* − 1; 0 for one window).
    pub variance_ip_octets: f64,
    /// Variance over mean of the packets in a window: 1 for Poisson arrivals, 0 for even ones;
    /// `None` without packets.
    pub index_of_dispersion: Option<f64>,
}

/// Counts packets into windows of all of [`WIDTHS_NS`]. Times are since the first window's begin,
/// and never go back.
#[derive(Debug, Clone)]
pub struct Windows([Window; 3]);

#[derive(Debug, Clone, Default)]
struct Window {
    width_ns: u64,
    /// Index of the window that is open.
    open: u64,
    octets: Sums,
    packets: Sums,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    open: u128,
    sum: u128,
    squares: u128,
}

impl Sums {
    fn close(&mut self) {
        self.sum += self.open;
        self.squares += self.open * self.open;
        self.open = 0;
    }

    /// Mean and variance over so many windows.
    fn moments(&self, windows: u64) -> (f64, f64) {
        let count = windows.max(1) as f64;
        let mean = self.sum as f64 / count;
        let spare = self.squares as f64 - self.sum as f64 * mean;
        (mean, spare.max(0.0) / (count - 1.0).max(1.0))
    }
}

impl Default for Windows {
    fn default() -> Self {
        Self(WIDTHS_NS.map(|width_ns| Window { width_ns, ..Window::default() }))
    }
}

impl Windows {
    /// A packet came.
    pub fn add(&mut self, at_ns: u64, ip_octets: u16) {
        for window in &mut self.0 {
            let index = at_ns / window.width_ns;
            if index > window.open {
                window.octets.close();
                window.packets.close();
                window.open = index;
            }
            window.octets.open += u128::from(ip_octets);
            window.packets.open += 1;
        }
    }

    /// Moments of the windows that were whole at `end_ns`, empty ones too; those of which there is
    /// none are left out. `end_ns` is not before the last packet's window.
    pub fn moments(&self, end_ns: u64) -> Vec<WindowMoments> {
        let reported = self.0.iter().filter_map(|window| {
            let windows = end_ns / window.width_ns;
            let mut window = window.clone();
            if window.open < windows {
                window.octets.close();
                window.packets.close();
            }
            let windows = windows.max(window.open);
            let (mean, variance) = window.octets.moments(windows);
            let (packets, spread) = window.packets.moments(windows);
            (windows > 0).then(|| WindowMoments {
                width_ns: window.width_ns,
                windows,
                mean_ip_octets: mean,
                variance_ip_octets: variance,
                index_of_dispersion: (packets > 0.0).then(|| spread / packets),
            })
        });
        reported.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut windows = Windows::default();
        // Windows of 1 ms: 100 and 200, nothing, 300, and one that is not whole.
        for (at, octets) in [(0, 100), (999_999, 200), (2_000_000, 300), (3_000_000, 900)] {
            windows.add(at, octets);
        }
        let reported = windows.moments(3_500_000);
        assert_eq!(reported.len(), 1, "no window of 10 ms is whole");
        assert_eq!((reported[0].width_ns, reported[0].windows), (1_000_000, 3));
        assert!((reported[0].mean_ip_octets - 200.0).abs() < 1e-9);
        // 300, 0, 300 around 200.
        assert!((reported[0].variance_ip_octets - 30_000.0).abs() < 1e-6, "{reported:?}");
        // Packets 2, 0, 1 around 1: variance 1.
        assert!((reported[0].index_of_dispersion.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(Windows::default().moments(999), []);
        assert_eq!(Windows::default().moments(1_000_000)[0].index_of_dispersion, None);
    }
}
