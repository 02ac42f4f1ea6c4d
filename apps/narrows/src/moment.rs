//! A second of the calendar, in UTC, for the head of a report.

/// Seconds since 1970, by the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(i64);

/// Year, month and day, from 1; weekday, from Monday = 0.
struct Date {
    year: i64,
    month: i64,
    day: i64,
    weekday: i64,
}

const SECONDS_OF_DAY: i64 = 86_400;

impl Moment {
    pub(crate) fn now() -> Self {
        Self(narrows_net::clock::wall_ns().div_euclid(1_000_000_000))
    }

    #[cfg(feature = "watch")]
    pub(crate) fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds)
    }

    pub(crate) fn unix_seconds(self) -> i64 {
        self.0
    }

    /// RFC 3339: `2026-01-31T09:05:00Z`.
    pub(crate) fn rfc_3339(self) -> String {
        let Date { year, month, day, .. } = self.date();
        format!("{year:04}-{month:02}-{day:02}T{}Z", self.time())
    }

    /// As in HTTP (RFC 9110 §5.6.7): `Sat, 31 Jan 2026 09:05:00 GMT`.
    pub(crate) fn rfc_9110(self) -> String {
        let date = self.date();
        let name = |names: &'static str, place: i64| {
            let at = usize::try_from(place * 3).unwrap_or(0);
            names.get(at..at + 3).unwrap_or_default()
        };
        let weekday = name("MonTueWedThuFriSatSun", date.weekday);
        let month = name("JanFebMarAprMayJunJulAugSepOctNovDec", date.month - 1);
        format!("{weekday}, {:02} {month} {:04} {} GMT", date.day, date.year, self.time())
    }

    fn time(self) -> String {
        let second = self.0.rem_euclid(SECONDS_OF_DAY);
        format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
    }

    /// Counts in years that begin in March, so that a leap day is the last of its year, and in the
    /// Gregorian cycle of 400 years.
    fn date(self) -> Date {
        const DAYS_OF_CYCLE: i64 = 146_097;
        /// From 1 March of the year 0 to 1 January 1970.
        const DAYS_BEFORE: i64 = 719_468;
        let since_1970 = self.0.div_euclid(SECONDS_OF_DAY);
        let days = since_1970 + DAYS_BEFORE;
        let (cycle, of_cycle) = (days.div_euclid(DAYS_OF_CYCLE), days.rem_euclid(DAYS_OF_CYCLE));
        let of_years = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * of_years + of_years / 4 - of_years / 100);
        let march_based = (5 * of_year + 2) / 153;
        let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
        Date {
            year: cycle * 400 + of_years + i64::from(month <= 2),
            month,
            day: of_year - (153 * march_based + 2) / 5 + 1,
            // 1 January 1970 was a Thursday.
            weekday: (since_1970 + 3).rem_euclid(7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -d @SECONDS` says the same.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, rfc_3339, rfc_9110) in [
            (0, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_399, "2000-02-28T23:59:59Z", "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "2000-02-29T00:00:00Z", "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_769_850_300, "2026-01-31T09:05:00Z", "Sat, 31 Jan 2026 09:05:00 GMT"),
            (1_709_251_199, "2024-02-29T23:59:59Z", "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, "2100-03-01T00:00:00Z", "Mon, 01 Mar 2100 00:00:00 GMT"),
            (-1, "1969-12-31T23:59:59Z", "Wed, 31 Dec 1969 23:59:59 GMT"),
        ] {
            let moment = Moment(seconds);
            assert_eq!((&*moment.rfc_3339(), &*moment.rfc_9110()), (rfc_3339, rfc_9110));
        }
    }
}
