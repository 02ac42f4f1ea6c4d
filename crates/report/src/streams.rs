//! What `narrows streams` prints: how many parallel streams fill the path, from how many on they
//! are intrusive, from how many on they do harm, and the curve behind that.

mod text;

use narrows_probe::{BuffersFinding, FillBasis, Finding, StreamsFinding, StreamsLevel};
use narrows_units::BitRate;
use serde::Serialize;

use crate::picture::{Picture, Point, RateOverStreams, Series};
use crate::rows::MetricRow;

/// The answer: the metric's row, as every command prints it, with the numbers and the curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamsDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The `tcp_streams_to_fill` metric.
    #[serde(flatten)]
    pub row: MetricRow,
    /// Fewest streams that fill what is available; `null` where that was not reached.
    pub fill: Option<u64>,
    /// It is reckoned from one stream's rate, not tried.
    pub fill_is_extrapolated: bool,
    /// Fewest streams that disturb others; `null` if none of those tried does.
    pub intrusive: Option<u64>,
    /// What tells that: names of signs.
    pub intrusive_by: Vec<String>,
    /// Fewest streams that get less than fewer do; `null` if none of those tried does.
    pub harmful: Option<u64>,
    /// Parallel streams are worth it.
    pub recommended: Option<bool>,
    /// Connections of others of the same kind that the curve tells of; `null` where it does not
    /// bend that way.
    pub competing_flows: Option<f64>,
    /// What is available, TCP payload.
    pub available_payload_bps: Option<u64>,
    /// What was tried.
    pub curve: Vec<StreamsRow>,
    /// What became of buffers that were asked for; `null` if that was not tried.
    pub buffers: Option<BuffersRow>,
}

/// One number of streams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StreamsRow {
    /// Streams.
    pub streams: u64,
    /// What they get together, TCP payload.
    pub rate_bps: u64,
    /// Round-trip time under that load.
    pub rtt_ns: u64,
    /// Share of octets sent again, 0..1.
    pub retransmitted_share: f64,
    /// Share of what others could have that they take, 0..1; `null` where nothing is known of that.
    pub intrusion: Option<f64>,
}

/// Buffers asked for against buffers got (`-FullD`, `[Netest03]` §III.B).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuffersRow {
    /// Window that was asked for at both ends and both ways of this host, octets.
    pub requested_octets: u64,
    /// Send buffer that the kernel granted, in octets of its own accounting.
    pub granted_octets: Option<u64>,
    /// The kernel gave less than was asked for.
    pub clamped: bool,
    /// Rate with these buffers over the rate without.
    pub gain: f64,
    /// Without them one stream got less than half of what path and window allow, lost nothing, and
    /// gained by half and more: the kernel ties its send buffer to its receive buffer.
    pub kernel_at_fault: bool,
}

impl StreamsDocument {
    /// Of the method's row.
    pub fn new(row: MetricRow) -> Self {
        let found = match &row.details.finding {
            Finding::Streams(found) => Some(found.as_ref().clone()),
            _ => None,
        };
        let basis = found.as_ref().map(|found| found.basis);
        let document = Self {
            schema: crate::schema::STREAMS_NAME,
            fill: row.value.filter(|_| basis != Some(FillBasis::Rising)),
            fill_is_extrapolated: basis == Some(FillBasis::Extrapolated),
            intrusive: None,
            intrusive_by: Vec::new(),
            harmful: None,
            recommended: None,
            competing_flows: None,
            available_payload_bps: None,
            curve: Vec::new(),
            buffers: None,
            row,
        };
        match found {
            Some(found) => document.with(found),
            None => document,
        }
    }

    fn with(self, found: StreamsFinding) -> Self {
        Self {
            intrusive: found.intrusive.map(u64::from),
            intrusive_by: found.intrusive_by,
            harmful: found.harmful.map(u64::from),
            recommended: Some(found.recommended),
            competing_flows: found.competing_flows.filter(|flows| flows.is_finite()),
            available_payload_bps: found.available_payload_bps.map(BitRate::bps),
            curve: found.levels.into_iter().filter_map(StreamsRow::of).collect(),
            buffers: found.buffers.and_then(BuffersRow::of),
            ..self
        }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// The curve as a picture.
    pub fn picture(&self, title: &str) -> Picture {
        let points = |row: &StreamsRow| Point::new(row.streams as f64, row.rate_bps as f64);
        let marks = [("fill", self.fill), ("intrusive", self.intrusive), ("harmful", self.harmful)];
        Picture::RateOverStreams(RateOverStreams {
            title: title.to_owned(),
            series: vec![Series::new("together", self.curve.iter().map(points).collect())],
            available_bps: self.available_payload_bps.map(|bps| bps as f64),
            marks: marks.into_iter().filter_map(|(name, streams)| Some((name.to_owned(), streams? as f64))).collect(),
        })
    }
}

impl BuffersRow {
    fn of(buffers: BuffersFinding) -> Option<Self> {
        Some(Self {
            requested_octets: buffers.requested_octets.into(),
            granted_octets: buffers.granted_octets.map(u64::from),
            clamped: buffers.clamped,
            gain: Some(buffers.gain).filter(|gain| gain.is_finite())?,
            kernel_at_fault: buffers.kernel_at_fault,
        })
    }
}

impl StreamsRow {
    fn of(level: StreamsLevel) -> Option<Self> {
        Some(Self {
            streams: level.streams.into(),
            rate_bps: count(level.sum_bps)?,
            rtt_ns: count(level.rtt_ns)?,
            retransmitted_share: Some(level.retransmitted_share).filter(|share| share.is_finite())?,
            intrusion: level.intrusion.filter(|share| share.is_finite()),
        })
    }
}

/// A number of things, rounded; `None` for what is none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn count(value: f64) -> Option<u64> {
    (value.is_finite() && (0.0..1.8e19).contains(&value)).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use narrows_probe::Entry;
    use narrows_probe::{Cost, Estimate, Outcome, Ranged, Reason};
    use narrows_units::{Direction, Metric};

