//! Bursts, and the queue that cuts them.

use narrows_units::{BitRate, Delta, Octets};
use serde::{Deserialize, Serialize};

use crate::outcome::{Diagnostic, Diagnostics};

/// Bursts, and the queue that cuts them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BurstFinding {
    /// Size of the packets, IP octets.
    pub ip_octets: u16,
    /// Rate at which they left; `None` if faster than stamps resolve.
    pub rate_bps: Option<BitRate>,
    /// Rate at which cut bursts come through.
    pub through_rate_bps: Option<BitRate>,
    /// Bursts of a sample, where one was taken.
    pub sample: Option<BurstSample>,
    /// The same at several rates, slowest first.
    pub curve: Vec<BurstPoint>,
    /// The queue that cuts the bursts.
    pub queue: QueueFinding,
    /// Round trip, ns, where the queue is known.
    pub rtt_ns: Option<Delta>,
}

/// Bursts of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstSample {
    /// A tenth of the bursts was cut earlier.
    pub p10: Octets,
    /// Half of them was.
    pub median: Octets,
    /// The best one brought as much through.
    pub max: Octets,
    /// The best one survived whole: longer ones might have brought more.
    pub max_is_bound: bool,
}

/// Bursts at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstPoint {
    /// Rate at which they left.
    pub rate_bps: BitRate,
    /// A tenth of them was cut earlier.
    pub p10: Octets,
    /// Half of them was.
    pub median: Octets,
    /// The best one brought as much through.
    pub max: Octets,
    /// How many.
    pub bursts: u64,
}

/// A queue that cuts bursts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueFinding {
    /// What drops: `drop_tail`, `early_drop`, `policer`, `shaper` or `random_loss`; `unknown` or
    /// `None` where nothing tells.
    pub policy: Option<String>,
    /// What its room is counted in: `octets` or `packets`.
    pub counts: Option<String>,
    /// Its room.
    pub effective_octets: Option<Octets>,
    /// How that was found: `line` (over the rates) or `rate` (one rate and the fluid model).
    pub basis: Option<String>,
    /// The same by the longest delay.
    pub by_delay_octets: Option<Octets>,
    /// Time in which it drains when it was full.
    pub drain_ns: Option<Delta>,
    /// What the line over the rates says is available at that hop.
    pub available_bps: Option<BitRate>,
    /// Rate of the token bucket, where there is one.
    pub bucket_rate_bps: Option<BitRate>,
    /// Its depth.
    pub bucket_octets: Option<Octets>,
}

impl BurstFinding {
    /// The same for people.
    pub fn tell(&self, diagnostics: &mut Diagnostics) {
        diagnostics.insert("ip_octets", u32::from(self.ip_octets));
        if let Some(sample) = self.sample {
            diagnostics.insert("burst_p10_octets", sample.p10);
            diagnostics.insert("burst_median_octets", sample.median);
            diagnostics.insert("burst_max_octets", sample.max);
            diagnostics.insert("burst_max_is_bound", sample.max_is_bound);
        }
        if !self.curve.is_empty() {
            let column = |of: fn(&BurstPoint) -> u64| self.curve.iter().map(|row| of(row) as f64).collect::<Vec<_>>();
            diagnostics.insert("curve_rate_bps", column(|row| row.rate_bps.bps()));
            diagnostics.insert("curve_p10_octets", column(|row| row.p10.count()));
            diagnostics.insert("curve_median_octets", column(|row| row.median.count()));
            diagnostics.insert("curve_max_octets", column(|row| row.max.count()));
            diagnostics.insert("curve_bursts", column(|row| row.bursts));
        }
        let queue = &self.queue;
        for (name, value) in [
            ("burst_rate_bps", self.rate_bps.map(Diagnostic::from)),
            ("through_rate_bps", self.through_rate_bps.map(Diagnostic::from)),
            ("effective_queue_octets", queue.effective_octets.map(Diagnostic::from)),
            ("queue_by_delay_octets", queue.by_delay_octets.map(Diagnostic::from)),
            ("drain_ns", queue.drain_ns.map(Diagnostic::from)),
            ("effective_available_bps", queue.available_bps.map(Diagnostic::from)),
            ("bucket_rate_bps", queue.bucket_rate_bps.map(Diagnostic::from)),
            ("bucket_octets", queue.bucket_octets.map(Diagnostic::from)),
            ("rtt_ns", self.rtt_ns.map(Diagnostic::from)),
        ] {
            if let Some(value) = value {
                diagnostics.insert(name, value);
            }
        }
        for (name, word) in
            [("queue_policy", &queue.policy), ("queue_counts", &queue.counts), ("effective_queue_basis", &queue.basis)]
        {
            if let Some(word) = word {
                diagnostics.insert(name, word.as_str());
            }
        }
    }
}
