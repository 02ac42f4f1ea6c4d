//! What somebody asks of an agent by hand.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::plan::Peer;
use crate::keys::{Key, Name};

/// One run now, or at a reserved time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// [`Order::SCHEMA`].
    pub schema: String,
    /// Whose fleet.
    pub tenant: Name,
    /// For whom.
    pub agent: Name,
    /// Its number. An agent carries out an order once.
    pub id: Uuid,
    /// The hub's serial of orders and plans. An agent refuses one that it has seen before.
    pub serial: u64,
    /// Towards whom.
    pub target: Name,
    /// The target as this agent sees it: its plan may not name everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// What, in words.
    pub command: Vec<String>,
    /// What it leases: nothing for a light run.
    #[serde(default)]
    pub keys: Vec<Key>,
    /// It looks at a path while this agent loads it: leases of that agent neither put it off nor
    /// flag it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Name>,
    /// When it begins.
    pub at_ms: i64,
    /// It does not begin later than this.
    pub not_after_ms: i64,
    /// How long it may take.
    pub length_ms: u64,
    /// IP octets that it may send, both ways.
    pub octets: u64,
}

impl Order {
    /// The only schema so far.
    pub const SCHEMA: &str = "narrows.order/1";
}
