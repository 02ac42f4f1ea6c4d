//! What a server on the remote host told of the path as a whole: both ways, and the last hop.

use std::fmt::Write;

use narrows_probe::Entry;
use narrows_probe::outcome::RemoteStamped;
use narrows_probe::{BoundKind, Estimate, Outcome};
use narrows_units::{BitRate, Layer, format_duration, rounded};
use serde::Serialize;

use super::HopsDocument;
use crate::rows::Remark;

/// What a server on the remote host told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerRow {
    /// Who that is: `server`.
    pub kind: &'static str,
    /// Of the forward direction, by its stamps of single packets; `null` if it stamped none.
    pub one_way: Option<StampedRow>,
    /// The whole forward direction; `null`: not measured.
    pub forward: Option<DirectionRow>,
    /// The whole reverse direction; `null`: not measured.
    pub reverse: Option<DirectionRow>,
}

/// Single packets of many sizes, stamped where they arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StampedRow {
    /// Packets sent.
    pub packets: u32,
    /// How many of them did not come.
    pub lost: u32,
    /// Routers other than those of the hops answered on their way: they say nothing of these hops.
    pub other_way: bool,
    /// The last hop's capacity is told by them, not by its answers.
    pub last_hop: bool,
    /// What all links there take for a full packet.
    pub all_links_ns: Option<u64>,
    /// Mean wait in queues on the forward direction.
    pub queueing_ns: Option<u64>,
}

/// The capacity of one whole way, by the stamps of its receiver.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionRow {
    /// bit/s at `layer`; `null`: inconclusive.
    pub capacity: Option<u64>,
    /// Lower end of the interval.
    pub low: Option<u64>,
    /// Upper end of the interval.
    pub high: Option<u64>,
    /// Whose octets these count.
    pub layer: Option<Layer>,
    /// By which method.
    pub method: &'static str,
    /// What it claims.
    pub verdict: BoundKind,
    /// Why there is no value.
    pub reason: Option<Remark>,
    /// Why it might mislead.
    pub caveats: Vec<Remark>,
}

impl Default for ServerRow {
    fn default() -> Self {
        Self { kind: "server", one_way: None, forward: None, reverse: None }
    }
}

impl From<RemoteStamped> for ServerRow {
    fn from(stamped: RemoteStamped) -> Self {
        let time = |ns: Option<f64>| ns.map(rounded);
        Self {
            one_way: Some(StampedRow {
                packets: stamped.packets,
                lost: stamped.lost,
                other_way: stamped.other_way,
                last_hop: stamped.last_hop,
                all_links_ns: time(stamped.all_links_ns),
                queueing_ns: time(stamped.queueing_ns),
            }),
            ..Self::default()
        }
    }
}

impl From<&Entry> for DirectionRow {
    fn from(entry: &Entry) -> Self {
        let outcome = &entry.outcome;
        let reported = outcome.estimate().filter(|estimate| estimate.verdict() != BoundKind::Inconclusive);
        let range = reported.map(Estimate::in_unit);
        let reason = match outcome {
            Outcome::Estimated(_) => None,
            Outcome::Inconclusive { reason, .. } => Some(Remark::from(reason)),
        };
        Self {
            capacity: range.map(|range| range.value),
            low: range.map(|range| range.low),
            high: range.map(|range| range.high),
            layer: reported.and_then(|estimate| estimate.layer),
            method: entry.method,
            verdict: outcome.verdict(),
            reason,
            caveats: outcome.caveats().iter().map(Remark::from).collect(),
        }
    }
}

impl DirectionRow {
    /// A token bucket on the way lets no more than that through for long.
    pub(crate) fn is_shaped(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.id == "shaped")
    }

    /// It and the path's narrow hop cannot both be right: intervals that do not meet. Single
    /// packets pass a token bucket as if it were none.
    fn contradicts(&self, low: u64, high: u64) -> bool {
        let (BoundKind::Estimated, Some(own_low), Some(own_high)) = (self.verdict, self.low, self.high) else {
            return false;
        };
        let slower = own_high.saturating_add(own_high / 50) < low;
        (slower && !self.is_shaped()) || high.saturating_add(high / 50) < own_low
    }

    fn text(&self) -> String {
        let rate = BitRate::from_bps;
        match (self.verdict, self.capacity, self.low, self.high) {
            (BoundKind::LowerBound, Some(value), _, _) => format!("at least {}", rate(value)),
            (BoundKind::UpperBound, Some(value), _, _) => format!("at most {}", rate(value)),
            (_, Some(value), Some(low), Some(high)) => {
                format!("{} ({} … {})", rate(value), rate(low), rate(high))
            }
            _ => match &self.reason {
                Some(reason) => format!("inconclusive: {}", reason.text),
                None => "inconclusive".to_owned(),
            },
        }
    }
}

impl HopsDocument {
    /// With what the server there told of both ways; both may be missing.
    #[must_use]
    pub fn with_ways(mut self, forward: Option<&Entry>, reverse: Option<&Entry>) -> Self {
        let row = self.server.get_or_insert_default();
        row.forward = forward.map(DirectionRow::from);
        row.reverse = reverse.map(DirectionRow::from);
        self
    }

    /// The peer's trains and the hops disagree on the narrow link there: by the intervals of
    /// both.
    pub fn is_contradicted(&self) -> bool {
        let narrow = self.hops.iter().find(|hop| Some(hop.ttl) == self.narrow_hop);
        let interval = narrow.and_then(|hop| Some((hop.low?, hop.high?)));
        let forward = self.server.as_ref().and_then(|remote| remote.forward.as_ref());
        forward.zip(interval).is_some_and(|(way, (low, high))| way.contradicts(low, high))
    }

    pub(super) fn write_peer_kind(&self, out: &mut String) -> std::fmt::Result {
        let Some(remote) = &self.server else { return Ok(()) };
        writeln!(out, "  the destination runs narrows serve")?;
        if let Some(stamped) = &remote.one_way {
            let used = match (stamped.last_hop, stamped.other_way) {
                (true, _) => "they measure the last hop",
                (false, true) => "they took another route than the probes, so they do not count for the last hop",
                (false, false) => "too few arrived to measure the last hop",
            };
            let (came, all) = (stamped.packets.saturating_sub(stamped.lost), stamped.packets);
            write!(out, "    its stamps: {came} of {all} packets came; {used}")?;
            match stamped.queueing_ns {
                Some(ns) => {
                    let time = format_duration(std::time::Duration::from_nanos(ns));
                    writeln!(out, "; they waited {time} on average")?;
                }
                None => writeln!(out)?,
            }
        }
        for (which, way) in [("forward", &remote.forward), ("reverse", &remote.reverse)] {
            if let Some(way) = way {
                writeln!(out, "    {which} direction: {}, method {}", way.text(), way.method)?;
            }
        }
        Ok(())
    }
}
