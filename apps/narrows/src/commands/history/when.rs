//! Times of the command line: a date, or how long ago. All are UTC.

use narrows_watch::WallTime;

use crate::moment::Moment;

/// A time as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// This instant.
    At(WallTime),
    /// Milliseconds before now.
    Ago(i64),
    /// The midnight that many days before the last one.
    Midnight(i64),
}

const DAY_MS: i64 = 86_400_000;

impl When {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "now" => return Ok(Self::Ago(0)),
            "today" => return Ok(Self::Midnight(0)),
            "yesterday" => return Ok(Self::Midnight(1)),
            _ => {}
        }
        let found = instant(text).map(Self::At).or_else(|| ago(text).map(Self::Ago));
        found.ok_or_else(|| {
            format!("{text:?}: write \"2026-11-22 19:42\", \"2026-11-22\", \"24h\", \"7d\" or yesterday")
        })
    }

    /// The instant that is meant now.
    pub(super) fn at(self, now: WallTime) -> WallTime {
        match self {
            Self::At(instant) => instant,
            Self::Ago(millis) => WallTime::from_millis(now.millis().saturating_sub(millis)),
            Self::Midnight(days) => WallTime::from_millis((now.millis().div_euclid(DAY_MS) - days) * DAY_MS),
        }
    }
}

/// `2026-11-22`, `2026-11-22 19:42`, `2026-11-22T19:42:07Z`.
pub(super) fn instant(text: &str) -> Option<WallTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let time = if time.len() == 5 { format!("{time}:00") } else { time.to_owned() };
    let numbers = |text: &str, mark: char| -> Option<[i64; 3]> {
        let all = text.split(mark).map(|part| part.parse().ok()).collect::<Option<Vec<i64>>>()?;
        all.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(&time, ':')?);
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    // What the calendar does not have comes out as another date.
    let is_real = Moment::from_unix_seconds(seconds).rfc_3339() == format!("{date}T{time}Z");
    is_real.then(|| WallTime::from_millis(seconds * 1_000))
}

/// Days since 1970, counted in years that begin in March, so that a leap day is the last of its
/// year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year.clamp(0, 9_999) - i64::from(month <= 2);
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let march_based = (month.clamp(1, 12) + 9) % 12;
    let of_year = (153 * march_based + 2) / 5 + day.clamp(1, 31) - 1;
    cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468
}

fn ago(text: &str) -> Option<i64> {
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.trim().parse::<u16>().ok()) {
        return Some(i64::from(days) * DAY_MS);
    }
    let time = narrows_units::parse_duration(text).ok()?;
    i64::try_from(time.as_millis()).ok()
}

/// As documents have it: RFC 3339 with milliseconds.
pub(super) fn rfc_3339(at: WallTime) -> String {
    let seconds = Moment::from_unix_seconds(at.millis().div_euclid(1_000)).rfc_3339();
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), at.millis().rem_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 23 November 2026, 11:30:00 UTC: `date -u -d @1795433400`.
    const NOW: i64 = 1_795_433_400_000;

    #[test]
    fn dates_and_ages_are_instants() {
        let at = |text| rfc_3339(When::parse(text).unwrap().at(WallTime::from_millis(NOW)));
        for (text, instant) in [
            ("now", "2026-11-23T11:30:00.000Z"),
            ("today", "2026-11-23T00:00:00.000Z"),
            ("yesterday", "2026-11-22T00:00:00.000Z"),
            ("2024-02-29", "2024-02-29T00:00:00.000Z"),
            ("2026-11-22 19:42", "2026-11-22T19:42:00.000Z"),
            ("1999-12-31T23:59:59Z", "1999-12-31T23:59:59.000Z"),
            ("90min", "2026-11-23T10:00:00.000Z"),
            ("24h", "2026-11-22T11:30:00.000Z"),
            ("7d", "2026-11-16T11:30:00.000Z"),
        ] {
            assert_eq!(at(text), instant, "{text}");
        }
    }

    #[test]
    fn what_the_calendar_does_not_have_is_refused() {
        for text in ["2026-02-29", "2026-13-01", "2026-11-22 24:00", "19:42", "soon", "", "2026-11-22 19:42:61", "-1h"]
        {
            assert!(When::parse(text).is_err(), "{text}");
        }
    }
}
