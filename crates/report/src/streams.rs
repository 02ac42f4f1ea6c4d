//! What `narrows streams` prints: how many parallel streams fill the path, from how many on they are intrusive, from how many on they do
//! harm, and the curve behind that.

mod text;

use estimate::{Evidence, EvidenceValue};
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
    /// Connections of others of the same kind that the curve tells of; `null` where it does not bend that way.
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
    /// Without them one stream got less than half of what path and window allow, lost nothing, and gained by half and more: the kernel
    /// ties its send buffer to its receive buffer.
    pub kernel_at_fault: bool,
}

impl StreamsDocument {
    /// Of the method's row.
    pub fn new(row: MetricRow) -> Self {
        let evidence = &row.evidence;
        let word = |name: &str| match evidence.get(name) {
            Some(EvidenceValue::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let basis = word("basis").unwrap_or_default();
        let extrapolated = basis.starts_with("extrapolated");
        Self {
            schema: crate::schema::STREAMS_NAME,
            fill: row.value.filter(|_| !basis.starts_with("still")),
            fill_is_extrapolated: extrapolated,
            intrusive: whole(evidence, "intrusive_streams"),
            intrusive_by: word("intrusive_by")
                .map(|text| text.split(", ").map(str::to_owned).collect())
                .unwrap_or_default(),
            harmful: whole(evidence, "harmful_streams"),
            recommended: flag(evidence, "recommended"),
            competing_flows: number(evidence, "competing_flows"),
            available_payload_bps: whole(evidence, "available_payload_bps"),
            curve: curve(evidence),
            buffers: buffers(evidence),
            row,
        }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// The curve as a picture.
    pub fn picture(&self, title: &str) -> Picture {
        let points = |row: &StreamsRow| Point::new(row.streams as f64, row.rate_bps as f64);
        let marks = [
            ("fill", self.fill),
            ("intrusive", self.intrusive),
            ("harmful", self.harmful),
        ];
        Picture::RateOverStreams(RateOverStreams {
            title: title.to_owned(),
            series: vec![Series::new("together", self.curve.iter().map(points).collect())],
            available_bps: self.available_payload_bps.map(|bps| bps as f64),
            marks: marks
                .into_iter()
                .filter_map(|(name, streams)| Some((name.to_owned(), streams? as f64)))
                .collect(),
        })
    }
}

fn number(evidence: &Evidence, name: &str) -> Option<f64> {
    evidence
        .get(name)
        .and_then(EvidenceValue::as_f64)
        .filter(|value| value.is_finite())
}

fn flag(evidence: &Evidence, name: &str) -> Option<bool> {
    match evidence.get(name) {
        Some(EvidenceValue::Flag(flag)) => Some(*flag),
        _ => None,
    }
}

fn whole(evidence: &Evidence, name: &str) -> Option<u64> {
    number(evidence, name).and_then(crate::burst::count)
}

fn buffers(evidence: &Evidence) -> Option<BuffersRow> {
    Some(BuffersRow {
        requested_octets: whole(evidence, "buffer_requested_octets")?,
        granted_octets: whole(evidence, "buffer_granted_octets"),
        clamped: flag(evidence, "buffer_clamped").unwrap_or(false),
        gain: number(evidence, "buffer_gain")?,
        kernel_at_fault: flag(evidence, "kernel_at_fault").unwrap_or(false),
    })
}

fn curve(evidence: &Evidence) -> Vec<StreamsRow> {
    let series = |name: &str| match evidence.get(name) {
        Some(EvidenceValue::Series(values)) => values.clone(),
        _ => Vec::new(),
    };
    let columns = ["streams_tried", "sum_bps", "rtt_loaded_ns", "retransmitted_share"].map(series);
    let intrusion = series("intrusion");
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    (0..rows)
        .filter_map(|row| {
            Some(StreamsRow {
                streams: crate::burst::count(columns[0][row])?,
                rate_bps: crate::burst::count(columns[1][row])?,
                rtt_ns: crate::burst::count(columns[2][row])?,
                retransmitted_share: Some(columns[3][row]).filter(|share| share.is_finite())?,
                intrusion: intrusion.get(row).copied().filter(|share| share.is_finite()),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use estimate::job::Entry;
    use estimate::{Cost, Estimate, Outcome, Reason};
    use units::{Direction, Metric};

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

    #[test]
    fn the_three_numbers_and_the_curve() {
        let estimate = Estimate::new(Metric::TcpStreamsToFill, None, 2, 2, 2)
            .with("basis", "fills what is available")
            .with("streams_tried", vec![1.0, 2.0, 4.0, 8.0])
            .with("sum_bps", vec![60e6, 94e6, 95e6, 90e6])
            .with("rtt_loaded_ns", vec![1e7, 1.2e7, 2e7, 3e7])
            .with("retransmitted_share", vec![0.0, 0.0, 0.01, 0.05])
            .with("available_payload_bps", 95_000_000u64)
            .with("recommended", true)
            .with("intrusive_streams", 4u32)
            .with("intrusive_by", "round trip, retransmissions")
            .with("harmful_streams", 8u32)
            .with("buffer_requested_octets", 2_000_000u64)
            .with("buffer_gain", 1.02);
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
        let full = Estimate::new(Metric::TcpStreamsToFill, None, 2, 2, 2)
            .with("basis", "extrapolated from one stream")
            .with("streams_tried", vec![1.0, 2.0])
            .with("sum_bps", vec![60e6, 94e6])
            .with("rtt_loaded_ns", vec![1e7, 1.2e7])
            .with("retransmitted_share", vec![0.0, 0.01])
            .with("intrusion", vec![0.1, 0.7])
            .with("competing_flows", 3.4)
            .with("recommended", true)
            .with("intrusive_streams", 4u32)
            .with("intrusive_by", "round trip")
            .with("buffer_requested_octets", 2_000_000u64)
            .with("buffer_gain", 1.02);
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
        assert_eq!(
            (document.fill, document.intrusive, document.curve.len()),
            (None, None, 0)
        );
        assert!(!document.text(false).is_empty());
    }
}
