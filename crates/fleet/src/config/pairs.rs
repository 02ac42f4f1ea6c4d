//! Which pairs a test measures.

use std::collections::BTreeMap;
use std::fmt;

use super::Group;
use super::error::ConfigError;
use crate::keys::Name;

/// The pairs of a test, by groups or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairs {
    /// From each host of the first group to each of the second: psConfig calls it disjoint.
    Between(Name, Name),
    /// From each host of a group to each other one.
    AllOf(Name),
    /// The pairs of a group whose turn it is in the rotation mesh: other ones in each epoch.
    SampleOf(Name),
    /// These.
    Listed(Vec<(Name, Name)>),
}

impl Pairs {
    /// Reads `core to edge`, `all of core`, `sample of edge`.
    pub(super) fn read(place: &str, text: &str, groups: &BTreeMap<Name, Group>) -> Result<Self, ConfigError> {
        let group = |name: &str| {
            let known = groups.keys().find(|group| group.as_str() == name).cloned();
            known.ok_or_else(|| ConfigError::unknown(place, "group", name, groups.keys().map(Name::as_str)))
        };
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["all", "of", name] => Ok(Self::AllOf(group(name)?)),
            ["sample", "of", name] => Ok(Self::SampleOf(group(name)?)),
            [from, "to", to] => Ok(Self::Between(group(from)?, group(to)?)),
            _ => Err(ConfigError::value(place, &format!("\"{text}\" are no pairs; {HOW}"))),
        }
    }

    pub(super) fn listed(place: &str, pairs: &[[String; 2]]) -> Result<Self, ConfigError> {
        let name = |text: &str| text.parse::<Name>().map_err(|error| ConfigError::value(place, &error));
        let pairs = pairs.iter().map(|[from, to]| Ok((name(from)?, name(to)?)));
        pairs.collect::<Result<_, _>>().map(Self::Listed)
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between(from, to) => write!(f, "{from} to {to}"),
            Self::AllOf(group) => write!(f, "all of {group}"),
            Self::SampleOf(group) => write!(f, "sample of {group}"),
            Self::Listed(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(from, to)| format!("{from} to {to}")).collect();
                f.write_str(&pairs.join(", "))
            }
        }
    }
}

const HOW: &str =
    "write \"A to B\", \"all of A\" or \"sample of A\" with the names of groups, or a list of pairs of hosts";
