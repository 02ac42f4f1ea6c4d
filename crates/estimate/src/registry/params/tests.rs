use std::time::Duration;

use units::{BitRate, Octets};

use super::*;
use crate::methods::METHODS;
use crate::registry::Method;

params! {
    /// One of each kind.
    #[derive(Debug, Clone, PartialEq)]
    struct Sample {
        /// Whose constants.
        faithful: bool = "ours" is { "ours" => false, "tool" => true } { name: "preset", source: "ours" },
        /// Packets to send.
        packets: u32 = "20" { range: Between("2", "100"), unit: "packets", source: "ours", presets: &[("tool", "50")] },
        /// Time between them.
        spacing: Duration = "10 ms" { range: Between("0 s", "1 s") },
        /// A rate.
        capacity: Option<BitRate> = "measured" { range: AtLeast("1 bit/s") },
        /// A length.
        size: Option<u16> = "path MTU" { range: Between("68", "9000"), unset: Some("0"), presets: &[("tool", "1000")] },
        /// An amount.
        most: u64 = "2 MB" from Octets => (Octets::count) { range: AtLeast("1 B") },
        /// Letters.
        word: usize = "abc" with (|text| Ok(text.len())) { range: Described("letters") },
        /// At least how many.
        least: u32 = "1" { range: Any },
    }
    check Sample::check;
}

impl Sample {
    fn check(&self) -> Result<(), ParamError> {
        if self.least <= self.packets {
            return Ok(());
        }
        Err(ParamError::OutOfRange {
            name: "least",
            value: self.least.to_string(),
            why: "no more than packets".to_owned(),
        })
    }
}

fn sample(pairs: &[(&str, &str)]) -> Result<Sample, String> {
    let raw: RawParams = pairs.iter().copied().collect();
    Sample::try_from(&raw).map_err(|error| error.to_string())
}

#[test]
fn one_declaration_gives_defaults_presets_and_refusals() {
    let usual = Sample {
        faithful: false,
        packets: 20,
        spacing: Duration::from_millis(10),
        capacity: None,
        size: None,
        most: 2_000_000,
        word: 3,
        least: 1,
    };
    assert_eq!(Sample::default(), usual);
    let tool = sample(&[("preset", "tool"), ("capacity", "10 Mbit/s"), ("word", "")]).unwrap();
    let expected = Sample {
        faithful: true,
        packets: 50,
        size: Some(1000),
        capacity: Some(BitRate::from_mbps(10)),
        word: 0,
        ..usual.clone()
    };
    assert_eq!(tool, expected);
    assert_eq!(sample(&[("preset", "tool"), ("packets", "3")]).unwrap().packets, 3);
    assert_eq!(sample(&[("preset", "tool"), ("size", "0")]).unwrap().size, None);
    for (name, value, why) in [
        ("preset", "paper", "preset = \"paper\": write ours or tool"),
        ("packets", "101", "packets = 101 is out of range: 2 to 100 packets"),
        ("packets", "many", "packets = \"many\": invalid digit found in string"),
        ("spacing", "1001 ms", "spacing = 1001 ms is out of range: 0 s to 1 s"),
        (
            "capacity",
            "0 bit/s",
            "capacity = 0 bit/s is out of range: at least 1 bit/s",
        ),
        ("size", "67", "size = 67 is out of range: 68 to 9000"),
        ("most", "0 B", "most = 0 B is out of range: at least 1 B"),
        ("least", "21", "least = 21 is out of range: no more than packets"),
    ] {
        assert_eq!(sample(&[(name, value)]), Err(why.to_owned()));
    }
}

#[test]
fn the_table_has_a_row_for_each() {
    let text = table(Sample::PARAMETERS);
    assert_eq!(text.lines().count(), 2 + Sample::PARAMETERS.len(), "{text}");
    assert!(text.contains("| 20 (tool: 50) "), "{text}");
    assert!(text.contains("| 68 to 9000; 0: path MTU "), "{text}");
    assert!(text.contains("| Packets to send "), "{text}");
}

