//! What the hub asks of its record, whatever carries it.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use narrows_fleet::alert::{Saved, Silence};
use narrows_fleet::keys::{LONGEST_NAME, Name};
use narrows_fleet::message::{Run, Status};
use narrows_units::Metric;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::fit::DAY;
use crate::rows::{
    Agent, AgentState, ArrivalFilter, Arrivals, Audit, EndedRun, GivenOrder, Ingested, KeptGrouping, KeptProof,
    LastOutcome, Latest, NewAgent, NewNotice, OrderState, Point, Range, Reservation, RouteSeen, RunFilter, RunRow,
    SiteValue, Token, WaitingNotice,
};

/// What the hub keeps. Every call is one transaction, but [`Record::roll_up`] and
/// [`Record::retain`] are several small ones, which may be repeated.
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
    /// hours to be summed up again. A run of an agent that never was, or one that [`crate::unfit`]
    /// names, is an error of the whole batch: the caller has looked before. A run whose times
    /// cannot be right, 35 days old or a day ahead, is kept and flagged; nothing follows from it.
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

    /// Runs by the time in their id, the newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>>;

    /// Runs in the order in which they were kept, the oldest first, whenever they ran: what an
    /// agent sends days late comes last. [`crate::Error::Cursor`]: what follows that number is not
    /// known.
    async fn runs_after(&self, filter: &ArrivalFilter) -> Result<Arrivals>;

    /// The number of the run that was kept last. All runs up to this one are there, and no later
    /// one has a lower number.
    async fn newest_arrival(&self) -> Result<u64>;

    /// One run whole, with its values, routes and evidence.
    async fn run(&self, id: Uuid) -> Result<Run>;

    /// The newest route of each pair that was traced since then.
    async fn routes(&self, since_ms: i64) -> Result<Vec<RouteSeen>>;

    /// Newest values between sites; `site_of` says which host belongs where. Of several metrics,
    /// the newest value of each pair counts.
    async fn sites(&self, metrics: &[Metric], since_ms: i64, site_of: &BTreeMap<Name, Name>) -> Result<Vec<SiteValue>>;

    /// What the newest run of this kind came to over each pair of agent and target, of those since
    /// then that sent.
    async fn outcomes(&self, kind: &str, since_ms: i64) -> Result<Vec<LastOutcome>>;

    /// When a run of this kind last succeeded over each pair of agent and target.
    async fn succeeded(&self, kind: &str) -> Result<Vec<(Name, Name, i64)>>;

    /// Pairs with a run of this kind since then that was skipped, and none that succeeded after it.
    async fn skipped(&self, kind: &str, since_ms: i64) -> Result<Vec<(Name, Name)>>;

    /// Reserves spans, all or none. [`crate::Error::Reserved`]: the one that is in the way.
    async fn reserve(&self, spans: &[Reservation]) -> Result<()>;

    /// Frees spans that begin after `from_ms` and belong to these runs.
    async fn free(&self, runs: &[Uuid], from_ms: i64) -> Result<()>;

    /// Runs have ended: their spans end then, unless they ended before, and have the octets that
    /// were sent, unless they had fewer. A millisecond of each is left at least. Orders among them
    /// have their runs, as by [`Record::set_order`].
    async fn settle(&self, ended: &[EndedRun]) -> Result<()>;

    /// All spans that end after `from_ms`.
    async fn reservations(&self, from_ms: i64) -> Result<Vec<Reservation>>;

    /// Gives an order: keeps it, reserves its spans, and says in the audit who gave it and what it
    /// is; all or none. [`crate::Error::Reserved`]: the span that is in the way.
    async fn give(
        &self,
        order: &GivenOrder,
        spans: &[Reservation],
        (who, text): (&str, &str),
        now_ms: i64,
    ) -> Result<()>;

    /// What became of an order of this agent. Once it has a run, it keeps that, and how that ended.
    async fn set_order(&self, id: Uuid, agent: &Name, state: &OrderState) -> Result<()>;

    /// The newest orders, so many at most, the oldest of them first.
    async fn orders(&self, limit: usize) -> Result<Vec<GivenOrder>>;

    /// Begins a proof in the place of the one before of its bottleneck. [`crate::Error::Proving`]:
    /// that one runs, or another one that has one of its keys.
    async fn begin_proof(&self, proof: &KeptProof) -> Result<()>;

    /// What became of a proof that runs, and says whether it did run; its keys stay.
    async fn set_proof(&self, proof: &KeptProof) -> Result<bool>;

    /// The newest proof of each bottleneck.
    async fn proofs(&self) -> Result<Vec<KeptProof>>;

    /// Begins a grouping by delays in the place of the one before of its paths.
    /// [`crate::Error::Grouping`]: another one runs.
    async fn begin_grouping(&self, grouping: &KeptGrouping) -> Result<()>;

    /// What became of a grouping that runs, and says whether it did run.
    async fn set_grouping(&self, grouping: &KeptGrouping) -> Result<bool>;

    /// The newest grouping of each set of paths.
    async fn groupings(&self) -> Result<Vec<KeptGrouping>>;

    /// The last text under a name: the fleet's configuration, the hub's own settings. Empty if
    /// there is none.
    async fn setting(&self, name: &str) -> Result<String>;

    /// Keeps a text under a name.
    async fn set_setting(&self, name: &str, text: &str) -> Result<()>;

    /// The next serial of plans and orders: each once, growing, whoever asks.
    async fn next_serial(&self) -> Result<u64>;

    /// Raises the last serial that was given to this one, if it is below it, and returns the last
    /// one: agents of a record that was restored from a backup have seen higher ones.
    async fn serial_at_least(&self, least: u64) -> Result<u64>;

    /// Adds to the audit; number and hash are given here.
    async fn audit(&self, who: &str, what: &str, text: &str, now_ms: i64) -> Result<Audit>;

    /// The audit before a number, the newest first; `None` is from the end.
    async fn audits(&self, before: Option<u64>, limit: usize) -> Result<Vec<Audit>>;

    /// Keeps states of alerts, forgets those without a text, and takes notices; all or none.
    async fn keep_alerts(&self, states: &[Saved], notices: &[NewNotice]) -> Result<()>;

    /// The states of alerts, by their keys.
    async fn alert_states(&self) -> Result<Vec<(String, String)>>;

    /// Notices that are due and not done, the oldest first.
    async fn notices_due(&self, now_ms: i64) -> Result<Vec<WaitingNotice>>;

    /// One was tried in vain; it is due again later.
    async fn notice_retry(&self, id: i64, due_ms: i64) -> Result<()>;

    /// One was delivered, or is given up.
    async fn notice_done(&self, id: i64) -> Result<()>;

    /// Keeps a silence, and returns the number that it has from now on.
    async fn add_silence(&self, silence: &Silence) -> Result<u64>;

    /// Ends a silence now. [`crate::Error::NotFound`]: none of this number is to come or in force.
    async fn end_silence(&self, id: u64, now_ms: i64) -> Result<()>;

    /// Silences that end after `from_ms`, by their numbers.
    async fn silences(&self, from_ms: i64) -> Result<Vec<Silence>>;

    /// Sums up the hours that changed, and returns how many that were.
    async fn roll_up(&self) -> Result<u64>;

    /// Removes whole days that are too old, and returns how many runs that were: evidence after 30
    /// days, values and runs after 400; reservations, orders, proofs, groupings, the order in which
    /// runs were kept, tokens, silences, notices and what was refused after 35. Sums of hours,
    /// newest values and the audit stay.
    async fn retain(&self, now_ms: i64) -> Result<u64>;
}

