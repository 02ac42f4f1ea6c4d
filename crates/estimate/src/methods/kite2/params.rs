//! What can be set.

use std::time::Duration;

use units::BitRate;

use crate::methods::campaign::{unreadable, within};
use crate::methods::turning::{Length, Resolution, Settings};
use crate::registry::{ParamError, RawParams};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Pairs, and trains where stamps hide what is inside pairs.
    Auto,
    /// Trains of pairs.
    Pairs,
    /// Packet trains.
    Trains,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// What is sent.
    pub mode: Mode,
    /// What searches with trains share; size, start, resolution, rounds and loss hold for pairs, too.
    pub search: Settings,
    /// Share of the path that pairs take.
    pub occupied: f64,
    /// Pairs of one rate, at least.
    pub pairs: usize,
    /// Pairs of one rate, at most.
    pub most_pairs: usize,
    /// Rates tried at least.
    pub iterations: usize,
}

impl Params {
    fn adaptive() -> Self {
        Self {
            mode: Mode::Auto,
            search: Settings {
                ip_octets: None,
                start: None,
                length: Length::Time(Duration::from_millis(25)),
                max_packets: 4000,
                streams: 2,
                most_streams: 10,
                max_rounds: 40,
                resolution: Resolution::Share(0.01),
                floor: Duration::ZERO,
                allowance: 0.8,
                compression: false,
                loss: 0.03,
                burst_octets: 150_000,
                load: 0.16,
            },
            occupied: 0.01,
            pairs: 40,
            most_pairs: 100,
            iterations: 3,
        }
    }

    fn tool() -> Self {
        let base = Self::adaptive();
        Self {
            mode: Mode::Pairs,
            search: Settings {
                ip_octets: Some(1500),
                start: Some(BitRate::from_mbps(100)),
                allowance: 0.0,
                ..base.search
            },
            occupied: 0.0001,
            ..base
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = match raw.get("preset", "adaptive".to_owned())?.as_str() {
            "adaptive" => Self::adaptive(),
            "tool" => Self::tool(),
            other => return Err(unreadable("preset", other, "write adaptive or tool")),
        };
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let mode = match raw.get("mode", String::new())?.as_str() {
            "" => base.mode,
            "auto" => Mode::Auto,
            "pairs" => Mode::Pairs,
            "trains" => Mode::Trains,
            other => return Err(unreadable("mode", other, "write auto, pairs or trains")),
        };
        let mut search = base.search;
        if given("train-time") {
            search.length = Length::Time(raw.get_duration("train-time", Duration::ZERO)?);
        }
        let params = Self {
            mode,
            search: search.read(raw)?,
            occupied: raw.get("occupied", base.occupied)?,
            pairs: raw.get("pairs", base.pairs)?,
            most_pairs: raw.get("max-pairs", base.most_pairs)?,
            iterations: raw.get("iterations", base.iterations)?,
        };
        let params = Self {
            most_pairs: params.most_pairs.max(params.pairs),
            ..params
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let occupied = (0.00001..=0.2).contains(&self.occupied);
        within(occupied, "occupied", self.occupied, "0.00001 to 0.2")?;
        within((10..=1000).contains(&self.pairs), "pairs", self.pairs, "10 to 1000")?;
        within(self.most_pairs <= 10_000, "max-pairs", self.most_pairs, "up to 10000")?;
        within(
            (1..=20).contains(&self.iterations),
            "iterations",
            self.iterations,
            "1 to 20",
        )
    }
}

/// Name and meaning of each.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("preset", "adaptive or tool (its defaults as published); adaptive"),
    (
        "mode",
        "pairs, trains, or auto (pairs, and trains where stamps hide them); auto, tool pairs",
    ),
    ("size", "IP octets of a packet (default: path MTU; tool: 1500)"),
    (
        "start",
        "rate to begin at (default: the sender's highest; tool: 100 Mbit/s)",
    ),
    (
        "occupied",
        "share of the path that pairs take, 0.00001..0.2; 0.01, tool 0.0001",
    ),
    ("pairs", "pairs of one rate at least, 10..1000; 40"),
    ("max-pairs", "pairs of one rate at most; 100"),
    ("iterations", "rates tried at least, 1..20; 3"),
    ("resolution", "share of the rate, or rate, that counts (default: 0.01)"),
    ("train-time", "send time that a train aims at (default: 25 ms)"),
    ("max-packets", "packets of a train at most (default: 4000)"),
    ("streams", "trains of one rate at least (default: 2)"),
    ("max-streams", "trains of one rate at most (default: 10)"),
    (
        "allowance",
        "deviations of a full queue's train that are allowed for, 0..3; 0.8, tool 0",
    ),
    ("max-rounds", "rates tried at most (default: 40)"),
    (
        "loss",
        "share of packets lost from which a rate is too high (default: 0.03)",
    ),
    ("burst", "octets of queue that a train may build (default: 150000)"),
    (
        "load",
        "mean load of trains as a share of the path's rate (default: 0.16)",
    ),
];
