//! NATS's operator mode: servers believe what an operator's key signed, and take in whom an
//! account's key signed, without a list of users.
//!
//! A token is `header.claims.signature`, each in base64url without padding; the signature is
//! Ed25519 over the first two with the dot between (NATS JWT version 2).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::{KeyPair, KeyPairType};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::permissions::Permissions;

/// The keys of an operator, of its system account, and of the account of a fleet.
pub struct Operator {
    own: KeyPair,
    system: KeyPair,
    account: KeyPair,
}

/// From when until when a token holds, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// When it was issued.
    pub from_s: u64,
    /// Servers end the connection then; `None`: never.
    pub until_s: Option<u64>,
}

/// What the account of a fleet may have, and who is kept out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The fleet.
    pub name: String,
    /// Octets of its streams on the servers' disks.
    pub disk_octets: u64,
    /// Public keys whose tokens of before the time, in seconds, are worth nothing.
    pub revoked: Vec<(String, u64)>,
}

impl Operator {
    /// New keys.
    pub fn new() -> Self {
        let (system, account) = (KeyPair::new_account(), KeyPair::new_account());
        Self { own: KeyPair::new_operator(), system, account }
    }

    /// Another fleet on the servers of the same operator.
    #[must_use]
    pub fn another_account(&self) -> Self {
        Self { own: again(&self.own), system: again(&self.system), account: KeyPair::new_account() }
    }

    /// From the three seeds, each on a line of its own.
    pub fn from_seeds(text: &str) -> Result<Self> {
        let wrong = || Error::Subject("(the seeds of an operator)".to_owned());
        let mut lines = text.split_whitespace();
        let mut next = |kind: KeyPairType| {
            let pair = lines.next().and_then(|seed| KeyPair::from_seed(seed).ok());
            pair.filter(|pair| pair.key_pair_type() == kind).ok_or_else(wrong)
        };
        Ok(Self {
            own: next(KeyPairType::Operator)?,
            system: next(KeyPairType::Account)?,
            account: next(KeyPairType::Account)?,
        })
    }

    /// The three seeds, to be kept in a file that nobody else can read.
    pub fn seeds(&self) -> String {
        format!("{}\n{}\n{}\n", seed(&self.own), seed(&self.system), seed(&self.account))
    }

    /// What a server's file needs to know of the operator and its accounts. `folder` is where the
    /// server keeps tokens of accounts.
    pub fn server_settings(&self, account: &Account, folder: &str, at_s: u64) -> String {
        let system = self.system.public_key();
        let claims = json!({ "type": "operator", "version": 2, "system_account": system });
        let operator = token(&self.own, &self.own.public_key(), "narrows", Validity::since(at_s), &claims);
        let none = json!({ "mem_storage": 0, "disk_storage": 0, "streams": 0, "consumer": 0 });
        let own = token(&self.own, &system, "SYS", Validity::since(at_s), &account_claims(&none, &[]));
        format!(
            "operator: {operator}\nsystem_account: {system}\n\
             resolver: {{ type: full, dir: {folder:?}, allow_delete: false, interval: \"2m\" }}\n\
             resolver_preload: {{\n  {system}: {own}\n  {}: {}\n}}\n",
            self.account.public_key(),
            self.account(account, at_s),
        )
    }

    /// The account of a fleet, as its servers are to know it from now on.
    pub fn account(&self, account: &Account, at_s: u64) -> String {
        let limits = json!({ "mem_storage": 0, "disk_storage": account.disk_octets, "streams": -1, "consumer": -1 });
        let claims = account_claims(&limits, &account.revoked);
        token(&self.own, &self.account.public_key(), &account.name, Validity::since(at_s), &claims)
    }

    /// A user of the fleet's account.
    pub fn user(&self, public_key: &str, name: &str, may: &Permissions, validity: Validity) -> String {
        user(&self.account, public_key, name, may, validity)
    }

    /// Whoever tells servers of accounts.
    pub fn system_user(&self, public_key: &str, validity: Validity) -> String {
        user(&self.system, public_key, "narrows-hub", &Permissions::all(), validity)
    }
}

impl Validity {
    /// From then on.
    pub const fn since(from_s: u64) -> Self {
        Self { from_s, until_s: None }
    }
}

impl Default for Operator {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Operator({}, {})", self.own.public_key(), self.account.public_key())
    }
}

fn seed(pair: &KeyPair) -> String {
    pair.seed().expect("a key that was made or read from a seed has one")
}

fn again(pair: &KeyPair) -> KeyPair {
    KeyPair::from_seed(&seed(pair)).expect("the seed of a key")
}

fn account_claims(jetstream: &Value, revoked: &[(String, u64)]) -> Value {
    let mut limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
    });
    if let (Some(limits), Some(jetstream)) = (limits.as_object_mut(), jetstream.as_object()) {
        limits.extend(jetstream.clone());
    }
    let mut claims = json!({ "type": "account", "version": 2, "limits": limits });
    if !revoked.is_empty() {
        claims["revocations"] = revoked.iter().map(|(key, at_s)| (key.clone(), json!(at_s))).collect();
    }
    claims
}

fn user(issuer: &KeyPair, public_key: &str, name: &str, may: &Permissions, validity: Validity) -> String {
    let claims = json!({
        "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
        "pub": { "allow": may.publish }, "sub": { "allow": may.subscribe },
    });
    token(issuer, public_key, name, validity, &claims)
}

/// The same claims are the same token: Ed25519 takes no random number.
fn token(issuer: &KeyPair, subject: &str, name: &str, validity: Validity, nats: &Value) -> String {
    let mut claims = json!({
        "iat": validity.from_s, "iss": issuer.public_key(), "name": name, "sub": subject, "nats": nats,
    });
    if let Some(until_s) = validity.until_s {
        claims["exp"] = json!(until_s);
    }
    claims["jti"] = json!(URL_SAFE_NO_PAD.encode(Sha256::digest(claims.to_string())));
    let text = |part: &str| URL_SAFE_NO_PAD.encode(part);
    let signed = format!("{}.{}", text(HEADER), text(&claims.to_string()));
    let signature = issuer.sign(signed.as_bytes()).expect("a key with a seed signs");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A user of the system account tells one server, which tells the others.
pub(crate) const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";

const HEADER: &str = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
