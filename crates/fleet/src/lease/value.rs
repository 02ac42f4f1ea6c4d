//! The value of a key on the bus: null, or who has it, signed by that agent.
//!
//! | part | what |
//! |-|-|
//! | `agent`, `run` | who has the key |
//! | `after` | the revision that the value was written over |
//! | `public_key`, `certificate` | the agent's key, and the hub's signature that it is this agent's |
//! | `signature` | the agent's signature |
//!
//! Both signatures are Ed25519 (RFC 8032) over lines of text, which [`certified`] and `claimed`
//! give. They name the bucket, the key and `after`, so that a value that was true once is worth
//! nothing elsewhere or later. The certificate is in the value, so that an agent believes a peer
//! that joined after its plan was made. Who was thrown out still has one, but may not write.
//!
//! Null needs no signature. Whoever writes it over a lease ends the run of its holder, and gains no
//! key by it.

use std::collections::BTreeSet;

use narrows_units::hex;
use serde::{Deserialize, Serialize};

use super::{Holder, KeyState};
use crate::keys::{Key, Name};

/// What shows that a key is an agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The agent's public key, in the textual form of NATS.
    pub public_key: String,
    /// The hub's signature over [`certified`], in hexadecimal.
    pub certificate: String,
}

/// Where a value is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The key.
    pub key: &'a Key,
}

/// Why a value names nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forgery {
    /// No value of ours; one without signatures is none.
    #[error("no signed lease: {0}")]
    Unreadable(String),
    /// The hub did not sign that the key is this agent's.
    #[error("the hub did not certify the key of {0}")]
    Certificate(Name),
    /// The agent did not sign this.
    #[error("{0} did not sign this lease of this key")]
    Signature(Name),
    /// It was written before: the revision that it names is not the one before its own.
    #[error("{0} wrote this lease earlier")]
    Replayed(Name),
}

/// A lease that its agent signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// Who has the key.
    pub holder: Holder,
    /// The revision that it was written over.
    pub after: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    #[serde(flatten)]
    holder: Holder,
    after: u64,
    public_key: String,
    certificate: String,
    signature: String,
}

/// The octets that the hub signs: this key is this agent's.
pub fn certified(tenant: &Name, agent: &Name, public_key: &str) -> Vec<u8> {
    format!("narrows.agent/1\n{tenant}\n{agent}\n{public_key}\n").into_bytes()
}

/// The octets that an agent signs: it writes this over the revision `after` of this key.
fn claimed(place: Place<'_>, holder: &Holder, after: u64) -> Vec<u8> {
    let (Place { bucket, key }, Holder { agent, run }) = (place, holder);
    format!("narrows.lease/1\n{bucket}\n{key}\n{after}\n{agent}\n{run}\n").into_bytes()
}

/// The value that gives a key to a holder, in place of the revision `after`.
#[expect(clippy::missing_panics_doc, reason = "texts and a number")]
pub fn sealed(
    place: Place<'_>,
    holder: Holder,
    after: u64,
    credential: &Credential,
    sign: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let signature = hex::to_text(&sign(&claimed(place, &holder, after)));
    let Credential { public_key, certificate } = credential.clone();
    serde_json::to_vec(&Sealed { holder, after, public_key, certificate, signature }).expect("texts and a number")
}

/// Reads values, and believes what is signed.
#[derive(Debug)]
pub struct Verifier {
    tenant: Name,
    hub_key: String,
    verifies: fn(&str, &[u8], &[u8]) -> bool,
    /// Agents with their keys, as the hub certified them.
    certified: BTreeSet<(Name, String)>,
}

impl Verifier {
    /// Of one fleet. `verifies` says whether the owner of a public key signed some octets.
    pub const fn new(tenant: Name, hub_key: String, verifies: fn(&str, &[u8], &[u8]) -> bool) -> Self {
        Self { tenant, hub_key, verifies, certified: BTreeSet::new() }
    }