/// What the audit calls a new order.
pub(crate) const GIVEN: &str = "order.given";
/// Octets that are kept of what was no result.
pub(crate) const REFUSED_OCTETS: usize = 4_096;
/// How many of those are kept: an agent that sends nothing else must not fill the disk.
pub(crate) const REFUSED: i64 = 10_000;
/// Documents of runs stay that long.
pub(crate) const EVIDENCE_DAYS: i64 = 30;
/// Runs and values stay that long.
pub(crate) const RUN_DAYS: i64 = 400;
/// Reservations, orders, tokens and what was refused stay that long.
pub(crate) const OTHER_DAYS: i64 = 35;
/// A newest route is looked for this far from now.
pub(crate) const REACH: i64 = OTHER_DAYS * DAY;

/// Among the counters: the number of the run that was kept last.
pub(crate) const ARRIVALS: &str = "arrival";

/// The number after which somebody reads on, if all that follows it is known.
pub(crate) fn cursor(after: u64, oldest: Option<i64>, newest: i64) -> Result<i64> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    if after > newest {
        return Err(Error::Cursor("this record never gave it".to_owned()));
    }
    if after < newest && oldest.is_none_or(|oldest| after + 1 < oldest) {
        return Err(Error::Cursor("the order of what followed it is kept for 35 days".to_owned()));
    }
    Ok(after)
}

