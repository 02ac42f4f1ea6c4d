//! What can be set, and the two presets.

use units::Framing;

use super::super::mindelay::{Via, checked, framing, share};
use crate::registry::{ParamError, RawParams};

/// Whose constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The paper's.
    Paper,
    /// Those of the re-implementation in the Linux kernel.
    Kernel,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Whose constants; it sets the defaults of the others.
    pub preset: Preset,
    /// Who answers.
    pub via: Via,
    /// IP octets of the packets of the two runs.
    pub octets: (u16, u16),
    /// Pairs without a new minimum that end a run.
    pub stable: usize,
    /// Pairs of a run at least.
    pub least: usize,
    /// Pairs of a run at most.
    pub most: usize,
    /// Pairs in a row whose winner hardly moved that end a run; 0: never.
    pub still: usize,
    /// Largest excess of the best delay sum, as a share of the dispersion.
    pub tolerance: f64,
    /// Pairs that must meet the condition.
    pub clean: usize,
    /// Largest half-difference of the two runs as a share of their mean.
    pub agree: f64,
    /// By how much sizes change.
    pub resize: f64,
    /// Largest over least dispersion from which sizes go up.
    pub spread: f64,
    /// Restarts from one judgement of the sizes to the next.
    pub every: u32,
    /// Restarts at most.
    pub restarts: u32,
    /// Checks an answer found under load with small packets.
    pub check: bool,
    /// Largest mean share of the narrow link.
    pub utilisation: f64,
    /// How the narrow link frames packets.
    pub framing: Framing,
}

impl Params {
    /// The defaults of a preset.
    pub fn of(preset: Preset) -> Self {
        let kernel = preset == Preset::Kernel;
        Self {
            preset,
            via: Via::Auto,
            octets: if kernel { (1200, 900) } else { (900, 700) },
            stable: if kernel { 20 } else { 40 },
            least: if kernel { 120 } else { 0 },
            most: if kernel { 500 } else { 100 },
            still: if kernel { 100 } else { 0 },
            tolerance: 0.01,
            clean: 3,
            agree: 0.05,
            resize: 0.2,
            spread: if kernel { 5.0 } else { 50.0 },
            every: if kernel { 2 } else { 1 },
            restarts: 6,
            check: true,
            utilisation: 0.05,
            framing: Framing::ETHERNET,
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::of(Preset::Paper)
    }
}

/// Names and descriptions, for the registry.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    (
        "preset",
        "whose constants: paper or kernel (Linux re-implementation); paper",
    ),
    (
        "far_end",
        "who answers: auto, receiver, echo, reflector (echo with its own stamps), closed_port, syn; auto",
    ),
    (
        "octets",
        "IP octets of the first run's packets, 100..9000; 900, kernel: 1200",
    ),
    (
        "second_octets",
        "IP octets of the second run's packets, 100..9000; 700, kernel: 900",
    ),
    (
        "stable",
        "pairs without a new minimum that end a run, 1..10000; 40, kernel: 20",
    ),
    ("least_pairs", "pairs of a run at least, 0..10000; 0, kernel: 120"),
    ("most_pairs", "pairs of a run at most, 2..10000; 100, kernel: 500"),
    (
        "still",
        "pairs in a row whose winner moves by less than 2 % that end a run, 0: never, ..10000; 0, kernel: 100",
    ),
    (
        "tolerance",
        "largest excess of the least delay sum over the sum of the least delays, share of the dispersion, 0..1; 0.01",
    ),
    ("clean", "pairs that must meet the condition, 1..100; 3"),
    (
        "agree",
        "largest half-difference of two runs as a share of their mean, 0..1; 0.05",
    ),
    (
        "resize",
        "by what share sizes change after a run without agreement, 0.01..1; 0.2",
    ),
    (
        "spread",
        "largest over least dispersion from which sizes grow, 1..1e6; 50, kernel: 5",
    ),
    ("restarts", "attempts after the first at most, 0..100; 6"),
    (
        "check",
        "check an answer found under load with pairs of small packets, true or false; true",
    ),
    ("utilisation", "largest mean share of the narrow link, 0.001..1; 0.05"),
    (
        "framing",
        "of the narrow link: ethernet, vlan, bare, or octets per packet; ethernet",
    ),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let word: String = raw.get("preset", "paper".to_owned())?;
        let base = match word.as_str() {
            "paper" => Self::of(Preset::Paper),
            "kernel" => Self::of(Preset::Kernel),
            _ => {
                return Err(ParamError::Unreadable {
                    name: "preset".to_owned(),
                    value: word,
                    why: "write paper or kernel".to_owned(),
                });
            }
        };
        let params = Self {
            via: Via::read(raw)?,
            octets: (
                checked(raw, "octets", base.octets.0, 100..=9000)?,
                checked(raw, "second_octets", base.octets.1, 100..=9000)?,
            ),
            stable: checked(raw, "stable", base.stable, 1..=10_000)?,
            least: checked(raw, "least_pairs", base.least, 0..=10_000)?,
            most: checked(raw, "most_pairs", base.most, 2..=10_000)?,
            still: checked(raw, "still", base.still, 0..=10_000)?,
            tolerance: share(raw, "tolerance", base.tolerance, 0.0)?,
            clean: checked(raw, "clean", base.clean, 1..=100)?,
            agree: share(raw, "agree", base.agree, 0.0)?,
            resize: share(raw, "resize", base.resize, 0.01)?,
            spread: checked(raw, "spread", base.spread, 1.0..=1e6)?,
            restarts: checked(raw, "restarts", base.restarts, 0..=100)?,
            check: raw.get("check", base.check)?,
            utilisation: share(raw, "utilisation", base.utilisation, 0.001)?,
            framing: framing(raw)?,
            ..base
        };
        if params.octets.0 == params.octets.1 {
            return Err(ParamError::OutOfRange {
                name: "second_octets",
                value: params.octets.1.to_string(),
                why: "the two runs need two sizes".to_owned(),
            });
        }
        Ok(params)
    }
}
