//! A result as the tables have it, and which results they can have.

use std::collections::BTreeMap;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Direction, Exit, Flag, Hop, Run, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::codes;
use crate::error::{Error, Result};

/// A day in ms.
pub(crate) const DAY: i64 = 86_400_000;
/// An hour in ms.
pub(crate) const HOUR: i64 = 3_600_000;
/// An agent's spool keeps results that long: what is older has a wrong time. (Ours.)
const OLDEST: i64 = 35 * DAY;
/// A clock that is further ahead is wrong, whatever the time zone. (Ours.)
const NEWEST: i64 = DAY;

/// More values than any command has.
const MOST_VALUES: usize = 1_000;
/// The longest route (RFC 791: the time to live has 8 bits).
const MOST_HOPS: usize = 255;
/// The longest word for a kind of run, in octets.
const LONGEST_KIND: usize = 64;

/// Why the record could never keep a result: its caller refuses it, or the whole batch fails.
pub fn unfit(run: &Run) -> Option<&'static str> {
    let fits = |number: u64| i64::try_from(number).is_ok_and(|number| number < i64::MAX);
    let kind = run.kind.bytes().all(|octet| octet.is_ascii_graphic()) && !run.kind.is_empty();
    let finite = |value: &Value| value.value.is_finite() && value.low.is_finite() && value.high.is_finite();
    let rules = [
        (run.schema == Run::SCHEMA, "it has another schema"),
        (run.id.get_version_num() == 7, "its id is not of version 7"),
        (run.seq > 0 && fits(run.seq), "its number is out of range"),
        (fits(run.length_ms) && fits(run.octets), "its length or its octets are out of range"),
        (kind && run.kind.len() <= LONGEST_KIND, "its kind is no word"),
        (run.values.len() <= MOST_VALUES, "it has too many values"),
        (run.route_before.len() <= MOST_HOPS && run.route_after.len() <= MOST_HOPS, "its route is too long"),
        (run.values.iter().all(finite), "a value is no number"),
        (run.values.iter().all(|value| value.unit == value.metric.unit()), "a value has another unit than its metric"),
        (run.values.iter().all(|value| codes::of_metric(value.metric).is_some()), "a metric is not known here"),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map(|(_, why)| why)
}

/// A result as the tables have it.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    pub(crate) id: Uuid,
    pub(crate) agent: Name,
    pub(crate) target: Name,
    pub(crate) seq: i64,
    pub(crate) kind: String,
    pub(crate) origin: i16,
    pub(crate) order: Option<Uuid>,
    pub(crate) began_ms: i64,
    pub(crate) length_ms: i64,
    pub(crate) exit: i16,
    pub(crate) reason: Option<String>,
    pub(crate) octets: i64,
    pub(crate) before: Option<Route>,
    pub(crate) after: Option<Route>,
    pub(crate) flags: i16,
    /// Its times can be right: newest values and routes may come from it.
    pub(crate) in_time: bool,
    pub(crate) succeeded: bool,
    /// Whether it failed to give a value. A run that never sent, or whose route changed, says
    /// nothing of that.
    pub(crate) failing: Option<bool>,
    pub(crate) values: Vec<FitValue>,
    pub(crate) evidence: Option<String>,
}

/// A value as the table has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FitValue {
    pub(crate) number: i16,
    pub(crate) reverse: bool,
    pub(crate) metric: i16,
    pub(crate) claim: i16,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Series, sums and newest values have it: it is conclusive, and of a run that is neither void
    /// nor disturbed by the fleet, at a time that can be right.
    pub(crate) counts: bool,
}

/// Routers, known by a hash: most runs see a route that was seen before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    pub(crate) hash: [u8; 16],
    pub(crate) hops: String,
}

impl Route {
    fn of(hops: &[Hop]) -> Option<Self> {
        if hops.is_empty() {
            return None;
        }
        let hops = to_json(&hops.iter().map(|hop| hop.address).collect::<Vec<_>>());
        let mut hash = [0; 16];
        hash.copy_from_slice(&Sha256::digest(&hops)[..16]);
        Some(Self { hash, hops })
    }

    /// The routers of [`Route::hops`].
    pub(crate) fn read(hops: &str) -> Result<Vec<Hop>> {
        Ok(codes::json::<Vec<_>>(hops)?.into_iter().map(|address| Hop { address }).collect())
    }
}

