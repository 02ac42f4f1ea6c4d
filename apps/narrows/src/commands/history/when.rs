//! Times of the command line: a date, or how long ago. All are UTC.

use std::time::Duration;

use narrows_watch::WallTime;

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
    narrows_units::parse_rfc_3339(text).map(WallTime::from_millis)
}

/// A length of time: `5min`, `1h`, `7d`.
pub(super) fn parse_length(text: &str) -> Result<Duration, String> {
    let millis = ago(text).and_then(|millis| u64::try_from(millis).ok()).filter(|millis| *millis > 0);
    let wrong = || format!("{text:?}: write \"5min\", \"1h\" or \"7d\"");
    millis.map(Duration::from_millis).ok_or_else(wrong)
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
    narrows_units::format_rfc_3339_millis(at.millis())
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