/// Whether the method can begin with this.
fn begins(method: &dyn Method, name: &str, value: &str) -> Result<(), ParamError> {
    let raw: RawParams = [(name, value)].into_iter().collect();
    method.begin(&raw).map(drop)
}

/// Every parameter of every method.
fn declared() -> impl Iterator<Item = (&'static dyn Method, &'static Parameter)> {
    let all = |method: &'static dyn Method| {
        method
            .info()
            .parameters
            .iter()
            .map(move |parameter| (method, parameter))
    };
    METHODS.iter().copied().flat_map(all)
}

/// A value given as it is declared is the default itself: nothing else changes, and nothing is refused.
#[test]
fn every_declared_default_reads_back() {
    for (method, parameter) in declared() {
        let name = method.info().name;
        assert!(
            !parameter.summary.is_empty() && !parameter.source.is_empty(),
            "{name} {}",
            parameter.name
        );
        let usual = method.begin(&RawParams::new()).map(drop);
        assert_eq!(usual, Ok(()), "{name}");
        let first = method.info().parameters[0].name;
        for (word, value) in parameter.presets {
            let raw: RawParams = [(first, *word), (parameter.name, *value)].into_iter().collect();
            assert_eq!(method.begin(&raw).map(drop), Ok(()), "{name} {raw:?}");
        }
        let unset = parameter
            .unset
            .map_or(Ok(()), |unset| begins(method, parameter.name, unset));
        assert_eq!(unset, Ok(()), "{name} {}", parameter.name);
        if let Range::Words(words) = parameter.range {
            assert!(words.contains(&parameter.default), "{name} {}", parameter.name);
        }
    }
}

/// Values just outside a range, as they are typed.
fn outside(range: Range) -> Vec<String> {
    let (low, high) = match range {
        Range::Between(low, high) | Range::Above(low, high) => (low, Some(high)),
        Range::AtLeast(low) => (low, None),
        Range::Any | Range::Words(_) | Range::Described(_) => return Vec::new(),
    };
    let mut values = Vec::new();
    if let Ok(low) = low.parse::<f64>() {
        values.push((if low >= 1.0 { low - 1.0 } else { low - 1e-6 }).to_string());
        values.extend(high.map(|high| (high.parse::<f64>().unwrap() + 1.0).to_string()));
    } else if let Ok(low) = units::parse_duration(low) {
        values.push(units::format_duration(low / 2));
        values.extend(high.map(|high| units::format_duration(units::parse_duration(high).unwrap() * 2)));
    } else if low.parse::<BitRate>().is_ok() {
        values.push("0 bit/s".to_owned());
    } else {
        values.push(format!(
            "{} B",
            low.parse::<Octets>().unwrap().count().saturating_sub(1)
        ));
        values.extend(high.map(|high| format!("{} B", high.parse::<Octets>().unwrap().count() + 1)));
    }
    let inside = |value: &String| *value == low || *value == "0 ns";
    values.retain(|value| !inside(value));
    values
}

/// Outside its range each is refused by its own name; what its type cannot hold is unreadable.
#[test]
fn every_range_is_kept() {
    let mut refused = 0;
    for (method, parameter) in declared() {
        let mut values = outside(parameter.range);
        values.retain(|value| parameter.unset != Some(value.as_str()));
        for value in &values {
            match begins(method, parameter.name, value) {
                Err(ParamError::OutOfRange { name, .. }) if name == parameter.name => refused += 1,
                Err(ParamError::Unreadable { name, .. }) if name == parameter.name => {}
                other => panic!("{} {} = {value}: {other:?}", method.info().name, parameter.name),
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn unknown_names_and_words_are_refused() {
    for method in METHODS {
        let name = method.info().name;
        let unknown = begins(*method, "no such name", "1");
        assert!(
            matches!(unknown, Err(ParamError::Unknown { .. })),
            "{name}: {unknown:?}"
        );
    }
    for (method, parameter) in declared() {
        if let Range::Words(_) = parameter.range {
            let refused = begins(method, parameter.name, "no such word");
            assert!(
                matches!(refused, Err(ParamError::Unreadable { .. })),
                "{} {}",
                method.info().name,
                parameter.name
            );
        }
    }
}
