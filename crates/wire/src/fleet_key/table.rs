//! What a server of a fleet knows of its clients: the content of `narrows serve --fleet-keys`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{KeyName, Secret, client};

/// A loading run, and the revision of its lease of the server's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The run. It has this number once.
    pub run: Uuid,
    /// The revision, which grows with each renewal.
    pub fence: u64,
}

/// Keys, denied clients, and the run that may load the server's host.
#[derive(Debug, Clone, Default)]
pub struct Table {
    weeks: BTreeMap<u32, Secret>,
    denied: BTreeSet<String>,
    holder: Option<Lease>,
}

/// Text that is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no table of fleet keys: {0}")]
pub struct TableError(String);

/// Why a client's key is not known. All of it may be told to anybody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// The week is neither the server's own nor one beside it.
    #[error("key {name} is of week {}, and it is week {now} here: does a clock go wrong, or is the plan too old?", name.week())]
    Week {
        /// The client's key.
        name: KeyName,
        /// The server's week.
        now: u32,
    },
    /// The server has no key for the week.
    #[error("there is no key of week {} here: the server's agent has no plan that covers it", name.week())]
    Missing {
        /// The client's key.
        name: KeyName,
    },
}

/// Why a loading run does not get the load slot. The text names no run but the asker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLeased {
    /// It named no run.
    #[error("this server grants the load slot to leased runs of its fleet alone, and the client named none")]
    Unnamed,
    /// Nobody has a lease.
    #[error("this host is leased to nobody, as far as it knows, so not to run {0} either")]
    Nobody(Uuid),
    /// Another run has it.
    #[error("this host is leased to another run than {0}")]
    Other(Uuid),
    /// The run's lease was not seen at this revision yet.
    #[error("this host has seen the lease of run {run} at revision {seen}, and not yet at {}", fence)]
    Ahead {
        /// The run.
        run: Uuid,
        /// What it asked with.
        fence: u64,
        /// What is known.
        seen: u64,
    },
}

#[derive(Deserialize)]
struct Stored {
    weeks: Vec<Week>,
    #[serde(default)]
    denied: BTreeSet<String>,
    #[serde(default)]
    holder: Option<Holder>,
}

#[derive(Deserialize)]
struct Week {
    week: u32,
    secret: Secret,
}

#[derive(Deserialize)]
struct Holder {
    run: Uuid,
    revision: u64,
}

impl Table {
    /// Most octets of its text: ten thousand denied clients with the longest names fit.
    pub const MAX_OCTETS: usize = 1 << 20;

    /// Reads its text, one JSON object. Fields that are not known are ignored. Without any week, as
    /// before an agent's first plan, nobody has a key.
    pub fn parse(text: &[u8]) -> Result<Self, TableError> {
        let stored: Stored = serde_json::from_slice(text).map_err(|error| TableError(error.to_string()))?;
        let (mut weeks, mut double) = (BTreeMap::new(), None);
        for Week { week, secret } in stored.weeks {
            double = weeks.insert(week, secret).and(Some(week)).or(double);
        }
        if let Some(week) = double {
            return Err(TableError(format!("week {week} is there twice")));
        }
        let holder = stored.holder.map(|holder| Lease { run: holder.run, fence: holder.revision });
        Ok(Self { weeks, denied: stored.denied, holder })
    }

    /// The key that a client of this name has, if it is week `now` here. Weeks beside it count too,
    /// because clocks differ.
    pub fn key(&self, name: &KeyName, now: u32) -> Result<Secret, NoKey> {
        if name.week().abs_diff(now) > 1 {
            return Err(NoKey::Week { name: name.clone(), now });
        }
        let server = self.weeks.get(&name.week()).ok_or_else(|| NoKey::Missing { name: name.clone() })?;
        Ok(client(server, name.agent(), name.week()))
    }

    /// The agent may not measure to this server, whatever it proves.
    pub fn denies(&self, agent: &str) -> bool {
        self.denied.contains(agent)
    }

    /// Whether a client may load this host: its run has the lease. A run that renewed its lease
    /// since it asked has a later revision, and is the same run.
    pub fn admits(&self, asked: Option<Lease>) -> Result<(), NotLeased> {
        let Lease { run, fence } = asked.ok_or(NotLeased::Unnamed)?;
        match self.holder {
            None => Err(NotLeased::Nobody(run)),
            Some(holder) if holder.run != run => Err(NotLeased::Other(run)),
            Some(holder) if holder.fence < fence => Err(NotLeased::Ahead { run, fence, seen: holder.fence }),
            Some(_) => Ok(()),
        }
    }
}
