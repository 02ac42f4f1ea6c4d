//! Reno: slow start and congestion avoidance (RFC 5681).

use super::congestion::{CongestionControl, Window};

/// It has no state beside the window.
#[derive(Debug)]
pub(super) struct Reno;

impl CongestionControl for Reno {
    fn on_ack(&mut self, _now: u64, acked: u32, window: &mut Window) {
        let mut acked = acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            window.creep(window.segments, acked);
        }
    }

    fn on_loss(&mut self, window: &Window) -> Option<u32> {
        Some((window.segments / 2).max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_then_adds_one_per_window() {
        let mut window = Window::initial();
        Reno.on_ack(0, 10, &mut window);
        assert_eq!((window.segments, window.in_slow_start()), (20, true));
        window.threshold = Reno.on_loss(&window);
        window.segments = 10;
        assert!(!window.in_slow_start());
        (0..5).for_each(|_| Reno.on_ack(0, 2, &mut window));
        assert_eq!(window.segments, 11);
        (0..11).for_each(|_| Reno.on_ack(0, 1, &mut window));
        assert_eq!(window.segments, 12);
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut window = Window::initial();
        window.threshold = Some(12);
        Reno.on_ack(0, 14, &mut window);
        assert_eq!(window.segments, 13, "two to the threshold, then 12 of 12 for one more");
    }
}
