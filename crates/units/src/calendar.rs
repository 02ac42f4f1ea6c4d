//! Instants as text: RFC 3339, and the Gregorian calendar behind it. All of it is UTC.

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    /// The day of an instant, in seconds since 1970.
    pub const fn of_unix_seconds(seconds: i64) -> Self {
        // Years that begin in March have their leap day last.
        let days = seconds.div_euclid(SECONDS_OF_DAY) + DAYS_BEFORE_1970;
        let (cycle, of_cycle) = (days.div_euclid(DAYS_OF_CYCLE), days.rem_euclid(DAYS_OF_CYCLE));
        let of_years = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * of_years + of_years / 4 - of_years / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = cycle * 400 + of_years + (month <= 2) as i64;
        Self { year, month, day: of_year - (153 * from_march + 2) / 5 + 1 }
    }

    /// A day of the years 0 to 9999; `None` if the calendar does not have it.
    pub fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let date = Self { year, month, day };
        let is_near = (0..=9_999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        (is_near && Self::of_unix_seconds(date.days_since_1970() * SECONDS_OF_DAY) == date).then_some(date)
    }

    /// The year.
    pub const fn year(self) -> i64 {
        self.year
    }

    /// The month, from 1.
    pub const fn month(self) -> i64 {
        self.month
    }

    /// The day of the month, from 1.
    pub const fn day(self) -> i64 {
        self.day
    }

    /// The day of the week, from Monday = 0.
    pub const fn weekday(self) -> i64 {
        // 1 January 1970 was a Thursday.
        (self.days_since_1970() + 3).rem_euclid(7)
    }

    const fn days_since_1970(self) -> i64 {
        let year = self.year - (self.month <= 2) as i64;
        let of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
        cycle * DAYS_OF_CYCLE + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - DAYS_BEFORE_1970
    }
}

/// Whole weeks since 1970 at an instant of milliseconds since then; none before it.
pub fn weeks_since_1970(millis: i64) -> u32 {
    u32::try_from(millis.max(0) / (7 * 1_000 * SECONDS_OF_DAY)).unwrap_or(u32::MAX)
}

