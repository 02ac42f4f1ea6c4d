//! How a host becomes an agent.

use std::net::{IpAddr, SocketAddr};

use narrows_fleet::message::{Join, Joined};
use narrows_record::{Agent, NewAgent};
use narrows_units::hex;

use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::token::JoinToken;

impl Hub {
    /// Takes a host with a valid token into the fleet. `from` is where it asks from.
    pub async fn join(&self, join: &Join, from: IpAddr) -> Result<Joined> {
        let token: JoinToken = join.token.parse()?;
        if token.key_hash != self.keys.key_hash {
            return Err(Error::Request("this token is of another hub".to_owned()));
        }
        if let Some(member) = self.member_again(join) {
            return Ok(self.joined(member));
        }
        let agent = NewAgent {
            name: join.name.clone(),
            public_key: join.public_key.clone(),
            labels: join.labels.clone(),
            address: self.address(join, from)?,
        };
        if !narrows_bus::is_public_key(&agent.public_key) {
            return Err(Error::Request("the public key is none".to_owned()));
        }
        let long = |text: &str| text.len() > LONGEST_LABEL;
        if agent.labels.len() > MOST_LABELS || agent.labels.iter().any(|(key, value)| long(key) || long(value)) {
            return Err(Error::Request(format!("at most {MOST_LABELS} labels of {LONGEST_LABEL} octets")));
        }
        let now = self.now();
        let agent = self.record.join(&token.hash(), &agent, now).await?;
        let text = format!("{} at {}, version {}", agent.name, agent.address, join.version);
        self.record.audit(agent.name.as_str(), "agent.joined", &text, now).await?;
        let was_out = self.directory.former_keys().contains(&agent.public_key);
        self.directory.add(agent.clone());
        if let Some(tokens) = self.tokens.as_ref().filter(|_| was_out) {
            // Servers keep its key out until they hear otherwise.
            tokens.tell_revoked(now);
        }
        self.changed();
        self.tell_agent(&agent);
        self.plan_wanted.notify_one();
        Ok(self.joined(agent))
    }

    /// The member that asks whether it is one, if it proves that it has the member's key.
    fn member_again(&self, join: &Join) -> Option<Agent> {
        let signature: Vec<u8> = hex::to_octets(join.again.as_ref()?)?;
        let proves = narrows_bus::verifies(&join.public_key, join.again_text().as_bytes(), &signature);
        self.directory.member(&join.public_key).filter(|_| proves)
    }

    fn joined(&self, agent: Agent) -> Joined {
        Joined {
            bus: self.bus_of(&agent),
            agent: agent.name,
            tenant: self.tenant.clone(),
            hub_key: self.keys.sign.public(),
            lease_generation: self.lease_generation,
        }
    }

    /// Where peers reach the server of a host. A host that joins over its own loopback is the
    /// hub's: others reach it as they reach the hub.
    fn address(&self, join: &Join, from: IpAddr) -> Result<String> {
        let from = from.to_canonical();
        let address = match &join.address {
            Some(address) => address.clone(),
            None if from.is_loopback() => SocketAddr::new(self.own_host, join.port).to_string(),
            None => SocketAddr::new(from, join.port).to_string(),
        };
        let fits = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty()
                && port.parse::<u16>().is_ok_and(|port| port > 0)
                && host.bytes().all(|one| one.is_ascii_graphic())
        });
        let wrong = || Error::Request(format!("\"{address}\" is no host:port"));
        (fits && address.len() <= LONGEST_ADDRESS).then(|| address.clone()).ok_or_else(wrong)
    }
}

const MOST_LABELS: usize = 32;
const LONGEST_LABEL: usize = 128;
const LONGEST_ADDRESS: usize = 255;
