//! Hours of the week: `Mon-Fri 09:00-12:00`, `Sat,Sun 00:00-24:00`, `02:00-05:00`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::{Local, WEEKDAYS};

/// A span of the clock on some days of the week. One that ends before it begins passes midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeeklyHours {
    days: [bool; 7],
    begins_s: u32,
    ends_s: u32,
}

/// Text that names no hours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" names no hours; write them as \"Mon-Fri 09:00-12:00\" or \"22:00-06:00\"")]
pub struct HoursError(String);

impl WeeklyHours {
    /// Whether `local` lies within. The part after midnight belongs to the day on which it began.
    pub fn covers(&self, local: Local) -> bool {
        let today = usize::from(local.weekday());
        let second = local.second;
        if self.begins_s < self.ends_s {
            return self.days[today] && (self.begins_s..self.ends_s).contains(&second);
        }
        (self.days[today] && second >= self.begins_s) || (self.days[(today + 6) % 7] && second < self.ends_s)
    }

    /// Seconds of a week within: for forecasts.
    pub fn seconds_per_week(&self) -> u32 {
        let length = (self.ends_s + 86_400 - self.begins_s - 1) % 86_400 + 1;
        self.days.iter().map(|on| if *on { length } else { 0 }).sum()
    }
}

impl FromStr for WeeklyHours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (days, span) = match text.trim().rsplit_once(' ') {
                Some((days, span)) => (weekdays(days)?, span),
                None => ([true; 7], text.trim()),
            };
            let (begins, ends) = span.split_once('-')?;
            let hours = Self { days, begins_s: clock(begins)?, ends_s: clock(ends)? };
            (hours.begins_s < 86_400 && hours.begins_s != hours.ends_s && hours.ends_s > 0).then_some(hours)
        };
        parse().ok_or_else(|| HoursError(text.to_owned()))
    }
}

fn weekdays(text: &str) -> Option<[bool; 7]> {
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (mut day, last) = (weekday(first)?, weekday(last)?);
        days[day] = true;
        while day != last {
            day = (day + 1) % 7;
            days[day] = true;
        }
    }
    Some(days)
}

fn weekday(text: &str) -> Option<usize> {
    WEEKDAYS.iter().position(|name| name.eq_ignore_ascii_case(text.trim()))
}

fn clock(text: &str) -> Option<u32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    (minute < 60 && hour * 60 + minute <= 1440).then_some((hour * 60 + minute) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Day 4 is a Monday.
    const fn at(weekday: i64, hour: u32) -> Local {
        Local { day: 4 + weekday, second: hour * 3600 }
    }

    #[test]
    fn working_hours() {
        let hours: WeeklyHours = "Mon-Fri 09:00-12:00".parse().unwrap();
        assert!(hours.covers(at(0, 9)) && hours.covers(at(4, 11)));
        assert!(!hours.covers(at(0, 12)) && !hours.covers(at(5, 10)));
        assert_eq!(hours.seconds_per_week(), 15 * 3600);
    }

    #[test]
    fn a_night_passes_midnight_and_a_week_its_end() {
        let hours: WeeklyHours = "Sat-Sun,Wed 22:00-06:00".parse().unwrap();
        assert!(hours.covers(at(6, 23)) && hours.covers(at(0, 5)) && hours.covers(at(3, 1)));
        assert!(!hours.covers(at(0, 23)) && !hours.covers(at(2, 1)));
        assert_eq!("00:00-24:00".parse::<WeeklyHours>().unwrap().seconds_per_week(), 7 * 86_400);
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["", "9-12", "Mon", "Mun 09:00-10:00", "09:00-25:00", "10:00-10:00", "09:60-10:00"] {
            assert!(text.parse::<WeeklyHours>().is_err(), "{text}");
        }
    }
}