/// The clock of an instant, in seconds since 1970: `09:05:00`.
pub fn format_clock(seconds: i64) -> String {
    let second = seconds.rem_euclid(SECONDS_OF_DAY);
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

/// An instant of seconds since 1970: `2026-01-31T09:05:00Z`.
pub fn format_rfc_3339(seconds: i64) -> String {
    format!("{}T{}Z", date(seconds), format_clock(seconds))
}

/// An instant of milliseconds since 1970: `2026-01-31T09:05:00.007Z`.
pub fn format_rfc_3339_millis(millis: i64) -> String {
    let (seconds, rest) = (millis.div_euclid(1_000), millis.rem_euclid(1_000));
    format!("{}T{}.{rest:03}Z", date(seconds), format_clock(seconds))
}

fn date(seconds: i64) -> String {
    let Date { year, month, day } = Date::of_unix_seconds(seconds);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Milliseconds since 1970 of an instant as RFC 3339 §5.6 writes it, or as people shorten that: a
/// date alone is its midnight, seconds may be missing, and so may the zone, which then is UTC.
pub fn parse_rfc_3339(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let midnight = Date::new(year, month, day)?.days_since_1970() * SECONDS_OF_DAY;
    if rest.is_empty() {
        return Some(midnight * 1_000);
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len()));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let clock = if clock.len() == 5 { format!("{clock}:00") } else { clock.to_owned() };
    let [hour, minute, second] = numbers(&clock, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 || !is_digits(fraction) {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = midnight + (hour * 60 + minute) * 60 + second - offset_s(zone)?;
    Some(seconds * 1_000 + millis)
}

/// `Z`, nothing, or `+02:00`.
fn offset_s(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let [hours, minutes] = numbers(zone.get(1..)?, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

/// Numbers of so many digits each.
fn numbers<const COUNT: usize>(text: &str, mark: char, digits: [usize; COUNT]) -> Option<[i64; COUNT]> {
    let parts: Vec<&str> = text.split(mark).collect();
    let fits = parts.len() == COUNT && parts.iter().zip(digits).all(|(part, digits)| part.len() == digits);
    let numbers: Vec<i64> = parts.iter().filter(|part| is_digits(part)).filter_map(|part| part.parse().ok()).collect();
    numbers.try_into().ok().filter(|_| fits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit())
}

const SECONDS_OF_DAY: i64 = 86_400;
/// Of the 400 years after which the Gregorian calendar begins again.
const DAYS_OF_CYCLE: i64 = 146_097;
/// From 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_are_whole() {
        let week = 604_800_000;
        for (millis, weeks) in
            [(-1, 0), (0, 0), (2951 * week - 1, 2950), (2951 * week, 2951), (i64::MAX, 15_250_284_452)]
        {
            assert_eq!(u64::from(weeks_since_1970(millis)), weeks.min(u64::from(u32::MAX)), "{millis}");
        }
    }

    /// `date -u -d @SECONDS` says the same.
    #[test]
    fn instants_are_those_of_the_calendar() {
        for (seconds, text, weekday) in [
            (0, "1970-01-01T00:00:00Z", 3),
            (951_782_399, "2000-02-28T23:59:59Z", 0),
            (951_782_400, "2000-02-29T00:00:00Z", 1),
            (1_769_850_300, "2026-01-31T09:05:00Z", 5),
            (1_709_251_199, "2024-02-29T23:59:59Z", 3),
            (4_107_542_400, "2100-03-01T00:00:00Z", 0),
            (-1, "1969-12-31T23:59:59Z", 2),
        ] {
            assert_eq!((format_rfc_3339(seconds).as_str(), parse_rfc_3339(text)), (text, Some(seconds * 1_000)));
            assert_eq!(Date::of_unix_seconds(seconds).weekday(), weekday, "{text}");
        }
        assert_eq!(format_rfc_3339_millis(1_769_850_300_007), "2026-01-31T09:05:00.007Z");
        assert_eq!(format_rfc_3339_millis(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_four_centuries_is_read_back() {
        for day in -146_097..146_097 {
            let date = Date::of_unix_seconds(day * SECONDS_OF_DAY);
            assert_eq!((date.days_since_1970(), Date::new(date.year, date.month, date.day)), (day, Some(date)));
        }
    }

    #[test]
    fn people_may_shorten_an_instant() {
        for (text, instant) in [
            ("2024-02-29", "2024-02-29T00:00:00.000Z"),
            ("2026-11-22 19:42", "2026-11-22T19:42:00.000Z"),
            ("2026-11-22T19:42Z", "2026-11-22T19:42:00.000Z"),
            ("2026-11-22t19:42:07z", "2026-11-22T19:42:07.000Z"),
            ("2026-11-22T19:42:07.25", "2026-11-22T19:42:07.250Z"),
            ("2026-11-22T19:42:07.123456789Z", "2026-11-22T19:42:07.123Z"),
            ("2026-11-22T00:30:00+02:00", "2026-11-21T22:30:00.000Z"),
            ("2026-11-22T00:30:00-00:30", "2026-11-22T01:00:00.000Z"),
        ] {
            assert_eq!(parse_rfc_3339(text).map(format_rfc_3339_millis).as_deref(), Some(instant), "{text}");
        }
    }

    #[test]
    fn what_the_calendar_does_not_have_is_none() {
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-1-1",
            "2026-11-22 24:00",
            "2026-11-22 19:60",
            "2026-11-22 19:42:61",
            "2026-11-22x19:42",
            "2026-11-22 19",
            "2026-11-22 19:42.",
            "2026-11-22 19:42:07.x",
            "2026-11-22 19:42+2",
            "2026-11-22 19:42+02:60",
            "+026-11-22",
            "2026-11-2é",
            "é",
            "99999-01-01",
        ] {
            assert_eq!(parse_rfc_3339(text), None, "{text}");
        }
    }
}
