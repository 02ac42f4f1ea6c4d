//! With the `tls` feature: RSA by aws-lc.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use narrows_wire::iperf3::auth::{Credentials, SKEW_SECONDS, Users};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use super::{Padding, TokenError};

/// Most octets of a file of keys or users: hundreds of thousands of the latter.
const MOST_FILE_OCTETS: u64 = 32 << 20;
const PUBLIC: &str = "public RSA key of 2048 to 8192 bits (PEM, BEGIN PUBLIC KEY)";
const PRIVATE: &str = "private RSA key of 2048 to 8192 bits without a passphrase (PEM, BEGIN PRIVATE KEY)";

fn read(path: &Path, private: bool) -> Result<Vec<u8>, TokenError> {
    let unreadable = |source| TokenError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o7777;
    if private && mode & 0o077 != 0 {
        return Err(TokenError::Open { path: path.to_owned(), mode });
    }
    let mut content = Vec::new();
    file.take(MOST_FILE_OCTETS).read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

/// A server's public key, as its clients have it.
#[derive(Debug, Clone)]
pub struct PublicKey(PublicEncryptingKey);

impl PublicKey {
    /// Reads a file in PEM.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let content = read(path, false)?;
        Self::parse(&content).ok_or_else(|| TokenError::NoKey { path: path.to_owned(), wanted: PUBLIC })
    }

    fn parse(pem: &[u8]) -> Option<Self> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
        PublicEncryptingKey::from_der(&der).ok().map(Self)
    }

    /// The token that shows a server who asks.
    pub fn seal(&self, credentials: &Credentials, padding: Padding) -> Result<String, TokenError> {
        if [&credentials.user, &credentials.password].iter().any(|text| text.contains(['\n', '\r', '\0'])) {
            return Err(TokenError::Lines);
        }
        let text = credentials.text();
        let (octets, mut room) = (text.len(), vec![0; self.0.key_size_bytes()]);
        let fits = |most: usize| {
            let whole = octets <= most;
            whole.then_some(()).ok_or(TokenError::TooLong { octets, most })
        };
        let sealed = match padding {
            Padding::Pkcs1 => {
                let key = Pkcs1PublicEncryptingKey::new(self.0.clone()).map_err(|_| TokenError::Encrypt)?;
                fits(key.max_plaintext_size())?;
                key.encrypt(text.as_bytes(), &mut room)
            }
            Padding::Oaep => {
                let key = OaepPublicEncryptingKey::new(self.0.clone()).map_err(|_| TokenError::Encrypt)?;
                fits(key.max_plaintext_size(&OAEP_SHA1_MGF1SHA1))?;
                key.encrypt(&OAEP_SHA1_MGF1SHA1, text.as_bytes(), &mut room, None)
            }
        };
        let sealed = sealed.map_err(|_| TokenError::Encrypt)?;
        Ok(BASE64_STANDARD.encode(sealed))
    }
}

/// Accepted tokens that are remembered; while there are as many, nobody else is accepted (ours:
/// years of tests in twenty seconds).
const MOST_REMEMBERED: usize = 16_384;

/// Decides who may test: the server's private key, and its users.
#[derive(Debug)]
pub struct Gate {
    oaep: OaepPrivateDecryptingKey,
    pkcs1: Pkcs1PrivateDecryptingKey,
    users: Users,
    skew_seconds: u64,
    /// Digests of accepted tokens, and until when they could be shown again.
    spent: Mutex<BTreeMap<[u8; 32], u64>>,
}

impl Gate {
    /// Reads both files. Clocks may differ by `skew`, ten seconds where that is `None`.
    pub fn read(key: &Path, users: &Path, skew: Option<Duration>) -> Result<Self, TokenError> {
        let found = Users::parse(&String::from_utf8_lossy(&read(users, false)?));
        if found.is_empty() {
            return Err(TokenError::NoUsers { path: users.to_owned() });
        }
        let content = read(key, true)?;
        Self::parse(&content, found, skew).ok_or_else(|| TokenError::NoKey { path: key.to_owned(), wanted: PRIVATE })
    }

