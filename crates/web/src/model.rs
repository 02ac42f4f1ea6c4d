//! What the API answers with. The records of the store stay free to change.

use narrows_store::records::{self, Basis, Point, RunOutcome, Sample};
use narrows_watch::{Claim, Signal, WallTime};
use serde::Serialize;

/// The signal of this machine name.
pub(crate) fn signal(name: &str) -> Option<Signal> {
    Signal::ALL.into_iter().find(|signal| signal.name() == name)
}

fn claim(claim: Claim) -> &'static str {
    match claim {
        Claim::Estimate => "estimate",
        Claim::AtLeast => "at_least",
        Claim::AtMost => "at_most",
        Claim::Inconclusive => "inconclusive",
    }
}

fn basis(of: Option<Basis>) -> &'static str {
    match of {
        Some(Basis::Server) => "server",
        Some(Basis::Single) => "single",
        None => "mixed",
    }
}

fn whole(value: Option<f64>) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "a cast of floats saturates")]
    value.filter(|value| value.is_finite()).map(|value| value.round() as i64)
}

/// One value with its 90 % interval, or a mean of several.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Measured {
    /// When, or the beginning of what it stands for.
    at_ms: i64,
    /// The value; null where it is inconclusive.
    value: Option<i64>,
    /// Lower end of the 90 % interval.
    low: Option<i64>,
    /// Upper end of the 90 % interval.
    high: Option<i64>,
    /// The least of the values that it stands for.
    min: Option<i64>,
    /// The greatest of them.
    max: Option<i64>,
    /// How many values it stands for.
    count: u32,
    /// `estimate`, `at_least`, `at_most` or `inconclusive`.
    claim: &'static str,
    /// From where: `server` is both ends, `single` this one alone, `mixed` a mean of either kind.
    basis: &'static str,
}

impl Measured {
    pub(crate) fn new(point: &Point) -> Self {
        Self {
            at_ms: point.at.millis(),
            value: whole(point.value),
            low: whole(point.low),
            high: whole(point.high),
            min: whole(point.min),
            max: whole(point.max),
            count: point.count,
            claim: claim(point.claim),
            basis: basis(point.basis),
        }
    }

    pub(crate) fn of_sample(of: Basis, sample: &Sample) -> Self {
        let value = whole(sample.value);
        Self {
            at_ms: sample.at.millis(),
            value,
            low: whole(sample.low),
            high: whole(sample.high),
            min: value,
            max: value,
            count: 1,
            claim: claim(sample.claim),
            basis: basis(Some(of)),
        }
    }
}

/// A rule about a target.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Alert {
    /// The rule's name.
    rule: String,
    /// The target's name.
    target: String,
    /// `ok`, `pending`, `firing` or `flapping`.
    state: String,
    /// Since when.
    since_ms: i64,
    /// Why, in one line.
    detail: Option<String>,
}

