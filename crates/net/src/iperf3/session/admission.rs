//! Whether a test may run: who asks for it, and for how much.

use narrows_wire::iperf3::{ErrorNumber, Parameters, Transport};

use super::super::options::SessionEnd;
use super::super::token::REFUSED_AFTER;
use super::Iperf3Session;
use crate::clock::{self, nanos};
use crate::serve::is_private;

impl Iperf3Session<'_> {
    /// Who it is, where the server asks for that: `true` if it was told. Refusals all come equally
    /// late, and for the same reason.
    pub(super) fn identify(&mut self, parameters: &Parameters) -> Result<bool, SessionEnd> {
        let Some(gate) = &self.shared.options.gate else {
            return Ok(false);
        };
        let requested_ns = clock::now_ns();
        let unix_seconds = u64::try_from(clock::wall_ns() / 1_000_000_000).unwrap_or(0);
        if let Some(user) = gate.admit(parameters.auth_token.as_deref(), unix_seconds) {
            tracing::info!(%user, client = %self.peer, "iperf3 client is known");
            return Ok(true);
        }
        clock::sleep_until_ns(requested_ns.saturating_add(nanos(REFUSED_AFTER)));
        Err(self.refuse(ErrorNumber::AUTH))
    }

    /// Whether the server lets such a test run, of a client that it knows or not.
    pub(super) fn admit(&mut self, parameters: &Parameters, known: bool) -> Result<(), ErrorNumber> {
        let options = &self.shared.options;
        let limits = &options.limits;
        let asked = u64::from(parameters.seconds) + u64::from(parameters.omit_seconds);
        if asked > limits.duration.as_secs() {
            return Err(ErrorNumber::DURATION);
        }
        let udp = parameters.transport != Transport::Tcp;
        if let Some(most) = limits.rate {
            let total = parameters.total_rate_bps();
            if total.map_or(udp, |total| total > most.bps()) {
                return Err(ErrorNumber::TOTAL_RATE);
            }
        }
        let sends = parameters.flow.client_sends(1).contains(&false);
        if udp && sends && !known && !options.allow_load && !is_private(self.peer.ip()) {
            return Err(ErrorNumber::AUTH);
        }
        let count = parameters.all_streams();
        if !self.shared.take_streams(count) {
            return Err(ErrorNumber::STREAMS);
        }
        self.taken = count;
        Ok(())
    }
}
