//! What is kept, as the hub sees it.

use std::collections::BTreeMap;

use narrows_fleet::keys::{Key, Name};
use narrows_fleet::message::{Claim, Exit, Flag, Hop, Origin, Run, Status, Stored, Value};
use narrows_units::Metric;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name: unique for ever, also after it left.
    pub name: Name,
    /// Its public key on the bus.
    pub public_key: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Where peers reach its server, `host:port`.
    pub address: String,
    /// When it joined.
    pub joined_ms: i64,
    /// Whether it belongs to the fleet.
    pub state: AgentState,
    /// When something was last heard of it.
    pub heard_ms: Option<i64>,
    /// What it last said of itself.
    pub status: Option<Status>,
    /// What the record has of its results.
    pub stored: Stored,
}

/// Whether an agent belongs to the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It does.
    Member,
    /// It left by itself.
    Left,
    /// It was thrown out.
    Revoked,
}

/// A host that joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgent {
    /// The name that it wants; `-2`, `-3`, .. is added if an agent has it, in whatever state.
    pub name: Name,
    /// Its public key.
    pub public_key: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Where peers reach its server.
    pub address: String,
}

/// A token by which one agent joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of the secret octets: the record never sees them.
    pub hash: [u8; 32],
    /// When it was made.
    pub made_ms: i64,
    /// It is worth nothing afterwards.
    pub not_after_ms: i64,
    /// How many agents may join by it; each takes one.
    pub uses: u32,
}

/// What became of a batch of results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ingested {
    /// Results that were new.
    pub new: u64,
    /// Results that were there already.
    pub known: u64,
    /// For each agent of the batch, what the record now has of it.
    pub stored: BTreeMap<Name, Stored>,
}

/// The newest value of a metric over a pair. Source and target are those of the data: the agent
/// that measured is the target of what it measured in reverse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latest {
    /// Who sends the data.
    pub source: Name,
    /// Who receives it.
    pub target: Name,
    /// What was measured.
    pub metric: Metric,
    /// What the value claims.
    pub claim: Claim,
    /// The value.
    pub value: f64,
    /// Lower end of its interval of 90 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// When its run began.
    pub at_ms: i64,
    /// Its run.
    pub run: Uuid,
    /// The flags of its run.
    pub flags: Vec<Flag>,
}

/// A point of a series: one value, or the summary of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When it began.
    pub at_ms: i64,
    /// How many values it sums up.
    pub count: u64,
    /// The value, or the median.
    pub value: f64,
    /// Lower end of the interval, or the lowest.
    pub low: f64,
    /// Upper end of the interval, or the highest.
    pub high: f64,
    /// What it claims; of an hour, that of most of its values.
    pub claim: Claim,
}

/// A notice for a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotice {
    /// The channel's name.
    pub channel: String,
    /// What it says, as JSON.
    pub body: String,
    /// When it was made; it is due at once.
    pub made_ms: i64,
}

/// A notice that is not delivered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingNotice {
    /// Its number; later ones are greater.
    pub id: i64,
    /// The channel's name.
    pub channel: String,
    /// What it says, as JSON.
    pub body: String,
    /// When it was made.
    pub made_ms: i64,
    /// When it is to be tried next.
    pub due_ms: i64,
    /// How often it was tried in vain.
    pub tries: u32,
}

/// A span of time in Unix ms: from, and up to but without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Its begin.
    pub since_ms: i64,
    /// Its end.
    pub until_ms: i64,
}

/// Which runs are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// By which agent.
    pub agent: Option<Name>,
    /// Towards whom.
    pub target: Option<Name>,
    /// Of which kind.
    pub kind: Option<String>,
    /// Begun when, by the time in their id.
    pub range: Range,
    /// At most so many, the newest first.
    pub limit: usize,
}

/// Which runs are asked for in the order in which they were kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalFilter {
    /// By which agent.
    pub agent: Option<Name>,
    /// Towards whom.
    pub target: Option<Name>,
    /// Of which kind.
    pub kind: Option<String>,
    /// Those after this number.
    pub after: u64,
    /// At most so many, the oldest first.
    pub limit: usize,
}

/// Runs in the order in which they were kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// The runs.
    pub runs: Vec<RunRow>,
    /// The number after which to read on.
    pub after: u64,
}

impl Arrivals {
    /// A page, and where the next one begins: a full one ends with its last run, and one that is
    /// not full has all up to the newest, whether they were asked for or not.
    pub(crate) fn page(rows: Vec<(RunRow, i64)>, limit: usize, newest: u64) -> Self {
        let last = rows.last().filter(|_| rows.len() >= limit).map(|(_, number)| *number);
        let after = last.map_or(newest, |number| u64::try_from(number).unwrap_or(newest));
        Self { runs: rows.into_iter().map(|(row, _)| row).collect(), after }
    }
}