    fn parse(pem: &[u8], users: Users, skew: Option<Duration>) -> Option<Self> {
        let key = match PrivateKeyDer::from_pem_slice(pem).ok()? {
            PrivateKeyDer::Pkcs8(key) => PrivateDecryptingKey::from_pkcs8(key.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(key) => PrivateDecryptingKey::from_pkcs8(&in_pkcs8(key.secret_pkcs1_der())),
            _ => return None,
        };
        let key = key.ok()?;
        Some(Self {
            oaep: OaepPrivateDecryptingKey::new(key.clone()).ok()?,
            pkcs1: Pkcs1PrivateDecryptingKey::new(key).ok()?,
            users,
            skew_seconds: skew.map_or(SKEW_SECONDS, |skew| skew.as_secs()),
            spent: Mutex::new(BTreeMap::new()),
        })
    }

    /// The name of whoever may test with this token, `unix_seconds` being now. What is wrong with
    /// one that is refused is nobody's business, and how long it took to find out must not show:
    /// see [`super::REFUSED_AFTER`].
    pub fn admit(&self, token: Option<&str>, unix_seconds: u64) -> Option<String> {
        let sealed = BASE64_STANDARD.decode(token?.trim_end()).ok()?;
        let mut room = vec![0; self.oaep.min_output_size().max(self.pkcs1.min_output_size())];
        let credentials = [Padding::Oaep, Padding::Pkcs1].into_iter().find_map(|padding| {
            let opened = match padding {
                Padding::Oaep => self.oaep.decrypt(&OAEP_SHA1_MGF1SHA1, &sealed, &mut room, None),
                Padding::Pkcs1 => self.pkcs1.decrypt(&sealed, &mut room),
            };
            Credentials::parse(std::str::from_utf8(opened.ok()?).ok()?)
        })?;
        let admitted = self.users.admit(&credentials, unix_seconds, self.skew_seconds);
        (admitted && self.spend(&sealed, unix_seconds)).then_some(credentials.user)
    }

    /// `false`: it was shown before.
    fn spend(&self, sealed: &[u8], unix_seconds: u64) -> bool {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.retain(|_, until| *until >= unix_seconds);
        let mut name = [0; 32];
        name.copy_from_slice(digest::digest(&digest::SHA256, sealed).as_ref());
        if spent.len() >= MOST_REMEMBERED {
            return false;
        }
        // Its stamp may lie that far in the future.
        let until = unix_seconds.saturating_add(self.skew_seconds.saturating_mul(2));
        spent.insert(name, until).is_none()
    }
}

/// A key of PKCS#1 in the wrapping of PKCS#8 (RFC 5208 §5): version, algorithm, key.
fn in_pkcs8(pkcs1: &[u8]) -> Vec<u8> {
    /// Version 0; rsaEncryption (1.2.840.113549.1.1.1) without parameters.
    const HEAD: [u8; 18] =
        [0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    const OCTET_STRING: u8 = 0x04;
    const SEQUENCE: u8 = 0x30;
    let wrap = |kind: u8, content: &[u8]| {
        let length = content.len().to_be_bytes();
        let short: Vec<u8> = length.iter().copied().skip_while(|octet| *octet == 0).collect();
        let mut whole = vec![kind];
        if content.len() >= 0x80 {
            whole.push(0x80 | u8::try_from(short.len()).unwrap_or(0x7f));
        }
        whole.extend(short);
        whole.extend(content);
        whole
    };
    let mut content = HEAD.to_vec();
    content.extend(wrap(OCTET_STRING, pkcs1));
    wrap(SEQUENCE, &content)
}

#[cfg(test)]
#[path = "tests.rs"]
pub(in crate::iperf3) mod tests;
