//! What the caller may set.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use units::BitRate;

use super::INFO;
use crate::registry::{ParamError, RawParams};

/// What the trains look like, and what is made of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Constant rates, and the slopes of their delays.
    Slope,
    /// Growing rates, and the curve that their delays should follow.
    Curve,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "slope" => Ok(Self::Slope),
            "curve" => Ok(Self::Curve),
            _ => Err("one of slope, curve".to_owned()),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Slope => "slope",
            Self::Curve => "curve",
        })
    }
}

/// The method's parameters; its module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Slopes or curves.
    pub mode: Mode,
    /// Length of the probe packets, IP header included; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// IP-layer capacity of the tight link, if known.
    pub capacity: Option<BitRate>,
    /// IP-layer capacity of the path's narrow link, if known; the tight link may be another.
    pub narrow: Option<BitRate>,
    /// Where to begin, if something is known; skips the coarse search.
    pub start: Option<BitRate>,
    /// Fewest trains near the knee behind an answer.
    pub min_trains: usize,
    /// Trains at most, whatever they are for.
    pub max_trains: usize,
    /// Packets of a train at most.
    pub max_packets: usize,
    /// Octets after which a run ends if its interval is fair by then; `None` goes by the path's rate.
    pub octets: Option<u64>,
    /// Octets of queue that a train may build; `None` goes by the path's rate. Losses lower it.
    pub burst_octets: Option<u64>,
    /// Mean load that the trains impose, as a share of the path's rate; `None` goes by the path's rate.
    pub load: Option<f64>,
    /// Time after which a run ends if its interval is fair by then.
    pub time: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            mode: Mode::Slope,
            ip_octets: None,
            capacity: None,
            narrow: None,
            start: None,
            min_trains: 5,
            max_trains: 120,
            max_packets: 4000,
            octets: None,
            burst_octets: None,
            load: None,
            time: Duration::from_millis(2600),
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        raw.check_names(&INFO)?;
        let default = Self::default();
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let rate = |name: &'static str| given(name).then(|| raw.get(name, BitRate::ZERO)).transpose();
        let octets = |name: &'static str| given(name).then(|| raw.get(name, 0u64)).transpose();
        let params = Self {
            mode: raw.get("mode", default.mode)?,
            ip_octets: given("size").then(|| raw.get("size", 1500)).transpose()?,
            capacity: rate("capacity")?,
            narrow: rate("narrow")?,
            start: rate("start")?,
            min_trains: raw.get("trains", default.min_trains)?,
            max_trains: raw.get("max-trains", default.max_trains)?,
            max_packets: raw.get("max-packets", default.max_packets)?,
            octets: octets("octets")?,
            burst_octets: octets("burst")?,
            load: given("load").then(|| raw.get("load", 0.0)).transpose()?,
            time: raw.get_duration("time", default.time)?,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let refuse = |name: &'static str, value: String, why: &str| {
            Err(ParamError::OutOfRange {
                name,
                value,
                why: why.to_owned(),
            })
        };
        if let Some(octets) = self.ip_octets.filter(|octets| *octets < 68) {
            return refuse("size", octets.to_string(), "at least 68, the smallest MTU (RFC 791)");
        }
        for (name, rate) in [
            ("capacity", self.capacity),
            ("narrow", self.narrow),
            ("start", self.start),
        ] {
            if rate == Some(BitRate::ZERO) {
                return refuse(name, "0".to_owned(), "above 0");
            }
        }
        if !(3..=1000).contains(&self.min_trains) {
            return refuse("trains", self.min_trains.to_string(), "3 to 1000");
        }
        if !(self.min_trains..=10_000).contains(&self.max_trains) {
            return refuse(
                "max-trains",
                self.max_trains.to_string(),
                "at least trains, at most 10000",
            );
        }
        if !(50..=20_000).contains(&self.max_packets) {
            return refuse("max-packets", self.max_packets.to_string(), "50 to 20000");
        }
        if let Some(octets) = self
            .octets
            .filter(|octets| !(100_000..=10_000_000_000).contains(octets))
        {
            return refuse("octets", octets.to_string(), "100000 to 10000000000");
        }
        if let Some(octets) = self
            .burst_octets
            .filter(|octets| !(20_000..=1_000_000_000).contains(octets))
        {
            return refuse("burst", octets.to_string(), "20000 (a dozen packets) to 1000000000");
        }
        if let Some(load) = self.load.filter(|load| !(0.001..=1.0).contains(load)) {
            return refuse("load", load.to_string(), "0.001 to 1");
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(600)).contains(&self.time) {
            return refuse("time", units::format_duration(self.time), "10 ms to 600 s");
        }
        Ok(())
    }
}
