//! What can be set of every such method.

use std::time::Duration;

use narrows_units::BitRate;

use super::Flavour;
use narrows_probe::registry::{Imposes, ParamError, Parameter, RawParams, params};
use narrows_train::train_method::{unreadable, within};

/// Where the range of rates comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Range {
    /// A back-to-back train, coarse chirps, then a range around what they say (ours).
    ChirpReading,
    /// The caller's, moved as [`Range::ChirpReading`]'s when the estimate comes near its ends.
    Given(f64, f64),
    /// The tool's: it moves by a factor of seven when three outputs in a row lie near an end, if it
    /// `moves`.
    Tool {
        /// Lowest rate.
        low: f64,
        /// Highest rate.
        high: f64,
        /// It moves at all.
        moves: bool,
    },
}

/// Everything that the methods share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Common {
    /// The tool's constants and rules.
    pub(crate) tool: bool,
    pub(crate) range: Range,
    /// IP octets of a packet; `None`: what the path takes.
    pub(crate) ip_octets: Option<u16>,
    /// Chirps that the answer rests on.
    pub(crate) chirps: usize,
    /// Packets per rate; `None`: as many as stamps and batches ask for, at least `least_group`.
    pub(crate) group: Option<u32>,
    pub(crate) least_group: u32,
    /// Mean load over what is expected.
    pub(crate) load: f64,
    /// Both clocks count by this; zero: as they are.
    pub(crate) tick: Duration,
}

params! {
    /// What can be set of all of them, as it is typed; the first is a method's own row, where it
    /// has presets.
    #[derive(Debug)]
    pub(crate) struct Shared {
        /// Constants and rules: ours, or the tool's.
        tool: bool = "ours" is { "ours" => false, "tool" => true } { name: "preset", source: "ours" },
        /// Lowest rate; only with high.
        low: Option<BitRate> = "found; tool: 10 Mbit/s" { range: AtLeast("1 kbit/s"), source: "ours; the tool's" },
        /// Highest rate, above low by a twentieth at least; only with low.
        high: Option<BitRate> = "found; tool: 200 Mbit/s" { range: AtLeast("1 kbit/s"), source: "ours; the tool's" },
        /// Packets per rate.
        group: Option<u32> = "as stamps ask for" {
            range: Between("1", "20"), unset: Some("0"), presets: &[("tool", "1")], source: "ours; the tool: `-J`",
        },
        /// IP octets of a packet.
        octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("64", "65535"), unset: Some("0"), presets: &[("tool", "1028")],
            source: "ours; the tool: 1000 of payload",
        },
        /// Mean load over what is expected, above 0.
        load: f64 = "0.1" { unit: "share", range: Between("0", "0.5"), source: "ours" },
        /// What gaps and stamps are cut to; 0 s: as they are.
        tick: Duration = "0 s" {
            range: Between("0 s", "1 ms"), presets: &[("tool", "1 us")], source: "ours; the tool's clocks",
        },
    }
    check Shared::check;
}

impl Shared {
    /// The rows that are no method's own.
    pub(crate) const ROWS: &'static [Parameter] = match Self::PARAMETERS {
        [_, rows @ ..] => rows,
        [] => &[],
    };

    fn check(&self) -> Result<(), ParamError> {
        within(self.load > 0.0, "load", self.load, "above 0, at most 0.5")?;
        match (self.low, self.high) {
            (None, None) => Ok(()),
            (Some(low), Some(high)) => {
                let (low, high) = (low.as_f64(), high.as_f64());
                let good = high >= 1.05 * low && high <= 1e13;
                within(good, "low", low, "1 kbit/s at least, and high above it by a twentieth at least")
            }
            _ => Err(unreadable("low", "", "low and high go together")),
        }
    }

    fn range(&self, moves: bool) -> Range {
        match (self.low.zip(self.high), self.tool) {
            (Some((low, high)), true) => Range::Tool { low: low.as_f64(), high: high.as_f64(), moves },
            (Some((low, high)), false) => Range::Given(low.as_f64(), high.as_f64()),
            (None, true) => Range::Tool { low: 10e6, high: 200e6, moves },
            (None, false) => Range::ChirpReading,
        }
    }
}

impl Common {
    /// What was typed. Ours send `least_group` packets per rate at least; the tool's range `moves`
    /// or does not.
    pub(crate) fn read(raw: &RawParams, chirps: usize, least_group: u32, moves: bool) -> Result<Self, ParamError> {
        let shared = Shared::try_from(raw)?;
        Ok(Self {
            tool: shared.tool,
            range: shared.range(moves),
            ip_octets: shared.octets,
            chirps,
            group: shared.group,
            least_group: if shared.tool { 1 } else { least_group },
            load: shared.load,
            tick: shared.tick,
        })
    }

    /// What the longest run imposes. A run of more chirps takes more.
    pub(crate) fn imposes(&self, usual: &Imposes, usual_chirps: usize) -> Imposes {
        let more = self.chirps.div_ceil(usual_chirps.max(1)).max(1);
        let slower = (0.1 / self.load).max(1.0);
        let times = u32::try_from(more).unwrap_or(u32::MAX);
        Imposes {
            max_octets: usual.max_octets.saturating_mul(u64::from(times)),
            max_time: usual.max_time.saturating_mul(times).mul_f64(slower.min(1000.0)),
            ..usual.clone()
        }
    }
}

/// What one run was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings<F> {
    pub(crate) common: Common,
    pub(crate) flavour: F,
}

impl<F: Flavour> Settings<F> {
    pub(crate) fn imposes(&self, usual: &Imposes) -> Imposes {
        self.common.imposes(usual, F::CHIRPS)
    }
}

/// Most packets per rate (the tool's `-J`).
pub(crate) const MOST_GROUP: u32 = 20;
