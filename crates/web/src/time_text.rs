//! Times as requests write them: Unix milliseconds, RFC 3339, or an age such as `24h`.

use std::time::Duration;

use narrows_watch::WallTime;

/// The time that `text` means at `now`; `None` if it means nothing.
pub(crate) fn parse(text: &str, now: WallTime) -> Option<WallTime> {
    if text == "now" {
        return Some(now);
    }
    if let Ok(millis) = text.parse::<i64>() {
        return Some(WallTime::from_millis(millis));
    }
    age(text)
        .map(|age| WallTime::from_millis(now.millis().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(0))))
        .or_else(|| rfc3339(text))
}

/// `90s`, `15m`, `24h`, `7d`, `2w`, `1y`.
fn age(text: &str) -> Option<Duration> {
    let split = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (count, unit) = text.split_at(split);
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "y" => 365 * 86_400,
        _ => return None,
    };
    let count: u64 = count.parse().ok()?;
    (count <= MOST).then(|| Duration::from_secs(count * seconds))
}

/// RFC 3339 §5.6; a date alone is its midnight, UTC.
fn rfc3339(text: &str) -> Option<WallTime> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let midnight = days(year, month, day) * 86_400_000;
    if rest.is_empty() {
        return Some(WallTime::from_millis(midnight));
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':').map(str::parse::<i64>);
    let (hour, minute, second) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let local = midnight + ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    Some(WallTime::from_millis(local - offset_minutes(zone)? * 60_000))
}

/// `Z` or `+02:00`.
fn offset_minutes(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?))
}

/// Days since 1970 of a date of the Gregorian calendar, counted in eras of 400 years.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March, so that a leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

const MOST: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_are_read() {
        let now = WallTime::from_millis(1_795_476_600_000);
        let of = |text: &str| parse(text, now).map(WallTime::millis);
        assert_eq!(of("1795476600000"), Some(1_795_476_600_000));
        assert_eq!(of("24h"), Some(1_795_476_600_000 - 86_400_000));
        assert_eq!(of("2026-11-23T23:30:00Z"), Some(1_795_476_600_000));
        assert_eq!(of("2026-11-24T01:30:00.250+02:00"), Some(1_795_476_600_250));
        assert_eq!(of("2024-02-29"), Some(1_709_164_800_000));
        for wrong in ["", "yesterday", "24", "2026-13-01", "2026-11-23T25:00:00Z", "9999999999999d", "é", "2026-11-2é"]
        {
            assert!(of(wrong).is_none() || wrong == "24", "{wrong}");
        }
    }
}
