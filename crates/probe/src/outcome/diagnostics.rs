//! Intermediate results, by name: for people and plots. No code reads them back; what code needs is
//! in [`Details`](super::Details).

use std::borrow::Cow;
use std::collections::BTreeMap;

use narrows_units::{BitRate, Delta, Octets};
use serde::{Deserialize, Deserializer, Serialize};

/// Named intermediate results. Names end in their unit (`_bps`, `_ns`, `_octets`) where they have
/// one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Diagnostics(BTreeMap<Cow<'static, str>, Diagnostic>);

/// One intermediate result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Diagnostic {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number. Infinite and undefined ones become `null` in JSON, and undefined ones when that is
    /// read.
    Number(#[serde(deserialize_with = "number")] f64),
    /// A word.
    Text(String),
    /// A series.
    Series(#[serde(deserialize_with = "series")] Vec<f64>),
}

pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

pub(super) fn series<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

impl Diagnostics {
    /// Adds or replaces one.
    pub fn insert(&mut self, name: &'static str, value: impl Into<Diagnostic>) {
        self.insert_composed(Cow::Borrowed(name), value);
    }

    /// The same of a name that is put together.
    pub(super) fn insert_composed(&mut self, name: Cow<'static, str>, value: impl Into<Diagnostic>) {
        self.0.insert(name, value.into());
    }

    /// Adds or replaces all of others.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Takes those of these names over from others.
    pub fn adopt(&mut self, others: Self, names: &[&str]) {
        let wanted = |name: &Cow<'static, str>| names.contains(&name.as_ref());
        self.0.extend(others.0.into_iter().filter(|(name, _)| wanted(name)));
    }

    /// Lets every text be changed, as names of hosts are hidden.
    pub fn each_text(&mut self, mut change: impl FnMut(&mut String)) {
        for value in self.0.values_mut() {
            if let Diagnostic::Text(text) = value {
                change(text);
            }
        }
    }

    /// One by name, for this crate's tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn get(&self, name: &str) -> Option<&Diagnostic> {
        self.0.get(name)
    }

    /// All, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Diagnostic)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }
}

impl Diagnostic {
    /// As a number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            Self::Flag(_) | Self::Text(_) | Self::Series(_) => None,
        }
    }
}

impl From<bool> for Diagnostic {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<f64> for Diagnostic {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<u32> for Diagnostic {
    fn from(value: u32) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<u64> for Diagnostic {
    fn from(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Diagnostic {
    fn from(value: usize) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<BitRate> for Diagnostic {
    fn from(value: BitRate) -> Self {
        value.bps().into()
    }
}

impl From<Octets> for Diagnostic {
    fn from(value: Octets) -> Self {
        value.count().into()
    }
}

impl From<Delta> for Diagnostic {
    fn from(value: Delta) -> Self {
        Self::Integer(value.nanos())
    }
}

impl From<&str> for Diagnostic {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<f64>> for Diagnostic {
    fn from(value: Vec<f64>) -> Self {
        Self::Series(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_numbers_survive_json() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("slope_ns", f64::NAN);
        diagnostics.insert("rates_bps", vec![1.5, f64::INFINITY]);
        diagnostics.insert("count", 3u32);
        let text = serde_json::to_string(&diagnostics).unwrap();
        assert_eq!(text, r#"{"count":3,"rates_bps":[1.5,null],"slope_ns":null}"#);
        let read: Diagnostics = serde_json::from_str(&text).unwrap();
        assert!(read.get("slope_ns").and_then(Diagnostic::as_f64).unwrap().is_nan());
        assert_eq!(read.get("count"), Some(&Diagnostic::Integer(3)));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