    /// What a value of this revision says; `None`: the key is free.
    pub fn read(&mut self, place: Place<'_>, revision: u64, value: &[u8]) -> Result<Option<Proven>, Forgery> {
        let read: Result<Option<Sealed>, _> = serde_json::from_slice(value);
        let Some(sealed) = read.map_err(|error| Forgery::Unreadable(error.to_string()))? else { return Ok(None) };
        let Sealed { holder, after, public_key, certificate, signature } = sealed;
        let signed = |by: &str, octets: &[u8], signature: &str| {
            hex::to_octets(signature).is_some_and(|signature| (self.verifies)(by, octets, &signature))
        };
        let owner = (holder.agent.clone(), public_key);
        let known = self.certified.contains(&owner);
        if !known && !signed(&self.hub_key, &certified(&self.tenant, &owner.0, &owner.1), &certificate) {
            return Err(Forgery::Certificate(holder.agent));
        }
        if !signed(&owner.1, &claimed(place, &holder, after), &signature) {
            return Err(Forgery::Signature(holder.agent));
        }
        if after >= revision {
            return Err(Forgery::Replayed(holder.agent));
        }
        if !known {
            self.certified.insert(owner);
        }
        Ok(Some(Proven { holder, after }))
    }

    /// The same for who need not know why.
    pub fn state(&mut self, place: Place<'_>, revision: u64, value: &[u8]) -> KeyState {
        match self.read(place, revision, value) {
            Ok(None) => KeyState::Free,
            Ok(Some(proven)) => KeyState::Held(proven.holder),
            Err(_) => KeyState::Unproven,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// Stands for Ed25519: the signature of these octets by the owner of this key.
    fn sign(by: &str, octets: &[u8]) -> Vec<u8> {
        [by.as_bytes(), b" signs ", octets].concat()
    }

    fn verifier() -> Verifier {
        Verifier::new(name("t"), "HUB".to_owned(), |by, octets, signature| signature == sign(by, octets))
    }

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn credential(agent: &str, by: &str) -> Credential {
        let public_key = format!("key of {agent}");
        let certificate = hex::to_text(&sign(by, &certified(&name("t"), &name(agent), &public_key)));
        Credential { public_key, certificate }
    }

    fn holder(agent: &str) -> Holder {
        Holder { agent: name(agent), run: Uuid::from_u128(7) }
    }

    #[test]
    fn a_lease_is_read_where_its_agent_wrote_it_and_nowhere_else() {
        let (key, other): (Key, Key) = ("host.b".parse().unwrap(), "host.c".parse().unwrap());
        let place = Place { bucket: "lease_1", key: &key };
        let value = sealed(place, holder("a"), 5, &credential("a", "HUB"), |octets| sign("key of a", octets));
        let mut verifier = verifier();
        let proven = Proven { holder: holder("a"), after: 5 };
        // The second time its certificate is known.
        for _ in 0..2 {
            assert_eq!(verifier.read(place, 6, &value), Ok(Some(proven.clone())));
        }
        assert_eq!(verifier.state(place, 9, &value), KeyState::Held(holder("a")));
        assert_eq!(verifier.read(place, 5, &value), Err(Forgery::Replayed(name("a"))));
        let forged = Err(Forgery::Signature(name("a")));
        assert_eq!(verifier.read(Place { key: &other, ..place }, 6, &value), forged);
        assert_eq!(verifier.read(Place { bucket: "lease_2", ..place }, 6, &value), forged);
        let later = String::from_utf8(value).unwrap().replace("\"after\":5", "\"after\":6");
        assert_eq!(verifier.read(place, 7, later.as_bytes()), forged);
        assert_eq!(verifier.read(place, 7, b"null"), Ok(None));
    }

    #[test]
    fn nobody_leases_in_the_name_of_another_agent() {
        let key: Key = "host.b".parse().unwrap();
        let place = Place { bucket: "lease_1", key: &key };
        let mut verifier = verifier();
        let mut read = |value: &[u8]| verifier.read(place, 6, value);
        // With its own key, which the hub certified for itself alone.
        let own = credential("evil", "HUB");
        let value = sealed(place, holder("a"), 5, &own, |octets| sign("key of evil", octets));
        assert_eq!(read(&value), Err(Forgery::Certificate(name("a"))));
        // With a certificate of its own making.
        let value = sealed(place, holder("a"), 5, &credential("a", "evil"), |octets| sign("key of a", octets));
        assert_eq!(read(&value), Err(Forgery::Certificate(name("a"))));
        // With the other's certificate, which everybody sees.
        let value = sealed(place, holder("a"), 5, &credential("a", "HUB"), |octets| sign("key of evil", octets));
        assert_eq!(read(&value), Err(Forgery::Signature(name("a"))));
        let unsigned = serde_json::to_vec(&holder("a")).unwrap();
        for value in [&unsigned[..], b"", b"7", b"{}"] {
            assert!(matches!(read(value), Err(Forgery::Unreadable(_))), "{value:?}");
        }
    }
}
