//! pathload (placeholder head).

mod fleet;
mod machine;
mod search;
mod shape;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{BitRate, Layer, Metric};

use crate::Estimator;
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The method.
pub struct Pathload;

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Packets of a stream.
    pub stream_packets: usize,
    /// Streams of a fleet.
    pub streams: usize,
    /// Share of streams that must agree.
    pub fraction: f64,
    /// Width of the range that ends the search.
    pub resolution: Option<BitRate>,
    /// Sharpness of the grey region's edges that ends the search.
    pub grey_resolution: Option<BitRate>,
    /// Idle time after a stream, in lengths of the stream.
    pub idle: u32,
    /// Fleets at most.
    pub max_fleets: u32,
    /// Half the streams, and less than half the idle time.
    pub quick: bool,
    /// Largest packets at every rate, where the tool shrinks them below 150 Mbit/s.
    pub full_size: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            stream_packets: 100,
            streams: 12,
            fraction: 0.6,
            resolution: None,
            grey_resolution: None,
            idle: 9,
            max_fleets: 60,
            quick: false,
            full_size: false,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        raw.check_names(&INFO)?;
        let default = Self::default();
        let rate = |name: &'static str| {
            let given = raw.iter().any(|(known, _)| known == name);
            given.then(|| raw.get(name, BitRate::ZERO)).transpose()
        };
        let params = Self {
            stream_packets: raw.get("packets", default.stream_packets)?,
            streams: raw.get("streams", default.streams)?,
            fraction: raw.get("fraction", default.fraction)?,
            resolution: rate("resolution")?,
            grey_resolution: rate("grey-resolution")?,
            idle: raw.get("idle", default.idle)?,
            max_fleets: raw.get("max-fleets", default.max_fleets)?,
            quick: raw.get("quick", default.quick)?,
            full_size: raw.get("full-size", default.full_size)?,
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
        if !(40..=1000).contains(&self.stream_packets) {
            return refuse(
                "packets",
                self.stream_packets.to_string(),
                "40 (fewer give no trend) to 1000",
            );
        }
        if !(1..=100).contains(&self.streams) {
            return refuse("streams", self.streams.to_string(), "1 to 100");
        }
        if !(self.fraction > 0.5 && self.fraction <= 1.0) {
            return refuse("fraction", self.fraction.to_string(), "above 0.5, at most 1");
        }
        if self.resolution == Some(BitRate::ZERO) {
            return refuse("resolution", "0".to_owned(), "above 0");
        }
        if self.grey_resolution == Some(BitRate::ZERO) {
            return refuse("grey-resolution", "0".to_owned(), "above 0");
        }
        if !(1..=100).contains(&self.idle) {
            return refuse("idle", self.idle.to_string(), "1 to 100 stream lengths");
        }
        if !(1..=1000).contains(&self.max_fleets) {
            return refuse("max-fleets", self.max_fleets.to_string(), "1 to 1000");
        }
        Ok(())
    }

    fn fleet_streams(&self) -> usize {
        if self.quick {
            self.streams.div_ceil(2)
        } else {
            self.streams
        }
    }

    fn idle_factor(&self) -> u32 {
        if self.quick { self.idle.div_ceil(3) } else { self.idle }
    }
}

impl Method for Pathload {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(machine::Machine::new(Params::try_from(params)?)))
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "pathload",
    summary: "available bandwidth as a range, from the trend of delays in periodic streams (SLoPS)",
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
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 8_000_000,
        max_octets: 120_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &[
        ("packets", "packets of a stream (default: 100)"),
        ("streams", "streams of a fleet (default: 12)"),
        ("fraction", "share of streams that must agree (default: 0.6)"),
        (
            "resolution",
            "width of the range that ends the search (default: 2 % of the initial dispersion rate)",
        ),
        (
            "grey-resolution",
            "sharpness of the grey region's edges (default: 5 % of the same)",
        ),
        ("idle", "idle time after a stream, in stream lengths (default: 9)"),
        ("max-fleets", "fleets at most (default: 60)"),
        (
            "full-size",
            "largest packets at every rate: true or false (default: false)",
        ),
        (
            "quick",
            "half the streams and a third of the idle time: true or false (default: false)",
        ),
    ],
    source: include_str!("pathload.rs"),
};
