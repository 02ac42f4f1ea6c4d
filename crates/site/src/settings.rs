//! Where to serve, and to whom.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::WebConfigError;
use crate::tls::OwnTls;

/// Where to serve, and to whom.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address and the port.
    pub listen: SocketAddr,
    /// Names under which browsers reach it, beside `localhost` and its addresses.
    pub hosts: Vec<String>,
    /// TLS and users, in the format of Prometheus exporters (`--web.config.file`).
    pub web_config: Option<PathBuf>,
    /// A file with the token that programs and people show.
    pub token_file: Option<PathBuf>,
    /// A file with the token of those who read everything and change nothing.
    pub read_token_file: Option<PathBuf>,
    /// Where the service manager keeps what it hands over (`$CREDENTIALS_DIRECTORY`).
    pub credentials: Option<PathBuf>,
    /// Unix time.
    pub now: fn() -> Duration,
    /// TLS that is there without a web config file.
    pub own_tls: Option<OwnTls>,
    /// Who asks from this very machine shows nothing, unless there are users.
    pub trusts_own_machine: bool,
    /// Paths for which nothing is shown, beside those of the site itself: they check by themselves.
    pub open: &'static [&'static str],
    /// Octets of what is posted, at most.
    pub largest_body: usize,
}

impl Settings {
    /// For this machine alone: no TLS, no users.
    pub fn local(listen: SocketAddr) -> Self {
        Self {
            listen,
            hosts: Vec::new(),
            web_config: None,
            token_file: None,
            read_token_file: None,
            credentials: None,
            now: wall_clock,
            own_tls: None,
            trusts_own_machine: false,
            open: &[],
            largest_body: 16 * 1024,
        }
    }
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Others could read what is sent, or anybody could ask.
    #[error(
        "{0} can be reached from other machines: it needs TLS and users or a token (web config file, token file); \
         127.0.0.1 needs neither"
    )]
    Exposed(SocketAddr),
    /// The web config file is wrong.
    #[error("{}: {error}", path.display())]
    WebConfig {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        error: WebConfigError,
    },
    /// The token file cannot be used.
    #[error("{}: {why}", path.display())]
    TokenFile {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The address cannot be used.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// Serving ended by an error.
    #[error("the web server ended: {0}")]
    Ended(std::io::Error),
}

/// The system's clock: Unix time.
#[expect(clippy::disallowed_methods, reason = "the pages say what time it is; tests give their own clock")]
pub fn wall_clock() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}