    use super::*;

    fn document(outcome: Outcome) -> StreamsDocument {
        StreamsDocument::new(MetricRow::new(&Entry {
            metric: Metric::TcpStreamsToFill,
            direction: Direction::Forward,
            method: "streams",
            outcome,
            cost: Cost::default(),
        }))
    }

    fn found(basis: FillBasis, levels: &[(u16, f64, f64, f64)]) -> StreamsFinding {
        let level = |&(streams, sum_bps, rtt_ns, retransmitted_share): &(u16, f64, f64, f64)| StreamsLevel {
            streams,
            sum_bps,
            rtt_ns,
            retransmitted_share,
            intrusion: None,
        };
        StreamsFinding {
            basis,
            levels: levels.iter().map(level).collect(),
            recommended: true,
            available_payload_bps: Some(BitRate::from_mbps(95)),
            intrusive: None,
            intrusive_by: Vec::new(),
            harmful: None,
            competing_flows: None,
            buffers: Some(BuffersFinding {
                requested_octets: 2_000_000,
                granted_octets: None,
                clamped: false,
                gain: 1.02,
                kernel_at_fault: false,
            }),
        }
    }

    #[test]
    fn the_three_numbers_and_the_curve() {
        let found = StreamsFinding {
            intrusive: Some(4),
            intrusive_by: vec!["round trip".to_owned(), "retransmissions".to_owned()],
            harmful: Some(8),
            ..found(
                FillBasis::Reached,
                &[(1, 60e6, 1e7, 0.0), (2, 94e6, 1.2e7, 0.0), (4, 95e6, 2e7, 0.01), (8, 90e6, 3e7, 0.05)],
            )
        };
        let estimate = Estimate::new(Metric::TcpStreamsToFill, None, Ranged::exactly(2u32))
            .found(Finding::Streams(Box::new(found)));
        let document = document(estimate.into());
        let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
        for (name, value) in [("fill", 2), ("intrusive", 4), ("harmful", 8), ("value", 2)] {
            assert_eq!(json[name], value, "{name}");
        }
        assert_eq!(json["curve"][3]["rate_bps"], 90_000_000);
        assert_eq!(json["intrusive_by"][1], "retransmissions");
        assert_eq!(json["buffers"]["kernel_at_fault"], false);
        let text = document.text(false);
        for part in ["2 fill", "from 4", "from 8", "██"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(document.text(true).is_ascii());
        let svg = document.picture("to far").svg();
        assert!(svg.contains("intrusive: 4") && svg.contains("harmful: 8"), "{svg}");
    }

    /// Both ends of what the schema allows, and something that it must refuse.
    #[test]
    fn json_follows_the_shipped_schema() {
        let schema: serde_json::Value = serde_json::from_str(crate::schema::STREAMS).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut found = StreamsFinding {
            competing_flows: Some(3.4),
            available_payload_bps: None,
            intrusive: Some(4),
            intrusive_by: vec!["round trip".to_owned()],
            ..found(FillBasis::Extrapolated, &[(1, 60e6, 1e7, 0.0), (2, 94e6, 1.2e7, 0.01)])
        };
        found.levels[0].intrusion = Some(0.1);
        found.levels[1].intrusion = Some(0.7);
        let full = Estimate::new(Metric::TcpStreamsToFill, None, Ranged::exactly(2u32))
            .found(Finding::Streams(Box::new(found)));
        for outcome in [full.into(), Outcome::inconclusive(Reason::NoAnswer)] {
            let mut json: serde_json::Value = serde_json::from_str(&document(outcome).json()).unwrap();
            let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:#?}");
            json["curve"] = serde_json::json!([{"streams": 0}]);
            assert!(!validator.is_valid(&json), "the schema must be able to refuse");
        }
    }

    #[test]
    fn nothing_measured() {
        let document = document(Outcome::inconclusive(Reason::NoAnswer));
        assert_eq!((document.fill, document.intrusive, document.curve.len()), (None, None, 0));
        assert!(!document.text(false).is_empty());
    }
}
