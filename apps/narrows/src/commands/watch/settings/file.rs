//! The tables of `watch.toml`, and what their texts mean.

use std::path::PathBuf;

use narrows_units::{BitRate, Octets};
use narrows_watch::alert::RuleTable;
use narrows_watch::schedule::{NightTest, TargetSettings, Turn, WeeklyHours};
use serde::Deserialize;

use super::Family;

/// One file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) budget: Budget,
    pub(super) store: Store,
    pub(super) target: Vec<Target>,
    pub(super) alert: Vec<RuleTable>,
    pub(super) channel: toml::Table,
}

/// `[budget]`, of all targets or of one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Budget {
    share: Option<String>,
    per_day: Option<String>,
    quiet: Option<Vec<String>>,
    night: Option<String>,
    test: Option<NightTest>,
    first_capacity: Option<String>,
}

/// `[store]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Store {
    max_size: Option<String>,
}

/// `[[target]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    host: String,
    name: Option<String>,
    port: Option<u16>,
    #[serde(default)]
    family: Family,
    link: Option<String>,
    phase: Option<String>,
    psk_file: Option<PathBuf>,
    via: Option<String>,
    #[serde(default)]
    reverse: bool,
    #[serde(default)]
    budget: Budget,
}

impl Budget {
    /// This one, and what it leaves open from `other`.
    pub(super) fn over(self, other: Self) -> Self {
        Self {
            share: self.share.or(other.share),
            per_day: self.per_day.or(other.per_day),
            quiet: self.quiet.or(other.quiet),
            night: self.night.or(other.night),
            test: self.test.or(other.test),
            first_capacity: self.first_capacity.or(other.first_capacity),
        }
    }

    fn settings(&self) -> Result<TargetSettings, String> {
        let hours = |key: &str, text: &String| -> Result<WeeklyHours, String> {
            text.parse().map_err(|error| format!("{key}: {error}"))
        };
        let usual = TargetSettings::default();
        let night = self.night.as_deref().unwrap_or(NIGHT).to_owned();
        let rate = |text: &String| -> Result<BitRate, String> {
            text.parse().map_err(|error| format!("budget.first_capacity: {error}"))
        };
        Ok(TargetSettings {
            first_capacity: self.first_capacity.as_ref().map(rate).transpose()?.unwrap_or(usual.first_capacity),
            share: self.share.as_deref().map(share).transpose()?.unwrap_or(usual.share),
            per_day: self.per_day.as_deref().map(per_day).transpose()?.flatten(),
            quiet: self.quiet.iter().flatten().map(|text| hours("budget.quiet", text)).collect::<Result<_, _>>()?,
            night: Some(hours("budget.night", &night)?),
            test: self.test.unwrap_or_default(),
            ..usual
        })
    }
}

impl Store {
    pub(super) fn max_size(&self) -> Result<Option<Octets>, String> {
        let Some(text) = &self.max_size else { return Ok(None) };
        let size: Octets = text.parse().map_err(|error| format!("store.max_size: {error}"))?;
        let is_enough = size.count() >= LEAST_STORE;
        let least = || format!("store.max_size: {text:?} holds next to nothing; at least {}", Octets::new(LEAST_STORE));
        if is_enough { Ok(Some(size)) } else { Err(least()) }
    }
}

impl Target {
    /// A host of the command line.
    pub(super) fn of_host(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            name: None,
            port: None,
            family: Family::Auto,
            link: None,
            phase: None,
            psk_file: None,
            via: None,
            reverse: false,
            budget: Budget::default(),
        }
    }

    /// What it means: one target, or one per IP version.
    pub(super) fn targets(self, budget: &Budget) -> Result<Vec<super::Target>, String> {
        let name = self.name.clone().unwrap_or_else(|| self.host.clone());
        self.meant(&name, budget).map_err(|text| format!("target {name:?}: {text}"))
    }

    fn meant(self, name: &str, budget: &Budget) -> Result<Vec<super::Target>, String> {
        if self.host.trim().is_empty() {
            return Err("host: is empty".to_owned());
        }
        if self.port == Some(0) {
            return Err("port: from 1 to 65535".to_owned());
        }
        let mut settings = self.budget.over(budget.clone()).settings()?;
        settings.link = self.link.unwrap_or_default();
        settings.turn = self.phase.as_deref().map(turn).transpose()?;
        let via = self.via.as_deref().map(str::parse).transpose().map_err(|error| format!("via: {error}"))?;
        let target = |name: String, family: Family| super::Target {
            name,
            host: self.host.clone(),
            port: self.port,
            family,
            psk_file: self.psk_file.clone(),
            via,
            reverse: self.reverse,
            budget: settings.clone(),
        };
        Ok(match self.family {
            Family::Both => {
                vec![target(format!("{name}/4"), Family::V4), target(format!("{name}/6"), Family::V6)]
            }
            family => vec![target(name.to_owned(), family)],
        })
    }
}

/// `"1 %"`.
fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("budget.share: {text:?} is no share; write \"1 %\", from 0.01 to 50 %");
    let value: f64 = text.trim().strip_suffix('%').and_then(|text| text.trim().parse().ok()).ok_or_else(wrong)?;
    if (0.01..=50.0).contains(&value) { Ok(value / 100.0) } else { Err(wrong()) }
}

/// `"auto"`, or octets.
fn per_day(text: &str) -> Result<Option<Octets>, String> {
    if text == "auto" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| format!("budget.per_day: {error}, or \"auto\""))
}

/// `"1/2"`: the first of two that take turns.
fn turn(text: &str) -> Result<Turn, String> {
    let parse = || {
        let (place, of) = text.split_once('/')?;
        Turn::new(place.trim().parse().ok()?, of.trim().parse().ok()?)
    };
    parse().ok_or_else(|| format!("phase: {text:?} is none; write \"1/2\" and \"2/2\" for two that take turns"))
}

/// When most networks are at rest.
const NIGHT: &str = "02:00-05:00";

/// Octets of a store that keeps round trips for some days.
const LEAST_STORE: u64 = 10_000_000;
