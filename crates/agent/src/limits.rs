//! What the owner of a host allows its fleet: `/etc/narrows/agent.toml`. The owner has the last
//! word, also over what the hub signs.
//!
//! ```toml
//! highest_rate = "100 Mbit/s"
//! octets_per_day = "10 GB"
//! targets = ["ams-*", "fra-1"]
//! kinds = ["rtt", "available", "throughput"]
//! ```

use std::path::Path;

use narrows_fleet::keys::Name;
use narrows_units::{BitRate, Octets};
use serde::Deserialize;

use crate::error::{Error, Result};

/// What is allowed; what is not named has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// No run sends faster.
    pub highest_rate: Option<BitRate>,
    /// IP octets of all runs in a day of UTC.
    pub octets_per_day: Option<Octets>,
    targets: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    highest_rate: Option<String>,
    octets_per_day: Option<String>,
    targets: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
}

impl Limits {
    /// Reads a file's text.
    pub fn read(text: &str) -> std::result::Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let rate = |text: String| text.parse::<BitRate>().map_err(|error| format!("highest_rate: {error}"));
        let octets = |text: String| text.parse::<Octets>().map_err(|error| format!("octets_per_day: {error}"));
        if let Some(target) = file.targets.iter().flatten().find(|target| target.matches('*').count() > 1) {
            return Err(format!("targets: \"{target}\": a pattern has one star"));
        }
        Ok(Self {
            highest_rate: file.highest_rate.map(rate).transpose()?,
            octets_per_day: file.octets_per_day.map(octets).transpose()?,
            targets: file.targets,
            kinds: file.kinds,
        })
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, error))?;
        Self::read(&text).map_err(|why| Error::file(path, why))
    }

    /// Whether this agent may be measured towards.
    pub(crate) fn target(&self, name: &Name) -> bool {
        self.targets.as_ref().is_none_or(|all| all.iter().any(|pattern| matches(pattern, name.as_str())))
    }

    /// Whether runs of this kind may run.
    pub(crate) fn kind(&self, kind: &str) -> bool {
        self.kinds.as_ref().is_none_or(|all| all.iter().any(|one| one == kind))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_names_what_is_allowed() {
        let text = "highest_rate = \"100 Mbit/s\"\noctets_per_day = \"10 GB\"\ntargets = [\"ams-*\", \"b\"]\nkinds = [\"rtt\"]";
        let limits = Limits::read(text).unwrap();
        assert_eq!(limits.highest_rate, Some(BitRate::from_mbps(100)));
        assert_eq!(limits.octets_per_day.map(Octets::count), Some(10_000_000_000));
        let may = |name: &str| limits.target(&name.parse().unwrap());
        assert_eq!(["ams-1", "ams-", "ams", "b", "bb"].map(may), [true, true, false, true, false]);
        assert!(limits.kind("rtt") && !limits.kind("throughput"));
        let all = Limits::default();
        assert!(all.kind("throughput") && all.target(&"x".parse().unwrap()));
        for wrong in ["rate = 1", "highest_rate = \"fast\"", "targets = [\"a*b*\"]", "kinds = \"rtt\""] {
            assert!(Limits::read(wrong).is_err(), "{wrong}");
        }
    }
}
