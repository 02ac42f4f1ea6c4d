//! What the result documents of commands hold, as values of a run.
//!
//! `rtt`, `capacity`, `available` and `burst` print one entry of `metrics`, `test` the list.
//! `throughput` prints iperf3's shape: what the receiver got is the value, without an interval.

use std::collections::BTreeMap;

use narrows_fleet::message::{Claim, Direction, Value};
use narrows_units::{Metric, Unit};
use serde::Deserialize;
use serde_json::Value as Json;

/// What a document says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Contents {
    pub(crate) values: Vec<Value>,
    /// IP octets that were sent, as far as the document knows.
    pub(crate) octets: u64,
    /// Why there is no value.
    pub(crate) reason: Option<String>,
    /// A host kept no time, so that little or nothing could be used.
    pub(crate) host_busy: bool,
}

/// An entry of `metrics`.
#[derive(Deserialize)]
struct Entry {
    metric: Metric,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    unit: Unit,
    direction: narrows_units::Direction,
    verdict: AnswerVerdict,
    #[serde(default)]
    octets: u64,
    reason: Option<Remark>,
    #[serde(default)]
    caveats: Vec<Remark>,
    #[serde(default)]
    samples: Samples,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerVerdict {
    Estimated,
    LowerBound,
    UpperBound,
    Inconclusive,
}

#[derive(Deserialize)]
struct Remark {
    id: String,
    text: String,
}

/// How many samples there were of each kind.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Samples {
    kept: BTreeMap<String, u64>,
    rejected: BTreeMap<String, u64>,
}

/// Reads the document of a command of this kind.
pub(crate) fn read(words: &[String], document: &Json) -> Contents {
    if words.first().is_some_and(|kind| kind == "throughput") {
        return throughput(words, document);
    }
    let mut found = Contents::default();
    let list = document.get("metrics").and_then(Json::as_array);
    // A metric of a later version is left out; it stays in the evidence.
    let entries = list.map_or_else(|| std::slice::from_ref(document), Vec::as_slice);
    for entry in entries.iter().filter_map(|entry| Entry::deserialize(entry).ok()) {
        found.octets = found.octets.saturating_add(entry.octets);
        if let Some(reason) = &entry.reason {
            found.reason.get_or_insert_with(|| reason.text.clone());
        }
        found.host_busy |= entry.is_of_a_busy_host();
        found.values.push(entry.value());
    }
    // What the whole job sent is more than its metrics did.
    let cost = document.pointer("/cost/octets").and_then(Json::as_u64);
    found.octets = cost.unwrap_or(found.octets);
    found
}

impl Entry {
    /// A host stood still, its clock was set, or it could not keep gaps, and the answer is none or
    /// rests on the smaller part. Whose fault it was is not known; the path's it was not.
    fn is_of_a_busy_host(&self) -> bool {
        let doubted = self.caveats.iter().any(|caveat| ["host_stall", "clock_step"].contains(&caveat.id.as_str()));
        if self.verdict == AnswerVerdict::Inconclusive {
            return doubted || self.reason.as_ref().is_some_and(|reason| reason.id == "sender_cannot_pace");
        }
        let all = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
        doubted && all(&self.samples.rejected) > all(&self.samples.kept)
    }

    fn value(&self) -> Value {
        let claim = match self.verdict {
            AnswerVerdict::Estimated => Claim::Estimate,
            AnswerVerdict::LowerBound => Claim::AtLeast,
            AnswerVerdict::UpperBound => Claim::AtMost,
            AnswerVerdict::Inconclusive => Claim::Inconclusive,
        };
        let direction = match self.direction {
            narrows_units::Direction::Reverse => Direction::Reverse,
            narrows_units::Direction::Forward | narrows_units::Direction::RoundTrip => Direction::Forward,
        };
        let none = Value { metric: self.metric, direction, unit: self.unit, claim, value: 0.0, low: 0.0, high: 0.0 };
        match self.value.filter(|_| claim != Claim::Inconclusive) {
            Some(value) => Value { value, low: self.low.unwrap_or(value), high: self.high.unwrap_or(value), ..none },
            None => Value { claim: Claim::Inconclusive, ..none },
        }
    }
}

