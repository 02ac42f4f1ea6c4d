//! Keys by which agents know each other at their servers, for the weeks of a plan.

use narrows_fleet::keys::Name;
use narrows_fleet::message::ServerKey;
use narrows_wire::fleet_key::{self, Secret};

fn key(week: u32, secret: &Secret) -> ServerKey {
    ServerKey { week, secret: secret.to_hex() }
}

/// Keys of an agent's own server for these weeks.
pub(crate) fn server_keys(tenant: &Secret, target: &Name, weeks: std::ops::Range<u32>) -> Vec<ServerKey> {
    weeks.map(|week| key(week, &fleet_key::server(tenant, target.as_str(), week))).collect()
}

/// The keys of a server for the weeks from `first` on, from which those of its clients follow.
#[derive(Debug)]
pub(crate) struct Servers {
    first: u32,
    keys: Vec<Secret>,
}

impl Servers {
    pub(crate) fn new(tenant: &Secret, target: &Name, weeks: std::ops::Range<u32>) -> Self {
        let first = weeks.start;
        Self { first, keys: weeks.map(|week| fleet_key::server(tenant, target.as_str(), week)).collect() }
    }

    /// Keys by which `source` proves itself to this server, for as many of its weeks.
    pub(crate) fn client_keys(&self, source: &Name, weeks: usize) -> Vec<ServerKey> {
        let keys = (self.first..).zip(self.keys.iter().take(weeks));
        keys.map(|(week, server)| key(week, &fleet_key::client(server, source.as_str(), week))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Computed apart from this code, with the HMAC of Python's standard library.
    #[test]
    fn keys_are_those_that_were_agreed() {
        let tenant = "07".repeat(32).parse().unwrap();
        let (a, b) = (name("a"), name("b"));
        assert_eq!(server_keys(&tenant, &b, 2951..2952)[0].secret, SERVER);
        let of = |target: &Name, source: &Name| Servers::new(&tenant, target, 2950..2953).client_keys(source, 2);
        assert_eq!((of(&b, &a).len(), &of(&b, &a)[1].secret[..]), (2, CLIENT));
        assert_ne!(of(&a, &b)[1].secret, CLIENT);
    }

    const SERVER: &str = "9a51600ef26ccb14a7c5ea59002b91571abf217ca4b2f82bb79dd5d76589b1b5";
    const CLIENT: &str = "7e45af5358aeb847a4f2a3deb038e1bbfe980441a162fddebbed0f49d9a76aeb";
}
