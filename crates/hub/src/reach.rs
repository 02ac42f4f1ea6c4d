//! How the hub reaches its bus.

use std::sync::Arc;
use std::time::Duration;

use narrows_bus::{Bus, Permissions, nats};

use crate::error::{Error, Result};
use crate::keys::Keys;

/// The hub's connection to NATS.
pub(crate) async fn reach(keys: &Keys, servers: &[String]) -> Result<Arc<dyn Bus>> {
    let server = servers.join(",");
    let now_s = crate::wall_clock().as_secs();
    let all = Permissions::all();
    // The hub has the account's key, so its own token need not end.
    let signed = |operator: &nats::Operator| {
        operator.user(&keys.sign.public(), "hub", &all, nats::Validity::since(now_s.saturating_sub(60)))
    };
    let jwt = keys.operator.as_ref().map(signed);
    let options = nats::Options { key: Some(keys.sign.clone()), jwt, ..nats::Options::new(&server, "hub") };
    Ok(Arc::new(nats::Client::connect(options).await?))
}

/// Waits until there is a connection.
pub(crate) async fn connected(bus: &dyn Bus) -> Result<()> {
    let mut condition = bus.condition();
    let wait = condition.wait_for(|now| now.server.is_some());
    if tokio::time::timeout(CONNECTED, wait).await.is_ok_and(|found| found.is_ok()) {
        return Ok(());
    }
    let trouble = bus.condition().borrow().trouble.clone().unwrap_or_default();
    Err(Error::Bus(narrows_bus::Error::Disconnected(trouble)))
}

/// What the hub itself shows to NATS is not for its agents.
pub(crate) fn without_user(server: &str) -> String {
    match (server.split_once("://"), server.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => server.to_owned(),
    }
}

const CONNECTED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_hear_of_a_server_without_its_user() {
        assert_eq!(without_user("nats://hub:secret@bus:4222"), "nats://bus:4222");
        assert_eq!(without_user("tls://bus:4222"), "tls://bus:4222");
    }
}
