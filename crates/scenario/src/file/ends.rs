//! Hosts in a file.

use std::sync::Arc;

use narrows_host_profile::HostProfile;
use serde::Deserialize;

use super::links::RouterFile;
use super::{delta, duration, octets, optional, rate};
use crate::error::ScenarioError;
use crate::host::{ClockModel, ClockStep, Coalescing, Host, Stalls, TcpHost};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct HostFile {
    clock: Option<ClockFile>,
    send_cost: Option<String>,
    receive_cost: Option<String>,
    copy_rate: Option<String>,
    interrupt_cost: Option<String>,
    pacing_jitter: Option<String>,
    stalls: Option<StallsFile>,
    coalescing: Option<CoalescingFile>,
    profile: Option<String>,
    interface_rate: Option<String>,
    tcp_receive: Option<String>,
    tcp_send: Option<String>,
    tcp_writes: Option<String>,
    tcp_reads: Option<String>,
    tcp_segment_cost: Option<String>,
    tcp_processors: Option<std::num::NonZeroU16>,
    tcp_switch_cost: Option<String>,
    answers: Option<RouterFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockFile {
    offset: Option<String>,
    #[serde(default)]
    skew_ppm: f64,
    granularity: Option<String>,
    #[serde(default)]
    steps: Vec<StepFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    at: String,
    by: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StallsFile {
    every: String,
    lasting: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CoalescingFile {
    timer: String,
    frames: u32,
}

impl HostFile {
    pub(super) fn read(
        self,
        place: &str,
        profile: &impl Fn(&str, &str) -> Result<Arc<HostProfile>, ScenarioError>,
    ) -> Result<Host, ScenarioError> {
        let at = |field: &str| format!("{place}: {field}");
        let time =
            |field: &str, text: Option<&String>| optional(&at(field), text, duration).map(Option::unwrap_or_default);
        let mut host = Host {
            send_cost: time("send_cost", self.send_cost.as_ref())?,
            receive_cost: time("receive_cost", self.receive_cost.as_ref())?,
            copy_rate: optional(&at("copy_rate"), self.copy_rate.as_ref(), rate)?,
            interrupt_cost: time("interrupt_cost", self.interrupt_cost.as_ref())?,
            pacing_jitter: time("pacing_jitter", self.pacing_jitter.as_ref())?,
            interface_rate: optional(&at("interface_rate"), self.interface_rate.as_ref(), rate)?,
            ..Host::default()
        };
        host.profile = self.profile.map(|name| profile(&at("profile"), &name)).transpose()?;
        if let Some(clock) = self.clock {
            host.clock = clock.read(&at("clock"))?;
        }
        if let Some(stalls) = self.stalls {
            host.stalls = Some(Stalls {
                every: duration(&at("stalls every"), &stalls.every)?,
                lasting: duration(&at("stalls lasting"), &stalls.lasting)?,
            });
        }
        if let Some(coalescing) = self.coalescing {
            host.coalescing = Some(Coalescing {
                timer: duration(&at("coalescing timer"), &coalescing.timer)?,
                frames: coalescing.frames,
            });
        }
        if let Some(answers) = self.answers {
            host.answers = answers.read(&at("answers"))?;
        }
        let buffer = |field: &str, text: Option<&String>| {
            let count = optional(&at(field), text, octets)?.map(narrows_units::Octets::count);
            let narrow = count.map(u32::try_from).transpose();
            narrow.map_err(|_| ScenarioError::invalid(at(field), "must be below 4 GB"))
        };
        if let Some(octets) = buffer("tcp_receive", self.tcp_receive.as_ref())? {
            host.tcp_receive_octets = octets;
        }
        host.tcp = TcpHost {
            send_octets: buffer("tcp_send", self.tcp_send.as_ref())?,
            writes: optional(&at("tcp_writes"), self.tcp_writes.as_ref(), rate)?,
            reads: optional(&at("tcp_reads"), self.tcp_reads.as_ref(), rate)?,
            segment_cost: time("tcp_segment_cost", self.tcp_segment_cost.as_ref())?,
            processors: self.tcp_processors,
            switch_cost: time("tcp_switch_cost", self.tcp_switch_cost.as_ref())?,
        };
        Ok(host)
    }
}

impl ClockFile {
    fn read(&self, place: &str) -> Result<ClockModel, ScenarioError> {
        let usual = ClockModel::default();
        let steps =
            self.steps.iter().map(|step| Ok(ClockStep { at: duration(place, &step.at)?, by: delta(place, &step.by)? }));
        Ok(ClockModel {
            offset: optional(place, self.offset.as_ref(), delta)?.unwrap_or_default(),
            skew_ppm: self.skew_ppm,
            granularity: optional(place, self.granularity.as_ref(), duration)?.unwrap_or(usual.granularity),
            steps: steps.collect::<Result<_, _>>()?,
        })
    }
}
