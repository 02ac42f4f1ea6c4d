//! The peers' servers, one per measurement: each ends after its one client.

use anyhow::Result;

use super::host_pair::HostPair;
use super::program::Program;

/// A server for one `iperf3` client.
pub(super) fn iperf3_server(host_pair: &HostPair) -> Result<Program> {
    Program::start(host_pair.remote("iperf3", &["-s", "-1"]))?.until_listening(5201)
}

/// A server for one `nuttcp` client.
pub(super) fn nuttcp_server(host_pair: &HostPair) -> Result<Program> {
    Program::start(host_pair.remote("nuttcp", &["-1", "--nofork"]))?.until_listening(5000)
}
