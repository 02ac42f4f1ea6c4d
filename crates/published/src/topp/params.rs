//! What can be set, for TOPP and `DietTopp` alike.

use std::time::Duration;

use narrows_probe::registry::{Imposes, ParamError, RawParams, params};
use narrows_train::train_method::within;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rates from far below to above, a line with a break.
    Topp,
    /// Rates above only, one line.
    Diet,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// IP octets of a probe packet; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// Packets of a train; `None`: by the rate.
    pub packets: Option<usize>,
    /// Rates.
    pub levels: usize,
    /// Trains at each rate.
    pub trains: usize,
    /// Back-to-back trains in front.
    pub first: usize,
    /// Lowest rate, as a share of what came of the back-to-back trains.
    pub bottom: f64,
    /// Highest rate, likewise.
    pub top: f64,
    /// Mean load, as a share of the path's rate.
    pub load: f64,
}

/// Declares what one of the two takes, each parameter with its default and where that is from.
macro_rules! declared {
    (
        $typed:ident,
        size: $size:literal,
        train: $packets_type:ty = $packets:literal $packets_source:literal,
        levels: $levels:literal $levels_source:literal,
        trains: $trains:literal $trains_source:literal,
        first: $first:literal $first_source:literal,
        bottom: $bottom:literal $bottom_source:literal,
        top: $top:literal $top_source:literal,
        load: $load_source:literal,
    ) => {
        params! {
            /// What can be set.
            #[derive(Debug)]
            pub(crate) struct $typed {
                /// IP octets of a probe packet.
                ip_octets: Option<u16> = "path MTU" {
                    name: "size", unit: "IP octets", range: Between("68", "65535"), source: $size,
                },
                /// Packets of a train.
                packets: $packets_type = $packets { name: "train", range: Between("8", "1000"), source: $packets_source },
                /// Rates.
                levels: usize = $levels { range: Between("5", "50"), source: $levels_source },
                /// Trains at each rate.
                trains: usize = $trains { range: Between("1", "50"), source: $trains_source },
                /// Back-to-back trains in front, to know the range.
                first: usize = $first { range: Between("1", "50"), source: $first_source },
                /// Lowest rate, of what came of the back-to-back trains.
                bottom: f64 = $bottom { unit: "share", range: Between("0.01", "10"), source: $bottom_source },
                /// Highest rate, likewise, above bottom.
                top: f64 = $top { unit: "share", range: Above("0.01", "20"), source: $top_source },
                /// Mean load, of the path's rate.
                load: f64 = "0.2" { unit: "share", range: Between("0.001", "1"), source: $load_source },
            }
        }

        impl TryFrom<$typed> for Params {
            type Error = ParamError;

            fn try_from(typed: $typed) -> Result<Self, ParamError> {
                let above = typed.top > typed.bottom;
                within(above, "top", typed.top, "above bottom, at most 20")?;
                Ok(Self {
                    ip_octets: typed.ip_octets,
                    packets: typed.packets.into(),
                    levels: typed.levels,
                    trains: typed.trains,
                    first: typed.first,
                    bottom: typed.bottom,
                    top: typed.top,
                    load: typed.load,
                })
            }
        }
    };
}

declared! {
    Topp,
    size: "ours",
    train: usize = "60" "ours; the original sends pairs (recalled), whose gaps receivers cannot stamp today",
    levels: "24" "ours",
    trains: "3" "ours",
    first: "3" "ours",
    bottom: "0.05" "ours",
    top: "1.3" "ours",
    load: "ours",
}

declared! {
    Diet,
    size: "the tool: 1500",
    train: Option<usize> = "16, 32, 64" "the tool: for `p` below 11, below 50, from 50 Mbit/s",
    levels: "10" "the tool",
    trains: "5" "the tool",
    first: "10" "the tool, of 48 packets",
    bottom: "1" "the tool: of `p`",
    top: "1.5" "the tool; its steps leave the top itself out",
    load: "ours; the tool: 0.1",
}

impl Params {
    pub(crate) fn read(kind: Kind, raw: &RawParams) -> Result<Self, ParamError> {
        match kind {
            Kind::Topp => Topp::try_from(raw)?.try_into(),
            Kind::Diet => Diet::try_from(raw)?.try_into(),
        }
    }

    /// What the longest run imposes: each train twice, and a round trip of 200 ms for each (ours).
    pub(crate) fn imposes(&self, usual: &Imposes) -> Imposes {
        let trains = (self.levels * self.trains + self.first) as u64;
        let octets = trains * self.packets.unwrap_or(64) as u64 * u64::from(self.ip_octets.unwrap_or(1500));
        let slow = Duration::from_millis(200).mul_f64((0.2 / self.load).max(1.0));
        let time = slow * u32::try_from(trains).unwrap_or(u32::MAX);
        Imposes {
            max_octets: usual.max_octets.max(2 * octets),
            max_time: usual.max_time.max(time).min(Duration::from_secs(600)),
            ..usual.clone()
        }
    }
}
