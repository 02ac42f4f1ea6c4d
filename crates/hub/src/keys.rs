//! What the hub keeps secret, in its state directory.
//!
//! | file | what |
//! |-|-|
//! | `key.pem`, `cert.pem` | TLS; agents know the hash of the key |
//! | `sign.seed` | signs plans and orders; on NATS, also the hub's own key |
//! | `nats-operator.seeds` | signs the tokens of NATS's operator mode; there if its owner made it |
//! | `tenant.secret` | from which all keys between agents follow |
//! | `view.token` | for whoever reads and changes from another machine |
//! | `read.token` | for whoever only reads |
//! | `hub.json` | where the hub is, for `narrows fleet` |

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use narrows_bus::Key;
use narrows_bus::nats::Operator;
use narrows_fleet::message::Signed;
use narrows_wire::fleet_key::{Secret, SecretError};
use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::token::random;
use narrows_units::hex;

/// The hub's secrets.
pub struct Keys {
    /// The state directory.
    pub folder: PathBuf,
    /// SHA-256 of the `SubjectPublicKeyInfo` of the TLS key.
    pub key_hash: [u8; 32],
    /// Signs plans and orders.
    pub sign: Key,
    /// Signs the tokens of NATS's operator mode, if there is one.
    pub operator: Option<Operator>,
    /// From which all keys between agents follow.
    pub tenant: Secret,
    /// What people show who read and change from another machine.
    pub view: String,
}

/// Where a hub is: what `narrows fleet` on the same machine needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubFile {
    /// `https://10.0.0.1:8622`.
    pub url: String,
    /// SHA-256 of the `SubjectPublicKeyInfo` of its TLS key, in hexadecimal.
    pub key_hash: String,
}

impl Keys {
    /// Reads the secrets of a directory, and makes those that are missing. `names` are the names
    /// and addresses of a new certificate.
    pub fn open(folder: &Path, names: &[String]) -> Result<Self> {
        make(folder)?;
        let key = folder.join("key.pem");
        let pem = kept(&key, || Ok(KeyPair::generate().map_err(|error| fault(&key, &error))?.serialize_pem()))?;
        let pair = KeyPair::from_pem(&pem).map_err(|error| fault(&key, &error))?;
        let certificate = folder.join("cert.pem");
        kept(&certificate, || {
            let params = CertificateParams::new(names.to_vec()).map_err(|error| fault(&certificate, &error))?;
            Ok(params.self_signed(&pair).map_err(|error| fault(&certificate, &error))?.pem())
        })?;
        let seed = folder.join("sign.seed");
        let sign = Key::from_seed(kept(&seed, || Ok(Key::new().seed()))?.trim());
        let operator = folder.join(OPERATOR);
        let operator = operator.exists().then(|| read_operator(&operator)).transpose()?;
        let secret = folder.join("tenant.secret");
        let tenant = kept(&secret, || Ok(hex::to_text(&random::<32>()?)))?;
        let view = kept(&folder.join("view.token"), || Ok(hex::to_text(&random::<20>()?)))?;
        kept(&folder.join("read.token"), || Ok(hex::to_text(&random::<20>()?)))?;
        Ok(Self {
            folder: folder.to_owned(),
            key_hash: Sha256::digest(pair.subject_public_key_info()).into(),
            sign: sign.map_err(|error| fault(&seed, &error))?,
            operator,
            tenant: tenant.trim().parse().map_err(|error: SecretError| fault(&secret, &error.to_string()))?,
            view: view.trim().to_owned(),
        })
    }

    /// A message with its signature.
    #[expect(clippy::missing_panics_doc, reason = "messages have no keys that are no text")]
    pub fn signed(&self, message: &impl Serialize) -> Signed {
        self.signed_text(serde_json::to_string(message).expect("messages have no keys that are no text"))
    }

    /// A message that is text already, with its signature.
    pub(crate) fn signed_text(&self, message: String) -> Signed {
        let signature = hex::to_text(&self.sign.sign(message.as_bytes()));
        Signed { message, signature }
    }

    /// Says where the hub is.
    pub fn write_hub_file(&self, url: &str) -> Result<()> {
        let file = HubFile { url: url.to_owned(), key_hash: hex::to_text(&self.key_hash) };
        let path = self.folder.join("hub.json");
        let text = serde_json::to_string(&file).map_err(|error| fault(&path, &error))?;
        // An older one may be there.
        drop(std::fs::remove_file(&path));
        write(&path, &text)
    }
}

impl HubFile {
    /// Reads that of a state directory.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("hub.json");
        let text = std::fs::read_to_string(&path).map_err(|error| fault(&path, &error))?;
        serde_json::from_str(&text).map_err(|error| fault(&path, &error))
    }
}

/// A directory for its owner alone.
fn make(folder: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(|error| fault(folder, &error))
}

/// The keys of an operator of NATS, made if they are missing.
pub(crate) fn operator_of(folder: &Path) -> Result<Operator> {
    make(folder)?;
    let path = folder.join(OPERATOR);
    if !path.exists() {
        write(&path, &Operator::new().seeds())?;
    }
    read_operator(&path)
}

const OPERATOR: &str = "nats-operator.seeds";

fn read_operator(path: &Path) -> Result<Operator> {
    let text = std::fs::read_to_string(path).map_err(|error| fault(path, &error))?;
    Operator::from_seeds(&text).map_err(|error| fault(path, &error))
}

fn fault(path: &Path, why: &(impl ToString + ?Sized)) -> Error {
    Error::State { path: path.to_owned(), why: why.to_string() }
}

/// The text of a file, which is made if it is missing.
fn kept(path: &Path, make: impl FnOnce() -> Result<String>) -> Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = make()?;
            write(path, &text)?;
            Ok(text)
        }
        Err(error) => Err(fault(path, &error)),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| fault(path, &error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use narrows_bus::verifies;

    use super::*;

    #[test]
    fn secrets_are_made_once_and_for_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("hub");
        let keys = Keys::open(&folder, &["hub.example".to_owned(), "10.0.0.1".to_owned()]).unwrap();
        keys.write_hub_file("https://10.0.0.1:8622").unwrap();
        let again = Keys::open(&folder, &[]).unwrap();
        again.write_hub_file("https://10.0.0.2:8622").unwrap();
        assert_eq!((again.key_hash, again.tenant, &again.view), (keys.key_hash, keys.tenant, &keys.view));
        assert_eq!(again.sign.public(), keys.sign.public());
        assert_eq!(HubFile::read(&folder).unwrap().url, "https://10.0.0.2:8622");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for name in ["key.pem", "cert.pem", "sign.seed", "tenant.secret", "view.token", "read.token", "hub.json"] {
            assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
        }
        let signed = keys.signed(&[1, 2]);
        let signature = hex::to_array::<64>(&signed.signature).unwrap();
        assert!(verifies(&keys.sign.public(), signed.message.as_bytes(), &signature));
    }
}
