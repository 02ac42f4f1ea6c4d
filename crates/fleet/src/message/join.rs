//! How a host becomes an agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::keys::Name;

/// A host that wants to join, with the token that it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// `nw1.<hash of the hub's key>.<20 secret octets>`.
    pub token: String,
    /// The name that it wants. The hub adds a number if another agent has it.
    pub name: Name,
    /// Its key on the bus, whose seed never leaves the host.
    pub public_key: String,
    /// Labels by which groups find it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Where peers reach its server, if the hub cannot see that; `None`: where it joins from.
    #[serde(default)]
    pub address: Option<String>,
    /// The port of its server.
    pub port: u16,
    /// Version of its program.
    pub version: String,
    /// The signature of a host that was a member before, over [`Join::again_text`], in hexadecimal.
    /// If it still is one, it stays what it is, and the token is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

impl Join {
    /// What [`Join::again`] is a signature of.
    pub fn again_text(&self) -> String {
        format!("narrows.join-again/1 {} {}", self.public_key, self.token)
    }
}

/// What an agent needs to know of its hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Its name in the fleet.
    pub agent: Name,
    /// Whose fleet.
    pub tenant: Name,
    /// The public key by which plans and orders are signed.
    pub hub_key: String,
    /// Where the bus is.
    pub bus: BusAddress,
    /// The bucket of leases is `lease_<generation>`.
    pub lease_generation: u32,
}

/// Where the bus is, and what shows who one is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BusAddress {
    /// In the hub: `wss://hub:8622/bus`, known by the hash that the token has.
    Embedded {
        /// Its address.
        url: String,
    },
    /// NATS.
    Nats {
        /// Its servers.
        servers: Vec<String>,
        /// The agent's signed user; `None` on a server whose users are listed by key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jwt: Option<String>,
        /// Certificates of its authority in PEM; `None`: the system's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        authority: Option<String>,
    },
}
