//! What an agent is to do.

use narrows_units::to_u32;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::join::BusAddress;
use super::status::Stored;
use crate::keys::{Key, Name};

/// The work of one agent. It goes on by this plan when the hub is silent, until `not_after_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    /// [`Plan::SCHEMA`].
    pub schema: String,
    /// Whose fleet.
    pub tenant: Name,
    /// For whom.
    pub agent: Name,
    /// Grows with every plan of this agent. An agent refuses a lower one than it has.
    pub serial: u64,
    /// When it was made.
    pub made_ms: i64,
    /// It is worth nothing afterwards.
    pub not_after_ms: i64,
    /// The bucket of leases is `lease_<generation>`.
    pub lease_generation: u32,
    /// The hub's signature that this agent's key is its own, in hexadecimal: its leases show it.
    #[serde(default)]
    pub certificate: String,
    /// Where the bus is from now on, if it has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<BusAddress>,
    /// Seed of the rotation mesh.
    pub seed: u64,
    /// Epoch 0 of the mesh began then.
    pub mesh_began_ms: i64,
    /// This agent's place in the mesh. It is one of `peers`.
    pub place: u32,
    /// How many hosts the mesh has, if `peers` are not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_hosts: Option<u32>,
    /// The agents of the mesh in its order: all of them, or in a large fleet those that this agent
    /// has to do with while the plan is the newest.
    pub peers: Vec<Peer>,
    /// What each visit of the mesh runs, in words: `["available"]`.
    pub mesh: Vec<Vec<String>>,
    /// Light runs beside the mesh.
    #[serde(default)]
    pub directed: Vec<Directed>,
    /// Begin of the timetable.
    pub begin_ms: i64,
    /// Its length, after which it repeats.
    pub length_ms: u64,
    /// This agent's loading runs in it.
    #[serde(default)]
    pub runs: Vec<PlannedRun>,
    /// Keys of this agent's own server, by week.
    pub server_keys: Vec<ServerKey>,
    /// Who may not measure towards this agent.
    #[serde(default)]
    pub denied: Vec<Name>,
    /// What the record has of this agent, so that a new connection sends only the rest.
    pub stored: Stored,
}

impl Plan {
    /// The only schema so far.
    pub const SCHEMA: &str = "narrows.plan/1";

    /// As JSON. Here, where it is compiled for speed: a hub writes gigabytes of plans.
    #[expect(clippy::missing_panics_doc, reason = "a plan has no keys that are no text")]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a plan has no keys that are no text")
    }

    /// How many hosts the mesh has.
    pub fn hosts(&self) -> u32 {
        self.mesh_hosts.unwrap_or_else(|| to_u32(self.peers.len()))
    }

    /// The peer at a place of the mesh, if this agent has to do with it.
    pub fn peer_at(&self, place: u32) -> Option<&Peer> {
        if self.mesh_hosts.is_none() {
            return self.peers.get(usize::try_from(place).ok()?);
        }
        self.peers.iter().find(|peer| peer.place == Some(place))
    }
}

/// An agent as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: Name,
    /// Where its server answers, `host:port`.
    pub address: String,
    /// Its place in the mesh, where `peers` are not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Its site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Name>,
    /// Keys to its server, for the agent whose plan this is, by week.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ServerKey>,
}

/// A secret for one week.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServerKey {
    /// Whole weeks since 1970.
    pub week: u32,
    /// 32 octets in hexadecimal.
    pub secret: String,
}

/// A light run that the hub wants once in each epoch, or once at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Directed {
    /// Towards whom.
    pub target: Name,
    /// What, in words.
    pub command: Vec<String>,
    /// How often; `None` is once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
}

/// A loading run in the timetable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Which entry of the timetable: the same in each repetition.
    pub id: Uuid,
    /// When its span begins.
    pub at_ms: i64,
    /// How long its span is.
    pub length_ms: u64,
    /// Towards whom.
    pub target: Name,
    /// What, in words.
    pub command: Vec<String>,
    /// What it leases.
    pub keys: Vec<Key>,
    /// IP octets that it may send, both ways.
    pub octets: u64,
}
