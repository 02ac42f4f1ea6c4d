//! What can be set.

use std::time::Duration;

use units::Framing;

use super::super::mindelay::{Via, checked, framing, share};
use crate::registry::{ParamError, RawParams};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Who answers.
    pub via: Via,
    /// IP octets of a packet; `None`: the path's MTU.
    pub octets: Option<u16>,
    /// Dispersion below which bulks grow.
    pub threshold: Duration,
    /// By what factor.
    pub growth: usize,
    /// Packets of a bulk after its first, at most.
    pub most_packets: usize,
    /// Bulks without a new minimum that end the run; 0: only the count does.
    pub stable: usize,
    /// Bulks of one length at most.
    pub bulks: usize,
    /// Largest excess of the best delay sum, as a share of the dispersion.
    pub tolerance: f64,
    /// Bulks that must meet the condition.
    pub clean: usize,
    /// Permitted mean share of the narrow link.
    pub utilisation: f64,
    /// Tries shorter bulks where long ones find no idle moment.
    pub shorten: bool,
    /// Checks an answer found under load.
    pub check: bool,
    /// How the narrow link frames packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            via: Via::Auto,
            octets: None,
            threshold: Duration::from_millis(1),
            growth: 10,
            most_packets: 10_000,
            stable: 40,
            bulks: 200,
            tolerance: 0.01,
            clean: 3,
            utilisation: 0.01,
            shorten: true,
            check: true,
            framing: Framing::ETHERNET,
        }
    }
}

/// Names and descriptions, for the registry.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    (
        "far_end",
        "who answers: auto, receiver, echo, reflector (echo with its own stamps), closed_port, syn; auto",
    ),
    ("octets", "IP octets of a packet, 100..9000; the path's MTU"),
    ("threshold", "dispersion below which bulks grow, 1 us..1 s; 1 ms"),
    ("growth", "by what factor, 2..100; 10"),
    (
        "most_packets",
        "packets of a bulk after its first at most, 1..60000; 10000",
    ),
    (
        "stable",
        "bulks without a new minimum that end the run, 0: only the count does, ..10000; 40",
    ),
    ("bulks", "bulks of one length at most, 2..10000; 200"),
    (
        "tolerance",
        "largest excess of the least delay sum over the sum of the least delays, share of the dispersion, 0..1; 0.01",
    ),
    ("clean", "bulks that must meet the condition, 1..100; 3"),
    (
        "utilisation",
        "permitted mean share of the narrow link, 0.0001..1; 0.01",
    ),
    (
        "shorten",
        "try shorter bulks where long ones find no idle moment, true or false; true",
    ),
    (
        "check",
        "check an answer found under load by gaps within bulks or by smaller packets, true or false; true",
    ),
    (
        "framing",
        "of the narrow link: ethernet, vlan, bare, or octets per packet; ethernet",
    ),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let octets = checked(raw, "octets", 0, 0..=9000)?;
        let threshold = raw.get_duration("threshold", base.threshold)?;
        let out = |name, value: String, why: &str| ParamError::OutOfRange {
            name,
            value,
            why: why.to_owned(),
        };
        if octets != 0 && octets < 100 {
            return Err(out("octets", octets.to_string(), "100 to 9000"));
        }
        if !(Duration::from_micros(1)..=Duration::from_secs(1)).contains(&threshold) {
            return Err(out("threshold", format!("{threshold:?}"), "1 us to 1 s"));
        }
        Ok(Self {
            via: Via::read(raw)?,
            octets: (octets != 0).then_some(octets),
            threshold,
            growth: checked(raw, "growth", base.growth, 2..=100)?,
            most_packets: checked(raw, "most_packets", base.most_packets, 1..=60_000)?,
            stable: checked(raw, "stable", base.stable, 0..=10_000)?,
            bulks: checked(raw, "bulks", base.bulks, 2..=10_000)?,
            tolerance: share(raw, "tolerance", base.tolerance, 0.0)?,
            clean: checked(raw, "clean", base.clean, 1..=100)?,
            utilisation: share(raw, "utilisation", base.utilisation, 0.0001)?,
            shorten: raw.get("shorten", base.shorten)?,
            check: raw.get("check", base.check)?,
            framing: framing(raw)?,
        })
    }
}
