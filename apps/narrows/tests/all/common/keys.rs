//! An iperf3 server's key, and its list of users.

use std::fmt::Write as _;
use std::path::PathBuf;

use aws_lc_rs::digest;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, PrivateDecryptingKey};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Stock programs read names and passwords up to the first space.
pub(crate) const USER: &str = "alice";
pub(crate) const PASSWORD: &str = "open-sesame";

/// Files as programs take them.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) private: PathBuf,
    pub(crate) public: PathBuf,
    pub(crate) users: PathBuf,
}

impl Keys {
    pub(crate) fn make(directory: &tempfile::TempDir) -> Self {
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).expect("keys can be made");
        let private: Pkcs8V1Der<'_> = key.as_der().expect("they can be written");
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().expect("they can be written");
        let mut hash = String::new();
        for octet in digest::digest(&digest::SHA256, format!("{{{USER}}}{PASSWORD}").as_bytes()).as_ref() {
            let _ = write!(hash, "{octet:02x}");
        }
        let file = |name: &str, content: &str| super::file(directory, name, content);
        Self {
            private: file("private.pem", &pem("PRIVATE KEY", private.as_ref())),
            public: file("public.pem", &pem("PUBLIC KEY", public.as_ref())),
            users: file("users", &format!("# who may test\n{USER},{hash}\n")),
        }
    }
}

/// Lines of 64 characters, as OpenSSL wants them.
fn pem(name: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut out = format!("-----BEGIN {name}-----\n");
    for line in text.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + &format!("-----END {name}-----\n")
}
