//! Name and password: the text that a client encrypts for the server, and the server's list of
//! users. The encryption (RSA) is none of this module's affair.
//!
//! A token can be used again by whoever hears it, within the time that the clocks may differ: the
//! protocol has no nonce.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Seconds by which the clocks of both sides may differ, unless told otherwise.
pub const SKEW_SECONDS: u64 = 10;

/// What a token holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
    /// When the token was made, seconds since 1970.
    pub unix_seconds: u64,
}

impl std::fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The text to encrypt.
    pub fn text(&self) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, self.unix_seconds)
    }

    /// Reads a decrypted text; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        // Values begin behind the sixth octet; a password may begin with a space.
        let mut field = |name: &str| Some(lines.next()?.strip_prefix(name)?.to_owned());
        let (user, password, stamp) = (field("user: ")?, field("pwd:  ")?, field("ts:   ")?);
        Some(Self { user, password, unix_seconds: stamp.trim().parse().ok()? })
    }
}

/// Who may run tests: lines of `name,sha256`, where the latter is that of `{name}password` in
/// hexadecimal.
#[derive(Debug, Clone, Default)]
pub struct Users(Vec<(String, String)>);

impl Users {
    /// Reads a list; lines without a comma and those that begin with `#` are passed over.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let users = lines.filter_map(|line| line.split_once(','));
        Self(users.map(|(user, hash)| (user.trim().to_owned(), hash.trim().to_lowercase())).collect())
    }

    /// Nobody is in the list.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these are a user's name and password, of a token made within `skew_seconds` of
    /// `now_seconds`.
    pub fn admit(&self, credentials: &Credentials, now_seconds: u64, skew_seconds: u64) -> bool {
        let digest = Sha256::digest(format!("{{{}}}{}", credentials.user, credentials.password));
        let mut hash = String::with_capacity(64);
        for octet in digest {
            // Writing to a string cannot fail.
            let _ = write!(hash, "{octet:02x}");
        }
        let fresh = now_seconds.abs_diff(credentials.unix_seconds) <= skew_seconds;
        let known = self.0.iter().filter(|(user, _)| *user == credentials.user);
        fresh
            & known.fold(false, |admitted, (_, wanted)| admitted | bool::from(wanted.as_bytes().ct_eq(hash.as_bytes())))
    }
}
