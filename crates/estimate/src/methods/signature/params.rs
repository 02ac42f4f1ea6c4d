//! Parameters.

use std::time::Duration;

use crate::registry::{ParamError, RawParams};

/// Parameters of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// IP octets of full-size packets; `None`: the path MTU.
    pub ip_octets: Option<u16>,
    /// Long trains where there are batches.
    pub trains: u32,
    /// Most packets of a train.
    pub longest: u32,
    /// Single packets far apart.
    pub singles: u32,
    /// Flows that share the last question; 1 leaves it out.
    pub flows: u16,
    /// Pause behind a train, in times that it took to arrive.
    pub rest: f64,
    /// Longest time that a long train shall take to arrive.
    pub span: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            ip_octets: None,
            trains: 10,
            longest: 1000,
            singles: 32,
            flows: 8,
            rest: 2.0,
            span: Duration::from_secs(1),
        }
    }
}

pub(super) static PARAMETERS: &[(&str, &str)] = &[
    ("ip_octets", "IP octets of full-size packets; default: path MTU"),
    ("trains", "long trains where packets come in batches; default 10"),
    ("longest", "most packets of a train; default 1000"),
    ("singles", "single packets, 10 to 11 ms apart; default 32"),
    (
        "flows",
        "flows that share a short load at the end; 1 leaves it out; default 8",
    ),
    (
        "rest",
        "pause behind a train, in times that it took to arrive; default 2",
    ),
    (
        "span",
        "longest time that a long train shall take to arrive; default 1 s",
    ),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let usual = Self::default();
        let ip_octets = match raw.get("ip_octets", 0u16)? {
            0 => None,
            octets => Some(octets),
        };
        let params = Self {
            ip_octets,
            trains: raw.get("trains", usual.trains)?,
            longest: raw.get("longest", usual.longest)?,
            singles: raw.get("singles", usual.singles)?,
            flows: raw.get("flows", usual.flows)?,
            rest: raw.get("rest", usual.rest)?,
            span: raw.get_duration("span", usual.span)?,
        };
        let bounds = [
            (
                "ip_octets",
                f64::from(ip_octets.unwrap_or(1500)),
                200.0,
                65_535.0,
                "200 to 65535",
            ),
            ("trains", f64::from(params.trains), 3.0, 200.0, "3 to 200"),
            (
                "longest",
                f64::from(params.longest),
                64.0,
                20_000.0,
                "64 to 20000 packets",
            ),
            ("singles", f64::from(params.singles), 0.0, 1000.0, "0 to 1000"),
            ("flows", f64::from(params.flows), 1.0, 64.0, "1 to 64"),
            ("rest", params.rest, 0.0, 100.0, "0 to 100"),
            ("span", params.span.as_secs_f64(), 0.01, 60.0, "10 ms to 60 s"),
        ];
        for (name, value, low, high, range) in bounds {
            if !(low..=high).contains(&value) {
                return Err(ParamError::OutOfRange {
                    name,
                    value: value.to_string(),
                    why: format!("it must be {range}"),
                });
            }
        }
        Ok(params)
    }
}
