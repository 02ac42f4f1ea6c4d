//! `narrows serve --iperf3` on loopback.

use std::net::SocketAddr;

use super::{Running, narrows};

/// The server, and where it answers iperf3.
#[derive(Debug)]
pub(crate) struct Iperf3 {
    pub(crate) running: Running,
    pub(crate) address: SocketAddr,
}

impl Iperf3 {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let base = ["serve", "-p", "0", "-B", "127.0.0.1", "--iperf3", "0"];
        let mut running = Running::start(narrows(base).args(arguments));
        let line = running.wait_for("answering iperf3 on");
        let word = line.split("iperf3 on ").nth(1).and_then(|rest| rest.split(',').next());
        let address = word.and_then(|word| word.parse().ok());
        Self { running, address: address.unwrap_or_else(|| panic!("no address in {line:?}")) }
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }
}