/// A run without its values' evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    pub id: Uuid,
    /// Who measured.
    pub agent: Name,
    /// Its number among the agent's.
    pub seq: u64,
    /// Towards whom.
    pub target: Name,
    /// The first word of its command.
    pub kind: String,
    /// Why it ran.
    pub origin: Origin,
    /// When it began.
    pub began_ms: i64,
    /// How long it took.
    pub length_ms: u64,
    /// How it ended.
    pub exit: Exit,
    /// Why there is no value.
    pub reason: Option<String>,
    /// IP octets that it sent.
    pub octets: u64,
    /// What readers have to know of it.
    pub flags: Vec<Flag>,
}

impl RunRow {
    /// The run with what it has besides.
    pub(crate) fn whole(
        self,
        route_before: Vec<Hop>,
        route_after: Vec<Hop>,
        values: Vec<Value>,
        evidence: Option<serde_json::Value>,
    ) -> Run {
        Run {
            schema: Run::SCHEMA.to_owned(),
            id: self.id,
            agent: self.agent,
            seq: self.seq,
            target: self.target,
            kind: self.kind,
            origin: self.origin,
            began_ms: self.began_ms,
            length_ms: self.length_ms,
            exit: self.exit,
            reason: self.reason,
            octets: self.octets,
            route_before,
            route_after,
            flags: self.flags,
            values,
            evidence,
        }
    }
}

/// The newest route of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSeen {
    /// Who sends.
    pub source: Name,
    /// Who receives.
    pub target: Name,
    /// The routers, from the first hop on.
    pub hops: Vec<Hop>,
    /// When it was first seen, without another one since.
    pub since_ms: i64,
    /// When it was last seen.
    pub seen_ms: i64,
}

/// What the newest run of a kind came to over a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOutcome {
    /// Who measured.
    pub agent: Name,
    /// Towards whom.
    pub target: Name,
    /// How the run ended.
    pub exit: Exit,
    /// Why there is no value.
    pub reason: Option<String>,
    /// When the run began.
    pub at_ms: i64,
    /// The run.
    pub run: Uuid,
    /// When the first of the runs began that gave no value, without one since that did.
    pub failing_since_ms: Option<i64>,
}

/// A cell of the matrix of sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteValue {
    /// From which site.
    pub source: Name,
    /// To which site.
    pub target: Name,
    /// How many pairs have a value.
    pub pairs: u64,
    /// What most of their newest values claim.
    pub claim: Claim,
    /// Median of their newest values.
    pub value: f64,
    /// The lowest of them.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// When the oldest of them was measured.
    pub oldest_ms: i64,
}

/// A span of a key that a run has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The key.
    pub key: Key,
    /// When the span begins.
    pub begin_ms: i64,
    /// When it ends.
    pub end_ms: i64,
    /// The entry of the timetable, or the order.
    pub run: Uuid,
    /// Whose run.
    pub agent: Name,
    /// The serial of the plan that has it.
    pub serial: u64,
    /// What the run may send.
    pub octets: u64,
    /// Whether it is of an order: those have a share of each budget for themselves.
    pub by_hand: bool,
}

/// An order by hand, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOrder {
    /// Its number.
    pub id: Uuid,
    /// Who is to carry it out.
    pub agent: Name,
    /// The order as the hub signed it, as JSON.
    pub doc: String,
    /// What people have to know of its keys.
    pub note: Option<String>,
    /// It does not begin later than this.
    pub not_after_ms: i64,
    /// What became of it.
    pub state: OrderState,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderState {
    /// `waits`, `running`, or how its run ended.
    pub state: String,
    /// Its run, once that is stored.
    pub run: Option<Uuid>,
    /// What its agent said of it.
    pub said: Option<String>,
}

/// A proof by load that paths share a bottleneck, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptProof {
    /// The number of the bottleneck.
    pub bottleneck: String,
    /// Whether it runs.
    pub running: bool,
    /// What both of its paths cross: no other proof has any of it meanwhile.
    pub keys: Vec<Key>,
    /// When it began, or ended.
    pub at_ms: i64,
    /// More about it, as JSON.
    pub doc: String,
}

/// A grouping of paths by their delays, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptGrouping {
    /// The number of its set of paths.
    pub paths: String,
    /// Whether it runs.
    pub running: bool,
    /// When it began, or ended.
    pub at_ms: i64,
    /// More about it, as JSON.
    pub doc: String,
}

/// A run that has ended: what it leaves of its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// Whose run.
    pub agent: Name,
    /// Its order, and what became of that; nothing of an entry of the timetable.
    pub order: Option<(Uuid, OrderState)>,
    /// When it began. An entry of the timetable is the one whose span the agent had then.
    pub began_ms: i64,
    /// When it ended.
    pub ended_ms: i64,
    /// What it sent, if that is known.
    pub octets: Option<u64>,
}

/// Who changed what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// From 1 on without gaps.
    pub number: u64,
    /// When.
    pub at_ms: i64,
    /// Who: a person, an agent, or `hub`.
    pub who: String,
    /// What was done: `token.made`, `agent.joined`, `agent.revoked`, `plan.applied`,
    /// `order.given`, ...
    pub what: String,
    /// More about it, for people.
    pub text: String,
    /// SHA-256 over the hash of the entry before and this one, in hexadecimal: nobody changes what
    /// was written without changing all that follows.
    pub hash: String,
}
