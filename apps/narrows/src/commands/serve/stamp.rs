//! `narrows serve --stamp`.

use narrows_net::reflect::{Reflector, ReflectorOptions};
use narrows_net::serve::ServeOptions;

use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct StampArgs {
    /// Also be an RFC 8762 STAMP reflector, at this UDP port; authenticated where there is a key
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "862",
          value_parser = clap::value_parser!(u16).range(1..))]
    stamp: Option<u16>,
    /// STAMP packets per second that one address gets back over time [default: 1000]
    #[arg(long, value_name = "N", requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_per_source: Option<u32>,
    /// STAMP packets that one address gets back at once, before that limit [default: 4000]
    #[arg(long, value_name = "N", requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_burst: Option<u32>,
    /// STAMP packets per second for all addresses together [default: 10000]
    #[arg(long, value_name = "N", requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_total: Option<u32>,
    /// Do not count STAMP packets per session (the stateless mode of RFC 8762)
    #[arg(long, requires = "stamp")]
    stamp_stateless: bool,
}

impl StampArgs {
    /// Where the server listens, with its key, at a port of its own.
    pub(super) fn start(&self, options: &ServeOptions) -> Result<Option<Reflector>, Failure> {
        let Some(port) = self.stamp else { return Ok(None) };
        let mut wanted = ReflectorOptions::new(options.listen.clone(), port);
        wanted.key.clone_from(&options.psk);
        wanted.per_source = self.stamp_per_source.unwrap_or(wanted.per_source);
        wanted.burst = self.stamp_burst.unwrap_or(wanted.burst);
        wanted.total = self.stamp_total.unwrap_or(wanted.total);
        wanted.stateful = !self.stamp_stateless;
        Reflector::start(&wanted)
            .map(Some)
            .map_err(|error| super::no_port(&error, &format!("reflect STAMP on UDP port {port}")))
    }
}
