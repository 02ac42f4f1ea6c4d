//! What can be set of every such method.

use std::time::Duration;

use units::BitRate;

use super::Flavour;
use crate::methods::campaign::{unreadable, within};
use crate::registry::{Imposes, ParamError, RawParams};

/// Where the range of rates comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Range {
    /// A back-to-back train, coarse chirps, then a range around what they say (ours).
    Found,
    /// The caller's, moved as [`Range::Found`]'s when the estimate comes near its ends.
    Given(f64, f64),
    /// The tool's: it moves by a factor of seven when three outputs in a row lie near an end, if it `moves`.
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

impl Common {
    /// Ours.
    pub(crate) fn ours(chirps: usize, least_group: u32) -> Self {
        Self {
            tool: false,
            range: Range::Found,
            ip_octets: None,
            chirps,
            group: None,
            least_group,
            load: 0.1,
            tick: Duration::ZERO,
        }
    }

    /// The tools': 1000 octets of payload, 10 to 200 Mbit/s, the mean of 11, clocks of a microsecond.
    pub(crate) fn tool(moves: bool) -> Self {
        Self {
            tool: true,
            range: Range::Tool {
                low: 10e6,
                high: 200e6,
                moves,
            },
            ip_octets: Some(1028),
            chirps: 11,
            group: Some(1),
            least_group: 1,
            load: 0.1,
            tick: Duration::from_micros(1),
        }
    }

    /// With what the caller says instead.
    pub(crate) fn read(self, raw: &RawParams) -> Result<Self, ParamError> {
        let rate = |name: &'static str| raw.get(name, BitRate::ZERO).map(BitRate::as_f64);
        let (low, high) = (rate("low")?, rate("high")?);
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        if given("low") != given("high") {
            return Err(unreadable("low", "", "low and high go together"));
        }
        let range = match self.range {
            _ if !given("low") => self.range,
            Range::Tool { moves, .. } => Range::Tool { low, high, moves },
            Range::Found | Range::Given(..) => Range::Given(low, high),
        };
        let octets = raw.get("octets", self.ip_octets.unwrap_or(0))?;
        let group = raw.get("group", self.group.unwrap_or(0))?;
        let common = Self {
            range,
            ip_octets: Some(octets).filter(|octets| *octets > 0),
            chirps: raw.get("chirps", self.chirps)?,
            group: Some(group).filter(|group| *group > 0),
            load: raw.get("load", self.load)?,
            tick: raw.get_duration("tick", self.tick)?,
            ..self
        };
        common.check()?;
        Ok(common)
    }

    fn check(&self) -> Result<(), ParamError> {
        within((3..=1000).contains(&self.chirps), "chirps", self.chirps, "3 to 1000")?;
        let group = self.group.unwrap_or(1);
        within((1..=MOST_GROUP).contains(&group), "group", group, "1 to 20")?;
        let octets = self.ip_octets.unwrap_or(1500);
        within(octets >= 64, "octets", octets, "64 to 65535")?;
        let good = self.load > 0.0 && self.load <= 0.5;
        within(good, "load", self.load, "above 0, at most 0.5")?;
        let tick = units::format_duration(self.tick);
        within(
            self.tick <= Duration::from_millis(1),
            "tick",
            tick.as_str(),
            "0 to 1 ms",
        )?;
        match self.range {
            Range::Found => Ok(()),
            Range::Given(low, high) | Range::Tool { low, high, .. } => {
                let good = low >= 1e3 && high >= 1.05 * low && high <= 1e13;
                within(
                    good,
                    "low",
                    low,
                    "1 kbit/s at least, and high above it by a twentieth at least",
                )
            }
        }
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
pub(in crate::methods) struct Settings<F> {
    pub(in crate::methods) common: Common,
    pub(in crate::methods) flavour: F,
}

impl<F: Flavour> Settings<F> {
    pub(in crate::methods) fn imposes(&self, usual: &Imposes) -> Imposes {
        self.common.imposes(usual, F::CHIRPS)
    }
}

/// Most packets per rate (the tool's `-J`).
pub(crate) const MOST_GROUP: u32 = 20;
