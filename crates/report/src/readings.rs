//! The figures of a stored or printed JSON document, whichever command wrote it: what conditions
//! are judged by, and what two documents are compared by.
//!
//! Documents are read as JSON, not as our types: a document of last year has no type of today, and
//! its keys are a promise.

mod figures;
mod quantity;
mod stored;
#[cfg(test)]
mod tests;

use narrows_probe::BoundKind;
use narrows_stat::wilson;
use narrows_units::{Direction, Layer, Metric};
use serde_json::Value;

pub use quantity::{QUANTITIES, Quantity, QuantityUnit};
pub use stored::{StoredError, stored};

/// What one document says of one quantity in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Of what.
    pub quantity: &'static Quantity,
    /// Which way.
    pub direction: Direction,
    /// Whose octets count.
    pub layer: Option<Layer>,
    /// The value, in the quantity's unit; `None` where nothing was concluded.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What the value claims.
    pub claim: BoundKind,
}

impl Reading {
    /// Everything that the truth may be: a bound leaves one side open.
    pub(crate) fn possible(&self) -> (f64, f64) {
        match (self.claim, self.value) {
            (BoundKind::Estimated, Some(value)) => (self.low.unwrap_or(value), self.high.unwrap_or(value)),
            (BoundKind::LowerBound, Some(value)) => (value, f64::INFINITY),
            (BoundKind::UpperBound, Some(value)) => (0.0, value),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// A figure that was counted, and has no interval.
    fn counted(name: &str, direction: Direction, layer: Option<Layer>, value: Option<f64>) -> Self {
        let claim = if value.is_some() { BoundKind::Estimated } else { BoundKind::Inconclusive };
        Self { quantity: quantity::known(name), direction, layer, value, low: value, high: value, claim }
    }
}

/// What a document says; empty for a document of a kind that has no such figures.
pub fn readings(document: &Value) -> Vec<Reading> {
    if let Some(rows) = document["metrics"].as_array() {
        rows.iter().flat_map(row).collect()
    } else if document["metric"].is_string() {
        row(document)
    } else if document["result"]["metric"].is_string() {
        row(&document["result"])
    } else if document["hops"].is_array() {
        hops(document)
    } else if document["end"].is_object() {
        throughput(document)
    } else {
        Vec::new()
    }
}

/// A row of `metrics`, or the document of a command for one metric.
fn row(row: &Value) -> Vec<Reading> {
    let Some(quantity) = row["metric"].as_str().and_then(Quantity::named) else { return Vec::new() };
    let direction = word(&row["direction"]).unwrap_or(Direction::Forward);
    let reading = Reading {
        quantity,
        direction,
        layer: word(&row["layer"]),
        value: row["value"].as_f64(),
        low: row["low"].as_f64(),
        high: row["high"].as_f64(),
        claim: word(&row["verdict"]).unwrap_or(BoundKind::Inconclusive),
    };
    let is_of_echoes = quantity.name == Metric::RoundTripTime.name();
    let counts = (row["samples"]["lost"].as_u64(), row["samples"]["sent"].as_u64());
    let lost = (is_of_echoes && counts.1.is_some()).then(|| loss(direction, counts.0, counts.1));
    [reading].into_iter().chain(lost).collect()
}

/// A share of packets, with the interval that their number allows.
fn loss(direction: Direction, lost: Option<u64>, sent: Option<u64>) -> Reading {
    let counts = lost.zip(sent).filter(|(lost, sent)| *sent > 0 && lost <= sent);
    let value = counts.map(|(lost, sent)| lost as f64 / sent as f64);
    let interval = counts.and_then(|(lost, sent)| wilson(lost, sent, 0.9).ok());
    let reading = Reading::counted("loss_ratio", direction, None, value);
    Reading { low: interval.map(|all| all.low()), high: interval.map(|all| all.high()), ..reading }
}

/// The narrow and the tight hop's, and what the last hop answered.
fn hops(document: &Value) -> Vec<Reading> {
    let rows = document["hops"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = |ttl: &Value| rows.iter().find(|row| ttl.is_u64() && row["ttl"] == *ttl).unwrap_or(&Value::Null);
    let layer = word(&document["layer"]);
    let narrow = at(&document["narrow_hop"]);
    let capacity = Reading {
        low: narrow["low"].as_f64(),
        high: narrow["high"].as_f64(),
        claim: word(&narrow["verdict"]).unwrap_or(BoundKind::Inconclusive),
        ..Reading::counted("ip_capacity", Direction::Forward, layer, narrow["capacity"].as_f64())
    };
    let last = rows.last().filter(|_| document["reached"] == true).unwrap_or(&Value::Null);
    let (sent, answered) = (last["probes"]["sent"].as_u64(), last["probes"]["answered"].as_u64());
    let unanswered = sent.zip(answered).map(|(sent, answered)| sent.saturating_sub(answered));
    vec![
        capacity,
        Reading::counted(
            "available_ip_capacity",
            Direction::Forward,
            layer,
            at(&document["tight_hop"])["available"].as_f64(),
        ),
        Reading::counted("round_trip_time", Direction::Forward, None, last["round_trip_ns"].as_f64()),
        loss(Direction::Forward, unanswered, sent),
    ]
}

/// A document in iperf3's shape.
fn throughput(document: &Value) -> Vec<Reading> {
    let end = &document["end"];
    let test = &document["start"]["test_start"];
    let is_udp = test["protocol"] == "UDP";
    let layer = Some(if is_udp { Layer::UdpPayload } else { Layer::TcpPayload });
    let first = if test["reverse"] == 1 { Direction::Reverse } else { Direction::Forward };
    let mut found = Vec::new();
    for (suffix, direction) in [("", first), ("_bidir_reverse", Direction::Reverse)] {
        let (sent, received) = (&end[format!("sum_sent{suffix}")], &end[format!("sum_received{suffix}")]);
        if !received.is_object() {
            continue;
        }
        found.push(Reading::counted("throughput", direction, layer, received["bits_per_second"].as_f64()));
        if is_udp {
            found.push(loss(direction, received["lost_packets"].as_u64(), received["packets"].as_u64()));
            let jitter = received["jitter_ms"].as_f64().map(|ms| ms * 1e6);
            found.push(Reading::counted("jitter", direction, None, jitter));
        } else {
            found.push(Reading::counted("retransmits", direction, None, sent["retransmits"].as_f64()));
        }
    }
    // Tests by ndt7 have one connection per direction.
    for (name, direction) in [("upload", Direction::Forward), ("download", Direction::Reverse)] {
        let rate = end[name]["bits_per_second"].as_f64();
        found.extend(rate.map(|rate| Reading::counted("throughput", direction, layer, Some(rate))));
    }
    let loaded = &document["narrows"]["loaded_rtt"];
    for (name, key) in [("round_trip_time", "idle_ns"), ("loaded_round_trip_time", "p95_ns")] {
        found.extend(loaded[key].as_f64().map(|value| Reading::counted(name, Direction::Forward, None, Some(value))));
    }
    found
}

fn word<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}
