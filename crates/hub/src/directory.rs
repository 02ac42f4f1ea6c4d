//! Who belongs to the fleet, in memory: asked at each connection, and by every page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use narrows_bus::Permissions;
use narrows_bus::embedded::Admission;
use narrows_fleet::keys::Name;
use narrows_record::{Agent, AgentState};
use serde::Serialize;

/// All agents that ever were. Cheap to clone; the record is what it is made from.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    agents: Arc<RwLock<BTreeMap<Name, Agent>>>,
}

/// Whether an agent is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// Heard within 75 s: two statuses may be lost.
    Online,
    /// Not heard for longer.
    Late,
    /// Not heard for 10 min.
    Gone,
    /// It left by itself.
    Left,
    /// It was thrown out.
    Revoked,
}

impl Directory {
    /// Only members may connect; a member may do what its name allows. `leases` is their bucket.
    pub fn admission(&self, leases: &str) -> Admission {
        let leases = leases.to_owned();
        self.members_may(move |agent| Permissions::agent(agent, &leases))
    }

    /// Of a bus that was left: members learn there where the new one is.
    pub fn leaving(&self) -> Admission {
        self.members_may(Permissions::leaving)
    }

    fn members_may(&self, what: impl Fn(&str) -> Permissions + Send + Sync + 'static) -> Admission {
        let directory = self.clone();
        Arc::new(move |public_key| directory.member(public_key).map(|agent| what(agent.name.as_str())))
    }

    /// The member with this key.
    pub(crate) fn member(&self, public_key: &str) -> Option<Agent> {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |agent: &&Agent| agent.state == AgentState::Member && agent.public_key == public_key;
        agents.values().find(is_it).cloned()
    }

    /// The keys of whoever left or was thrown out, and has not come back with the same key.
    pub(crate) fn former_keys(&self) -> BTreeSet<String> {
        let all = self.all();
        let is_member = |agent: &&Agent| agent.state == AgentState::Member;
        let members: BTreeSet<&str> = all.iter().filter(is_member).map(|agent| &*agent.public_key).collect();
        let former = all.iter().map(|agent| &agent.public_key).filter(|key| !members.contains(key.as_str()));
        former.cloned().collect()
    }

    /// What the record says now.
    pub(crate) fn replace(&self, agents: Vec<Agent>) {
        let agents = agents.into_iter().map(|agent| (agent.name.clone(), agent)).collect();
        *self.agents.write().unwrap_or_else(PoisonError::into_inner) = agents;
    }

    /// A host that joined just now.
    pub(crate) fn add(&self, agent: Agent) {
        self.agents.write().unwrap_or_else(PoisonError::into_inner).insert(agent.name.clone(), agent);
    }

    /// Whether it ever was in the fleet.
    pub(crate) fn has(&self, name: &Name) -> bool {
        self.agents.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    pub(crate) fn get(&self, name: &Name) -> Option<Agent> {
        self.agents.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Agent> {
        self.agents.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn members(&self) -> Vec<Agent> {
        let mut all = self.all();
        all.retain(|agent| agent.state == AgentState::Member);
        all
    }

    /// Changes what is known of an agent, and returns it.
    pub(crate) fn change(&self, name: &Name, how: impl FnOnce(&mut Agent)) -> Option<Agent> {
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        let agent = agents.get_mut(name)?;
        how(agent);
        Some(agent.clone())
    }
}

/// Whether an agent is there at this time. One that just joined has not spoken yet.
pub(crate) fn presence(agent: &Agent, now_ms: i64) -> Presence {
    let silent_ms = now_ms - agent.heard_ms.unwrap_or(agent.joined_ms);
    match agent.state {
        AgentState::Left => Presence::Left,
        AgentState::Revoked => Presence::Revoked,
        AgentState::Member if silent_ms > GONE_MS => Presence::Gone,
        AgentState::Member if silent_ms > LATE_MS => Presence::Late,
        AgentState::Member => Presence::Online,
    }
}

const LATE_MS: i64 = 75_000;
const GONE_MS: i64 = 600_000;
