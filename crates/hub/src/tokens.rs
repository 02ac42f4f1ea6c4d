//! The tokens of NATS's operator mode: whoever has joined has one, and whoever is thrown out is
//! kept out by the token of the fleet's account.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use narrows_bus::nats::{Account, Operator, Options, Validity, tell_account};
use narrows_bus::{Key, Permissions};
use narrows_fleet::keys::Name;
use narrows_fleet::message::BusAddress;
use narrows_record::Agent;

use crate::directory::Directory;
use crate::error::Result;
use crate::keys::operator_of;

/// What the hub signs for the servers of NATS.
pub struct Tokens {
    operator: Operator,
    tenant: Name,
    bus_octets: u64,
    /// The bucket of leases.
    leases: String,
    servers: String,
    directory: Directory,
    /// When the newest token of the account was issued. Servers keep the newest alone.
    told_s: AtomicU64,
}

impl Tokens {
    pub(crate) fn new(
        operator: &Operator,
        (tenant, bus_octets): (&Name, u64),
        leases: &str,
        servers: &[String],
        directory: &Directory,
    ) -> Option<Arc<Self>> {
        let tokens = Self {
            operator: Operator::from_seeds(&operator.seeds()).ok()?,
            tenant: tenant.clone(),
            bus_octets,
            leases: leases.to_owned(),
            servers: servers.join(","),
            directory: directory.clone(),
            told_s: AtomicU64::new(0),
        };
        Some(Arc::new(tokens))
    }

    /// Where an agent finds the bus, and the token that it shows there.
    pub(crate) fn address(&self, agent: &Agent, bus: &BusAddress, now_ms: i64) -> BusAddress {
        let BusAddress::Nats { servers, authority, .. } = bus else { return bus.clone() };
        let may = Permissions::agent(agent.name.as_str(), &self.leases);
        let validity = validity(&agent.public_key, seconds(now_ms));
        let jwt = Some(self.operator.user(&agent.public_key, agent.name.as_str(), &may, validity));
        BusAddress::Nats { servers: servers.clone(), jwt, authority: authority.clone() }
    }

    /// The time of the next token of the account.
    fn next_s(&self, now_ms: i64) -> u64 {
        let second = seconds(now_ms);
        let newest = |before: u64| Some(second.max(before + 1));
        let before = self.told_s.fetch_update(Ordering::Relaxed, Ordering::Relaxed, newest);
        second.max(before.unwrap_or_default() + 1)
    }

    /// Tells the servers how much room the fleet needs: the operator's settings may be of a version
    /// that needed less.
    pub(crate) async fn tell_room(&self, now_ms: i64) {
        if let Err(error) = self.tell(self.next_s(now_ms)).await {
            tracing::warn!(%error, "NATS does not know how much room the fleet needs now");
        }
    }

    /// Tells the servers who belongs to the fleet no more, until one has heard it or there is news.
    pub(crate) fn tell_revoked(self: &Arc<Self>, now_ms: i64) {
        let tokens = Arc::clone(self);
        let at_s = tokens.next_s(now_ms);
        tokio::spawn(async move {
            while tokens.told_s.load(Ordering::Relaxed) == at_s {
                match tokens.tell(at_s).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, "NATS does not know yet who was revoked"),
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
    }

    async fn tell(&self, at_s: u64) -> narrows_bus::Result<()> {
        let revoked = self.directory.former_keys().into_iter().map(|key| (key, at_s)).collect();
        let account = account(&self.tenant, self.bus_octets, revoked);
        let key = Key::new();
        let validity = Validity { from_s: at_s.saturating_sub(60), until_s: Some(at_s + 3_600) };
        let jwt = Some(self.operator.system_user(&key.public(), validity));
        let options = Options { key: Some(key), jwt, ..Options::new(&self.servers, "hub-system") };
        tell_account(&options, self.operator.account(&account, at_s)).await
    }
}

/// What the file of each NATS server needs to know, so that it takes in whoever joined. The keys
/// are made if they are missing. `folder` is where servers keep tokens of accounts.
pub fn operator_settings(state: &Path, tenant: &Name, bus_octets: u64, folder: &str) -> Result<String> {
    let operator = operator_of(state)?;
    let now_s = crate::wall_clock().as_secs();
    Ok(operator.server_settings(&account(tenant, bus_octets, Vec::new()), folder, now_s.saturating_sub(60)))
}

/// The account of a fleet, with room for its results, plans and leases.
fn account(tenant: &Name, bus_octets: u64, revoked: Vec<(String, u64)>) -> Account {
    // Whatever its generation is, a bucket of leases has the same size.
    let needed = narrows_bus::Settings::fleet(1).within(bus_octets).max_octets();
    Account { name: tenant.to_string(), disk_octets: needed + needed / 20, revoked }
}

/// A token holds for 60 days and is renewed after 30, at another time for each agent. In between it
/// is the same text each time that it is made, so that a plan names no other bus.
fn validity(public_key: &str, now_s: u64) -> Validity {
    let phase = public_key.bytes().fold(0, |sum: u64, one| sum.wrapping_mul(31).wrapping_add(one.into())) % HALF_S;
    let from_s = (now_s + phase) / HALF_S * HALF_S - phase;
    Validity { from_s, until_s: Some(from_s + 2 * HALF_S) }
}

fn seconds(ms: i64) -> u64 {
    u64::try_from(ms / 1_000).unwrap_or(0)
}

const HALF_S: u64 = 30 * 86_400;
const AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_at_half_its_time_and_the_same_in_between() {
        let key = Key::new().public();
        let mut all = Vec::new();
        for day in 20_000..20_090 {
            let now_s = day * 86_400;
            let Validity { from_s, until_s } = validity(&key, now_s);
            assert!(from_s <= now_s && until_s.is_some_and(|until| until >= now_s + HALF_S), "{day}");
            all.push(from_s);
        }
        all.dedup();
        assert!((3..=4).contains(&all.len()), "{all:?}");
    }
}
