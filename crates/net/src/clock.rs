//! This host's clocks. Stamps of a session are nanoseconds of `CLOCK_MONOTONIC`; the kernel stamps
//! packets in `CLOCK_REALTIME`, and [`Crossing`] brings the one to the other.

use std::time::Duration;

use narrows_units::{Clock, Delta, Stamp};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now_ns() -> i64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME` in nanoseconds since 1970: for packets that must say what time it is, never to
/// measure by.
pub fn wall_ns() -> i64 {
    read_ns(ClockId::CLOCK_REALTIME)
}

/// `CLOCK_BOOTTIME` in nanoseconds: goes on while the machine sleeps.
pub fn boot_ns() -> i64 {
    read_ns(ClockId::CLOCK_BOOTTIME)
}

/// By how much [`wall_ns`] may be off, as whoever disciplines the clock told the kernel; `None`:
/// nobody does.
pub fn wall_error() -> Option<Duration> {
    crate::sys::timex::clock_error()
}

/// `CLOCK_MONOTONIC` as a stamp of the role that this host plays.
pub fn now<C: Clock>() -> Stamp<C> {
    Stamp::from_nanos(now_ns())
}

/// The CPU time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(u64::try_from(read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)).unwrap_or(0))
}

fn read_ns(clock: ClockId) -> i64 {
    // The call fails only for a clock that the kernel does not know, and these exist since
    // Linux 2.6.
    let time = clock_gettime(clock).map_or(TimeSpec::new(0, 0), |time| time);
    time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec())
}

/// Sleeps until a `CLOCK_MONOTONIC` instant; returns early only if a signal came.
pub fn sleep_until_ns(target_ns: i64) {
    let target = TimeSpec::new(target_ns.div_euclid(1_000_000_000), target_ns.rem_euclid(1_000_000_000));
    // A signal is the one failure that a valid instant has; every caller looks at the clock again.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &target);
}

/// Nanoseconds of a duration, saturating.
pub fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Where `CLOCK_REALTIME` and `CLOCK_MONOTONIC` meet.
///
/// The kernel slews both clocks alike, so their difference is one constant until somebody *steps*
/// the wall clock; one good cross-sample therefore serves a whole session, and a second one tells
/// whether a step came between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    offset_ns: i64,
    width_ns: i64,
}

impl Crossing {
    /// A step larger than this spoils stamps taken across it (ours: well above any cross-sample's
    /// error, well below what a step by a time daemon is).
    pub const STEP: Duration = Duration::from_micros(100);

    /// Reads monotonic, real, monotonic a few times and keeps the reading with the narrowest
    /// bracket.
    pub fn sample() -> Self {
        let read = || {
            let before = now_ns();
            let real = read_ns(ClockId::CLOCK_REALTIME);
            (before, real, now_ns())
        };
        let first = Self::from_reading(read());
        (0..9)
            .map(|_| Self::from_reading(read()))
            .fold(first, |best, next| if next.width_ns < best.width_ns { next } else { best })
    }

    /// From one reading: monotonic before, real, monotonic after, in nanoseconds.
    pub fn from_reading((before, real, after): (i64, i64, i64)) -> Self {
        let width_ns = after.saturating_sub(before);
        Self { offset_ns: real.saturating_sub(before.saturating_add(width_ns / 2)), width_ns }
    }

    /// A kernel stamp on the monotonic scale.
    pub fn monotonic_ns(&self, realtime_ns: i64) -> i64 {
        realtime_ns.saturating_sub(self.offset_ns)
    }

    /// Samples again, and takes the new sample if the wall clock was stepped in between; whether it
    /// was.
    pub fn follow(&mut self) -> bool {
        let later = Self::sample();
        let stepped = self.step_until(&later).is_some();
        if stepped {
            *self = later;
        }
        stepped
    }

    /// As it was before a step of the wall clock by so much.
    #[cfg(test)]
    pub(crate) fn before_step(self, by_ns: i64) -> Self {
        Self { offset_ns: self.offset_ns - by_ns, ..self }
    }

    /// How far the wall clock was stepped from this cross-sample to a later one; `None` if it was
    /// not, as far as the two can tell.
    pub fn step_until(&self, later: &Self) -> Option<Delta> {
        let moved = later.offset_ns.saturating_sub(self.offset_ns);
        let doubt = nanos(Self::STEP).saturating_add((self.width_ns.saturating_add(later.width_ns)) / 2);
        (moved.abs() > doubt).then(|| Delta::from_nanos(moved))
    }
}

/// What reading the clock costs, and what it resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockQuality {
    /// Time of one reading: the smallest of several means.
    pub read_cost: Duration,
    /// Smallest non-zero difference of two readings.
    pub resolution: Duration,
}

/// Measures the monotonic clock, in about two milliseconds.
pub fn measure() -> ClockQuality {
    const REPEATS: u32 = 7;
    const READINGS: i64 = 5_000;
    let mut cost = i64::MAX;
    let mut resolution = i64::MAX;
    for _ in 0..REPEATS {
        let begun = now_ns();
        let mut last = begun;
        for _ in 0..READINGS {
            let next = now_ns();
            if next > last {
                resolution = resolution.min(next - last);
            }
            last = next;
        }
        cost = cost.min((last - begun) / READINGS);
    }
    let duration = |value: i64| Duration::from_nanos(u64::try_from(value).unwrap_or(0));
    ClockQuality { read_cost: duration(cost), resolution: duration(resolution) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_maps_real_to_monotonic() {
        let crossing = Crossing::from_reading((1_000, 5_000_020, 1_040));
        assert_eq!(crossing.monotonic_ns(5_000_020), 1_020);
        assert_eq!(crossing.monotonic_ns(5_000_120), 1_120);
    }

    #[test]
    fn a_step_is_reported_from_a_wide_bracket() {
        let before = Crossing::from_reading((0, 1_000_000, 40));
        let same = Crossing::from_reading((9_000_000, 10_000_000, 9_000_040));
        let wide = Crossing::from_reading((9_000_000, 10_200_000, 9_400_040));
        let stepped = Crossing::from_reading((9_000_000, 10_500_000, 9_000_040));
        assert_eq!(before.step_until(&same), None);
        assert_eq!(before.step_until(&wide), None);
        assert_eq!(before.step_until(&stepped), Some(Delta::from_nanos(500_000)));
        assert_eq!(stepped.step_until(&before), Some(Delta::from_nanos(-500_000)));
    }

    #[test]
    fn a_step_is_followed() {
        let mut crossing = Crossing::sample();
        assert!(!crossing.follow());
        crossing = crossing.before_step(50_000_000);
        assert!(crossing.follow());
        assert!(!crossing.follow());
    }

    #[test]
    fn the_clock_moves_and_has_a_cost() {
        let quality = measure();
        assert!(quality.resolution > Duration::ZERO && quality.resolution < Duration::from_millis(10), "{quality:?}");
        assert!(quality.read_cost < Duration::from_millis(1), "{quality:?}");
        let target = now_ns() + 2_000_000;
        sleep_until_ns(target);
        assert!(now_ns() >= target);
    }
}
