//! What the hub asks of its record, whatever carries it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Run, Status};
use narrows_units::Metric;
use uuid::Uuid;

use crate::error::Result;
use crate::rows::{
    Agent, AgentState, Audit, Ingested, Latest, NewAgent, Point, Range, Reservation, RouteSeen, RunFilter, RunRow,
    SiteValue, Token,
};

/// What the hub keeps. Every call is one transaction.
#[async_trait]
pub trait Record: Send + Sync {
    /// Keeps a token.
    async fn add_token(&self, token: &Token) -> Result<()>;

    /// Uses a token and adds an agent, both or neither. [`crate::Error::Token`]: it is not valid.
    /// A member with the same public key and a valid token is that member again, with what is new.
    async fn join(&self, token_hash: &[u8; 32], agent: &NewAgent, now_ms: i64) -> Result<Agent>;

    /// All agents that ever were, by name.
    async fn agents(&self) -> Result<Vec<Agent>>;

    /// Throws an agent out, or lets it leave. [`crate::Error::NotFound`]: there is none.
    async fn set_state(&self, agent: &Name, state: AgentState) -> Result<()>;

    /// What an agent says of itself.
    async fn heard(&self, status: &Status, now_ms: i64) -> Result<()>;

    /// Keeps results, each id once, with all that follows from them: newest values, newest routes,
    /// hours to be summed up again. A run of an agent that never was is an error of the whole batch:
    /// the caller has looked before.
    async fn ingest(&self, runs: &[Run], now_ms: i64) -> Result<Ingested>;

    /// Keeps what was no result, cut to 4 kB, for whoever looks for the reason.
    async fn refuse(&self, subject: &str, payload: &[u8], why: &str, now_ms: i64) -> Result<()>;

    /// The newest values of a metric that are not inconclusive, by source and target; those of
    /// runs that are void or flagged as own load are left out.
    async fn latest(&self, metric: Metric, since_ms: i64) -> Result<Vec<Latest>>;

    /// The same of all metrics over one pair of source and target of the data.
    async fn latest_of(&self, source: &Name, target: &Name) -> Result<Vec<Latest>>;

    /// Values over a pair: single ones as long as they are kept and not more than `points`, else
    /// hours or days.
    async fn series(
        &self,
        source: &Name,
        target: &Name,
        metric: Metric,
        range: Range,
        points: usize,
    ) -> Result<Vec<Point>>;

    /// Runs, the newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>>;

    /// One run whole, with its values, routes and evidence.
    async fn run(&self, id: Uuid) -> Result<Run>;

    /// The newest route of each pair that was traced since then.
    async fn routes(&self, since_ms: i64) -> Result<Vec<RouteSeen>>;

    /// Newest values between sites; `site_of` says which host belongs where.
    async fn sites(&self, metric: Metric, since_ms: i64, site_of: &BTreeMap<Name, Name>) -> Result<Vec<SiteValue>>;

    /// When a run of this kind last succeeded over each pair of agent and target.
    async fn succeeded(&self, kind: &str) -> Result<Vec<(Name, Name, i64)>>;

    /// Reserves spans, all or none. [`crate::Error::Reserved`]: the one that is in the way.
    async fn reserve(&self, spans: &[Reservation]) -> Result<()>;

    /// Frees spans that begin after `from_ms` and belong to these runs.
    async fn free(&self, runs: &[Uuid], from_ms: i64) -> Result<()>;

    /// All spans that end after `from_ms`.
    async fn reservations(&self, from_ms: i64) -> Result<Vec<Reservation>>;

    /// The last text under a name: the fleet's configuration, the hub's own settings. Empty if
    /// there is none.
    async fn setting(&self, name: &str) -> Result<String>;

    /// Keeps a text under a name.
    async fn set_setting(&self, name: &str, text: &str) -> Result<()>;

    /// The next serial of plans and orders: each once, growing, whoever asks.
    async fn next_serial(&self) -> Result<u64>;

    /// Adds to the audit; number and hash are given here.
    async fn audit(&self, who: &str, what: &str, text: &str, now_ms: i64) -> Result<Audit>;

    /// The audit before a number, the newest first; `None` is from the end.
    async fn audits(&self, before: Option<u64>, limit: usize) -> Result<Vec<Audit>>;

    /// Sums up the hours that changed, and returns how many that were.
    async fn roll_up(&self) -> Result<u64>;

    /// Removes what is too old, and returns how many runs that were: evidence after 30 days, values
    /// and runs after 400, reservations and used tokens after 35.
    async fn retain(&self, now_ms: i64) -> Result<u64>;
}
