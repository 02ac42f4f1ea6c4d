//! What `narrows burst` prints: the largest burst that survives, over its rate, the queue behind
//! it, and what that means.

mod means;
mod text;

use narrows_probe::{BurstFinding, BurstPoint, Finding, Quantity, QueueFinding};
use narrows_units::{BitRate, Delta, Octets};
use serde::Serialize;

pub use means::{Facts, Means, QueueVerdict};

use crate::picture::{BurstOverRate, Picture, Point, Series};
use crate::rows::MetricRow;

/// The answer: the metric's row, as every command prints it, with the distribution, the curve, the
/// queue and what it means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BurstDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The `maximum_burst_octets` metric.
    #[serde(flatten)]
    pub row: MetricRow,
    /// A tenth of the bursts was cut earlier, octets.
    pub p10: Option<u64>,
    /// Half of them was.
    pub median: Option<u64>,
    /// The best one brought as much through.
    pub max: Option<u64>,
    /// The best one survived whole: longer ones might have brought more.
    pub max_is_bound: Option<bool>,
    /// Rate at which the bursts left; `null` if faster than stamps resolve.
    pub rate_bps: Option<u64>,
    /// The same at several rates, slowest first.
    pub curve: Vec<CurveRow>,
    /// The queue that cuts the bursts.
    pub queue: QueueRow,
    /// What it means; `null` without a number.
    pub means: Option<Means>,
}

/// Bursts at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CurveRow {
    /// Rate at which they left.
    pub rate_bps: u64,
    /// A tenth of them was cut earlier, octets.
    pub p10: u64,
    /// Half of them was.
    pub median: u64,
    /// The best one brought as much through.
    pub max: u64,
    /// How many.
    pub bursts: u64,
}

/// The queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueRow {
    /// What drops: `drop_tail`, `early_drop`, `policer`, `shaper` or `random_loss`; `unknown` or
    /// `null` where nothing tells.
    pub policy: Option<String>,
    /// What its room is counted in: `octets` or `packets`; `null` where that is not known.
    pub counts: Option<String>,
    /// Its room, octets of packets of this length.
    pub effective_octets: Option<u64>,
    /// How that was found: `line` (over the rates) or `rate` (one rate and the fluid model).
    pub basis: Option<String>,
    /// The same by the longest delay.
    pub by_delay_octets: Option<u64>,
    /// Time in which it drains when it was full.
    pub drain_ns: Option<u64>,
    /// What the line says is available at that hop.
    pub available_bps: Option<u64>,
    /// Rate of the token bucket, where there is one.
    pub bucket_rate_bps: Option<u64>,
    /// Its depth.
    pub bucket_octets: Option<u64>,
}

impl BurstDocument {
    /// Of the method's row, beside what else is known: what is available, if the caller said so.
    pub fn new(row: MetricRow, available: Option<BitRate>) -> Self {
        let found = match &row.details.finding {
            Finding::Burst(found) => found.as_ref().clone(),
            _ => BurstFinding::default(),
        };
        let through = found.through_rate_bps;
        let found_available = found.queue.available_bps;
        let queue = QueueRow::from(found.queue);
        let free = available.or(found_available).or(through).map(BitRate::bps);
        let facts = row.value.zip(free).zip(found.rtt_ns).map(|((burst, available), rtt)| Facts {
            p10_octets: found.sample.map_or(burst, |sample| sample.p10.count()),
            burst_octets: burst,
            queue_octets: queue.effective_octets,
            line_bps: through.map_or(available, BitRate::bps).max(available),
            available_bps: available,
            rtt_ns: rtt.number(),
        });
        Self {
            schema: crate::schema::BURST_NAME,
            p10: found.sample.map(|sample| sample.p10.count()),
            median: found.sample.map(|sample| sample.median.count()).or(row.value),
            max: found.sample.map(|sample| sample.max.count()).or(row.value),
            max_is_bound: found.sample.map(|sample| sample.max_is_bound),
            rate_bps: found.rate_bps.map(BitRate::bps),
            curve: found.curve.into_iter().map(CurveRow::from).collect(),
            queue,
            means: facts.map(Means::of),
            row,
        }
    }

    /// The curve as a picture.
    pub fn picture(&self, title: &str) -> Picture {
        let point =
            |row: &CurveRow| Point::between(row.rate_bps as f64, row.median as f64, row.p10 as f64, row.max as f64);
        Picture::BurstOverRate(BurstOverRate {
            title: title.to_owned(),
            series: vec![Series::new("median", self.curve.iter().map(point).collect())],
            queue_octets: self.queue.effective_octets.map(|octets| octets as f64),
            available_bps: self.queue.available_bps.map(|bps| bps as f64),
        })
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

impl From<QueueFinding> for QueueRow {
    fn from(queue: QueueFinding) -> Self {
        Self {
            policy: queue.policy,
            counts: queue.counts,
            effective_octets: queue.effective_octets.map(Octets::count),
            basis: queue.basis,
            by_delay_octets: queue.by_delay_octets.map(Octets::count),
            drain_ns: queue.drain_ns.map(Delta::number),
            available_bps: queue.available_bps.map(BitRate::bps),
            bucket_rate_bps: queue.bucket_rate_bps.map(BitRate::bps),
            bucket_octets: queue.bucket_octets.map(Octets::count),
        }
    }
}

impl From<BurstPoint> for CurveRow {
    fn from(point: BurstPoint) -> Self {
        Self {
            rate_bps: point.rate_bps.bps(),
            p10: point.p10.count(),
            median: point.median.count(),
            max: point.max.count(),
            bursts: point.bursts,
        }
    }
}

#[cfg(test)]
mod tests;