/// The begin of the day that was so many days before now: whole days are removed at once.
pub(crate) fn day_before(now_ms: i64, days: i64) -> i64 {
    now_ms.div_euclid(DAY).saturating_sub(days).saturating_mul(DAY)
}

/// The bottleneck of a proof that runs and keeps another one from it.
pub(crate) fn in_the_way(proof: &KeptProof, all: Vec<KeptProof>) -> Option<String> {
    let meets = |other: &KeptProof| {
        other.bottleneck == proof.bottleneck || other.keys.iter().any(|key| proof.keys.contains(key))
    };
    all.into_iter().find(|other| other.running && meets(other)).map(|other| other.bottleneck)
}

/// The name itself, or with the first number that makes it one that nobody has.
pub(crate) fn free_name(wanted: &Name, taken: &BTreeSet<String>) -> String {
    let numbered = |number: u64| {
        let ending = format!("-{number}");
        // Names are ASCII.
        format!("{}{ending}", &wanted.as_str()[..wanted.as_str().len().min(LONGEST_NAME - ending.len())])
    };
    let mut names = std::iter::once(wanted.as_str().to_owned()).chain((2..).map(numbered));
    names.find(|name| !taken.contains(name)).expect("there are more numbers than agents")
}

/// A span of no time excludes nobody.
pub(crate) fn is_span(span: &Reservation) -> Result<()> {
    if span.begin_ms < span.end_ms { Ok(()) } else { Err(Error::Unfit(format!("{} has an empty span", span.key))) }
}

/// The text of a setting is kept as it is, or not at all.
pub(crate) fn setting_text(text: &str) -> Result<String> {
    if text.contains('\0') { Err(Error::Unfit("a setting with a zero octet".to_owned())) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_as_long_as_all_after_it_is_known() {
        let is_good = |after, oldest, newest| cursor(after, oldest, newest).is_ok();
        assert!(is_good(0, None, 0) && is_good(0, Some(1), 9) && is_good(9, Some(1), 9) && is_good(9, None, 9));
        assert!(!is_good(10, Some(1), 9) && !is_good(1, None, 0) && !is_good(u64::MAX, Some(1), 9));
        assert!(is_good(3, Some(4), 9) && !is_good(2, Some(4), 9) && !is_good(0, None, 9));
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let long: Name = "x".repeat(LONGEST_NAME).parse().unwrap();
        assert_eq!(free_name(&"a".parse().unwrap(), &taken(&[])), "a");
        assert_eq!(free_name(&"a".parse().unwrap(), &taken(&["a", "a-2"])), "a-3");
        let numbered = free_name(&long, &taken(&[long.as_str()]));
        assert_eq!(numbered, format!("{}-2", "x".repeat(LONGEST_NAME - 2)));
    }
}
