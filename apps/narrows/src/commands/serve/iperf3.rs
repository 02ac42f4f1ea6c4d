//! `narrows serve --iperf3`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use narrows_net::iperf3::{Gate, Iperf3Limits, Iperf3Options, Iperf3Server};
use narrows_net::serve::ServeOptions;
use narrows_units::Octets;

use super::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Iperf3Args {
    /// Also answer stock iperf3 clients, several at once, at this TCP and UDP port; held to the
    /// limits below
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5201")]
    iperf3: Option<u16>,
    /// Let only users of iperf3 clients test that show name and password: this server's private RSA
    /// key, PEM
    #[arg(long, value_name = "FILE", requires_all = ["iperf3", "authorized_users_path"])]
    rsa_private_key_path: Option<PathBuf>,
    /// Those users: lines of NAME,SHA256 of {NAME}PASSWORD
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    authorized_users_path: Option<PathBuf>,
    /// Seconds by which their clocks may differ from this host's [default: 10]
    #[arg(long, value_name = "SECONDS", requires = "rsa_private_key_path",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    time_skew_threshold: Option<u32>,
}

impl Iperf3Args {
    /// Where the server listens, at a port of its own, with the limits of a session. The protocol
    /// knows nothing of our keys: whoever must prove one is better served without it.
    pub(super) fn start(&self, args: &ServeArgs, options: &ServeOptions) -> Result<Option<Iperf3Server>, Failure> {
        let Some(port) = self.iperf3 else { return Ok(None) };
        let mut wanted = Iperf3Options {
            listen: options.listen.clone(),
            port,
            allow_load: args.allow_load,
            gate: self.gate()?.map(Arc::new),
            limits: Iperf3Limits {
                rate: args.max_rate,
                octets: args.max_octets.map(Octets::count),
                ..Iperf3Limits::default()
            },
            on_end: Arc::new(|summary| output::complain(&summary.to_string())),
        };
        let limits = &mut wanted.limits;
        limits.duration = args.max_duration.unwrap_or(limits.duration);
        if let Some(sessions) = args.max_sessions {
            limits.sessions = usize::from(sessions);
        }
        Iperf3Server::start(wanted).map(Some).map_err(|error| Failure {
            exit: Exit::Failure,
            who: "host",
            text: format!("cannot answer iperf3 on port {port}: {error}"),
        })
    }

    fn gate(&self) -> Result<Option<Gate>, Failure> {
        let (Some(key), Some(users)) = (&self.rsa_private_key_path, &self.authorized_users_path) else {
            return Ok(None);
        };
        let skew = self.time_skew_threshold.map(|seconds| Duration::from_secs(seconds.into()));
        let gate = Gate::read(key, users, skew);
        gate.map(Some).map_err(|error| Failure::usage(error.to_string()))
    }
}
