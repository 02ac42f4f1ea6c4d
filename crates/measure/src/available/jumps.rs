//! Bursts of others that came between two packets of a train.
//!
//! A faster link can pass a burst to the tight link at once. The delay then jumps by the time that
//! the burst takes on the tight link, and stays up for the rest of the train. A clock that is set
//! looks the same. But after a burst the next train begins with the usual delay, and after a clock
//! was set it does not.
//!
//! The fit leaves out trains with a jump: their lines would begin behind it and miss the burst. The
//! mean rate of the bursts is taken off what the fit says. Bursts are a compound Poisson process,
//! watched for as long as all trains together lasted, those with a jump among them.

/// One train's jump. Times in seconds, delays in ns with the clocks' unknown offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jump {
    pub(crate) by: f64,
    /// The least delay of its train, which it had before the jump.
    pub(crate) least_ns: i64,
    /// First departure to last.
    pub(crate) time: f64,
}

impl Jump {
    /// Whether it may be a burst: no link hands over more in a moment, and a clock is set by any
    /// time.
    pub(crate) fn may_be_burst(&self) -> bool {
        (0.0..LONGEST).contains(&self.by)
    }

    /// Whether a clock was set: what the next train takes at least is longer by as much.
    fn is_clock(&self, next_least_ns: i64) -> bool {
        let more = next_least_ns.saturating_sub(self.least_ns) as f64 * 1e-9;
        (more - self.by).abs() < AS_MUCH * self.by
    }
}

/// Those of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jumps {
    bursts: Vec<Jump>,
    last: Option<Jump>,
}

impl Jumps {
    /// The next train, which took `least_ns` at least. Returns whether the one before met a clock
    /// that was set.
    pub(crate) fn next(&mut self, least_ns: i64) -> bool {
        let Some(last) = self.last.take() else { return false };
        let clock = last.is_clock(least_ns);
        if !clock {
            self.bursts.push(last);
        }
        clock
    }

    /// The next train, whose delay jumped. Returns what [`Jumps::next`] does.
    pub(crate) fn push(&mut self, jump: Jump) -> bool {
        let clock = self.next(jump.least_ns);
        self.last = Some(jump);
        clock
    }

    /// Whether there was a burst.
    pub(crate) fn any(&self) -> bool {
        !self.bursts.is_empty() || self.last.is_some()
    }

    /// What bursts took of a tight link of `capacity` on average, and its standard error, where the
    /// other trains lasted `time`; nothing without one.
    pub(crate) fn load(&self, capacity: f64, time: f64) -> Option<(f64, f64)> {
        let all = || self.bursts.iter().chain(&self.last);
        let time = time + all().map(|jump| jump.time).sum::<f64>();
        let (sum, squares) = all().fold((0.0, 0.0), |(sum, squares), jump| (sum + jump.by, squares + jump.by.powi(2)));
        (sum > 0.0 && time > 0.0).then(|| (capacity * sum / time, capacity * squares.sqrt() / time))
    }
}

/// Seconds of the link's rate (ours).
const LONGEST: f64 = 0.25;
/// Share by which the next train's delay may differ from the jump of a clock (ours: traffic that
/// it meets).
const AS_MUCH: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    const JUMP: Jump = Jump { by: 0.01, least_ns: 5_000_000, time: 0.008 };

    #[test]
    fn a_clock_stays_set_and_a_queue_empties() {
        let mut jumps = Jumps::default();
        assert!(!jumps.push(JUMP));
        assert!(jumps.next(15_200_000));
        assert_eq!(jumps.load(100e6, 0.1), None);
        assert!(!jumps.push(JUMP));
        assert!(!jumps.next(5_100_000));
        assert!(!jumps.next(15_000_000));
        assert!(jumps.load(100e6, 0.1).is_some());
    }

    #[test]
    fn bursts_take_their_share_of_the_time() {
        let mut jumps = Jumps::default();
        for _ in 0..4 {
            assert!(!jumps.push(JUMP));
            assert!(!jumps.next(5_000_000));
        }
        // Four of a megabit in 0.128 s.
        let (load, error) = jumps.load(100e6, 0.096).unwrap();
        assert!((load - 31.25e6).abs() < 1.0 && (error - 15.625e6).abs() < 1.0, "{load} {error}");
    }

    #[test]
    fn no_queue_takes_a_second_in_a_moment() {
        assert!(JUMP.may_be_burst());
        assert!(!Jump { by: 1.0, ..JUMP }.may_be_burst());
        assert!(!Jump { by: -0.01, ..JUMP }.may_be_burst());
    }
}
