//! The file's shape, and what its texts mean.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{BitRate, Octets, parse_duration};
use serde::Deserialize;

use super::error::ConfigError;
use super::hosts::patterns;
use super::pairs::Pairs;
use super::{AccessLink, Command, Config, Group, KINDS, OwnBudget, SiteEntry, TestEntry, loads};
use crate::keys::Name;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    sites: BTreeMap<String, SiteTable>,
    groups: BTreeMap<String, GroupTable>,
    test: Vec<TestTable>,
    alert: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SiteTable {
    hosts: Vec<String>,
    access: Option<AccessTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessTable {
    down: String,
    up: String,
    budget: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a group is a list of hosts, or { label = \"KEY=VALUE\", except = [..] }")]
enum GroupTable {
    Hosts(Vec<String>),
    Label(LabelTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelTable {
    label: String,
    #[serde(default)]
    except: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestTable {
    pairs: PairsText,
    run: String,
    every: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "pairs are \"A to B\", \"all of A\", \"sample of A\" or [[\"a\", \"b\"], ..]")]
pub(super) enum PairsText {
    Words(String),
    Listed(Vec<[String; 2]>),
}

impl Config {
    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|error| ConfigError::Toml(error.to_string()))?;
        let mut config = Self::default();
        for (site, table) in file.sites {
            let place = format!("sites.{site}");
            let entry = SiteEntry {
                hosts: patterns(&format!("{place}.hosts"), &table.hosts)?,
                access: table.access.map(|access| access.read(&format!("{place}.access"))).transpose()?,
            };
            config.sites.insert(name(&place, &site)?, entry);
        }
        for (group, table) in file.groups {
            let place = format!("groups.{group}");
            config.groups.insert(name(&place, &group)?, table.read(&place)?);
        }
        for (number, table) in (1..).zip(file.test) {
            config.tests.push(table.read(&format!("test {number}"), &config.groups)?);
        }
        for table in file.alert {
            config.add_alert(table)?;
        }
        Ok(config)
    }
}

impl AccessTable {
    fn read(&self, place: &str) -> Result<AccessLink, ConfigError> {
        let rate = |text: &str| -> Result<BitRate, ConfigError> {
            let rate: BitRate = text.parse().map_err(|error| ConfigError::value(place, &error))?;
            (rate > BitRate::ZERO).then_some(rate).ok_or_else(|| ConfigError::value(place, "a link without capacity"))
        };
        let per_day = self.budget.as_deref().map(|text| per_day(place, text)).transpose()?;
        Ok(AccessLink { down: rate(&self.down)?, up: rate(&self.up)?, per_day })
    }
}

impl GroupTable {
    fn read(self, place: &str) -> Result<Group, ConfigError> {
        Ok(match self {
            Self::Hosts(hosts) => Group::Hosts(patterns(place, &hosts)?),
            Self::Label(LabelTable { label, except }) => Group::Label {
                selector: label.parse().map_err(|error| ConfigError::value(place, &error))?,
                except: patterns(&format!("{place}.except"), &except)?,
            },
        })
    }
}

impl TestTable {
    fn read(self, place: &str, groups: &BTreeMap<Name, Group>) -> Result<TestEntry, ConfigError> {
        let every = parse_duration(&self.every).map_err(|error| ConfigError::value(place, &error))?;
        if !(SHORTEST..=LONGEST).contains(&every) {
            return Err(ConfigError::value(place, "every: from 1 min to 840 h (35 days)"));
        }
        let pairs = self.pairs.read(place, groups)?;
        Ok(TestEntry { pairs, command: command(place, &self.run)?, every })
    }
}

impl PairsText {
    pub(super) fn read(self, place: &str, groups: &BTreeMap<Name, Group>) -> Result<Pairs, ConfigError> {
        match self {
            Self::Words(text) => Pairs::read(place, &text, groups),
            Self::Listed(pairs) => Pairs::listed(place, &pairs),
        }
    }
}

impl Command {
    /// Reads a command as a test of the file has it: `throughput -P 4 -t 10`.
    pub fn read(place: &str, text: &str) -> Result<Self, ConfigError> {
        command(place, text)
    }
}

fn name(place: &str, text: &str) -> Result<Name, ConfigError> {
    text.parse().map_err(|error| ConfigError::value(place, &error))
}

fn per_day(place: &str, text: &str) -> Result<Octets, ConfigError> {
    let octets = text.trim().strip_suffix("/day").map(str::parse);
    let octets = octets.ok_or_else(|| ConfigError::value(place, "a budget is like \"50 GB/day\""))?;
    octets.map_err(|error| ConfigError::value(place, &error))
}

fn command(place: &str, text: &str) -> Result<Command, ConfigError> {
    let (mut words, mut rest) = (Vec::new(), text.split_whitespace().peekable());
    while let Some(word) = rest.next() {
        words.push(word.to_owned());
        if word == OwnBudget::FLAG {
            // `--budget 100 MB, 30 s` is one value.
            let mut value = Vec::new();
            while let Some(part) = rest.next_if(|part| !part.starts_with('-')) {
                value.push(part);
            }
            words.extend((!value.is_empty()).then(|| value.join(" ")));
        }
    }
    let kind = words.first().map_or("", String::as_str);
    let Some(loads) = loads(&words) else {
        return Err(ConfigError::unknown(place, "kind of run", kind, KINDS.iter().map(|(name, _)| *name)));
    };
    OwnBudget::of(&words).map_err(|error| ConfigError::value(place, &error))?;
    Ok(Command { words, loads })
}

/// Ours: a test more often than this is `watch`'s business.
const SHORTEST: Duration = Duration::from_secs(60);
/// A plan is valid as long.
const LONGEST: Duration = Duration::from_secs(35 * 86_400);
