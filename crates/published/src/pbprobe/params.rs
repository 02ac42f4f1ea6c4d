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
        pub via: Via = "auto" {
            name: "peer_kind", range: Via::RANGE, source: "ours; the way back is measured by a run in that direction",
        },
        /// IP octets of a packet.
        pub octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("100", "9000"), unset: Some("0"), source: "[PBProbe08]",
        },
        /// Dispersion below which bulks grow.
        pub threshold: Duration = "1 ms" { range: Between("1 us", "1 s"), source: "a comment in [pbprobe]" },
        /// By what factor they grow.
        pub growth: usize = "10" { range: Between("2", "100"), source: "[PBProbe08]" },
        /// Packets of a bulk after its first, at most.
        pub most_packets: usize = "10000" { range: Between("1", "60000"), source: "ours: what 100 Gbit/s take" },
        /// Bulks without a new minimum that end the run; 0: only the count does.
        pub stable: usize = "40" { range: Between("0", "10000"), source: "[pbprobe]; 0 keeps the paper's fixed count" },
        /// Bulks of one length at most.
        pub bulks: usize = "200" { range: Between("2", "10000"), source: "recalled from [PBProbe08]" },
        /// Largest excess of the least delay sum over the sum of the least delays.
        pub tolerance: f64 = "0.01" { unit: "of the dispersion", range: Between("0", "1"), source: "[pbprobe]" },
        /// Bulks that must meet the condition.
        pub clean: usize = "3" { range: Between("1", "100"), source: "ours: one bulk may be chance" },
        /// Permitted mean share of the narrow link.
        pub utilisation: f64 = "0.01" {
            unit: "share", range: Between("0.0001", "1"), source: "recalled from [PBProbe08]",
        },
        /// Tries shorter bulks where long ones find no idle moment.
        pub shorten: bool = "true" { range: Range::SWITCH, source: "ours" },
        /// Checks an answer found under load.
        pub check: bool = "true" { range: Range::SWITCH, source: "ours: by gaps, smaller packets and paced bulks" },
        /// How the narrow link frames packets.
        pub framing: Framing = "ethernet" {
            range: Range::FRAMING, source: "IEEE 802.3; the original counts IP octets and a header",
        },
    }
}
