//! Keys by which agents know each other at their servers: HKDF-SHA-256 (RFC 5869) from one secret
//! of the fleet, as `DRKey` of SCION has it. A server needs one key for all its clients of a week.
//!
//! `K_b = HKDF(tenant, "narrows 4 server\0" b "\0" week)`, `K_ab = HKDF(K_b, "narrows 4 client\0" a
//! "\0" week)`; weeks are decimal text, counted since 1970.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use narrows_fleet::keys::Name;
use narrows_fleet::message::ServerKey;

use crate::hex;

struct Octets32;

impl KeyType for Octets32 {
    fn len(&self) -> usize {
        32
    }
}

fn derive(secret: &[u8; 32], label: &[u8], name: &Name, week: u32) -> [u8; 32] {
    let week = week.to_string();
    let info = [label, name.as_str().as_bytes(), b"\0", week.as_bytes()];
    let mut octets = [0; 32];
    let pseudo_random = Salt::new(HKDF_SHA256, &[]).extract(secret);
    let expanded = pseudo_random.expand(&info, Octets32).and_then(|okm| okm.fill(&mut octets));
    expanded.expect("32 octets are less than 255 blocks");
    octets
}

fn server(tenant: &[u8; 32], target: &Name, week: u32) -> [u8; 32] {
    derive(tenant, b"narrows 4 server\0", target, week)
}

/// Keys of an agent's own server for these weeks.
pub(crate) fn server_keys(tenant: &[u8; 32], target: &Name, weeks: std::ops::Range<u32>) -> Vec<ServerKey> {
    weeks.map(|week| ServerKey { week, secret: hex::text(&server(tenant, target, week)) }).collect()
}

/// The keys of a server for the weeks from `first` on, from which those of its clients follow.
#[derive(Debug)]
pub(crate) struct Servers {
    first: u32,
    keys: Vec<[u8; 32]>,
}

impl Servers {
    pub(crate) fn new(tenant: &[u8; 32], target: &Name, weeks: std::ops::Range<u32>) -> Self {
        Self { first: weeks.start, keys: weeks.map(|week| server(tenant, target, week)).collect() }
    }

    /// Keys by which `source` proves itself to this server, for as many of its weeks.
    pub(crate) fn client_keys(&self, source: &Name, weeks: usize) -> Vec<ServerKey> {
        let key = |(week, server)| derive(server, b"narrows 4 client\0", source, week);
        let keys = (self.first..).zip(self.keys.iter().take(weeks));
        keys.map(|(week, server)| ServerKey { week, secret: hex::text(&key((week, server))) }).collect()
    }
}

/// Whole weeks since 1970.
pub(crate) fn week_of(unix_ms: i64) -> u32 {
    u32::try_from(unix_ms.max(0) / WEEK_MS).unwrap_or(u32::MAX)
}

const WEEK_MS: i64 = 7 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Computed apart from this code, with the HMAC of Python's standard library.
    #[test]
    fn keys_are_those_that_were_agreed() {
        let tenant = [7; 32];
        let (a, b) = (name("a"), name("b"));
        assert_eq!(server_keys(&tenant, &b, 2951..2952)[0].secret, SERVER);
        let of = |target: &Name, source: &Name| Servers::new(&tenant, target, 2950..2953).client_keys(source, 2);
        assert_eq!((of(&b, &a).len(), &of(&b, &a)[1].secret[..]), (2, CLIENT));
        assert_ne!(of(&a, &b)[1].secret, CLIENT);
        assert_eq!(week_of(2951 * WEEK_MS), 2951);
    }

    const SERVER: &str = "9a51600ef26ccb14a7c5ea59002b91571abf217ca4b2f82bb79dd5d76589b1b5";
    const CLIENT: &str = "7e45af5358aeb847a4f2a3deb038e1bbfe980441a162fddebbed0f49d9a76aeb";
}
