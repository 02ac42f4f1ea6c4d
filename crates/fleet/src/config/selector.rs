//! Agents by their labels: `role=edge, region!=eu, paid`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Requirements that an agent's labels must all meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Is(String, String),
    IsNot(String, String),
    Has(String),
}

/// Text that selects nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" selects nothing; write \"KEY=VALUE\", \"KEY!=VALUE\" or \"KEY\", with commas between")]
pub struct SelectorError(String);

impl Selector {
    /// Whether the labels meet all requirements. A label that is missing is not equal to any value.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Is(key, value) => labels.get(key) == Some(value),
            Requirement::IsNot(key, value) => labels.get(key) != Some(value),
            Requirement::Has(key) => labels.contains_key(key),
        })
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let word = |part: &str| {
            let part = part.trim();
            let fits = |letter: char| letter.is_alphanumeric() || "-_./".contains(letter);
            (!part.is_empty() && part.chars().all(fits)).then(|| part.to_owned())
        };
        let requirement = |part: &str| match part.split_once('=') {
            Some((key, value)) => match key.strip_suffix('!') {
                Some(key) => Some(Requirement::IsNot(word(key)?, word(value)?)),
                None => Some(Requirement::Is(word(key)?, word(value)?)),
            },
            None => word(part).map(Requirement::Has),
        };
        let all: Option<Vec<_>> = text.split(',').map(requirement).collect();
        all.map(Self).ok_or_else(|| SelectorError(text.to_owned()))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|requirement| match requirement {
                Requirement::Is(key, value) => format!("{key}={value}"),
                Requirement::IsNot(key, value) => format!("{key}!={value}"),
                Requirement::Has(key) => key.clone(),
            })
            .collect();
        f.pad(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requirements_are_met() {
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let selector: Selector = "role = edge,region!=eu, paid".parse().unwrap();
        assert_eq!(selector.to_string(), "role=edge, region!=eu, paid");
        assert!(selector.matches(&labels(&[("role", "edge"), ("paid", "")])));
        assert!(selector.matches(&labels(&[("role", "edge"), ("paid", "x"), ("region", "us")])));
        for bad in [
            &[("role", "edge")][..],
            &[("role", "core"), ("paid", "")],
            &[("role", "edge"), ("paid", ""), ("region", "eu")],
        ] {
            assert!(!selector.matches(&labels(bad)), "{bad:?}");
        }
        for nonsense in ["", "=", "a=", "=b", "a,,b", "a b", "a==b"] {
            assert!(nonsense.parse::<Selector>().is_err(), "{nonsense}");
        }
    }
}
