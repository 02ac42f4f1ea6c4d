//! Without the `tls` feature.

use std::future::Ready;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::net::TcpStream;

use super::OwnTls;
use crate::connection::Watched;
use crate::error::WebConfigError;

/// What a file says of TLS: too much for this build.
#[derive(Debug)]
pub(crate) struct Section;

impl<'de> Deserialize<'de> for Section {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Section {
    pub(crate) fn of(_: &OwnTls) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "as the one that there is with the feature")]
    pub(crate) fn config(&self, _: &Path, _: &mut Vec<PathBuf>) -> Result<Tls, WebConfigError> {
        Err(WebConfigError::WithoutTls)
    }
}

/// The TLS that this build lacks: there is no value of it.
#[derive(Debug, Clone)]
pub(crate) enum Tls {}

impl Tls {
    pub(crate) fn accept(&self, _: Watched<TcpStream>) -> Ready<io::Result<Watched<TcpStream>>> {
        match *self {}
    }
}
