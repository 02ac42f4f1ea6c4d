//! What can be set.

use narrows_units::Framing;

use narrows_probe::registry::{ParamError, Range, params};

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// IP octets of the long packets.
        pub large: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("200", "9000"), unset: Some("0"), source: "[AsymProbe05]",
        },
        /// IP octets of the short packets, half of the long ones' at most.
        pub small: u16 = "64" {
            unit: "IP octets", range: Between("28", "1000"),
            source: "[AsymProbe05]: about the least that Ethernet does not pad",
        },
        /// The third size, as a share of the long one.
        pub third: f64 = "0.6" { unit: "share", range: Between("0.3", "0.9"), source: "ours" },
        /// Least change of the dispersion that tells that the changed size governs it.
        pub moved: f64 = "0.05" { unit: "share", range: Between("0.01", "0.5"), source: "ours" },
        /// Also bounds both capacities by least round trips.
        pub trio: bool = "true" { range: Range::SWITCH, source: "ours" },
        /// Pairs without a new minimum that end a kind of pair.
        pub stable: usize = "40" { range: Between("1", "10000"), source: "[CapProbe04]" },
        /// Pairs of a kind at most.
        pub most: usize = "400" {
            name: "most_pairs", range: Between("2", "10000"),
            source: "ours: between the paper of `CapProbe` and its kernel re-implementation",
        },
        /// Largest excess of the least delay sum over the sum of the least delays.
        pub tolerance: f64 = "0.01" { unit: "of the dispersion", range: Between("0", "1"), source: "[CapProbe04]" },
        /// Pairs that must meet the condition.
        pub clean: usize = "3" { range: Between("1", "100"), source: "ours: one pair may be chance" },
        /// Largest mean share of either narrow link.
        pub utilisation: f64 = "0.05" {
            unit: "share", range: Between("0.001", "1"), source: "the kernel re-implementation of `CapProbe`",
        },
        /// How the narrow links frame packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, source: "IEEE 802.3" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let Some(large) = self.large.filter(|large| *large < 2 * self.small) else {
            return Ok(());
        };
        Err(ParamError::OutOfRange {
            name: "large",
            value: large.to_string(),
            why: "200 to 9000, and twice the short packets".to_owned(),
        })
    }
}
