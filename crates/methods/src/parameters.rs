//! What every declared parameter of every method owes its caller.

use narrows_probe::registry::{Method, ParamError, Parameter, Range, RawParams};
use narrows_units::{BitRate, Octets};

use crate::METHODS;

/// Whether the method can begin with this.
fn begins(method: &dyn Method, name: &str, value: &str) -> Result<(), ParamError> {
    let raw: RawParams = [(name, value)].into_iter().collect();
    method.begin(&raw).map(drop)
}

/// Every parameter of every method.
fn declared() -> impl Iterator<Item = (&'static dyn Method, &'static Parameter)> {
    let all = |method: &'static dyn Method| method.info().parameters.iter().map(move |parameter| (method, parameter));
    METHODS.iter().copied().flat_map(all)
}

/// A value given as it is declared is the default itself: nothing else changes, and nothing is
/// refused.
#[test]
fn every_declared_default_reads_back() {
    for (method, parameter) in declared() {
        let name = method.info().name;
        assert!(!parameter.summary.is_empty() && !parameter.source.is_empty(), "{name} {}", parameter.name);
        let usual = method.begin(&RawParams::new()).map(drop);
        assert_eq!(usual, Ok(()), "{name}");
        let first = method.info().parameters[0].name;
        for (word, value) in parameter.presets {
            let raw: RawParams = [(first, *word), (parameter.name, *value)].into_iter().collect();
            assert_eq!(method.begin(&raw).map(drop), Ok(()), "{name} {raw:?}");
        }
        let unset = parameter.unset.map_or(Ok(()), |unset| begins(method, parameter.name, unset));
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
    } else if let Ok(low) = narrows_units::parse_duration(low) {
        values.push(narrows_units::format_duration(low / 2));
        values
            .extend(high.map(|high| narrows_units::format_duration(narrows_units::parse_duration(high).unwrap() * 2)));
    } else if low.parse::<BitRate>().is_ok() {
        values.push("0 bit/s".to_owned());
    } else {
        values.push(format!("{} B", low.parse::<Octets>().unwrap().count().saturating_sub(1)));
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
        assert!(matches!(unknown, Err(ParamError::Unknown { .. })), "{name}: {unknown:?}");
    }
    for (method, parameter) in declared() {
        if let Range::Words(_) = parameter.range {
            let refused = begins(method, parameter.name, "no such word");
            assert!(matches!(refused, Err(ParamError::Unreadable { .. })), "{} {}", method.info().name, parameter.name);
        }
    }
}
