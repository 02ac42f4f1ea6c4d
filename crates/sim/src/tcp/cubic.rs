//! CUBIC (RFC 9438), with the details of Linux (`tcp_cubic.c`): HyStart, the growth looked up at
//! most 32 times a second while the window stands, at least 5 % per round trip before the first
//! loss, at most half a segment per acknowledgement.

use super::congestion::{CongestionControl, RttNews, Window};
use super::hystart::HyStart;

/// The cubic function of one epoch, and what is remembered of the one before.
#[derive(Debug)]
pub(super) struct Cubic {
    hystart: HyStart,
    /// Window before the last reduction, less if bandwidth was abandoned (fast convergence); 0
    /// before the first.
    last_max: f64,
    epoch: Option<Epoch>,
    /// Smallest round-trip time.
    smallest: Option<u64>,
}

/// Growth since a reduction.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    began: u64,
    /// Seconds until the window is back at `origin`.
    k: f64,
    origin: f64,
    /// What Reno would have by now (RFC 9438 §4.3).
    reno_window: f64,
    /// When the growth was last computed, for which window, and what it was: acknowledgements per
    /// segment.
    computed: u64,
    window: u32,
    acks: f64,
    /// Acknowledgements since then.
    uncounted: u32,
}

/// RFC 9438 §4.6.
const BETA: f64 = 717.0 / 1024.0;
/// RFC 9438 §4.1, segments per cubed second.
const C: f64 = 0.4;
/// RFC 9438 §4.3: segments per round trip with which Reno's average would be reached.
const RENO_ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Time for which a computed growth holds while the window does not change.
const REFRESH_NS: u64 = 1_000_000_000 / 32;
/// Round trips this soon after a reduction are not trusted.
const SETTLE_NS: u64 = 1_000_000_000;

impl Cubic {
    pub(super) fn new(now: u64) -> Self {
        Self { hystart: HyStart::new(now), last_max: 0.0, epoch: None, smallest: None }
    }

    /// Acknowledgements per segment of growth.
    fn growth(&mut self, now: u64, acked: u32, window: u32) -> f64 {
        let cwnd = f64::from(window);
        let last_max = self.last_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, last_max));
        epoch.uncounted += acked;
        if epoch.window == window && now - epoch.computed <= REFRESH_NS {
            return epoch.acks;
        }
        (epoch.window, epoch.computed) = (window, now);
        let ahead = (now.saturating_sub(epoch.began) + self.smallest.unwrap_or(0)) as f64 * 1e-9;
        let target = epoch.origin + C * (ahead - epoch.k).powi(3);
        let mut acks = if target > cwnd { cwnd / (target - cwnd) } else { 100.0 * cwnd };
        if last_max <= 0.0 {
            acks = acks.min(20.0);
        }
        epoch.reno_window += RENO_ALPHA * f64::from(std::mem::take(&mut epoch.uncounted)) / cwnd;
        if epoch.reno_window > cwnd {
            acks = acks.min(cwnd / (epoch.reno_window - cwnd));
        }
        epoch.acks = acks.max(2.0);
        epoch.acks
    }
}

impl Epoch {
    fn new(now: u64, cwnd: f64, last_max: f64) -> Self {
        let (k, origin) = if last_max > cwnd { (((last_max - cwnd) / C).cbrt(), last_max) } else { (0.0, cwnd) };
        Self { began: now, k, origin, reno_window: cwnd, computed: now, window: 0, acks: 0.0, uncounted: 0 }
    }
}

impl CongestionControl for Cubic {
    fn on_rtt(&mut self, news: &RttNews, window: &mut Window) {
        if self.epoch.is_some_and(|epoch| news.now.saturating_sub(epoch.began) < SETTLE_NS) {
            return;
        }
        let smallest = self.smallest.map_or(news.rtt, |smallest| smallest.min(news.rtt));
        self.smallest = Some(smallest);
        if window.in_slow_start() {
            self.hystart.on_rtt(news, smallest, window);
        }
    }

    fn on_ack(&mut self, now: u64, acked: u32, window: &mut Window) {
        let mut acked = acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            let acks = self.growth(now, acked, window.segments);
            window.creep(whole(acks), acked);
        }
    }

    fn on_loss(&mut self, window: &Window) -> Option<u32> {
        let cwnd = f64::from(window.segments);
        self.epoch = None;
        self.last_max = if cwnd < self.last_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        Some(whole(cwnd * BETA).max(2))
    }

    /// The epoch stands still, so that no pause makes the window leap (Linux
    /// `cubictcp_cwnd_event_tx_start`).
    fn on_idle(&mut self, idle: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.began = epoch.began.saturating_add(idle);
        }
    }

    fn on_timeout(&mut self) {
        *self = Self::new(0);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, which is what is wanted here"
)]
fn whole(value: f64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grows from a reduction at window 1000 with 100 ms round trips; returns the windows after
    /// each round.
    fn rounds(count: u32) -> Vec<u32> {
        let mut window = Window::initial();
        window.segments = 1000;
        let mut cubic = Cubic::new(0);
        let threshold = cubic.on_loss(&window).unwrap();
        (window.segments, window.threshold) = (threshold, Some(threshold));
        let mut now = 0;
        let mut windows = Vec::new();
        for _ in 0..count {
            let acks = window.segments;
            for _ in 0..acks {
                now += 100_000_000 / u64::from(acks);
                cubic.on_ack(now, 1, &mut window);
            }
            windows.push(window.segments);
        }
        windows
    }

    /// K = cbrt(1000 · (1 − 0.7) / 0.4) = 9.09 s (RFC 9438 eq. 2): the window is back at 1000 then,
    /// has made 7/8 of the way after half of it, and is beyond by C (t − K)^3 = 10 segments three
    /// seconds later.
    #[test]
    fn the_cubic_function() {
        let windows = rounds(130);
        let at = |seconds: f64| f64::from(windows[whole(seconds * 10.0) as usize - 1]);
        assert!((at(4.5) - 962.5).abs() < 4.0, "{}", at(4.5));
        assert!((at(9.1) - 1000.0).abs() < 2.0, "{}", at(9.1));
        assert!((at(12.1) - 1010.8).abs() < 3.0, "{}", at(12.1));
    }

    #[test]
    fn fast_convergence_remembers_less() {
        let mut cubic = Cubic::new(0);
        let mut window = Window::initial();
        window.segments = 1000;
        assert_eq!(cubic.on_loss(&window), Some(700));
        window.segments = 800;
        assert_eq!(cubic.on_loss(&window), Some(560));
        assert!((cubic.last_max - 680.0).abs() < 0.2, "{}", cubic.last_max);
    }
    /// Out of slow start without a loss (HyStart), the window gains a segment per 20
    /// acknowledgements even where the cubic function is flat.
    #[test]
    fn five_per_cent_before_the_first_loss() {
        let mut window = Window::initial();
        (window.segments, window.threshold) = (400, Some(400));
        let mut cubic = Cubic::new(0);
        (0..400).for_each(|ack| cubic.on_ack(ack, 1, &mut window));
        assert_eq!(window.segments, 420);
    }
}
