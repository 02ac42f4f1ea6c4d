//! What can be set.

use std::time::Duration;

use narrows_units::BitRate;

use crate::turning::{Length, Resolution, Settings, settings};
use narrows_probe::registry::{ParamError, RawParams, params};

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
    /// What searches with trains share; size, start, resolution, rounds and loss hold for pairs,
    /// too.
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

params! {
    /// What can be set.
    #[derive(Debug)]
    #[allow(dead_code, reason = "the preset only picks the defaults of the others")]
    pub(super) struct Typed {
        /// Ours, or the tool's defaults as published.
        tool: bool = "adaptive" is { "adaptive" => false, "tool" => true } {
            name: "preset", source: "[Kachan17] table 2: the tool's defaults",
        },
        /// What is sent: trains of pairs, packet trains, or pairs and then trains where stamps hide
        /// what is inside pairs.
        mode: Mode = "auto" is { "auto" => Mode::Auto, "pairs" => Mode::Pairs, "trains" => Mode::Trains } {
            unset: Some(""), presets: &[("tool", "pairs")], source: "tool: pairs, trains at 10 Gbit/s; ours: auto",
        },
        /// IP octets of a packet.
        ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"),
            source: "tool: 1472 octets of payload, 8972 at 10 Gbit/s", presets: &[("tool", "1500")],
        },
        /// Rate to begin at.
        start: Option<BitRate> = "the sender's highest" {
            range: AtLeast("1 bit/s"),
            source: "tool; 1 Gbit/s at 10 Gbit/s; the text also says \"the maximum possible\"", presets: &[("tool", "100 Mbit/s")],
        },
        /// Packets of a train at most, whatever stamps and batches ask for.
        max_packets: usize = "4000" {
            name: "max-packets", range: Between("50", "20000"), source: "ours",
        },
        /// Trains of one rate, at least.
        streams: usize = "2" { range: Between("1", "100"), source: "ours" },
        /// Trains of one rate, at most; never below streams.
        most_streams: usize = "10" {
            name: "max-streams", range: Between("0", "100"), source: "ours",
        },
        /// The least difference of rates that counts.
        resolution: Resolution = "0.01" { range: Resolution::RANGE, source: "ours" },
        /// Deviations of a full queue's train that the limit allows for.
        allowance: f64 = "0.8" {
            unit: "deviations", range: Between("0", "3"),
            source: "ours: what a turning point that packets round off adds", presets: &[("tool", "0")],
        },
        /// Rates tried at most.
        max_rounds: usize = "40" {
            name: "max-rounds", range: Between("3", "200"), source: "ours: the end of any search",
        },
        /// Packets lost on the path from which a rate is too high.
        loss: f64 = "0.03" { unit: "share", range: Between("0", "0.5"), source: "ours" },
        /// Octets of queue that a train may build, until losses say less.
        burst_octets: u32 = "150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// Mean load that the trains impose, of the path's rate.
        load: f64 = "0.16" {
            unit: "share", range: Between("0.001", "1"), source: "[Kachan17]: 1.6 Gbit/s on 10, trains",
        },
        /// Send time that a train aims at.
        train_time: Duration = "25 ms" { name: "train-time", range: Between("100 us", "1 s"), source: "ours" },
        /// Share of the path that pairs take.
        occupied: f64 = "0.01" {
            unit: "share", range: Between("0.00001", "0.2"), presets: &[("tool", "0.0001")],
            source: "tool: 0.01 %, 1 % at 10 Gbit/s; read as what pairs take of the path",
        },
        /// Pairs of one rate, at least.
        pairs: usize = "40" { range: Between("10", "1000"), source: "ours" },
        /// Pairs of one rate, at most; never below pairs.
        most_pairs: usize = "100" { name: "max-pairs", range: Between("0", "10000"), source: "ours" },
        /// Rates tried at least.
        iterations: usize = "3" { range: Between("1", "20"), source: "[Kachan17]: at least three" },
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        let length = Length::Time(typed.train_time);
        Ok(Self {
            mode: typed.mode,
            search: settings!(typed, length: length, floor: Duration::ZERO, compression: false),
            occupied: typed.occupied,
            pairs: typed.pairs,
            most_pairs: typed.most_pairs.max(typed.pairs),
            iterations: typed.iterations,
        })
    }
}
