//! Cross traffic in a file.

use serde::Deserialize;

use super::{duration, octets, optional, rate};
use crate::cross::{Arrivals, Cross, Elastic, ElasticControl, SizeMix, Source};
use crate::error::ScenarioError;
use crate::model::Way;

/// Traffic written inside a hop, or the part of path-wide traffic that does not say where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CrossFile {
    arrivals: Option<ArrivalsName>,
    rate: Option<String>,
    ip_octets: Option<SizesFile>,
    shape: Option<f64>,
    mean_on: Option<String>,
    peak: Option<String>,
    elastic: Option<ControlName>,
    flows: Option<u16>,
    extra_rtt: Option<String>,
    window: Option<String>,
    from: Option<String>,
    until: Option<String>,
}

/// Traffic over several hops.
#[derive(Deserialize)]
pub(super) struct PathCrossFile {
    first_hop: usize,
    last_hop: usize,
    #[serde(default)]
    way: WayName,
    #[serde(flatten)]
    cross: CrossFile,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum WayName {
    #[default]
    Forward,
    Reverse,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ArrivalsName {
    Cbr,
    Poisson,
    Pareto,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ControlName {
    Reno,
    Cubic,
}

/// `1500`, `"imix"`, or `[[40, 0.5], [1500, 0.5]]`.
#[derive(Deserialize)]
#[serde(untagged)]
enum SizesFile {
    One(u16),
    Name(String),
    Mix(Vec<(u16, f64)>),
}

impl PathCrossFile {
    pub(super) fn read(self, place: &str) -> Result<Cross, ScenarioError> {
        let way = match self.way {
            WayName::Forward => Way::Forward,
            WayName::Reverse => Way::Reverse,
        };
        self.cross.read(place, way, self.first_hop, self.last_hop)
    }
}

impl CrossFile {
    pub(super) fn read(self, place: &str, way: Way, first_hop: usize, last_hop: usize) -> Result<Cross, ScenarioError> {
        let from = optional(place, self.from.as_ref(), duration)?.unwrap_or_default();
        let until = optional(place, self.until.as_ref(), duration)?;
        let source = match (&self.arrivals, &self.elastic) {
            (Some(_), None) => self.open(place)?,
            (None, Some(control)) => Source::Elastic(self.elastic(place, control)?),
            _ => return Err(ScenarioError::invalid(place, "needs either arrivals or elastic")),
        };
        Ok(Cross {
            way,
            first_hop,
            last_hop,
            from,
            until,
            source,
        })
    }

    fn open(&self, place: &str) -> Result<Source, ScenarioError> {
        let missing = |field: &str| ScenarioError::invalid(place, format!("needs {field}"));
        if self.flows.is_some() || self.extra_rtt.is_some() || self.window.is_some() {
            let why = "flows, extra_rtt and window belong to elastic traffic";
            return Err(ScenarioError::invalid(place, why));
        }
        let arrivals = match self.arrivals.as_ref().ok_or_else(|| missing("arrivals"))? {
            ArrivalsName::Cbr => Arrivals::Cbr,
            ArrivalsName::Poisson => Arrivals::Poisson,
            ArrivalsName::Pareto => Arrivals::ParetoOnOff {
                shape: self.shape.unwrap_or(1.5),
                mean_on: duration(place, self.mean_on.as_ref().ok_or_else(|| missing("mean_on"))?)?,
                peak: rate(place, self.peak.as_ref().ok_or_else(|| missing("peak"))?)?,
            },
        };
        let sizes = match &self.ip_octets {
            None => Some(SizeMix::constant(1500)),
            Some(SizesFile::One(size)) => SizeMix::weighted([(*size, 1.0)]),
            Some(SizesFile::Name(name)) if name == "imix" => Some(SizeMix::imix()),
            Some(SizesFile::Name(_)) => None,
            Some(SizesFile::Mix(mix)) => SizeMix::weighted(mix.clone()),
        };
        let why = "ip_octets must be a size of at least 20, \"imix\", or [[size, weight], ...]";
        Ok(Source::Open {
            arrivals,
            rate: rate(place, self.rate.as_ref().ok_or_else(|| missing("rate"))?)?,
            sizes: sizes.ok_or_else(|| ScenarioError::invalid(place, why))?,
        })
    }

    fn elastic(&self, place: &str, control: &ControlName) -> Result<Elastic, ScenarioError> {
        if self.rate.is_some() || self.ip_octets.is_some() || self.peak.is_some() {
            let why = "rate, ip_octets and peak belong to open-loop traffic; elastic flows take what they get";
            return Err(ScenarioError::invalid(place, why));
        }
        let window = optional(place, self.window.as_ref(), octets)?;
        let window_octets = window.map(|octets| u32::try_from(octets.count())).transpose();
        Ok(Elastic {
            flows: self.flows.unwrap_or(1),
            control: match control {
                ControlName::Reno => ElasticControl::Reno,
                ControlName::Cubic => ElasticControl::Cubic,
            },
            extra_rtt: optional(place, self.extra_rtt.as_ref(), duration)?.unwrap_or_default(),
            window_octets: window_octets.map_err(|_| ScenarioError::invalid(place, "window must be below 4 GB"))?,
        })
    }
}