/// The rate at the receiver. Where a host or a window held it back, the path carries at least this.
fn throughput(words: &[String], document: &Json) -> Contents {
    let number = |path: &str| document.pointer(path).and_then(Json::as_f64).filter(|rate| rate.is_finite());
    let has = |flags: [&str; 2]| words.iter().any(|word| flags.contains(&word.as_str()));
    let streams = document.pointer("/start/test_start/num_streams").and_then(Json::as_u64).unwrap_or(1);
    let metric = match (has(["-u", "--udp"]), streams > 1) {
        (true, _) => Metric::UdpAchievable,
        (false, false) => Metric::TcpAchievableSingle,
        (false, true) => Metric::TcpAchievableParallel,
    };
    let limit = document.pointer("/narrows/limited_by").and_then(Json::as_str).unwrap_or_default();
    let claim = if NOT_THE_PATH.contains(&limit) { Claim::AtLeast } else { Claim::Estimate };
    let direction = if has(["-R", "--reverse"]) { Direction::Reverse } else { Direction::Forward };
    let sums = [("/end/sum_received", direction), ("/end/sum_received_bidir_reverse", Direction::Reverse)];
    let values = sums.into_iter().filter_map(|(sum, direction)| {
        let value = number(&format!("{sum}/bits_per_second"))?;
        Some(Value { metric, direction, unit: metric.unit(), claim, value, low: value, high: value })
    });
    let values: Vec<Value> = values.collect();
    let octets = ["/end/sum_sent/bytes", "/end/sum_sent_bidir_reverse/bytes"]
        .iter()
        .filter_map(|path| document.pointer(path).and_then(Json::as_u64))
        .sum();
    let reason = document.get("error").and_then(Json::as_str).map(ToOwned::to_owned);
    Contents { values, octets, reason, host_busy: false }
}

/// Limits that say nothing of the path.
const NOT_THE_PATH: [&str; 8] =
    ["sending_host", "application", "receiving_host", "peer_window", "send_buffer", "pacing", "interface", "growing"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_and_a_list_of_them_are_values() {
        let rtt = json!({"metric": "round_trip_time", "value": 129_999, "low": 58_068, "high": 136_889, "unit": "ns",
            "direction": "round_trip", "verdict": "estimated", "octets": 5_376, "samples": {}});
        let none = json!({"metric": "ip_capacity", "value": null, "low": null, "high": null, "unit": "bit/s",
            "direction": "reverse", "verdict": "inconclusive", "octets": 10, "reason": {"id": "x", "text": "too few"}});
        let later = json!({"metric": "later", "value": 1});
        let found = read(&["rtt".to_owned()], &rtt);
        assert_eq!(found.octets, 5_376);
        let [value] = found.values[..] else { panic!("{found:?}") };
        assert_eq!((value.metric, value.claim), (Metric::RoundTripTime, Claim::Estimate));
        assert_eq!((value.low, value.value, value.high), (58_068.0, 129_999.0, 136_889.0));
        let list = json!({"metrics": [rtt, none, later], "cost": {"octets": 9_000}});
        let found = read(&["test".to_owned()], &list);
        assert_eq!((found.values.len(), found.octets, found.reason.as_deref()), (2, 9_000, Some("too few")));
        let second = found.values[1];
        assert_eq!((second.claim, second.direction, second.value), (Claim::Inconclusive, Direction::Reverse, 0.0));
    }

    #[test]
    fn a_value_that_a_busy_host_left_little_of_is_marked() {
        let entry = |verdict: &str, caveat: &str, reason: &str, rejected: u64| {
            let value = if verdict == "inconclusive" { Json::Null } else { json!(5e7) };
            json!({"metric": "available_ip_capacity", "value": value, "low": value, "high": value, "unit": "bit/s",
                "direction": "forward", "verdict": verdict, "caveats": [{"id": caveat, "text": "x"}],
                "reason": {"id": reason, "text": "x"}, "samples": {"kept": {"trains": 5}, "rejected": {"late": rejected}}})
        };
        for (verdict, caveat, reason, rejected, busy) in [
            ("estimated", "host_stall", "", 6, true),
            ("estimated", "host_stall", "", 4, false),
            ("estimated", "losses", "", 6, false),
            ("inconclusive", "clock_step", "no_agreement", 0, true),
            ("inconclusive", "", "sender_cannot_pace", 0, true),
            ("inconclusive", "", "no_agreement", 9, false),
        ] {
            let found = read(&["available".to_owned()], &entry(verdict, caveat, reason, rejected));
            assert_eq!(found.host_busy, busy, "{verdict} {caveat} {reason}");
        }
    }

    #[test]
    fn a_transfer_says_what_the_receiver_got() {
        let document = json!({"start": {"test_start": {"num_streams": 4}},
            "end": {"sum_received": {"bits_per_second": 94.5e6}, "sum_sent": {"bytes": 1_000}},
            "narrows": {"limited_by": "sending_host"}});
        let words = ["throughput", "-P", "4"].map(str::to_owned);
        let found = read(&words, &document);
        let [value] = found.values[..] else { panic!("{found:?}") };
        assert_eq!((value.metric, value.claim), (Metric::TcpAchievableParallel, Claim::AtLeast));
        assert!((value.value - 94.5e6).abs() < 1.0 && found.octets == 1_000);
        assert_eq!(read(&words, &json!({"error": "refused"})).reason.as_deref(), Some("refused"));
    }
}
