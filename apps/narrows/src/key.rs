//! The shared key: its flags, and its file.

use std::path::{Path, PathBuf};

use narrows_net::client::ConnectOptions;
use narrows_net::serve::FleetKeys;
use narrows_wire::Psk;
use narrows_wire::fleet_key::{KeyName, Lease};

use crate::exit::Failure;

/// How this host shows a server who it is.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct KeyArgs {
    /// File with the key that both hosts share; a server that does not ask for it is refused
    #[arg(long, value_name = "FILE", env = "NARROWS_PSK_FILE")]
    psk_file: Option<PathBuf>,
    /// What a server of a fleet knows that key by, AGENT@WEEK; the file then has 64 hexadecimal
    /// digits
    #[arg(long, value_name = "NAME", requires = "psk_file")]
    key_name: Option<KeyName>,
    /// The run of a fleet that may load the server's host now.
    #[arg(long, value_name = "UUID", requires_all = ["key_name", "fence"], hide = true)]
    run: Option<uuid::Uuid>,
    /// The revision of that run's lease.
    #[arg(long, value_name = "N", requires = "run", hide = true)]
    fence: Option<u64>,
}

/// What the flags and the file say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Key {
    pub(crate) psk: Option<Psk>,
    name: Option<KeyName>,
    lease: Option<Lease>,
}

impl KeyArgs {
    /// Reads the file.
    pub(crate) fn read(&self) -> Result<Key, Failure> {
        let psk = match (&self.psk_file, &self.key_name) {
            (None, _) => None,
            (Some(path), None) => Some(read(path)?),
            (Some(path), Some(_)) => Some(narrows_net::serve::read_secret_file(path).map_err(unusable)?),
        };
        let lease = self.run.zip(self.fence).map(|(run, fence)| Lease { run, fence });
        Ok(Key { psk, name: self.key_name.clone(), lease })
    }
}

impl Key {
    /// A key without a name.
    #[cfg(feature = "watch")]
    pub(crate) fn shared(psk: Option<Psk>) -> Self {
        Self { psk, ..Self::default() }
    }

    /// The options with this key.
    pub(crate) fn give(self, options: ConnectOptions) -> ConnectOptions {
        ConnectOptions { psk: self.psk, key_name: self.name, lease: self.lease, ..options }
    }
}

/// Reads a key without a name; refuses a file that others can read.
pub(crate) fn read(path: &Path) -> Result<Psk, Failure> {
    narrows_net::serve::read_psk_file(path).map_err(unusable)
}

/// Reads a token; refuses a file that others can read.
#[cfg(feature = "fleet")]
pub(crate) fn token(path: &Path) -> Result<String, Failure> {
    narrows_net::serve::read_token_file(path).map_err(unusable)
}

/// The keys of a fleet's clients, in a file that stays open to changes.
pub(crate) fn fleet(path: &Path) -> Result<FleetKeys, Failure> {
    FleetKeys::open(path).map_err(unusable)
}

#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
fn unusable(error: narrows_net::serve::KeyFileError) -> Failure {
    Failure::usage(error.to_string())
}
