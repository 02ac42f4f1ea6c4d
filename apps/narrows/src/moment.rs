//! A second of the calendar, in UTC, for the head of a report.

use narrows_units::{Date, format_clock, format_rfc_3339};

/// Seconds since 1970, by the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(i64);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(narrows_net::clock::wall_ns().div_euclid(1_000_000_000))
    }

    pub(crate) fn unix_seconds(self) -> i64 {
        self.0
    }

    /// RFC 3339: `2026-01-31T09:05:00Z`.
    pub(crate) fn rfc_3339(self) -> String {
        format_rfc_3339(self.0)
    }

    /// As in HTTP (RFC 9110 §5.6.7): `Sat, 31 Jan 2026 09:05:00 GMT`.
    pub(crate) fn rfc_9110(self) -> String {
        let date = Date::of_unix_seconds(self.0);
        let name = |names: &'static str, place: i64| {
            let at = usize::try_from(place * 3).unwrap_or(0);
            names.get(at..at + 3).unwrap_or_default()
        };
        let weekday = name("MonTueWedThuFriSatSun", date.weekday());
        let month = name("JanFebMarAprMayJunJulAugSepOctNovDec", date.month() - 1);
        format!("{weekday}, {:02} {month} {:04} {} GMT", date.day(), date.year(), format_clock(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -R -d @SECONDS` says the same, but for the zone.
    #[test]
    fn dates_are_those_of_http() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_769_850_300, "Sat, 31 Jan 2026 09:05:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        ] {
            assert_eq!(Moment(seconds).rfc_9110(), text);
        }
    }
}
