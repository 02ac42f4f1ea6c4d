//! Without the `tls` feature: nobody has a key, and whoever asks for one is told why.

use std::path::Path;
use std::time::Duration;

use narrows_wire::iperf3::auth::Credentials;

use super::{Padding, TokenError};

/// A server's public key, which this build cannot read: there is no value of it.
#[derive(Debug, Clone)]
pub enum PublicKey {}

impl PublicKey {
    /// Says what this build lacks.
    pub fn read(_path: &Path) -> Result<Self, TokenError> {
        Err(TokenError::NoTls)
    }

    /// Cannot be called.
    pub fn seal(&self, _credentials: &Credentials, _padding: Padding) -> Result<String, TokenError> {
        match *self {}
    }
}

/// Decides who may test, which this build cannot: there is no value of it.
#[derive(Debug)]
pub enum Gate {}

impl Gate {
    /// Says what this build lacks.
    pub fn read(_key: &Path, _users: &Path, _skew: Option<Duration>) -> Result<Self, TokenError> {
        Err(TokenError::NoTls)
    }

    /// Cannot be called.
    pub fn admit(&self, _token: Option<&str>, _unix_seconds: u64) -> Option<String> {
        match *self {}
    }
}