impl Alert {
    pub(crate) fn new(target: String, of: &records::AlertState) -> Self {
        Self {
            rule: of.rule.clone(),
            target,
            state: of.state.clone(),
            since_ms: of.since.millis(),
            detail: of.detail.clone(),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Event {
    /// Its number; zero before it is stored.
    id: i64,
    /// The target's name; null is this host.
    target: Option<String>,
    /// What kind of thing, such as `change`, `route` or `silent`.
    kind: String,
    /// The signal that changed.
    signal: Option<&'static str>,
    /// When it happened.
    at_ms: i64,
    /// The 90 % interval of that time.
    at_low_ms: i64,
    /// Its other end.
    at_high_ms: i64,
    /// When it was found.
    found_ms: i64,
    /// What was so before, for people.
    before: Option<String>,
    /// What is so now, for people.
    after: Option<String>,
    /// The cause as a sentence.
    cause: Option<String>,
    /// One line that says all of it.
    text: String,
    /// The evidence.
    #[cfg_attr(test, schema(value_type = Option<Object>))]
    evidence: Option<serde_json::Value>,
    /// The incident that it belongs to.
    incident: Option<String>,
}

impl Event {
    pub(crate) fn new(target: Option<String>, of: &records::Event) -> Self {
        Self {
            id: of.id,
            target,
            kind: of.kind.clone(),
            signal: of.signal.map(Signal::name),
            at_ms: of.at.millis(),
            at_low_ms: of.at_low.millis(),
            at_high_ms: of.at_high.millis(),
            found_ms: of.found.millis(),
            before: of.before.clone(),
            after: of.after.clone(),
            cause: of.cause.clone(),
            text: of.text.clone(),
            evidence: of.evidence.clone(),
            incident: of.incident.map(|id| id.to_string()),
        }
    }
}

/// Events that belong together.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Incident {
    /// Its number.
    id: String,
    /// The target's name.
    target: String,
    /// When it began.
    began_ms: i64,
    /// When it was over; null if it is not.
    ended_ms: Option<i64>,
    /// The cause as a sentence.
    cause: Option<String>,
    /// The first of the hops at one of which the cause lies, if it names any.
    first_hop: Option<u8>,
    /// The last of them; the same where it names one.
    last_hop: Option<u8>,
    /// One line that says what happened.
    text: String,
}

impl Incident {
    pub(crate) fn new(target: String, of: &records::Incident) -> Self {
        Self {
            id: of.id.to_string(),
            target,
            began_ms: of.began.millis(),
            ended_ms: of.ended.map(WallTime::millis),
            cause: of.cause.clone(),
            first_hop: of.hops.map(|(first, _)| first),
            last_hop: of.hops.map(|(_, last)| last),
            text: of.text.clone(),
        }
    }
}

/// A job that was carried out.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Run {
    /// Its number.
    id: String,
    /// The target's name.
    target: Option<String>,
    /// `route`, `slice`, `capacity`, `hops` or `test`.
    kind: &'static str,
    /// `base`, `cadence`, `evidence`, `night` or `asked`.
    #[cfg_attr(test, schema(value_type = String))]
    why: narrows_watch::schedule::Why,
    /// When it began.
    began_ms: i64,
    /// When it ended; null while it runs.
    ended_ms: Option<i64>,
    /// `running`, `done`, `void`, `link_busy`, `server_busy`, `refused`, `server_gone`, `failed` or
    /// `lost`.
    #[cfg_attr(test, schema(value_type = String))]
    outcome: RunOutcome,
    /// Why it has no result, or not the usual one, in one line.
    reason: Option<String>,
    /// Octets that left, at the IP layer.
    octets: Option<u64>,
    /// The result as `narrows … --json` prints it; only where one run is asked for.
    #[cfg_attr(test, schema(value_type = Option<Object>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<serde_json::Value>,
}

impl Run {
    pub(crate) fn new(target: Option<String>, of: &records::Run) -> Self {
        Self {
            id: of.id.to_string(),
            target,
            kind: of.kind.name(),
            why: of.why,
            began_ms: of.began.millis(),
            ended_ms: of.ended.map(WallTime::millis),
            outcome: of.outcome,
            reason: of.reason.clone(),
            octets: of.octets,
            document: of.document.clone(),
        }
    }
}

/// A path as it was seen.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Path {
    /// When it was first seen like this.
    at_ms: i64,
    /// The target's address.
    address: Option<String>,
    /// The source address.
    source: Option<String>,
    /// The interface that packets leave by.
    interface: Option<String>,
    /// The next hop.
    next_hop: Option<String>,
    /// The path's MTU in octets.
    mtu_octets: Option<u32>,
    /// The hops in order.
    hops: Vec<Hop>,
}

/// One hop.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Hop {
    /// Who answered; none if nobody did.
    addresses: Vec<String>,
    /// The least round trip to it.
    round_trip_ns: Option<u64>,
}

impl Path {
    pub(crate) fn new(of: &records::PathSeen) -> Self {
        let times = of.hop_round_trips_ns.iter().copied().chain(std::iter::repeat(None));
        let hops = of.hops.iter().zip(times);
        Self {
            at_ms: of.at.millis(),
            address: of.address.clone(),
            source: of.source.clone(),
            interface: of.interface.clone(),
            next_hop: of.next_hop.clone(),
            mtu_octets: of.mtu,
            hops: hops.map(|(addresses, round_trip_ns)| Hop { addresses: addresses.clone(), round_trip_ns }).collect(),
        }
    }

    pub(crate) fn same_way(&self, other: &Self) -> bool {
        let hops = |path: &Self| path.hops.iter().map(|hop| hop.addresses.clone()).collect::<Vec<_>>();
        hops(self) == hops(other) && self.mtu_octets == other.mtu_octets
    }
}
