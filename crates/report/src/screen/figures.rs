//! Figures as the screens have them: three digits, and the unit of the value for both ends.

use std::time::Duration;

use narrows_probe::BoundKind;
use narrows_units::{BitRate, Metric, Octets, Unit, format_duration};

use crate::answer::rounded;

/// `0:06`.
pub(super) fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

pub(super) fn rate(bps: u64) -> String {
    BitRate::from_bps(rounded(bps, 3)).to_string()
}

/// `98 M`, for columns whose head has the unit.
pub(super) fn bare(bps: u64, unit: u64) -> String {
    let value = bps as f64 / unit as f64;
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

pub(super) fn octets(count: u64) -> String {
    Octets::new(rounded(count, 3)).to_string().replace("octets", "B")
}

pub(super) fn time(ns: u64) -> String {
    format_duration(Duration::from_nanos(rounded(ns, 3)))
}

/// A metric's value in its unit.
pub(super) fn value(metric: Metric, value: u64) -> String {
    match metric.unit() {
        Unit::Octet if metric == Metric::PathMtu => format!("{value} B"),
        Unit::BitPerSecond => rate(value),
        Unit::Octet => octets(value),
        Unit::Nanosecond => time(value),
        Unit::Count => value.to_string(),
    }
}

/// With what it claims.
pub(super) fn claimed(metric: Metric, verdict: BoundKind, of: u64) -> String {
    let shown = value(metric, of);
    match verdict {
        BoundKind::LowerBound => format!("≥ {shown}"),
        BoundKind::UpperBound => format!("≤ {shown}"),
        BoundKind::Estimated | BoundKind::Inconclusive => shown,
    }
}

/// Both ends, in the unit of the value: `97.5 – 97.9`.
pub(super) fn range(metric: Metric, of: u64, low: u64, high: u64, dash: &str) -> String {
    let shown = value(metric, of);
    let digits: f64 = shown.split(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(0.0);
    if digits <= 0.0 || low == high {
        return String::new();
    }
    let unit = rounded(of, 3) as f64 / digits;
    let most = high as f64 / unit;
    let decimals = if most < 9.95 { 2 } else { usize::from(most < 99.95) };
    let end = |end: u64| format!("{:.decimals$}", end as f64 / unit);
    format!("{}{dash}{}", end(low), end(high))
}

/// The largest decimal prefix that leaves at least 1, and its name.
pub(super) fn unit(bps: u64) -> (u64, &'static str) {
    let units = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
    units.into_iter().find(|(unit, _)| bps >= *unit).unwrap_or((1, "bit/s"))
}

/// `97.7 Mbit/s (97.5–97.9)`.
pub(super) fn rate_with_range((of, low, high): (u64, u64, u64), verdict: BoundKind) -> String {
    let metric = Metric::IpCapacity;
    match verdict {
        BoundKind::LowerBound => format!("at least {}", rate(of)),
        BoundKind::UpperBound => format!("at most {}", rate(of)),
        BoundKind::Estimated | BoundKind::Inconclusive => match range(metric, of, low, high, "–") {
            range if range.is_empty() => rate(of),
            range => format!("{} ({range})", rate(of)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_one_unit() {
        assert_eq!(clock(6_900_000_000), "0:06");
        assert_eq!(clock(3_725_000_000_000), "1:02:05");
        assert_eq!(
            rate_with_range((97_724_000, 97_512_000, 97_880_000), BoundKind::Estimated),
            "97.7 Mbit/s (97.5–97.9)"
        );
        assert_eq!(
            rate_with_range((97_724_000, 97_512_000, 97_880_000), BoundKind::LowerBound),
            "at least 97.7 Mbit/s"
        );
        assert_eq!(range(Metric::RoundTripTime, 10_120_000, 10_100_000, 10_140_000, " – "), "10.1 – 10.1");
        assert_eq!(
            (octets(962_300), octets(64), value(Metric::PathMtu, 1500)),
            ("962 kB".to_owned(), "64 B".to_owned(), "1500 B".to_owned())
        );
    }
}
