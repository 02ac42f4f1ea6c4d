//! Agents in their sites and groups, and the pairs of every test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::alerts::PathRule;
use super::error::ConfigError;
use super::hosts::Pattern;
use super::pairs::Pairs;
use super::{AccessLink, Agent, Command, Config, Group};
use crate::keys::Name;
use crate::mesh::Mesh;

/// A fleet as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// The sites, those without an agent too.
    pub sites: BTreeMap<Name, Site>,
    /// The members of each group.
    pub groups: BTreeMap<Name, BTreeSet<Name>>,
    /// The tests, in the file's order.
    pub tests: Vec<Test>,
    /// The alerts, in the file's order.
    pub alerts: Vec<PathRule>,
    site_of: BTreeMap<Name, Name>,
}

/// A site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its hosts.
    pub hosts: BTreeSet<Name>,
    /// The link that they share, if it is declared.
    pub access: Option<AccessLink>,
}

/// A test with its pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Source and target of each run, sorted, each once.
    pub pairs: Vec<(Name, Name)>,
    /// What runs.
    pub command: Command,
    /// How often each pair has its turn.
    pub every: Duration,
}

impl Fleet {
    /// The site of a host.
    pub fn site_of(&self, host: &Name) -> Option<&Name> {
        self.site_of.get(host)
    }
}

impl Config {
    /// What the file means for these agents. `seed` and `epoch` are the plan's: samples follow
    /// them.
    pub fn resolve(&self, agents: &[Agent], seed: u64, epoch: u64) -> Result<Fleet, ConfigError> {
        let (sites, groups, site_of) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let known = &Known::new(agents);
        let mut fleet = Fleet { sites, groups, tests: Vec::new(), alerts: Vec::new(), site_of };
        for (site, entry) in &self.sites {
            let hosts = hosts(&format!("sites.{site}.hosts"), &entry.hosts, known)?;
            for host in &hosts {
                if let Some(first) = fleet.site_of.insert(host.clone(), site.clone()) {
                    let [host, first, second] = [host, &first, site].map(ToString::to_string);
                    return Err(ConfigError::TwoSites { host, first, second });
                }
            }
            fleet.sites.insert(site.clone(), Site { hosts, access: entry.access });
        }
        for (group, entry) in &self.groups {
            fleet.groups.insert(group.clone(), members(&format!("groups.{group}"), entry, known)?);
        }
        for (number, test) in (1..).zip(&self.tests) {
            let place = format!("test {number}");
            let pairs = pairs(&place, &test.pairs, &fleet.groups, known, (seed, epoch))?;
            fleet.tests.push(Test { pairs, command: test.command.clone(), every: test.every });
        }
        for alert in &self.alerts {
            let among = |of| pairs(&alert.place(), of, &fleet.groups, known, (seed, epoch));
            let found = alert.of.as_ref().map(among).transpose()?;
            fleet.alerts.push(alert.over(found.map(|pairs| pairs.into_iter().collect())));
        }
        Ok(fleet)
    }
}

/// The agents that there are. A large file names each of them many times.
struct Known<'a> {
    agents: &'a [Agent],
    /// Sorted.
    names: Vec<&'a Name>,
}

impl<'a> Known<'a> {
    fn new(agents: &'a [Agent]) -> Self {
        let mut names: Vec<&Name> = agents.iter().map(|agent| &agent.name).collect();
        names.sort();
        Self { agents, names }
    }

    fn check(&self, place: &str, host: &Name) -> Result<(), ConfigError> {
        let known = self.names.binary_search(&host).is_ok();
        let names = || self.agents.iter().map(|agent| agent.name.as_str());
        known.then_some(()).ok_or_else(|| ConfigError::unknown(place, "host", host.as_str(), names()))
    }

    fn matching<'b>(&'b self, pattern: &'b Pattern) -> impl Iterator<Item = &'a Name> + use<'a, 'b> {
        let first = pattern.first();
        let from = self.names.partition_point(|name| name.as_str() < first);
        let begin_so = self.names[from..].iter().take_while(move |name| name.as_str().starts_with(first));
        begin_so.copied().filter(|name| pattern.matches(name))
    }
}

fn members(place: &str, group: &Group, known: &Known<'_>) -> Result<BTreeSet<Name>, ConfigError> {
    match group {
        Group::Hosts(patterns) => hosts(place, patterns, known),
        Group::Label { selector, except } => {
            let except = hosts(&format!("{place}.except"), except, known)?;
            let chosen = known.agents.iter().filter(|agent| selector.matches(&agent.labels));
            Ok(chosen.map(|agent| agent.name.clone()).filter(|name| !except.contains(name)).collect())
        }
    }
}

/// The agents that the patterns match. A name without a star has to be one of them: a misspelt host
/// is otherwise measured by nobody, and nobody notices.
fn hosts(place: &str, patterns: &[Pattern], known: &Known<'_>) -> Result<BTreeSet<Name>, ConfigError> {
    for pattern in patterns {
        if let Pattern::Host(name) = pattern {
            known.check(place, name)?;
        }
    }
    Ok(patterns.iter().flat_map(|pattern| known.matching(pattern)).cloned().collect())
}

fn pairs(
    place: &str,
    pairs: &Pairs,
    groups: &BTreeMap<Name, BTreeSet<Name>>,
    known: &Known<'_>,
    (seed, epoch): (u64, u64),
) -> Result<Vec<(Name, Name)>, ConfigError> {
    let product = |from: &Name, to: &Name| {
        let (from, to) = (&groups[from], &groups[to]);
        if from.len().saturating_mul(to.len()) > MOST_PAIRS {
            return Err(ConfigError::TooManyPairs { place: place.to_owned(), pairs: pairs.to_string() });
        }
        Ok(from.iter().flat_map(|one| to.iter().map(move |other| (one.clone(), other.clone()))).collect())
    };
    let mut found: Vec<(Name, Name)> = match pairs {
        Pairs::Between(from, to) => product(from, to)?,
        Pairs::AllOf(group) => product(group, group)?,
        Pairs::SampleOf(group) => sample(&groups[group], seed, epoch),
        Pairs::Listed(listed) => {
            for (from, to) in listed {
                known.check(place, from)?;
                known.check(place, to)?;
            }
            listed.clone()
        }
    };
    found.retain(|(from, to)| from != to);
    if found.is_empty() {
        return Err(ConfigError::NoPairs { place: place.to_owned(), pairs: pairs.to_string() });
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn sample(members: &BTreeSet<Name>, seed: u64, epoch: u64) -> Vec<(Name, Name)> {
    let members: Vec<&Name> = members.iter().collect();
    let count = narrows_units::to_u32(members.len());
    let mesh = Mesh::new(count, seed);
    let visits = (0..count).flat_map(|place| mesh.visits(place, epoch).into_iter().map(move |to| (place, to.target)));
    visits.map(|(from, to)| (members[from as usize].clone(), members[to as usize].clone())).collect()
}

/// Ours: all pairs of 3 000 hosts, which take half a gigabyte. A larger fleet cannot measure all of
/// them in a month anyway.
const MOST_PAIRS: usize = 9_000_000;
