//! `watch.toml` and `watch.d/*.toml` beside it: what to follow, at what cost, and whom to tell.
//!
//! The files are read in order; each adds targets, alerts and channels, and a later `[budget]`
//! outweighs an earlier one key by key, as does `[store]`. A key that nobody knows is refused.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use narrows_net::via::Via;
use narrows_units::Octets;
use narrows_watch::alert::Rule;
use narrows_watch::schedule::TargetSettings;

use self::file::{Budget, File};
use crate::connect::Version;
use crate::exit::Failure;

/// All that a file can set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) targets: Vec<Target>,
    pub(crate) rules: Vec<Rule>,
    /// `[channel.NAME]`, for whoever sends notices.
    pub(crate) channels: toml::Table,
    /// The store may become so large; its time limits hold all the same.
    pub(crate) max_size: Option<Octets>,
}

/// One target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    pub(crate) family: Family,
    pub(crate) psk_file: Option<PathBuf>,
    /// How pulses are answered; `None` tries.
    pub(crate) via: Option<Via>,
    /// Every second slice measures the reverse direction.
    pub(crate) reverse: bool,
    pub(crate) budget: TargetSettings,
}

impl Target {
    /// What is known of one is true of the other.
    pub(crate) fn is_followed_like(&self, other: &Self) -> bool {
        self.host == other.host && self.family == other.family && self.via == other.via
    }
}

/// Over which IP version a target is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
pub(crate) enum Family {
    /// The first that answers.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "4")]
    V4,
    #[serde(rename = "6")]
    V6,
    /// Each by itself.
    #[serde(rename = "both")]
    Both,
}

impl Family {
    pub(crate) const fn version(self) -> Version {
        match self {
            Self::V4 => Version::V4,
            Self::V6 => Version::V6,
            Self::Auto | Self::Both => Version::Any,
        }
    }

    pub(crate) const fn has(self, address: IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
            Self::Auto | Self::Both => true,
        }
    }
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    path: PathBuf,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.text)
    }
}

/// Reads the file and its folder, if there is one, and adds the hosts of the command line.
pub(crate) fn read(config: Option<&Path>, hosts: &[String]) -> Result<Settings, Failure> {
    let mut files = Vec::new();
    for path in config.map(paths).transpose()?.unwrap_or_default() {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        files.push((path, text));
    }
    let settings = merged(&files, hosts).map_err(|fault| Failure::usage(fault.to_string()))?;
    if settings.targets.is_empty() {
        return Err(Failure::usage("nothing to watch: name a host, or a --config with a [[target]]"));
    }
    Ok(settings)
}

/// The file, and those of the folder `NAME.d` beside it in the order of their names.
fn paths(config: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut all = vec![config.to_owned()];
    if let Ok(entries) = std::fs::read_dir(config.with_extension("d")) {
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
        let mut more = paths.map_err(|error| Failure::host(format!("{}: {error}", config.display())))?;
        more.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        more.sort();
        all.extend(more);
    }
    Ok(all)
}

fn merged(files: &[(PathBuf, String)], hosts: &[String]) -> Result<Settings, Fault> {
    let mut parsed = Vec::new();
    let mut budget = Budget::default();
    let mut max_size = None;
    for (path, text) in files {
        let fault = |text: String| Fault { path: path.clone(), text };
        let file: File = toml::from_str(text).map_err(|error| fault(place(text, &error)))?;
        budget = file.budget.clone().over(budget);
        max_size = file.store.max_size().map_err(fault)?.or(max_size);
        parsed.push((path, file));
    }
    let mut settings = Settings { targets: Vec::new(), rules: Vec::new(), channels: toml::Table::new(), max_size };
    let mut names = BTreeSet::new();
    for (path, file) in parsed {
        let fault = |text: String| Fault { path: path.clone(), text };
        for target in file.target {
            settings.targets.extend(target.targets(&budget).map_err(fault)?);
        }
        for alert in file.alert {
            let rule = alert.rule().map_err(|error| fault(error.to_string()))?;
            if settings.rules.iter().any(|other| other.name == rule.name) {
                return Err(fault(format!("alert {:?} is there twice", rule.name)));
            }
            settings.rules.push(rule);
        }
        for (name, channel) in file.channel {
            if settings.channels.insert(name.clone(), channel).is_some() {
                return Err(fault(format!("channel.{name} is there twice")));
            }
        }
        if let Some(twice) = settings.targets.iter().find(|target| !names.insert(target.name.clone())) {
            return Err(fault(format!("target {:?} is there twice; give one of them another name", twice.name)));
        }
        names.clear();
    }
    let by_hand = Fault { path: PathBuf::from("the command line"), text: String::new() };
    for host in hosts {
        if settings.targets.iter().all(|target| target.name != *host) {
            let target = file::Target::of_host(host).targets(&budget);
            settings.targets.extend(target.map_err(|text| Fault { text, ..by_hand.clone() })?);
        }
    }
    for rule in &settings.rules {
        if let Some(missing) = rule.notify.iter().find(|name| !settings.channels.contains_key(*name)) {
            let path = files.first().map_or_else(PathBuf::new, |(path, _)| path.clone());
            let text = format!("alert {:?} notifies {missing:?}: there is no [channel.{missing}]", rule.name);
            return Err(Fault { path, text });
        }
    }
    Ok(settings)
}

/// The line and what is wrong there, on one line.
fn place(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let line = text.bytes().take(at).filter(|octet| *octet == b'\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', " "))
}
