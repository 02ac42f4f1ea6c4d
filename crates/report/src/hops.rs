//! What `narrows hops` prints: the path, hop by hop.
//!
//! [`HopStatistics`] counts what came of the probes, whatever a method makes of them;
//! [`HopsDocument`] joins that with the method's answer. Its JSON form is the machine contract
//! ([`crate::schema::HOPS`]); [`text`](HopsDocument::text), [`mtr`](HopsDocument::mtr) and [`Pipe`]
//! render the same data.

mod live;
mod mtr;
mod pipe;
mod remote;
mod rows;
mod so_far;
mod statistics;
mod svg;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use narrows_probe::outcome::{Forecast, PathHops};
use narrows_probe::{BoundKind, Outcome};
use narrows_units::{BitRate, Layer, nanos};
use serde::Serialize;

pub use live::live;
pub use pipe::{Pipe, Strokes};
pub use remote::{DirectionRow, ServerRow, StampedRow};
pub use rows::{HiddenRow, HopRow, LabelRow, LimitedRow, ProbesRow, RouterRow};
pub use so_far::{LeastBySize, so_far};
pub use statistics::{HopCounts, HopStatistics, Router};
pub(crate) use table::{capacity, label};

use crate::answer_line::AnswerLine;
use crate::document::{CostRow, Note, Problem, Target};
use crate::rows::Remark;
use crate::schema;

/// The path, hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HopsDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The program.
    pub tool: &'static str,
    /// Its version.
    pub version: String,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// To whom.
    pub target: Target,
    /// What a busy reader wants first, by [`HopsDocument::conclude`].
    pub answer: Vec<AnswerLine>,
    /// By what the remote host was asked to answer: `udp`, `icmp`, `tcp` or `server`.
    pub via: String,
    /// By which method.
    pub method: String,
    /// What was asked for, defaults included.
    pub params: BTreeMap<String, String>,
    /// The layer whose octets `capacity`, `low`, `high` and `available` count; `null` if there is
    /// none of them.
    pub layer: Option<Layer>,
    /// The hops, nearest first.
    pub hops: Vec<HopRow>,
    /// The remote host answered: the last hop is its.
    pub reached: bool,
    /// What a server on the remote host told; `null`: none was asked, or none answered.
    pub server: Option<ServerRow>,
    /// The hop with the least capacity, by its `ttl`; `null` if that is not known.
    pub narrow_hop: Option<u16>,
    /// The hop with the least that is free, by its `ttl`; `null` if that is not known.
    pub tight_hop: Option<u16>,
    /// What the method claims of the path.
    pub verdict: BoundKind,
    /// Why there is no number for the path.
    pub reason: Option<Remark>,
    /// Why the answer might mislead.
    pub caveats: Vec<Remark>,
    /// What was predicted of the whole before it was measured, where the method does.
    pub forecast: Option<ForecastRow>,
    /// What it imposed.
    pub cost: CostRow,
    /// Answers that were none.
    pub unmatched_replies: UnmatchedReplies,
    /// What the reader must know first.
    pub notes: Vec<Note>,
    /// What went wrong on the way; the hops say what was known by then.
    pub error: Option<Problem>,
}

/// What was predicted of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ForecastRow {
    /// The whole of it, at most.
    pub time_ns: u64,
    /// IP octets sent, at most.
    pub octets: u64,
    /// The highest rate that one hop can be told at here, by stamps and sizes alone.
    pub ceiling: Option<u64>,
}

impl From<Forecast> for ForecastRow {
    fn from(forecast: Forecast) -> Self {
        Self { time_ns: nanos(forecast.time), octets: forecast.octets, ceiling: forecast.ceiling.map(BitRate::bps) }
    }
}

/// Answers that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct UnmatchedReplies {
    /// They came when nobody waited for them any more.
    pub late: u64,
    /// They were about a packet that had an answer.
    pub duplicate: u64,
    /// They quoted a packet that was never sent.
    pub foreign: u64,
    /// They quoted too little to tell which packet they were about.
    pub short: u64,
}

/// What the probing found beside the method's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProbeFindings {
    /// Counts and times, hop by hop.
    pub statistics: HopStatistics,
    /// Names of addresses.
    pub names: BTreeMap<IpAddr, String>,
    /// Label stacks that routers told of (RFC 4950), by hop limit and router.
    pub labels: BTreeMap<(u8, IpAddr), Vec<LabelRow>>,
    /// Answers that were left out.
    pub unmatched_replies: UnmatchedReplies,
}

/// What was asked, and of whom.
#[derive(Debug, Clone, PartialEq)]
pub struct HopsRequest {
    /// The program's version.
    pub version: String,
    /// When it began.
    pub started_at: Option<String>,
    /// To whom.
    pub target: Target,
    /// By what it was asked to answer.
    pub via: String,
    /// By which method.
    pub method: String,
    /// With which parameters.
    pub params: BTreeMap<String, String>,
}

impl HopsDocument {
    /// Of a method's outcome and what was seen beside it.
    pub fn new(asked: HopsRequest, outcome: &Outcome, found: &ProbeFindings, cost: CostRow) -> Self {
        let reported = PathHops::of(outcome);
        let hops = rows::rows(reported.as_ref(), found);
        let reason = match outcome {
            Outcome::Estimated(_) => None,
            Outcome::Inconclusive { reason, .. } => Some(Remark::from(reason)),
        };
        Self {
            schema: schema::HOPS_NAME,
            tool: "narrows",
            version: asked.version,
            started_at: asked.started_at,
            target: asked.target,
            answer: Vec::new(),
            via: asked.via,
            method: asked.method,
            params: asked.params,
            layer: rows::layer(reported.as_ref()).filter(|_| hops.iter().any(|hop| hop.capacity.is_some())),
            reached: found.statistics.remote().is_some()
                || reported.as_ref().is_some_and(|reported| reported.hops.iter().any(|hop| hop.is_destination)),
            server: reported.as_ref().and_then(|reported| reported.remote).map(ServerRow::from),
            narrow_hop: rows::narrow(reported.as_ref(), &hops),
            tight_hop: rows::tight(reported.as_ref(), &hops),
            hops,
            verdict: outcome.verdict(),
            reason,
            caveats: outcome.caveats().iter().map(Remark::from).collect(),
            forecast: reported.as_ref().and_then(|reported| reported.forecast).map(ForecastRow::from),
            cost,
            unmatched_replies: found.unmatched_replies,
            notes: Vec::new(),
            error: None,
        }
    }

    /// Something is known of at least one hop beside who is there.
    pub fn has_any_value(&self) -> bool {
        self.hops.iter().any(|hop| hop.capacity.is_some())
    }

    /// Without the hops before `first`: they are measured all the same, since each hop is a
    /// difference to the one before it.
    #[must_use]
    pub fn from(mut self, first: u16) -> Self {
        self.hops.retain(|hop| hop.ttl >= first);
        self
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}
