//! TLS and users in the format of Prometheus exporters (`--web.config.file` of exporter-toolkit).
//!
//! The format is read strictly: a key that is not known, or not supported here, is an error. So
//! nobody believes in a protection that is not there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use serde::Deserialize;

/// What is wrong with a web config file; its owner mends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebConfigError {
    /// It cannot be read.
    #[error("{0}")]
    Read(std::io::Error),
    /// It is not of the format.
    #[error("{0}")]
    Format(String),
    /// A certificate or key cannot be used.
    #[error("{}: {why}", path.display())]
    Tls {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A user's entry is no bcrypt hash.
    #[error("user {0}: this is no bcrypt hash (htpasswd -nBC 10 \"\" makes one)")]
    User(String),
}

/// What a web config file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebConfig {
    /// `None` is plain HTTP.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// Bcrypt hashes by name.
    pub(crate) users: BTreeMap<String, String>,
    /// The files that it names, to see when they change.
    pub(crate) files: Vec<PathBuf>,
}

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTls {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    tls_server_config: Option<Tls>,
    basic_auth_users: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    cert_file: PathBuf,
    key_file: PathBuf,
    #[serde(default)]
    client_auth_type: ClientAuth,
    client_ca_file: Option<PathBuf>,
    #[serde(default)]
    min_version: MinVersion,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
enum ClientAuth {
    #[default]
    NoClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
enum MinVersion {
    #[default]
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
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
            self.tls = Some(Tls::of(own).config(Path::new(""), &mut self.files)?);
        }
        Ok(self)
    }
}

impl Tls {
    fn of(own: &OwnTls) -> Self {
        Self {
            cert_file: own.certificate.clone(),
            key_file: own.key.clone(),
            client_auth_type: ClientAuth::NoClientCert,
            client_ca_file: None,
            min_version: MinVersion::Tls13,
        }
    }

    fn config(&self, folder: &Path, files: &mut Vec<PathBuf>) -> Result<Arc<ServerConfig>, WebConfigError> {
        let (cert, key) = (folder.join(&self.cert_file), folder.join(&self.key_file));
        files.extend([cert.clone(), key.clone()]);
        let chain = certificates(&cert)?;
        let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| match error {
            pem::Error::NoItemsFound => wrong(&key, &"has no private key (PEM)"),
            error => pem_fault(&key, error),
        })?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions: &[&SupportedProtocolVersion] = match self.min_version {
            MinVersion::Tls12 => &[&version::TLS13, &version::TLS12],
            MinVersion::Tls13 => &[&version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| wrong(&cert, &error))?;
        let builder = if self.client_auth_type == ClientAuth::NoClientCert {
            builder.with_no_client_auth()
        } else {
            let missing = || WebConfigError::Format("client_auth_type needs client_ca_file".to_owned());
            let path = folder.join(self.client_ca_file.as_ref().ok_or_else(missing)?);
            files.push(path.clone());
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&path)? {
                roots.add(certificate).map_err(|error| wrong(&path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let optional = self.client_auth_type == ClientAuth::VerifyClientCertIfGiven;
            let verifier = if optional { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| wrong(&path, &error))?)
        };
        let mut config = builder.with_single_cert(chain, secret).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = self.cert_file.display();
                wrong(&key, &format!("is not the key of the certificate in {certificate}"))
            }
            error => wrong(&cert, &error),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, WebConfigError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| pem_fault(path, error))?;
    let all = read.collect::<Result<Vec<_>, _>>().map_err(|error| pem_fault(path, error))?;
    if all.is_empty() { Err(wrong(path, &"has no certificate (PEM)")) } else { Ok(all) }
}

fn pem_fault(path: &Path, error: pem::Error) -> WebConfigError {
    match error {
        pem::Error::Io(error) => wrong(path, &error),
        error => wrong(path, &format!("is no PEM file: {error}")),
    }
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> WebConfigError {
    WebConfigError::Tls { path: path.to_owned(), why: error.to_string() }
}
