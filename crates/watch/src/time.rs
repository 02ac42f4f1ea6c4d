//! The two clocks of a long run, and the time zone of the people who read it.
//!
//! The schedule runs on [`BootTime`], which neither a step of the clock nor sleep disturbs. Results
//! carry [`WallTime`]. Only quiet hours, days and seasons need the local time, which a [`Zone`]
//! derives from a table that the caller supplies: this crate reads no file.

use std::time::Duration;

use narrows_units::nanos;
use serde::{Deserialize, Serialize};

/// Milliseconds since the machine started, sleep included (`CLOCK_BOOTTIME`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct BootTime(u64);

/// Milliseconds of Unix time, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct WallTime(i64);

/// The wall clock was set. What was remembered by the old time is told by the new one from then on:
/// "ten minutes ago" stays ten minutes ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// What the clock would have shown.
    pub from: WallTime,
    /// What it shows.
    pub to: WallTime,
}

/// One instant on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moment {
    /// For intervals and deadlines.
    pub boot: BootTime,
    /// For people, days and seasons.
    pub wall: WallTime,
}

impl ClockStep {
    /// An instant of before the step, by the clock as it goes now.
    #[must_use]
    pub const fn moved(self, at: WallTime) -> WallTime {
        WallTime(at.0.saturating_add(self.to.0.saturating_sub(self.from.0)))
    }

    /// Moves instants where they stand.
    pub fn shift<'a>(self, times: impl IntoIterator<Item = &'a mut WallTime>) {
        times.into_iter().for_each(|at| *at = self.moved(*at));
    }
}

impl BootTime {
    /// From milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the machine started.
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// This instant plus `time`, rounded up to a millisecond.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time).div_ceil(1_000_000)))
    }

    /// This instant less `time`, not before the machine started.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(time) / 1_000_000))
    }

    /// The time since `earlier`; zero if `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl WallTime {
    /// From Unix milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Unix milliseconds.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This instant plus `time`.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(nanos(time) / 1_000_000))
    }

    /// This instant less `time`.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(nanos(time) / 1_000_000))
    }

    /// The time since `earlier`; zero if `earlier` is the later one.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Offsets from UTC over time: what a time zone file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    first_offset_s: i32,
    changes: Vec<(WallTime, i32)>,
}

/// A local date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Local {
    /// Days since 1 January 1970 on the local calendar.
    pub day: i64,
    /// Seconds since local midnight.
    pub second: u32,
}

impl Zone {
    /// One offset for ever.
    pub const fn fixed(offset_s: i32) -> Self {
        Self { first_offset_s: offset_s, changes: Vec::new() }
    }

    /// `first_offset_s` until the first of `changes`; from each of them on, its offset in seconds.
    pub fn with_changes(first_offset_s: i32, mut changes: Vec<(WallTime, i32)>) -> Self {
        changes.sort_by_key(|(at, _)| *at);
        Self { first_offset_s, changes }
    }

    /// The local time at `wall`.
    pub fn local(&self, wall: WallTime) -> Local {
        let later = self.changes.partition_point(|(at, _)| *at <= wall);
        let offset = later.checked_sub(1).map_or(self.first_offset_s, |last| self.changes[last].1);
        let seconds = wall.millis().div_euclid(1000) + i64::from(offset);
        let second = u32::try_from(seconds.rem_euclid(DAY_S)).unwrap_or(0);
        Local { day: seconds.div_euclid(DAY_S), second }
    }
}

impl Local {
    /// So many seconds before, by the same offset.
    #[must_use]
    pub fn earlier_by(self, seconds: i64) -> Self {
        let all = self.day * DAY_S + i64::from(self.second) - seconds;
        Self { day: all.div_euclid(DAY_S), second: u32::try_from(all.rem_euclid(DAY_S)).unwrap_or(0) }
    }

    /// Monday is 0.
    pub fn weekday(self) -> u8 {
        // 1 January 1970 was a Thursday.
        u8::try_from((self.day + 3).rem_euclid(7)).unwrap_or(0)
    }

    /// Hours since 1 January 1970 on the local calendar.
    pub fn hour(self) -> i64 {
        self.day * 24 + i64::from(self.second / 3600)
    }

    /// 0 is Monday 00:00 to 01:00, 167 is Sunday 23:00 to 24:00.
    pub fn hour_of_week(self) -> usize {
        usize::from(self.weekday()) * 24 + (self.second / 3600) as usize
    }

    /// `Tue 20:00`, rounded down to the minute.
    pub fn clock(self) -> String {
        let (hour, minute) = (self.second / 3600, self.second / 60 % 60);
        format!("{} {hour:02}:{minute:02}", WEEKDAYS[usize::from(self.weekday())])
    }
}

/// Three letters each, Monday first.
pub(crate) const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const DAY_S: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_hours_are_local() {
        let zone = Zone::fixed(3600);
        // Monday 23 November 2026, 23:30 UTC.
        let local = zone.local(WallTime::from_millis(1_795_476_600_000));
        assert_eq!((local.weekday(), local.second), (1, 1800));
        assert_eq!(local.clock(), "Tue 00:30");
        assert_eq!(local.hour_of_week(), 24);
    }

    #[test]
    fn a_step_of_the_clock_keeps_what_lies_between() {
        let at = WallTime::from_millis;
        for (from, to) in [(10_000, 3_610_000), (3_610_000, 10_000)] {
            let step = ClockStep { from: at(from), to: at(to) };
            let mut times = [at(from - 4000), at(from)];
            step.shift(&mut times);
            assert_eq!(times, [at(to - 4000), at(to)]);
        }
        let most = ClockStep { from: at(i64::MIN), to: at(i64::MAX) };
        assert_eq!(most.moved(at(7)), at(i64::MAX), "nonsense from outside is no overflow");
    }

    #[test]
    fn summer_time_begins_where_the_table_says() {
        let spring = WallTime::from_millis(1_774_746_000_000);
        let zone = Zone::with_changes(3600, vec![(spring, 7200)]);
        let before = zone.local(WallTime::from_millis(spring.millis() - 1));
        assert_eq!(before.clock(), "Sun 01:59");
        assert_eq!(zone.local(spring).clock(), "Sun 03:00");
    }

    #[test]
    fn times_before_the_origin_have_a_day() {
        let local = Zone::fixed(0).local(WallTime::from_millis(-1));
        assert_eq!((local.day, local.second), (-1, 86_399));
    }
}
