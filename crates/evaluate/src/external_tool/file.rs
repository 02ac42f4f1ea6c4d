//! The shape of a description in TOML; `adapter` says what it means.

use std::collections::BTreeMap;

use narrows_units::{Direction, Layer, Metric};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) metric: Metric,
    pub(super) layer: Layer,
    #[serde(default = "forward")]
    pub(super) direction: Direction,
    pub(super) ip_octets: Option<u16>,
    pub(super) program: Program,
    #[serde(default)]
    pub(super) params: BTreeMap<String, Scalar>,
    pub(super) server: Option<Server>,
    pub(super) client: Client,
    pub(super) after: Option<After>,
    pub(super) read: Read,
    #[serde(default)]
    pub(super) cost: Cost,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) needs: Vec<String>,
    pub(super) package: Option<String>,
    pub(super) version: Option<Vec<String>>,
    pub(super) version_pattern: Option<String>,
}

/// A parameter's default, however it is written.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Whole(i64),
    Real(f64),
    Truth(bool),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    #[serde(default)]
    pub(super) host: Option<super::Host>,
    pub(super) command: Vec<String>,
    pub(super) ready: Ready,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ready {
    pub(super) tcp_port: Option<String>,
    pub(super) udp_port: Option<String>,
    pub(super) line: Option<String>,
    pub(super) after: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    #[serde(default)]
    pub(super) host: Option<super::Host>,
    pub(super) command: Vec<String>,
    pub(super) timeout: String,
    #[serde(default)]
    pub(super) interrupt: bool,
    #[serde(default)]
    pub(super) inconclusive_exit_codes: Vec<i32>,
    #[serde(default)]
    pub(super) success_exit_codes: Vec<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    #[serde(default)]
    pub(super) host: Option<super::Host>,
    pub(super) command: Vec<String>,
    pub(super) timeout: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum From {
    #[default]
    Client,
    Server,
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stream {
    #[default]
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum Which {
    #[default]
    First,
    Last,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    #[serde(default)]
    pub(super) from: From,
    #[serde(default)]
    pub(super) stream: Stream,
    pub(super) pattern: Option<String>,
    pub(super) json: Option<Json>,
    #[serde(default)]
    pub(super) which: Which,
    pub(super) unit: Option<String>,
    #[serde(default = "one")]
    pub(super) scale: f64,
    #[serde(default)]
    pub(super) hop_offset: u16,
    pub(super) none: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Json {
    pub(super) value: String,
    pub(super) low: Option<String>,
    pub(super) high: Option<String>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    pub(super) octets: Option<Rule>,
    pub(super) packets: Option<Rule>,
    pub(super) seconds: Option<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) pattern: Option<String>,
    pub(super) json: Option<String>,
    #[serde(default = "one")]
    pub(super) scale: f64,
}

impl Scalar {
    /// As it stands on a command line.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

const fn forward() -> Direction {
    Direction::Forward
}

const fn one() -> f64 {
    1.0
}
