//! What a server is told, and what it refuses to start with.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use narrows_wire::{HostFacts, Psk, SessionLimits};

use super::fleet_keys::{ClientKey, FleetKeys};

/// Caps of the whole server. Defaults are ours, scaled down from what other measurement servers
/// ship.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// What one session may do, if its client is trusted (see [`ServeOptions::trusts`]).
    pub session: SessionLimits,
    /// Sessions at a time.
    pub sessions: usize,
    /// Sessions at a time from one address.
    pub sessions_per_address: usize,
    /// Connections that have not got through the handshake; half as many from one address.
    pub handshakes: usize,
    /// Validated UDP flows of all sessions together; each has a socket and a thread.
    pub flows: usize,
    /// Sessions that hold the light slot at a time.
    pub light_slots: usize,
    /// Sessions that hold the load slot at a time.
    pub load_slots: usize,
    /// Sessions that wait for either slot.
    pub queue: usize,
    /// Time for the whole handshake, and for the first octets of a data connection.
    pub handshake_time: Duration,
    /// Longest session.
    pub session_time: Duration,
    /// Longest time that a session may hold a slot and use it for nothing.
    pub slot_idle_time: Duration,
    /// How long a leased run waits until this host has heard of its lease. Ours: the bus tells both
    /// hosts at about the same time.
    pub lease_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session: SessionLimits::default(),
            sessions: 64,
            sessions_per_address: 16,
            handshakes: 512,
            flows: 1024,
            light_slots: 8,
            load_slots: 1,
            queue: 32,
            handshake_time: Duration::from_secs(5),
            session_time: Duration::from_secs(1800),
            slot_idle_time: Duration::from_secs(30),
            lease_time: Duration::from_secs(1),
        }
    }
}

/// Octets per transfer of a client that is not trusted.
const STRANGER_OCTETS: u64 = 2_000_000_000;
/// Streams of a transfer of a client that is not trusted.
const STRANGER_STREAMS: u16 = 16;
/// Longest test of a client that is not trusted.
const STRANGER_NANOS: u64 = 30_000_000_000;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Addresses to listen on.
    pub listen: Vec<IpAddr>,
    /// TCP and UDP port; 0 lets the system choose one.
    pub port: u16,
    /// The key that clients must prove.
    pub psk: Option<Psk>,
    /// Instead of it, keys of a fleet's clients by name; the load slot is then for leased runs.
    pub fleet_keys: Option<FleetKeys>,
    /// Allow UDP loads to anyone who asks, without a key.
    pub allow_load: bool,
    /// Caps.
    pub limits: Limits,
    /// What this host can do, told to every client.
    pub host: HostFacts,
}

impl ServeOptions {
    /// All addresses of both IP versions, the default port, no key.
    pub fn new(host: HostFacts) -> Self {
        Self {
            listen: vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            port: narrows_wire::DEFAULT_PORT,
            psk: None,
            fleet_keys: None,
            allow_load: false,
            limits: Limits::default(),
            host,
        }
    }

    /// Only this host's loopback, any free port: for tests and demonstrations.
    pub fn loopback(host: HostFacts) -> Self {
        Self { listen: vec![Ipv4Addr::LOCALHOST.into()], port: 0, ..Self::new(host) }
    }

    /// The key that a client must prove, `None` for none; or why it cannot, for the client to read.
    pub(super) fn key(&self, name: Option<&str>) -> Result<Option<ClientKey>, String> {
        match &self.fleet_keys {
            Some(keys) => keys.key(name).map(Some),
            None => Ok(self.psk.clone().map(|psk| ClientKey { psk, agent: None })),
        }
    }

    /// The client is an agent that may no longer measure here.
    pub(super) fn denies(&self, agent: Option<&str>) -> bool {
        self.fleet_keys.as_ref().zip(agent).is_some_and(|(keys, agent)| keys.denies(agent))
    }

    /// Whether UDP loads may be sent for this client: it has proved a key, or it is on this host
    /// or a private network, or the operator allows it to all.
    pub fn trusts(&self, client: IpAddr) -> bool {
        self.psk.is_some() || self.fleet_keys.is_some() || self.allow_load || is_private(client)
    }

    /// What a client at this address may do.
    pub(super) fn session_limits(&self, client: IpAddr) -> SessionLimits {
        let limits = self.limits.session.clone();
        if self.trusts(client) {
            return limits;
        }
        SessionLimits {
            max_load_rate_bps: 0,
            max_octets: limits.max_octets.min(STRANGER_OCTETS),
            max_streams: limits.max_streams.min(STRANGER_STREAMS),
            max_duration_ns: limits.max_duration_ns.min(STRANGER_NANOS),
            ..limits
        }
    }
}

/// Loopback, private (RFC 1918), link-local, and unique local (RFC 4193) addresses.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No address to listen on.
    #[error("no address to listen on")]
    NoAddress,
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({protocol}): {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// `TCP` or `UDP`.
        protocol: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The system gives no random octets, threads or event loop.
    #[error("this host cannot {doing}: {source}")]
    Host {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_get_no_udp_load() {
        let host = crate::serve::tests::host();
        let mut options = ServeOptions::new(host);
        for private in ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.9", "fd00::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(options.session_limits(private.parse().unwrap()).max_load_rate_bps > 0, "{private}");
        }
        for public in ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"] {
            assert_eq!(options.session_limits(public.parse().unwrap()).max_load_rate_bps, 0, "{public}");
        }
        options.allow_load = true;
        assert!(options.session_limits("192.0.2.1".parse().unwrap()).max_load_rate_bps > 0);
    }
}
