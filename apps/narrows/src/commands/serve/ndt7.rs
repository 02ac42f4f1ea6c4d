//! `narrows serve --ndt7`.

use std::path::PathBuf;
use std::str::FromStr;

#[cfg(feature = "tls")]
pub(super) use narrows_net::ndt7::Ndt7Server;
use narrows_net::serve::ServeOptions;

use super::ServeArgs;
use crate::exit::Failure;

/// Where to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    Usual,
    At(u16),
}

impl Port {
    const USUAL: &str = "usual";
}

impl FromStr for Port {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == Self::USUAL {
            return Ok(Self::Usual);
        }
        text.parse().map(Self::At)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ndt7Args {
    /// Also answer ndt7 clients, at this TCP port (443 with a certificate and 80 without one unless
    /// given)
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = Port::USUAL)]
    ndt7: Option<Port>,
    /// Over TLS: this server's certificate and those above it, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ndt7", "key"])]
    cert: Option<PathBuf>,
    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

#[cfg(feature = "tls")]
impl Ndt7Args {
    /// Where the server listens, at a port of its own. How long a test takes is the protocol's own
    /// affair.
    pub(super) fn start(&self, args: &ServeArgs, options: &ServeOptions) -> Result<Option<Ndt7Server>, Failure> {
        use narrows_net::ndt7::{Identity, Ndt7Limits, Ndt7Options};

        let Some(port) = self.ndt7 else { return Ok(None) };
        let identity = match (&self.cert, &self.key) {
            (Some(chain), Some(key)) => {
                let read = Identity::read(chain, key);
                Some(read.map_err(|error| Failure::usage(error.to_string()))?)
            }
            _ => None,
        };
        let port = match (port, &identity) {
            (Port::At(port), _) => port,
            (Port::Usual, Some(_)) => 443,
            (Port::Usual, None) => 80,
        };
        let mut limits = Ndt7Limits::default();
        if let Some(sessions) = args.max_sessions {
            limits.sessions = usize::from(sessions);
        }
        let wanted = Ndt7Options {
            listen: options.listen.clone(),
            port,
            identity,
            limits,
            on_end: std::sync::Arc::new(|summary| crate::output::complain(&summary.to_string())),
        };
        Ndt7Server::start(wanted)
            .map(Some)
            .map_err(|error| super::no_port(&error, &format!("answer ndt7 on port {port}")))
    }
}

/// The server that this build lacks: there is no value of it.
#[cfg(not(feature = "tls"))]
pub(super) enum Ndt7Server {}

#[cfg(not(feature = "tls"))]
impl Ndt7Server {
    pub(super) fn addresses(&self) -> &[std::net::SocketAddr] {
        match *self {}
    }
}

#[cfg(not(feature = "tls"))]
impl Ndt7Args {
    pub(super) fn start(&self, _: &ServeArgs, _: &ServeOptions) -> Result<Option<Ndt7Server>, Failure> {
        match self.ndt7 {
            Some(_) => Err(Failure::without("ndt7", "tls")),
            None => Ok(None),
        }
    }
}
