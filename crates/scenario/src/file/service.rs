//! Channels, aggregation and slots in a file.

use std::time::Duration;

use narrows_units::Octets;
use serde::Deserialize;

use super::{duration, octets, optional};
use crate::error::ScenarioError;
use crate::service::{Aggregation, Channels, Dealing, Inside, Service, Slots};

/// `channels = { count = 4, by = "packet" }`: in turn; `"load"`: to the channel that is idle first;
/// `"flow"`: by a hash of the flow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChannelsFile {
    count: u16,
    by: DealingName,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DealingName {
    Packet,
    Load,
    Flow,
}

/// `aggregation = { contention = "200 us", jitter = "150 us" }`, with `frames`, `octets` and
/// `inside` where they are not 64, 65 535 B and `"spaced"`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AggregationFile {
    frames: Option<u16>,
    octets: Option<String>,
    contention: String,
    jitter: Option<String>,
    inside: Option<InsideName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum InsideName {
    Spaced,
    AtOnce,
}

/// `slots = { period = "1 ms", grant = "8 ms" }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotsFile {
    period: String,
    grant: Option<String>,
}

impl ChannelsFile {
    pub(super) fn read(&self) -> Service {
        Service::Channels(Channels {
            count: self.count,
            by: match self.by {
                DealingName::Packet => Dealing::Packet,
                DealingName::Load => Dealing::Load,
                DealingName::Flow => Dealing::Flow,
            },
        })
    }
}

impl AggregationFile {
    pub(super) fn read(&self, place: &str) -> Result<Service, ScenarioError> {
        Ok(Service::Aggregation(Aggregation {
            frames: self.frames.unwrap_or(64),
            octets: optional(place, self.octets.as_ref(), octets)?.unwrap_or(Octets::new(65_535)),
            contention: duration(place, &self.contention)?,
            jitter: optional(place, self.jitter.as_ref(), duration)?.unwrap_or(Duration::ZERO),
            inside: match self.inside {
                Some(InsideName::AtOnce) => Inside::AtOnce,
                Some(InsideName::Spaced) | None => Inside::Spaced,
            },
        }))
    }
}

impl SlotsFile {
    pub(super) fn read(&self, place: &str) -> Result<Service, ScenarioError> {
        Ok(Service::Slots(Slots {
            period: duration(place, &self.period)?,
            grant: optional(place, self.grant.as_ref(), duration)?.unwrap_or(Duration::ZERO),
        }))
    }
}
