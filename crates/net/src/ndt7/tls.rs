//! Keys and certificates.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::serve::key_file::granted;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may read or write it.
    #[error("the private key {path} is open to others (mode {mode:04o}); say: chmod 600 {path}")]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds nothing of that kind.
    #[error("{path} holds no {wanted} (PEM)")]
    Nothing {
        /// Which.
        path: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// What it holds is of no use.
    #[error("{path} is of no use: {source}")]
    Useless {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// What nobody but the owner may do with a private key. The owner's group may read: keys of
/// certificates are often given to a group of programs.
const BEYOND_GROUP: u32 = 0o037;

fn content(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = content(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| TlsError::Nothing { path: path.to_owned(), wanted: "certificate" })
}

/// Who a server is.
#[derive(Debug, Clone)]
pub struct Identity(pub(super) Arc<ServerConfig>);

impl Identity {
    /// From a chain of certificates and its private key, both PEM.
    pub fn read(chain: &Path, key: &Path) -> Result<Self, TlsError> {
        let certificates = certificates(chain)?;
        let private = PrivateKeyDer::from_pem_slice(&content(key)?)
            .map_err(|_| TlsError::Nothing { path: key.to_owned(), wanted: "private key without a passphrase" })?;
        let about = std::fs::metadata(key).map_err(|source| TlsError::Read { path: key.to_owned(), source })?;
        if let Some(mode) = granted(&about, BEYOND_GROUP) {
            return Err(TlsError::Open { path: key.to_owned(), mode });
        }
        Self::of(certificates, private).map_err(|source| TlsError::Useless { path: chain.to_owned(), source })
    }

    pub(super) fn of(
        certificates: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        Ok(Self(Arc::new(config)))
    }
}

/// Whom a client believes.
#[derive(Debug, Clone)]
pub struct Trust(pub(super) Arc<ClientConfig>);

impl Trust {
    /// Those that Mozilla's browsers believe.
    pub fn public() -> Self {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        Self::of(roots)
    }

    /// The certificates in a file (PEM), and no others.
    pub fn read(path: &Path) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|source| TlsError::Useless { path: path.to_owned(), source })?;
        }
        Ok(Self::of(roots))
    }

    fn of(roots: RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the library's own provider has its default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self(Arc::new(config))
    }
}