impl Fit {
    pub(crate) fn new(run: &Run, now_ms: i64) -> Result<Self> {
        if let Some(why) = unfit(run) {
            return Err(Error::Unfit(format!("result {} of {}: {why}", run.id, run.agent)));
        }
        let can_be = |at: i64| (now_ms.saturating_sub(OLDEST)..=now_ms.saturating_add(NEWEST)).contains(&at);
        let in_time = can_be(time_of(run.id)) && can_be(run.began_ms);
        let mut flags = run.flags.clone();
        if !in_time {
            flags.push(Flag::ClockUnsynchronised);
        }
        let good = in_time && run.exit != Exit::Void && !run.flags.contains(&Flag::OwnLoad);
        let value = |(number, value): (i16, &Value)| FitValue {
            number,
            reverse: value.direction == Direction::Reverse,
            metric: codes::of_metric(value.metric).unwrap_or_default(),
            claim: codes::of_claim(value.claim),
            value: value.value,
            low: value.low,
            high: value.high,
            counts: good && value.claim != Claim::Inconclusive,
        };
        let (origin, order) = codes::of_origin(run.origin);
        Ok(Self {
            id: run.id,
            agent: run.agent.clone(),
            target: run.target.clone(),
            seq: codes::signed(run.seq),
            kind: run.kind.clone(),
            origin,
            order,
            began_ms: run.began_ms,
            length_ms: codes::signed(run.length_ms),
            exit: codes::of_exit(run.exit),
            reason: run.reason.as_deref().map(clean),
            octets: codes::signed(run.octets),
            before: Route::of(&run.route_before),
            after: Route::of(&run.route_after),
            flags: codes::of_flags(&flags),
            in_time,
            succeeded: run.exit == Exit::Done && in_time,
            failing: failing(run.exit).filter(|_| in_time),
            values: (0..).zip(&run.values).map(value).collect(),
            evidence: run.evidence.as_ref().map(to_json),
        })
    }

    /// All of a batch, by id and each id once: two clients that send the same results wait for each
    /// other instead of each for the other's half.
    pub(crate) fn batch(runs: &[Run], now_ms: i64) -> Result<Vec<Self>> {
        let mut batch = BTreeMap::new();
        for run in runs {
            batch.insert(run.id, Self::new(run, now_ms)?);
        }
        Ok(batch.into_values().collect())
    }

    /// Source and target of a value's data.
    pub(crate) fn pair(&self, reverse: bool) -> (Name, Name) {
        let (agent, target) = (self.agent.clone(), self.target.clone());
        if reverse { (target, agent) } else { (agent, target) }
    }

    /// The hour whose sums its values are part of, if any of them counts.
    pub(crate) fn hour(&self) -> Option<i64> {
        self.values.iter().any(|value| value.counts).then(|| time_of(self.id).div_euclid(HOUR))
    }
}

fn failing(exit: Exit) -> Option<bool> {
    match exit {
        Exit::Done => Some(false),
        Exit::Inconclusive | Exit::PeerFailed | Exit::HostFailed => Some(true),
        Exit::Skipped | Exit::Stopped | Exit::Void => None,
    }
}

/// When an id of version 7 was made, in Unix ms: its first 48 bits (RFC 9562 §5.7).
pub(crate) fn time_of(id: Uuid) -> i64 {
    i64::try_from(id.as_u128() >> 80).unwrap_or_default()
}

/// The lowest id of a time; times before 1970 and after the year 10000 are those.
pub(crate) fn id_at(at_ms: i64) -> Uuid {
    let most = (1_u128 << 48) - 1;
    let at = u128::try_from(at_ms).unwrap_or(0).min(most);
    Uuid::from_u128(at << 80)
}

/// Text without the one character that PostgreSQL cannot keep.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// JSON of what always has one.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("it has text keys and no failing parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_follow_each_other() {
        let id = Uuid::from_u128((1_795_392_000_123_u128 << 80) | (7 << 76) | 1);
        assert_eq!(time_of(id), 1_795_392_000_123);
        assert!(id_at(1_795_392_000_123) < id && id < id_at(1_795_392_000_124));
        assert_eq!(id_at(-1), Uuid::nil());
        assert_eq!(time_of(id_at(i64::MAX)), (1 << 48) - 1);
    }
}
