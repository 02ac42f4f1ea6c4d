//! The hops while the work goes on, for whoever follows it.

use std::collections::BTreeMap;

use narrows_probe::outcome::PathHops;
use narrows_probe::probes::{Fate, Train, TrainReport};
use narrows_probe::progress::HopSoFar;
use narrows_probe::{BoundKind, Estimate};

use super::{HopRow, ProbeFindings, rows};

/// Least round trips, by hop limit and length.
#[derive(Debug, Clone, Default)]
pub struct LeastBySize(BTreeMap<(u8, u16), u64>);

impl LeastBySize {
    /// One more train.
    pub fn take(&mut self, asked: &Train, report: &TrainReport) {
        for (plan, row) in asked.packets.iter().zip(&report.arrivals) {
            let returned = match row.fate {
                Fate::Answered(reply) => reply.returned,
                Fate::Echoed { returned, .. } => returned,
                Fate::Received(_) | Fate::Lost => continue,
            };
            if let Some(limit) = plan.hop_limit {
                let took = narrows_units::nanos(returned.since(row.departed));
                let least = self.0.entry((limit.get(), plan.ip_octets)).or_insert(took);
                *least = took.min(*least);
            }
        }
    }

    fn of(&self, ttl: u16) -> Vec<(u16, u64)> {
        let Ok(limit) = u8::try_from(ttl) else { return Vec::new() };
        self.0.range((limit, 0)..=(limit, u16::MAX)).map(|((_, octets), ns)| (*octets, *ns)).collect()
    }
}

/// What is known of each hop; `reported` is the method's word so far.
pub fn so_far(reported: Option<&Estimate>, found: &ProbeFindings, sizes: &LeastBySize) -> Vec<HopSoFar> {
    let reported = reported.and_then(PathHops::of_estimate);
    let rows = rows::rows(reported.as_ref(), found);
    let (narrow, tight) = (rows::narrow(reported.as_ref(), &rows), rows::tight(reported.as_ref(), &rows));
    let of = |row: &HopRow| {
        let answered = row.probes.answered > 0;
        let claim = row.capacity.zip(row.low).zip(row.high).map(|((value, low), high)| (value, low, high));
        HopSoFar {
            ttl: row.ttl,
            routers: row.routers.iter().filter_map(|router| router.address.parse().ok()).collect(),
            name: row.routers.first().and_then(|router| router.name.clone()),
            sent: row.probes.sent,
            answered: row.probes.answered,
            best_ns: row.round_trip_ns,
            mean_ns: Some(row.probes.mean_ns).filter(|_| answered),
            worst_ns: Some(row.probes.worst_ns).filter(|_| answered),
            waiting_ns: row.queueing_ns,
            capacity: claim,
            verdict: Some(row.verdict).filter(|verdict| *verdict != BoundKind::Inconclusive),
            available: row.available,
            narrow: narrow == Some(row.ttl),
            tight: tight == Some(row.ttl),
            limited: row.limited.map(|limited| (limited.burst, limited.every_ns)),
            doubts: row.caveats.iter().map(|caveat| caveat.brief.to_owned()).collect(),
            by_size: sizes.of(row.ttl),
        }
    };
    rows.iter().map(of).collect()
}
