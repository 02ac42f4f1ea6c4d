//! One measurement by one program: rate, and CPU time of both ends.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::host_pair::HostPair;
use super::super::program::{Program, built, ended_cpu, output};
use super::Hosts;

/// A program under test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// `narrows throughput` against `narrows serve`.
    Own,
    /// `narrows throughput --iperf3` against `narrows serve --iperf3`.
    OwnIperf3,
    /// The peer.
    Iperf3,
}

/// What it said and used.
pub(super) struct Ran {
    pub(super) said: Value,
    pub(super) cpu: Duration,
}

/// How long a program may take to end beyond its test.
const GRACE: Duration = Duration::from_secs(60);

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => "narrows",
            Self::OwnIperf3 => "narrows --iperf3",
            Self::Iperf3 => "iperf3",
        }
    }

    fn server(self, host_pair: &HostPair) -> Result<Program> {
        let own = built("narrows");
        let own = own.to_string_lossy();
        match self {
            Self::Own => Program::start(host_pair.remote(&own, &["serve"]))?.until_listening(8620),
            Self::OwnIperf3 => Program::start(host_pair.remote(&own, &["serve", "--iperf3"]))?.until_listening(5201),
            Self::Iperf3 => Program::start(host_pair.remote("iperf3", &["-s", "-1"]))?.until_listening(5201),
        }
    }

    /// Runs a test of so many seconds.
    pub(super) fn run(self, hosts: &Hosts, seconds: u32, more: &[&str]) -> Result<Ran> {
        let server = self.server(&hosts.host_pair)?;
        let (idle, before) = (server.cpu(), ended_cpu()?);
        let (length, own) = (seconds.to_string(), built("narrows"));
        let own = own.to_string_lossy();
        let test = ["-t", &length, "-J"];
        let (program, start): (&str, Vec<&str>) = match self {
            Self::Own => (&own, vec!["throughput", &hosts.address]),
            Self::OwnIperf3 => (&own, vec!["throughput", "--iperf3", &hosts.address]),
            Self::Iperf3 => ("iperf3", vec!["-c", &hosts.address]),
        };
        let limit = Duration::from_secs(seconds.into()) + GRACE;
        let said = output(hosts.host_pair.near(program, &[&start, &test[..], more].concat()), limit)?;
        match self {
            Self::Iperf3 => drop(server.finish(GRACE)?),
            Self::Own | Self::OwnIperf3 => server.stop(GRACE)?,
        }
        Ok(Ran {
            said: serde_json::from_str(&said).context("not JSON")?,
            cpu: ended_cpu()?.saturating_sub(before).saturating_sub(idle),
        })
    }
}

impl Ran {
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        let value = self.said.pointer(pointer).and_then(Value::as_f64);
        value.with_context(|| format!("no number at {pointer}"))
    }

    /// Received payload in Mb/s, and CPU seconds of both ends for each GB of it.
    pub(super) fn rate_and_cost(&self) -> Result<Vec<f64>> {
        let octets = self.number("/end/sum_received/bytes")?;
        Ok(vec![self.number("/end/sum_received/bits_per_second")? / 1e6, self.cpu.as_secs_f64() / (octets / 1e9)])
    }
}
