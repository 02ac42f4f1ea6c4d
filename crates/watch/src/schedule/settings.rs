//! The budget of a target, as `watch.toml` gives it.

use narrows_units::{BitRate, Octets, rounded};
use serde::{Deserialize, Serialize};

use super::hours::WeeklyHours;
use super::job::Why;
use super::turn::Turn;

/// What the nightly test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NightTest {
    /// The whole test if its forecast fits, else the light one.
    #[default]
    Full,
    /// Capacity and hops.
    Light,
    /// Nothing.
    Off,
}

/// The settings of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetSettings {
    /// The capacity that is assumed until it is measured.
    pub first_capacity: BitRate,
    /// Share of the capacity that all jobs may take over 60 s.
    pub share: f64,
    /// Octets per day; `None` is 0.5 % of the capacity over 24 h, at most 2 GB.
    pub per_day: Option<Octets>,
    /// Pulse and route only.
    pub quiet: Vec<WeeklyHours>,
    /// When the nightly test runs.
    pub night: Option<WeeklyHours>,
    /// What it is.
    pub test: NightTest,
    /// Targets of equal link never load it at the same time.
    pub link: String,
    /// Targets of equal host are never loaded at the same time.
    pub host: String,
    /// Whatever loads the path begins in this turn: hosts that meet at a server have one each.
    pub turn: Option<Turn>,
}

impl Default for TargetSettings {
    fn default() -> Self {
        Self {
            first_capacity: BitRate::from_mbps(100),
            share: 0.01,
            per_day: None,
            quiet: Vec::new(),
            night: None,
            test: NightTest::Full,
            link: String::new(),
            host: String::new(),
            turn: None,
        }
    }
}

impl TargetSettings {
    /// Octets that all may send in a day.
    pub fn day_octets(&self, capacity: BitRate) -> Octets {
        let auto = || Octets::new(rounded(capacity.as_f64() * 0.005 * 86_400.0 / 8.0).min(2_000_000_000));
        self.per_day.unwrap_or_else(auto)
    }

    /// Octets that all may send in any 60 s, the nightly test apart.
    pub fn minute_octets(&self, capacity: BitRate) -> Octets {
        Octets::new(rounded(capacity.as_f64() * self.share * 60.0 / 8.0))
    }

    /// The most over a second: ten times the share.
    pub fn over_second(&self, capacity: BitRate) -> BitRate {
        capacity.scaled((10.0 * self.share).min(1.0)).unwrap_or(capacity)
    }

    /// Octets of a day that are left to share out, without pulses and regular routes.
    pub(super) fn shared_octets(&self, capacity: BitRate) -> u64 {
        self.day_octets(capacity).count().saturating_sub(PULSE_OCTETS_PER_DAY + ROUTE_OCTETS_PER_DAY)
    }

    /// Octets of a day for one kind of work: slices 60 %, evidence 25 %, the night the rest.
    pub(super) fn share_of_day(&self, capacity: BitRate, why: Why) -> u64 {
        let percent = match why {
            Why::Base => return ROUTE_OCTETS_PER_DAY,
            Why::Cadence => 60,
            Why::Evidence | Why::Asked => 25,
            Why::Night => 15,
        };
        self.shared_octets(capacity) / 100 * percent
    }
}

/// Octets that a pulse a second costs in a day, both directions.
pub(super) const PULSE_OCTETS_PER_DAY: u64 = 11_000_000;

/// A route of up to 35 hops every five minutes.
pub(super) const ROUTE_OCTETS_PER_DAY: u64 = 2_100_000;
