//! What can be set.

use units::Framing;

use super::super::mindelay::{checked, framing, share};
use crate::registry::{ParamError, RawParams};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// IP octets of the long packets; `None`: the path's MTU.
    pub large: Option<u16>,
    /// IP octets of the short packets.
    pub small: u16,
    /// The third size, as a share of the long one.
    pub third: f64,
    /// Least change of the dispersion, as a share, that tells that the changed size governs it.
    pub moved: f64,
    /// Also bounds both capacities by least round trips.
    pub trio: bool,
    /// Pairs without a new minimum that end a kind of pair.
    pub stable: usize,
    /// Pairs of a kind at most.
    pub most: usize,
    /// Largest excess of the least delay sum, as a share of the dispersion.
    pub tolerance: f64,
    /// Pairs that must meet the condition.
    pub clean: usize,
    /// Largest mean share of either narrow link.
    pub utilisation: f64,
    /// How the narrow links frame packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            large: None,
            small: 64,
            third: 0.6,
            moved: 0.05,
            trio: true,
            stable: 40,
            most: 400,
            tolerance: 0.01,
            clean: 3,
            utilisation: 0.05,
            framing: Framing::ETHERNET,
        }
    }
}

/// Names and descriptions, for the registry.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("large", "IP octets of long packets, 200..9000; the path's MTU"),
    (
        "small",
        "IP octets of short packets, 28..1000, at most half of the long ones; 64",
    ),
    (
        "third",
        "size of the third kind, as a share of the long one, 0.3..0.9; 0.6",
    ),
    (
        "moved",
        "least change of the dispersion that tells that the changed size governs it, 0.01..0.5; 0.05",
    ),
    (
        "trio",
        "also bound both capacities by least round trips, true or false; true",
    ),
    ("stable", "pairs without a new minimum that end a kind, 1..10000; 40"),
    ("most_pairs", "pairs of a kind at most, 2..10000; 400"),
    (
        "tolerance",
        "largest excess of the least delay sum over the sum of the least delays, share of the dispersion, 0..1; 0.01",
    ),
    ("clean", "pairs that must meet the condition, 1..100; 3"),
    (
        "utilisation",
        "largest mean share of either narrow link, 0.001..1; 0.05",
    ),
    (
        "framing",
        "of the narrow links: ethernet, vlan, bare, or octets per packet; ethernet",
    ),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let large = checked(raw, "large", 0, 0..=9000)?;
        let params = Self {
            large: (large != 0).then_some(large),
            small: checked(raw, "small", base.small, 28..=1000)?,
            third: checked(raw, "third", base.third, 0.3..=0.9)?,
            moved: checked(raw, "moved", base.moved, 0.01..=0.5)?,
            trio: raw.get("trio", base.trio)?,
            stable: checked(raw, "stable", base.stable, 1..=10_000)?,
            most: checked(raw, "most_pairs", base.most, 2..=10_000)?,
            tolerance: share(raw, "tolerance", base.tolerance, 0.0)?,
            clean: checked(raw, "clean", base.clean, 1..=100)?,
            utilisation: share(raw, "utilisation", base.utilisation, 0.001)?,
            framing: framing(raw)?,
        };
        if large != 0 && (large < 200 || large < 2 * params.small) {
            return Err(ParamError::OutOfRange {
                name: "large",
                value: large.to_string(),
                why: "200 to 9000, and twice the short packets".to_owned(),
            });
        }
        Ok(params)
    }
}
