//! Another bus for a fleet that exists: prepared while no hub runs.

use narrows_record::Record;

use crate::error::Result;
use crate::keys::Keys;
use crate::reach::{connected, reach, without_user};

/// Looks whether the hub reaches the servers, and writes the move into the audit. Returns how many
/// members have to follow.
pub async fn move_bus(record: &dyn Record, keys: &Keys, servers: &[String], now_ms: i64) -> Result<usize> {
    connected(&*reach(keys, servers).await?).await?;
    let shown: Vec<String> = servers.iter().map(|server| without_user(server)).collect();
    record.audit("hub", "bus.moved", &format!("to {}", shown.join(", ")), now_ms).await?;
    let agents = record.agents().await?;
    Ok(agents.iter().filter(|agent| agent.state == narrows_record::AgentState::Member).count())
}
