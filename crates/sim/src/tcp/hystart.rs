//! HyStart as Linux has it (Ha and Rhee, "Taming the elephants", Computer Networks 2011;
//! `tcp_cubic.c`): leaves slow start when the acknowledgements of one round come in a train as long
//! as half the smallest round-trip time, or when round trips grow.

use super::congestion::{RttNews, Window};

/// State of one round.
#[derive(Debug)]
pub(super) struct HyStart {
    /// Segment whose acknowledgement ends the round.
    round_end: u64,
    round_began: u64,
    /// Last acknowledgement of the train.
    last_ack: u64,
    /// Smallest round-trip time of the round, and of how many samples.
    round_rtt: u64,
    samples: u32,
}

/// Smaller windows do not look.
const LOW_WINDOW: u32 = 16;
/// A train breaks at gaps above this.
const TRAIN_GAP_NS: u64 = 2_000_000;
/// Samples of a round that are enough.
const MIN_SAMPLES: u32 = 8;
/// Least and greatest increase of the round-trip time that counts.
const DELAY_NS: (u64, u64) = (4_000_000, 16_000_000);
/// Allowance for bursts of a paced sender.
const PACED_ALLOWANCE_NS: u64 = 1_000_000;

impl HyStart {
    pub(super) fn new(now: u64) -> Self {
        Self { round_end: 0, round_began: now, last_ack: now, round_rtt: u64::MAX, samples: 0 }
    }

    /// Looks at one acknowledgement of slow start, and ends slow start if it is time.
    pub(super) fn on_rtt(&mut self, news: &RttNews, smallest: u64, window: &mut Window) {
        if window.segments < LOW_WINDOW {
            return;
        }
        if news.first > self.round_end {
            *self = Self { round_end: news.next, ..Self::new(news.now) };
        }
        if self.train_is_long(news, smallest) || self.delay_grew(news.rtt, smallest) {
            window.threshold = Some(window.segments);
        }
    }

    fn train_is_long(&mut self, news: &RttNews, smallest: u64) -> bool {
        if news.now - self.last_ack > TRAIN_GAP_NS {
            return false;
        }
        self.last_ack = news.now;
        let bound = if news.paced { smallest + PACED_ALLOWANCE_NS } else { smallest / 2 };
        news.now - self.round_began > bound
    }

    fn delay_grew(&mut self, rtt: u64, smallest: u64) -> bool {
        self.round_rtt = self.round_rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_rtt > smallest + (smallest / 8).clamp(DELAY_NS.0, DELAY_NS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(now: u64, rtt: u64, first: u64) -> RttNews {
        RttNews { now, rtt, first, next: first + 100, paced: false }
    }

    fn exit(every: u64, rtt: impl Fn(u64) -> u64) -> Option<u64> {
        let mut window = Window::initial();
        window.segments = 100;
        let mut hystart = HyStart::new(0);
        (1..200).find(|&ack| {
            hystart.on_rtt(&news(ack * every, rtt(ack), 1000), 100_000_000, &mut window);
            window.threshold.is_some()
        })
    }

    /// Smallest round trip 100 ms. An acknowledgement each millisecond: the train passes 50 ms with
    /// the 52nd (the round begins with the first). One each 3 ms is no train.
    #[test]
    fn trains() {
        assert_eq!(exit(1_000_000, |_| 100_000_000), Some(52));
        assert_eq!(exit(3_000_000, |_| 100_000_000), None);
    }

    /// An increase counts above 12.5 ms, after eight samples.
    #[test]
    fn delays() {
        assert_eq!(exit(3_000_000, |_| 112_500_000), None);
        assert_eq!(exit(3_000_000, |_| 112_500_001), Some(9));
        assert_eq!(exit(3_000_000, |ack| if ack == 5 { 101_000_000 } else { 150_000_000 }), None);
    }

    #[test]
    fn small_windows_do_not_poll() {
        let mut window = Window::initial();
        let mut hystart = HyStart::new(0);
        (1..100).for_each(|ack| hystart.on_rtt(&news(ack * 1_000_000, 900_000_000, 1), 1_000_000, &mut window));
        assert_eq!(window.threshold, None);
    }
}
