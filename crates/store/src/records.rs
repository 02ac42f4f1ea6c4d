//! What goes into the store and comes out of it.
//!
//! Times are milliseconds since 1970, UTC. Values are in the unit of their signal: bit/s, ns, parts
//! of a million.

use narrows_watch::alert::Silence;
use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Claim, Signal, WallTime};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A target that is followed, or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its row.
    pub id: TargetId,
    /// What it is called; unique.
    pub name: String,
    /// The host as it was written in the settings.
    pub host: String,
    /// The server's port, where it is not the usual one.
    pub port: Option<u16>,
    /// When it was first followed.
    pub added: WallTime,
    /// When it left the settings.
    pub retired: Option<WallTime>,
}

/// From where a value was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// With our server at the other end.
    Server,
    /// From this end alone.
    Single,
}

/// One value of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was measured.
    pub at: WallTime,
    /// The value; none where it is inconclusive.
    pub value: Option<f64>,
    /// Lower end of the 90 % interval.
    pub low: Option<f64>,
    /// Upper end of the 90 % interval.
    pub high: Option<f64>,
    /// What it claims.
    pub claim: Claim,
    /// Our own job loaded the path meanwhile.
    pub loaded: bool,
    /// This host was too busy to measure.
    pub host_busy: bool,
    /// The run that it came from; pulses have none.
    pub run: Option<Uuid>,
}

/// The pulses of one minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulseMinute {
    /// The minute's beginning.
    pub minute: WallTime,
    /// How many were sent.
    pub sent: u32,
    /// How many were not answered.
    pub lost: u32,
    /// Our own job loaded the path meanwhile.
    pub loaded: bool,
    /// The round trips that came back, in ns, in the order of sending.
    pub round_trips_ns: Vec<u64>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// It was begun and has not ended.
    Running,
    /// It measured.
    Done,
    /// It ran and has no answer, or what it has means nothing.
    Void,
    /// Somebody else measured over the link: nothing was sent.
    LinkBusy,
    /// The server had no slot in time: nothing was measured.
    ServerBusy,
    /// The server refused, or speaks something else.
    Refused,
    /// The server did not answer.
    ServerGone,
    /// It failed; how was not kept by version 1 of the store.
    Failed,
    /// The program ended while it ran.
    Lost,
}

/// The reason of a run that is lost.
pub const LOST: &str = "the program ended while it ran";

/// A job that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number, from the time at which it began (UUID version 7).
    pub id: Uuid,
    /// Towards whom.
    pub target: TargetId,
    /// What was measured.
    pub kind: JobKind,
    /// What for.
    pub why: Why,
    /// When it began.
    pub began: WallTime,
    /// When it ended.
    pub ended: Option<WallTime>,
    /// What became of it.
    pub outcome: RunOutcome,
    /// Why it has no result, or not the usual one, in one line.
    pub reason: Option<String>,
    /// Octets that left, at the IP layer.
    pub octets: Option<u64>,
    /// The result document, as `narrows … --json` prints it.
    pub document: Option<serde_json::Value>,
}

/// Something that happened to a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its row; zero before it is stored.
    pub id: i64,
    /// To whom; `None` is this host.
    pub target: Option<TargetId>,
    /// `change`, `route`, `mtu`, `address`, `egress`, `silent`, `answers`, `server_gone`,
    /// `server_back`, `clock_step`, `woke`, `store`, `undelivered`.
    pub kind: String,
    /// The signal that changed.
    pub signal: Option<Signal>,
    /// When it happened.
    pub at: WallTime,
    /// The 90 % interval of that time.
    pub at_low: WallTime,
    /// Its other end.
    pub at_high: WallTime,
    /// When it was found.
    pub found: WallTime,
    /// What was so before, for people.
    pub before: Option<String>,
    /// What is so now, for people.
    pub after: Option<String>,
    /// The cause as a sentence.
    pub cause: Option<String>,
    /// One line that says all of it.
    pub text: String,
    /// The evidence, typed; `history why` prints it.
    pub evidence: Option<serde_json::Value>,
    /// The incident that it belongs to.
    pub incident: Option<Uuid>,
}

