//! What can be set, for TOPP and `DietTopp` alike.

use std::time::Duration;

use crate::methods::campaign::within;
use crate::registry::{Imposes, ParamError, RawParams};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::methods) enum Kind {
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

impl Params {
    pub(in crate::methods) fn of(kind: Kind) -> Self {
        let shared = Self {
            ip_octets: None,
            packets: None,
            levels: 10,
            trains: 5,
            first: 10,
            bottom: 1.0,
            top: 1.5,
            load: 0.2,
        };
        match kind {
            Kind::Diet => shared,
            Kind::Topp => Self {
                packets: Some(60),
                levels: 24,
                trains: 3,
                first: 3,
                bottom: 0.05,
                top: 1.3,
                ..shared
            },
        }
    }

    pub(in crate::methods) fn read(kind: Kind, raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::of(kind);
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let (size, packets): (u16, usize) = (raw.get("size", 0)?, raw.get("train", 0)?);
        let params = Self {
            ip_octets: given("size").then_some(size),
            packets: if given("train") { Some(packets) } else { base.packets },
            levels: raw.get("levels", base.levels)?,
            trains: raw.get("trains", base.trains)?,
            first: raw.get("first", base.first)?,
            bottom: raw.get("bottom", base.bottom)?,
            top: raw.get("top", base.top)?,
            load: raw.get("load", base.load)?,
        };
        within(!given("size") || size >= 68, "size", size, "68 to 65535")?;
        within(
            !given("train") || (8..=1000).contains(&packets),
            "train",
            packets,
            "8 to 1000",
        )?;
        within((5..=50).contains(&params.levels), "levels", params.levels, "5 to 50")?;
        within((1..=50).contains(&params.trains), "trains", params.trains, "1 to 50")?;
        within((1..=50).contains(&params.first), "first", params.first, "1 to 50")?;
        within(
            (0.01..=10.0).contains(&params.bottom),
            "bottom",
            params.bottom,
            "0.01 to 10",
        )?;
        let above = params.top > params.bottom && params.top <= 20.0;
        within(above, "top", params.top, "above bottom, at most 20")?;
        within((0.001..=1.0).contains(&params.load), "load", params.load, "0.001 to 1")?;
        Ok(params)
    }

    /// What the longest run imposes: each train twice, and a round trip of 200 ms for each (ours).
    pub(in crate::methods) fn imposes(&self, usual: &Imposes) -> Imposes {
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
