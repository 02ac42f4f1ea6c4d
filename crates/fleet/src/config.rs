//! The fleet's TOML: sites, groups, tests and alerts, and the pairs that they mean.
//!
//! ```toml
//! [sites.ams]
//! hosts = ["ams-*"]
//! access = { down = "1 Gbit/s", up = "200 Mbit/s", budget = "50 GB/day" }
//!
//! [groups]
//! core = ["ams-1", "fra-1"]
//! edge = { label = "role=edge", except = ["edge-9"] }
//!
//! [[test]]
//! pairs = "core to edge"
//! run = "throughput -P 4 -t 10"
//! every = "6 h"
//!
//! [[alert]]
//! name = "core-low"
//! when = "available < 20 Mbit/s"
//! of = "core to edge"
//! ```
//!
//! [`Config::read`] knows the text alone. [`Config::resolve`] puts the agents of the fleet into its
//! sites and groups.

mod alerts;
mod budget;
mod error;
mod file;
mod hosts;
mod pairs;
mod resolve;
mod selector;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{BitRate, Octets};

pub use alerts::{PathRule, alert_changes};
pub use budget::OwnBudget;
pub use error::ConfigError;
pub use pairs::Pairs;
pub use resolve::{Fleet, Site, Test};
pub use selector::{Selector, SelectorError};

use crate::allowance::LIGHT;
use crate::keys::Name;
use alerts::AlertEntry;
use hosts::Pattern;

/// What a file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    sites: BTreeMap<Name, SiteEntry>,
    groups: BTreeMap<Name, Group>,
    tests: Vec<TestEntry>,
    alerts: Vec<AlertEntry>,
}

/// An agent of the fleet, as it joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The link that the hosts of a site share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessLink {
    /// Its capacity towards the site.
    pub down: BitRate,
    /// Its capacity from the site.
    pub up: BitRate,
    /// What loading runs may send over each direction in a day.
    pub per_day: Option<Octets>,
}

#[derive(Debug, Clone, PartialEq)]
struct SiteEntry {
    hosts: Vec<Pattern>,
    access: Option<AccessLink>,
}

#[derive(Debug, Clone, PartialEq)]
enum Group {
    Hosts(Vec<Pattern>),
    Label { selector: Selector, except: Vec<Pattern> },
}

#[derive(Debug, Clone, PartialEq)]
struct TestEntry {
    pairs: Pairs,
    command: Command,
    every: Duration,
}

/// What a test runs: a command of the program, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    words: Vec<String>,
    loads: bool,
}

impl Command {
    /// The words; the first is the kind.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether it needs leases: a loading run exceeds what a server grants without a load slot.
    pub const fn loads(&self) -> bool {
        self.loads
    }
}

/// Whether a command loads, and so needs leases: by its kind, or by the octets that it asks for.
/// `None`: there is no such kind.
pub fn loads(words: &[String]) -> Option<bool> {
    let kind = words.first().map_or("", String::as_str);
    let (_, loads) = KINDS.into_iter().find(|(name, _)| *name == kind)?;
    // A budget that cannot be read allows nothing.
    let own = OwnBudget::of(words).ok().flatten().and_then(|own| own.octets);
    Some(loads || own.is_some_and(|octets| octets > LIGHT))
}

/// The kinds of runs, and whether they load. `burst` and `hops` may send more at once than a server
/// grants without a load slot.
const KINDS: [(&str, bool); 8] = [
    ("rtt", false),
    ("pmtu", false),
    ("capacity", false),
    ("available", false),
    ("burst", true),
    ("hops", true),
    ("throughput", true),
    ("test", true),
];