/// Events of one target that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Its number (UUID version 7).
    pub id: Uuid,
    /// To whom.
    pub target: TargetId,
    /// When it began.
    pub began: WallTime,
    /// When the signals were back, or a new level was learnt.
    pub ended: Option<WallTime>,
    /// The cause as a sentence.
    pub cause: Option<String>,
    /// The hops at one of which the cause lies, the first and the last.
    pub hops: Option<(u8, u8)>,
    /// One line that says what happened.
    pub text: String,
}

/// The state of one rule about one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertState {
    /// The rule.
    pub rule: String,
    /// About whom.
    pub target: TargetId,
    /// `ok`, `pending`, `firing` or `flapping`.
    pub state: String,
    /// Since when.
    pub since: WallTime,
    /// One line that says why.
    pub detail: Option<String>,
}

/// A path that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathSeen {
    /// When it was first seen like this.
    pub at: WallTime,
    /// The target's address.
    pub address: Option<String>,
    /// The source address.
    pub source: Option<String>,
    /// The interface that packets leave by.
    pub interface: Option<String>,
    /// The next hop.
    pub next_hop: Option<String>,
    /// The path's MTU in octets.
    pub mtu: Option<u32>,
    /// The routers in order: addresses of each hop, none where nobody answered.
    pub hops: Vec<Vec<String>>,
    /// The least round trip to each hop, ns.
    pub hop_round_trips_ns: Vec<Option<u64>>,
}

/// One point of a series, of whatever tier answers the question in few points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The beginning of what it stands for.
    pub at: WallTime,
    /// The mean, or the value.
    pub value: Option<f64>,
    /// The mean of the lower ends.
    pub low: Option<f64>,
    /// The mean of the upper ends.
    pub high: Option<f64>,
    /// The least value.
    pub min: Option<f64>,
    /// The greatest value.
    pub max: Option<f64>,
    /// How many values.
    pub count: u32,
    /// What it claims; a mean of several is an estimate.
    pub claim: Claim,
    /// From where it was measured; `None` is a mean of values of either kind.
    pub basis: Option<Basis>,
}

/// A span of time: from, and up to but without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its beginning.
    pub since: WallTime,
    /// Its end.
    pub until: WallTime,
}

/// Counts of round trips: a column per time, a row per class of round trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heatmap {
    /// The beginnings of the columns.
    pub times: Vec<WallTime>,
    /// The upper ends of the classes, ns.
    pub upper_ns: Vec<u64>,
    /// Per column, how many round trips fell into each class.
    pub counts: Vec<Vec<u32>>,
    /// Per column, the share of pulses that were lost.
    pub lost: Vec<f64>,
}

/// One figure of a run's document: it stays when the document is deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The metric, as the document calls it.
    pub metric: String,
    /// `forward`, `reverse` or `round_trip`.
    pub direction: String,
    /// The unit of its values.
    pub unit: String,
    /// The value; none where it is inconclusive.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// What it claims.
    pub claim: Claim,
}

/// What a target cost on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Which target.
    pub target: TargetId,
    /// What for.
    pub kind: String,
    /// Octets, all in all.
    pub octets: u64,
}

/// A time in which notices are held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSilence {
    /// Its row.
    pub id: i64,
    /// What it covers.
    pub silence: Silence,
    /// Why, in the words of whoever asked for it.
    pub note: Option<String>,
}

/// A notice on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxRow {
    /// Its row.
    pub id: i64,
    /// The channel that it goes to.
    pub channel: String,
    /// What is to be sent, as the channel's owner wrote it.
    pub body: String,
    /// When it was made.
    pub made: WallTime,
    /// When it is to be tried next.
    pub due: WallTime,
    /// How often it was tried in vain.
    pub tries: u32,
}
