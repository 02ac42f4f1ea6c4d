//! Intermediate results, by name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use units::{BitRate, Delta};

/// Named intermediate results. Names end in their unit (`_bps`, `_ns`, `_octets`) where they have one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Evidence(BTreeMap<Cow<'static, str>, EvidenceValue>);

/// One intermediate result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EvidenceValue {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number. Infinite and undefined ones become `null` in JSON, and undefined ones when that is read.
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

impl Evidence {
    /// Adds or replaces one.
    pub fn insert(&mut self, name: &'static str, value: impl Into<EvidenceValue>) {
        self.0.insert(Cow::Borrowed(name), value.into());
    }

    /// One by name.
    pub fn get(&self, name: &str) -> Option<&EvidenceValue> {
        self.0.get(name)
    }

    /// All, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &EvidenceValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }
}

impl EvidenceValue {
    /// As a number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            Self::Flag(_) | Self::Text(_) | Self::Series(_) => None,
        }
    }
}

impl From<bool> for EvidenceValue {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<f64> for EvidenceValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<u32> for EvidenceValue {
    fn from(value: u32) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<u64> for EvidenceValue {
    fn from(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for EvidenceValue {
    fn from(value: usize) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<BitRate> for EvidenceValue {
    fn from(value: BitRate) -> Self {
        value.bps().into()
    }
}

impl From<Delta> for EvidenceValue {
    fn from(value: Delta) -> Self {
        Self::Integer(value.nanos())
    }
}

impl From<&str> for EvidenceValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<f64>> for EvidenceValue {
    fn from(value: Vec<f64>) -> Self {
        Self::Series(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_numbers_survive_json() {
        let mut evidence = Evidence::default();
        evidence.insert("slope_ns", f64::NAN);
        evidence.insert("rates_bps", vec![1.5, f64::INFINITY]);
        evidence.insert("count", 3u32);
        let text = serde_json::to_string(&evidence).unwrap();
        assert_eq!(text, r#"{"count":3,"rates_bps":[1.5,null],"slope_ns":null}"#);
        let read: Evidence = serde_json::from_str(&text).unwrap();
        assert!(read.get("slope_ns").and_then(EvidenceValue::as_f64).unwrap().is_nan());
        assert_eq!(read.get("count"), Some(&EvidenceValue::Integer(3)));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
