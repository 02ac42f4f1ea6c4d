//! With the `tls` feature: rustls with aws-lc.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::OwnTls;
use crate::connection::Watched;
use crate::error::WebConfigError;
use crate::private;

/// Certificate, key and rules, ready for connections; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Shakes hands.
    pub(crate) async fn accept(&self, stream: Watched<TcpStream>) -> io::Result<TlsStream<Watched<TcpStream>>> {
        TlsAcceptor::from(Arc::clone(&self.0)).accept(stream).await
    }
}

/// What a file says of TLS.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
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

impl Section {
    pub(crate) fn of(own: &OwnTls) -> Self {
        Self {
            cert_file: own.certificate.clone(),
            key_file: own.key.clone(),
            client_auth_type: ClientAuth::NoClientCert,
            client_ca_file: None,
            min_version: MinVersion::Tls13,
        }
    }

    pub(crate) fn config(&self, folder: &Path, files: &mut Vec<PathBuf>) -> Result<Tls, WebConfigError> {
        let (cert, key) = (folder.join(&self.cert_file), folder.join(&self.key_file));
        files.extend([cert.clone(), key.clone()]);
        let chain = certificates(&cert)?;
        let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| match error {
            pem::Error::NoItemsFound => wrong(&key, &"has no private key (PEM)"),
            error => pem_fault(&key, error),
        })?;
        let about = std::fs::metadata(&key).map_err(|error| wrong(&key, &error))?;
        private::check(&about, private::BEYOND_GROUP).map_err(|why| wrong(&key, &why))?;
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
        Ok(Tls(Arc::new(config)))
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
