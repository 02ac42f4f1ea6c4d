//! What can be set.

use std::time::Duration;

use narrows_units::Framing;

use narrows_probe::registry::{Range, params};
use narrows_train::mindelay::Via;

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Who answers.
        pub via: Via = "auto" { name: "peer_kind", range: Via::RANGE, source: "ours; auto: as the host was found to answer" },
        /// IP octets of the packets.
        pub octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("200", "9000"), unset: Some("0"),
            source: "ours: the longest packets are the farthest apart",
        },
        /// Trains at most.
        pub trains: usize = "24" { range: Between("2", "1000"), source: "ours: see the design page" },
        /// Gaps of a train that count.
        pub gaps: usize = "8" { range: Between("1", "200"), source: "ours: see the design page" },
        /// Time after the first answer until which answers do not count: the remote host wakes up.
        pub wake: Duration = "250 us" {
            range: Between("0 s", "10 ms"),
            source: "ours: hosts at rest answered their first packet up to 100 us late",
        },
        /// Largest mean share of the narrow link.
        pub utilisation: f64 = "0.1" { unit: "share", range: Between("0.001", "1"), source: "ours" },
        /// How the narrow link frames packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, source: "IEEE 802.3" },
    }
}
