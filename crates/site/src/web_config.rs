//! TLS and users in the format of Prometheus exporters (`--web.config.file` of exporter-toolkit).
//!
//! The format is read strictly: a key that is not known, or not supported here, is an error. So
//! nobody believes in a protection that is not there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::WebConfigError;
use crate::tls::{self, OwnTls, Tls};

/// What a web config file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebConfig {
    /// `None` is plain HTTP.
    pub(crate) tls: Option<Tls>,
    /// Bcrypt hashes by name.
    pub(crate) users: BTreeMap<String, String>,
    /// The files that it names, to see when they change.
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    tls_server_config: Option<tls::Section>,
    basic_auth_users: BTreeMap<String, String>,
}

impl WebConfig {
    /// Reads `path` and the files that it names; these are relative to its folder.
    pub(crate) fn read(path: &Path) -> Result<Self, WebConfigError> {
        let text = std::fs::read_to_string(path).map_err(WebConfigError::Read)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let document: Document = if text.trim().is_empty() {
            Document::default()
        } else {
            serde_saphyr::from_str(&text).map_err(|error| WebConfigError::Format(error.to_string()))?
        };
        for (user, hash) in &document.basic_auth_users {
            hash.parse::<bcrypt::HashParts>().map_err(|_| WebConfigError::User(user.clone()))?;
        }
        let mut files = vec![path.to_owned()];
        let tls = document.tls_server_config.map(|tls| tls.config(folder, &mut files)).transpose()?;
        Ok(Self { tls, users: document.basic_auth_users, files })
    }

    /// Uses this certificate if the file names none.
    pub(crate) fn or(mut self, own: &OwnTls) -> Result<Self, WebConfigError> {
        if self.tls.is_none() {
            self.tls = Some(tls::Section::of(own).config(Path::new(""), &mut self.files)?);
        }
        Ok(self)
    }
}
