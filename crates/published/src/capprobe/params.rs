//! What can be set, and the two presets.

use narrows_units::Framing;

use narrows_probe::registry::{ParamError, Range, params};
use narrows_train::mindelay::Via;

/// Whose constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The paper's.
    Paper,
    /// Those of the re-implementation in the Linux kernel.
    Kernel,
}

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Whose constants: the paper's, or those of the re-implementation in the Linux kernel.
        pub preset: Preset = "paper" is { "paper" => Preset::Paper, "kernel" => Preset::Kernel } { source: "ours" },
        /// Who answers.
        pub via: Via = "auto" { name: "peer_kind", range: Via::RANGE, source: "ours; both originals send ICMP echoes" },
        /// IP octets of the first run's packets.
        pub octets: u16 = "900" {
            unit: "IP octets", range: Between("100", "9000"), presets: &[("kernel", "1200")],
            source: "recalled from [CapProbe04]; the kernel code",
        },
        /// IP octets of the second run's packets, another size.
        pub second_octets: u16 = "700" {
            unit: "IP octets", range: Between("100", "9000"), presets: &[("kernel", "900")],
            source: "recalled from [CapProbe04]; the kernel code",
        },
        /// Pairs without a new minimum that end a run.
        pub stable: usize = "40" {
            range: Between("1", "10000"), presets: &[("kernel", "20")], source: "the paper, as [pbprobe] quotes it; the kernel code",
        },
        /// Pairs of a run at least.
        pub least: usize = "0" {
            name: "least_pairs", range: Between("0", "10000"), presets: &[("kernel", "120")], source: "the kernel code",
        },
        /// Pairs of a run at most.
        pub most: usize = "100" {
            name: "most_pairs", range: Between("2", "10000"), presets: &[("kernel", "500")],
            source: "recalled from [CapProbe04]; the kernel code",
        },
        /// Pairs in a row whose winner moves by less than 2 % that end a run; 0: never.
        pub still: usize = "0" {
            range: Between("0", "10000"), presets: &[("kernel", "100")], source: "the kernel code",
        },
        /// Largest excess of the least delay sum over the sum of the least delays.
        pub tolerance: f64 = "0.01" {
            unit: "of the dispersion", range: Between("0", "1"), source: "both; departs: not of the delay sum (see `mindelay`)",
        },
        /// Pairs that must meet the condition.
        pub clean: usize = "3" {
            range: Between("1", "100"), source: "ours: one pair may be chance; 1 is the original",
        },
        /// Largest half-difference of the two runs, of their mean.
        pub agree: f64 = "0.05" { unit: "share", range: Between("0", "1"), source: "recalled; the kernel code" },
        /// By how much sizes change after a run without agreement.
        pub resize: f64 = "0.2" { unit: "share", range: Between("0.01", "1"), source: "recalled; the kernel code" },
        /// Largest over least dispersion from which sizes go up.
        pub spread: f64 = "50" {
            range: Between("1", "1000000"), presets: &[("kernel", "5")],
            source: "recalled; the kernel code, which judges at every second restart",
        },
        /// Restarts at most.
        pub restarts: u32 = "6" { range: Between("0", "100"), source: "ours: the originals go on for ever" },
        /// Checks an answer found under load with small packets.
        pub check: bool = "true" { range: Range::SWITCH, source: "ours" },
        /// Largest mean share of the narrow link.
        pub utilisation: f64 = "0.05" { unit: "share", range: Between("0.001", "1"), source: "the kernel code" },
        /// How the narrow link frames packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, source: "IEEE 802.3" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        if self.octets != self.second_octets {
            return Ok(());
        }
        Err(ParamError::OutOfRange {
            name: "second_octets",
            value: self.second_octets.to_string(),
            why: "the two runs need two sizes".to_owned(),
        })
    }
}

impl Preset {
    /// Restarts from one judgement of the sizes to the next.
    pub(super) fn judges_every(self) -> u32 {
        match self {
            Self::Paper => 1,
            Self::Kernel => 2,
        }
    }
}
