//! How an agent reaches its bus.

use std::sync::Arc;

use narrows_bus::embedded::{Address, Client, Limits};
use narrows_bus::{Bus, Key, nats, pinned};
use narrows_fleet::message::BusAddress;

use crate::error::{Error, Result};
use crate::state::Membership;

/// Begins to connect; [`Bus::condition`] says how that goes.
///
/// Called within a tokio runtime.
pub async fn connect(membership: &Membership, key: Key) -> Result<Arc<dyn Bus>> {
    let joined = &membership.joined;
    match &joined.bus {
        BusAddress::Embedded { url } => {
            let tls = url.starts_with("wss").then(|| membership.key_hash().map(|hash| Arc::new(pinned(hash))));
            let address = Address { url: url.clone(), tls: tls.transpose()? };
            Ok(Arc::new(Client::connect(address, key, Limits::default())))
        }
        BusAddress::Nats { servers, jwt, authority } => {
            let mut options = nats::Options::new(&servers.join(","), joined.agent.as_str());
            options.key = Some(key);
            options.jwt.clone_from(jwt);
            if authority.is_some() {
                return Err(Error::Protocol("a certificate authority of its own for NATS".to_owned()));
            }
            Ok(Arc::new(nats::Client::connect(options).await?))
        }
    }
}
