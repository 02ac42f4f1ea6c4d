//! Units of rates as programs print them.

/// Bit/s in one of this unit; `None` if it is no unit of rates.
///
/// A prefix is decimal, as in networking; a program whose `K` is 1024 needs a `scale` in its
/// adapter. `b` is a bit and `B` eight of them, as are "bit", "bits" and "Byte", "Bytes", "byte",
/// "bytes", "octet", "octets".
pub(super) fn bps(unit: &str) -> Option<f64> {
    let per_second = ["/s", "/sec", "/second", "ps"];
    let counted = per_second
        .iter()
        .filter_map(|suffix| unit.trim().strip_suffix(suffix))
        .min_by_key(|left| left.len())?
        .trim_end();
    let mut letters = counted.chars();
    let (factor, what) = match letters.next()? {
        'k' | 'K' => (1e3, letters.as_str()),
        'M' => (1e6, letters.as_str()),
        'G' => (1e9, letters.as_str()),
        'T' => (1e12, letters.as_str()),
        _ => (1.0, counted),
    };
    match what {
        "b" | "bit" | "bits" => Some(factor),
        "B" | "byte" | "bytes" | "Byte" | "Bytes" | "octet" | "octets" => Some(8.0 * factor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::bps;

    #[test]
    fn spellings_of_programs() {
        for (unit, expected) in [
            ("bits/sec", 1.0),
            ("Kbps", 1e3),
            ("Mb/s", 1e6),
            ("Kb/s", 1e3),
            ("Mbit/s", 1e6),
            ("Gbits/sec", 1e9),
            ("MBytes/sec", 8e6),
            ("kB/s", 8e3),
            ("b/s", 1.0),
            ("octets/s", 8.0),
            ("Kbit/s", 1e3),
        ] {
            assert!((bps(unit).unwrap() - expected).abs() < 1e-9, "{unit}");
        }
        for unit in ["", "Mbit", "s", "/s", "parsecs", "M/s", "ms", "Mibit/s", "packets/s"] {
            assert_eq!(bps(unit), None, "{unit}");
        }
    }
}
