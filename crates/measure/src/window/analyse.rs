//! Which window, before and after it was tried. Pure.

use std::time::Duration;

use narrows_units::BitRate;

/// What bounds the window from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// What is available, times the round trip.
    DelayProduct,
    /// The burst that the path survives: an unpaced window leaves in one.
    Burst,
    /// A handful of segments, below which acknowledgements stall.
    Floor,
}

/// The window by the formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reckoned {
    /// `A RTT / 8`.
    pub(super) product: u64,
    /// The window.
    pub(super) window: u64,
    pub(super) bound: Bound,
}

/// Segments that a window must hold (ours: one of two is acknowledged, and a lost one must be
/// noticed by three behind it).
const FEWEST_SEGMENTS: u64 = 4;
/// Largest window worth asking for: TCP can announce 2^30 (RFC 7323), and kernels charge twice the
/// window to a buffer whose size is a signed number of 32 bits.
const LARGEST: u64 = 1 << 29;
/// A window fills if it gets this share of the best rate, and loses at most this much more than
/// half of it does.
const FILLS: f64 = 0.95;
const MORE_LOSS: f64 = 0.001;

/// `W = min(A RTT / 8, burst)`, within what TCP can do. Octets; `burst` only where the sender does
/// not pace.
pub(super) fn reckon(available: BitRate, rtt: Duration, burst: Option<u64>, mss_octets: u64) -> Reckoned {
    let product = available.octets_in(rtt);
    let floor = FEWEST_SEGMENTS * mss_octets;
    let (window, bound) = match burst {
        Some(burst) if burst < product => (burst, Bound::Burst),
        _ => (product, Bound::DelayProduct),
    };
    let bound = if window < floor { Bound::Floor } else { bound };
    Reckoned { product, window: window.clamp(floor, LARGEST), bound }
}

/// Windows to try around `window`, the most telling first: itself, double, half, four times, a
/// quarter.
pub(super) fn to_try(window: u64, mss_octets: u64) -> Vec<u64> {
    let floor = FEWEST_SEGMENTS * mss_octets;
    let mut windows = Vec::new();
    for candidate in [window, window * 2, window / 2, window * 4, window / 4] {
        let candidate = candidate.clamp(floor, LARGEST);
        if !windows.contains(&candidate) {
            windows.push(candidate);
        }
    }
    windows
}

/// A window that was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tried {
    /// Octets.
    pub(super) window: u64,
    /// Goodput, bit/s.
    pub(super) bps: f64,
    /// Share of octets sent again.
    pub(super) loss: f64,
}

/// The smallest window that is as good as any.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chosen {
    pub(super) best: Tried,
    /// The next smaller one, which is not; `None` if none smaller was tried.
    pub(super) below: Option<u64>,
    /// It is the largest that was tried, and larger ones may do better.
    pub(super) rising: bool,
}

/// The smallest window with at least 95 % of the best rate whose loss exceeds that of the next
/// smaller one by at most 0.1 %; where loss spoils all of those, the one that loses least. `None`
/// without any.
pub(super) fn choose(tried: &[Tried]) -> Option<Chosen> {
    let mut sorted = tried.to_vec();
    sorted.sort_by_key(|tried| tried.window);
    let most = sorted.iter().map(|tried| tried.bps).fold(0.0, f64::max);
    let fast = |tried: &Tried| tried.bps >= FILLS * most;
    let calm = |index: usize| {
        let before = index.checked_sub(1).map_or(0.0, |before| sorted[before].loss);
        sorted[index].loss <= before + MORE_LOSS
    };
    let index = (0..sorted.len()).find(|index| fast(&sorted[*index]) && calm(*index)).or_else(|| {
        let fast_ones = (0..sorted.len()).filter(|index| fast(&sorted[*index]));
        fast_ones.min_by(|a, b| sorted[*a].loss.total_cmp(&sorted[*b].loss))
    })?;
    let below = index.checked_sub(1).map(|before| sorted[before].window);
    let rising = index + 1 == sorted.len() && below.is_some();
    Some(Chosen { best: sorted[index], below, rising })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6349: 44.21 Mbit/s over 25 ms are 138 156 octets. The OC-12 path: 622 Mbit/s over 30 ms
    /// are 2.3325 MB, its burst limit of 82 kB is far below.
    #[test]
    fn published_products() {
        let t3 = reckon(BitRate::from_bps(44_210_000), Duration::from_millis(25), None, 1448);
        assert_eq!((t3.window, t3.bound), (138_156, Bound::DelayProduct));
        let oc12 = reckon(BitRate::from_mbps(622), Duration::from_millis(30), Some(82_000), 1448);
        assert_eq!((oc12.product, oc12.window, oc12.bound), (2_332_500, 82_000, Bound::Burst));
        // 796.5 Mbit/s over 158.9 ms are 15.8 MB; the report chose its burst size.
        let fig6 = reckon(BitRate::from_bps(796_515_400), Duration::from_micros(158_900), Some(6_029_312), 1448);
        assert_eq!((fig6.window, fig6.bound), (6_029_312, Bound::Burst));
        assert!((15_800_000..15_850_000).contains(&fig6.product));
    }

    #[test]
    fn the_floor_and_what_is_tried() {
        let near = reckon(BitRate::from_mbps(100), Duration::from_micros(50), None, 1448);
        assert_eq!((near.product, near.window, near.bound), (625, 5792, Bound::Floor));
        assert_eq!(to_try(5792, 1448), [5792, 11_584, 23_168]);
        assert_eq!(to_try(100_000, 1448), [100_000, 200_000, 50_000, 400_000, 25_000]);
        assert_eq!(to_try(1 << 29, 1448), [1 << 29, 1 << 28, 1 << 27]);
    }

    fn tried(rows: &[(u64, f64, f64)]) -> Vec<Tried> {
        rows.iter().map(|&(window, bps, loss)| Tried { window, bps, loss }).collect()
    }

    #[test]
    fn the_smallest_that_is_as_good_as_any() {
        let rows = tried(&[(100, 94.0, 0.0), (50, 47.0, 0.0), (200, 95.0, 0.0), (400, 95.0, 0.0)]);
        let chosen = choose(&rows).unwrap();
        assert_eq!((chosen.best.window, chosen.below, chosen.rising), (100, Some(50), false));
        // Loss counts: the one that gains its rate by losing is not it.
        let rows = tried(&[(50, 80.0, 0.0), (100, 92.0, 0.02), (200, 90.0, 0.0205)]);
        assert_eq!(choose(&rows).unwrap().best.window, 200);
        let rows = tried(&[(50, 80.0, 0.0), (100, 92.0, 0.02), (200, 90.0, 0.05)]);
        assert_eq!(choose(&rows).unwrap().best.window, 100);
        let rows = tried(&[(50, 20.0, 0.0), (100, 40.0, 0.0), (200, 80.0, 0.0)]);
        assert!(choose(&rows).unwrap().rising);
        assert_eq!(choose(&[]), None);
    }
}
