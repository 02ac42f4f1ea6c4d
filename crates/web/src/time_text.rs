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
        .or_else(|| narrows_units::parse_rfc_3339(text).map(WallTime::from_millis))
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
