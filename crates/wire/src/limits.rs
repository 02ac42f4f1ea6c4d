//! What a server allows one session.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Caps on one session, announced to the client before it asks for anything. All rates and octets
/// are at the IP layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// Longest train, load segment chain or transfer, in nanoseconds.
    pub max_duration_ns: u64,
    /// Highest rate of a UDP load in either direction, all streams together; 0: no UDP load at all.
    pub max_load_rate_bps: u64,
    /// Whether TCP transfers are allowed.
    pub transfers: bool,
    /// Octets per load or transfer.
    pub max_octets: u64,
    /// Streams of one load or transfer.
    pub max_streams: u16,
    /// Packets of one train.
    pub max_train_packets: u32,
    /// Octets per second, times eight, that trains and echoes may average without the load slot.
    pub light_rate_bps: u64,
    /// Octets that trains may take at once without the load slot.
    pub light_burst_octets: u64,
}

impl SessionLimits {
    /// Longest train, load or transfer.
    pub fn max_duration(&self) -> Duration {
        Duration::from_nanos(self.max_duration_ns)
    }
}

/// Ours, for a peer that has proved a key or sits on the same host or private network: a test of 10
/// Gbit/s for 30 s fits.
impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_duration_ns: 60_000_000_000,
            max_load_rate_bps: 100_000_000_000,
            transfers: true,
            max_octets: 100_000_000_000,
            max_streams: 128,
            max_train_packets: 65_536,
            light_rate_bps: 20_000_000,
            light_burst_octets: 4_000_000,
        }
    }
}
