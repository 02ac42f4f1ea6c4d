//! Cross traffic in a file.

use narrows_units::BitRate;
use serde::Deserialize;

use super::{duration, octets, optional, rate};
use crate::cross::{Arrivals, Cross, GeneratedBy, Passing, SizeMix, Source};
use crate::elastic::{Elastic, ElasticControl, WEB_SIGMA, Workload};
use crate::error::ScenarioError;
use crate::way::PathDirection;

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
    pacing: Option<String>,
    web: Option<WebFile>,
    video: Option<VideoFile>,
    backup: Option<String>,
    from: Option<String>,
    until: Option<String>,
    generated_by: Option<GeneratedByName>,
}

/// Short transfers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebFile {
    rate: String,
    mean: String,
    sigma: Option<f64>,
}

/// Films.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VideoFile {
    rate: String,
    chunk: String,
}

/// Traffic over several hops.
#[derive(Deserialize)]
pub(super) struct PathCrossFile {
    first_hop: usize,
    last_hop: usize,
    #[serde(default)]
    direction: PathDirectionName,
    #[serde(flatten)]
    cross: CrossFile,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum PathDirectionName {
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
enum GeneratedByName {
    Virtual,
    Hosts,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ControlName {
    Reno,
    Cubic,
    Bbr,
}

/// The transfer that is listened to.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct PassingFile {
    control: Option<ControlName>,
    window: Option<String>,
    application: Option<String>,
    timestamps: Option<bool>,
}

impl PassingFile {
    pub(super) fn read(self, place: &str) -> Result<Passing, ScenarioError> {
        let usual = Passing::default();
        let window = optional(place, self.window.as_ref(), octets)?;
        let window_octets = window.map(|octets| u32::try_from(octets.count())).transpose();
        let application = optional(place, self.application.as_ref(), rate)?;
        if application == Some(BitRate::ZERO) {
            return Err(ScenarioError::invalid(place, "an application that hands over nothing makes no transfer"));
        }
        Ok(Passing {
            control: self.control.map_or(usual.control, |control| match control {
                ControlName::Reno => ElasticControl::Reno,
                ControlName::Cubic => ElasticControl::Cubic,
                ControlName::Bbr => ElasticControl::Bbr,
            }),
            window_octets: window_octets.map_err(|_| ScenarioError::invalid(place, "window must be below 4 GB"))?,
            application,
            timestamps: self.timestamps.unwrap_or(usual.timestamps),
        })
    }
}

/// `1500`, `"imix"`, `[[40, 0.5], [1500, 0.5]]`, or `{ uniform = [64, 1500] }`.
#[derive(Deserialize)]
#[serde(untagged)]
enum SizesFile {
    One(u16),
    Name(String),
    Mix(Vec<(u16, f64)>),
    Uniform(UniformFile),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UniformFile {
    uniform: [u16; 2],
}

impl PathCrossFile {
    /// `None`: open-loop traffic of rate zero, which is none.
    pub(super) fn read(self, place: &str) -> Result<Option<Cross>, ScenarioError> {
        let way = match self.direction {
            PathDirectionName::Forward => PathDirection::Forward,
            PathDirectionName::Reverse => PathDirection::Reverse,
        };
        self.cross.read(place, way, self.first_hop, self.last_hop)
    }
}

impl CrossFile {
    /// `None`: open-loop traffic of rate zero, which is none. So a load of a row of loads can be
    /// nothing.
    pub(super) fn read(
        self,
        place: &str,
        way: PathDirection,
        first_hop: usize,
        last_hop: usize,
    ) -> Result<Option<Cross>, ScenarioError> {
        let from = optional(place, self.from.as_ref(), duration)?.unwrap_or_default();
        let until = optional(place, self.until.as_ref(), duration)?;
        let source = match (&self.arrivals, &self.elastic) {
            (Some(_), None) => self.open(place)?,
            (None, Some(control)) => Source::Elastic(self.elastic(place, control)?),
            _ => return Err(ScenarioError::invalid(place, "needs either arrivals or elastic")),
        };
        if matches!(&source, Source::Open { rate, .. } if *rate == BitRate::ZERO) {
            return Ok(None);
        }
        Ok(Some(Cross {
            way,
            first_hop,
            last_hop,
            from,
            until,
            source,
            generated_by: self.generated_by.map(|generated_by| match generated_by {
                GeneratedByName::Virtual => GeneratedBy::Virtual,
                GeneratedByName::Hosts => GeneratedBy::Hosts,
            }),
        }))
    }

    fn open(&self, place: &str) -> Result<Source, ScenarioError> {
        let missing = |field: &str| ScenarioError::invalid(place, format!("needs {field}"));
        let sent = self.web.is_some() || self.video.is_some() || self.backup.is_some() || self.pacing.is_some();
        if sent || self.flows.is_some() || self.extra_rtt.is_some() || self.window.is_some() {
            let why = "flows, extra_rtt, window, pacing, web, video and backup belong to elastic traffic";
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
            Some(SizesFile::Uniform(UniformFile { uniform: [low, high] })) => SizeMix::uniform(*low, *high),
        };
        let why =
            "ip_octets must be a size of at least 20, \"imix\", [[size, weight], ...], or { uniform = [low, high] }";
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
                ControlName::Bbr => ElasticControl::Bbr,
            },
            extra_rtt: optional(place, self.extra_rtt.as_ref(), duration)?.unwrap_or_default(),
            window_octets: window_octets.map_err(|_| ScenarioError::invalid(place, "window must be below 4 GB"))?,
            pacing: optional(place, self.pacing.as_ref(), rate)?,
            workload: self.workload(place)?,
        })
    }

    fn workload(&self, place: &str) -> Result<Workload, ScenarioError> {
        match (&self.web, &self.video, &self.backup) {
            (None, None, None) => Ok(Workload::Greedy),
            (Some(web), None, None) => Ok(Workload::Web {
                rate: rate(place, &web.rate)?,
                mean: octets(place, &web.mean)?,
                sigma: web.sigma.unwrap_or(WEB_SIGMA),
            }),
            (None, Some(video), None) => {
                Ok(Workload::Video { rate: rate(place, &video.rate)?, chunk: duration(place, &video.chunk)? })
            }
            (None, None, Some(backup)) => Ok(Workload::Backup { payload: octets(place, backup)? }),
            _ => Err(ScenarioError::invalid(place, "carries one of web, video and backup")),
        }
    }
}

/// Flows between two hosts, written as a scenario's `[[cross]]` tables are, without hops and ways.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowsFile {
    cross: Vec<CrossFile>,
}

impl Cross {
    /// Reads a list of flows: a file of `[[cross]]` tables (or `cross = [...]`) without hops and
    /// ways, so that what a scenario says of its traffic can be sent between any two hosts. Traffic
    /// of rate zero is left out. The hops are 0.
    pub fn list_from_toml(text: &str) -> Result<Vec<Self>, ScenarioError> {
        let file: FlowsFile = toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string()))?;
        let mut flows = Vec::new();
        for (index, cross) in file.cross.into_iter().enumerate() {
            let place = format!("cross {index}");
            if let Some(cross) = cross.read(&place, PathDirection::Forward, 0, 0)? {
                cross.validate(&place)?;
                flows.push(cross);
            }
        }
        Ok(flows)
    }
}
