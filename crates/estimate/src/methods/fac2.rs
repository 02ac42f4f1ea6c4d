//! FAC2 (placeholder head).

mod finish;
mod fit;
mod machine;
mod reading;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{BitRate, Layer, Metric};

use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use crate::{Estimator, PathFacts};

/// The method.
pub struct Fac2;

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Length of the probe packets, IP header included; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// IP-layer capacity of the tight link, if known.
    pub capacity: Option<BitRate>,
    /// Send time that a train aims at.
    pub train_time: Duration,
    /// Slope trains that end a run; twice as many in the first three seconds.
    pub slope_trains: usize,
    /// Trains at most, whatever they are for.
    pub max_trains: usize,
    /// Packets of a train at most.
    pub max_packets: usize,
    /// Octets of queue that a train may build, until losses say less.
    pub burst_octets: u32,
    /// Mean load that the trains impose, as a share of the path's rate.
    pub load: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            ip_octets: None,
            capacity: None,
            train_time: Duration::from_millis(25),
            slope_trains: 10,
            max_trains: 50,
            max_packets: 4000,
            burst_octets: 150_000,
            load: 0.2,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        raw.check_names(&INFO)?;
        let default = Self::default();
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let params = Self {
            ip_octets: given("size").then(|| raw.get("size", 1500)).transpose()?,
            capacity: given("capacity").then(|| raw.get("capacity", BitRate::ZERO)).transpose()?,
            train_time: raw.get_duration("train-time", default.train_time)?,
            slope_trains: raw.get("trains", default.slope_trains)?,
            max_trains: raw.get("max-trains", default.max_trains)?,
            max_packets: raw.get("max-packets", default.max_packets)?,
            burst_octets: raw.get("burst", default.burst_octets)?,
            load: raw.get("load", default.load)?,
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
        if self.ip_octets.is_some_and(|octets| octets < 68) {
            return refuse("size", format!("{:?}", self.ip_octets), "at least 68, the smallest MTU (RFC 791)");
        }
        if self.capacity == Some(BitRate::ZERO) {
            return refuse("capacity", "0".to_owned(), "above 0");
        }
        let time = self.train_time;
        if !(Duration::from_micros(100)..=Duration::from_secs(1)).contains(&time) {
            return refuse("train-time", units::format_duration(time), "100 us to 1 s");
        }
        if !(3..=1000).contains(&self.slope_trains) {
            return refuse("trains", self.slope_trains.to_string(), "3 to 1000");
        }
        if self.max_trains < self.slope_trains {
            return refuse("max-trains", self.max_trains.to_string(), "at least trains");
        }
        if !(50..=20_000).contains(&self.max_packets) {
            return refuse("max-packets", self.max_packets.to_string(), "50 to 20000");
        }
        if self.burst_octets < 20_000 {
            return refuse("burst", self.burst_octets.to_string(), "at least 20000, a dozen packets");
        }
        if !(0.001..=1.0).contains(&self.load) {
            return refuse("load", self.load.to_string(), "0.001 to 1");
        }
        Ok(())
    }
}

impl Method for Fac2 {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(machine::Machine::new(Params::try_from(params)?)))
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "fac2",
    summary: "available bandwidth from feedback-adaptive trains and the slope of their delays",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeRate,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 3_000_000,
        max_octets: 100_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: &[
        ("size", "IP octets of a probe packet (default: path MTU)"),
        ("capacity", "IP-layer capacity of the tight link, if known (default: fitted)"),
        ("train-time", "send time that a train aims at (default: 25 ms)"),
        ("trains", "slope trains that end a run; twice as many in its first 3 s (default: 10)"),
        ("max-trains", "trains of all kinds at most (default: 50)"),
        ("max-packets", "packets of a train at most (default: 4000)"),
        ("burst", "octets of queue that a train may build (default: 150000)"),
        ("load", "mean load as a share of the path's rate (default: 0.2)"),
    ],
    source: include_str!("fac2.rs"),
};
