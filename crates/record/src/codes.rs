//! The numbers by which both databases name things. A number keeps its meaning for ever.

use narrows_fleet::keys::{Key, Name};
use narrows_fleet::message::{Claim, Exit, Flag, Origin, Stored};
use narrows_units::Metric;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::rows::AgentState;

const METRICS: [(i16, Metric); 14] = [
    (1, Metric::RoundTripTime),
    (2, Metric::PathMtu),
    (3, Metric::IpCapacity),
    (4, Metric::ReverseIpCapacity),
    (5, Metric::PeakRate),
    (6, Metric::CommittedBurstOctets),
    (7, Metric::AvailableIpCapacity),
    (8, Metric::CrossTraffic),
    (9, Metric::MaximumBurstOctets),
    (10, Metric::UdpAchievable),
    (11, Metric::TcpAchievableSingle),
    (12, Metric::TcpAchievableParallel),
    (13, Metric::TcpStreamsToFill),
    (14, Metric::TcpWindowOctets),
];
const CLAIMS: [(i16, Claim); 4] =
    [(0, Claim::Estimate), (1, Claim::AtLeast), (2, Claim::AtMost), (3, Claim::Inconclusive)];
const EXITS: [(i16, Exit); 7] = [
    (0, Exit::Done),
    (1, Exit::Inconclusive),
    (2, Exit::Skipped),
    (3, Exit::Stopped),
    (4, Exit::PeerFailed),
    (5, Exit::HostFailed),
    (6, Exit::Void),
];
/// Each flag has a bit, so that a run has one number.
const FLAGS: [(i16, Flag); 3] = [(1, Flag::OwnLoad), (2, Flag::HostBusy), (4, Flag::ClockUnsynchronised)];
const STATES: [(i16, AgentState); 3] = [(0, AgentState::Member), (1, AgentState::Left), (2, AgentState::Revoked)];
const ORIGINS: [(i16, Origin); 4] =
    [(0, Origin::Mesh), (1, Origin::Directed), (2, Origin::Planned), (3, Origin::Repeated)];
/// The one with an id of its own.
const ORDERED: i16 = 4;

/// The number of a metric; `None` if this version has none for it.
pub(crate) fn of_metric(metric: Metric) -> Option<i16> {
    METRICS.iter().find(|(_, known)| *known == metric).map(|(code, _)| *code)
}

pub(crate) fn of_claim(claim: Claim) -> i16 {
    code(&CLAIMS, claim)
}

pub(crate) fn of_exit(exit: Exit) -> i16 {
    code(&EXITS, exit)
}

pub(crate) fn of_state(state: AgentState) -> i16 {
    code(&STATES, state)
}

pub(crate) fn of_flags(flags: &[Flag]) -> i16 {
    flags.iter().fold(0, |bits, flag| bits | code(&FLAGS, *flag))
}

pub(crate) fn of_origin(origin: Origin) -> (i16, Option<Uuid>) {
    match origin {
        Origin::Order(id) => (ORDERED, Some(id)),
        other => (code(&ORIGINS, other), None),
    }
}

/// As PostgreSQL prints a multirange: `{[1,5),[7,9)}`.
pub(crate) fn of_stored(stored: &Stored) -> String {
    let ranges: Vec<String> = stored.ranges.iter().map(|(first, beyond)| format!("[{first},{beyond})")).collect();
    format!("{{{}}}", ranges.join(","))
}

pub(crate) fn metric(code: i16) -> Result<Metric> {
    thing(&METRICS, code, "metric")
}

pub(crate) fn claim(code: i16) -> Result<Claim> {
    thing(&CLAIMS, code, "claim")
}

pub(crate) fn exit(code: i16) -> Result<Exit> {
    thing(&EXITS, code, "exit")
}

pub(crate) fn state(code: i16) -> Result<AgentState> {
    thing(&STATES, code, "state of an agent")
}

pub(crate) fn flags(bits: i16) -> Vec<Flag> {
    FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, flag)| *flag).collect()
}

pub(crate) fn origin(code: i16, order: Option<Uuid>) -> Result<Origin> {
    match (code, order) {
        (ORDERED, Some(id)) => Ok(Origin::Order(id)),
        _ => thing(&ORIGINS, code, "origin"),
    }
}

pub(crate) fn stored(text: &str) -> Result<Stored> {
    let damaged = || Error::Damaged(format!("\"{text}\" is no list of ranges"));
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(damaged)?;
    let range = |part: &str| {
        let (first, beyond) = part.strip_prefix('[')?.strip_suffix(')')?.split_once(',')?;
        Some((first.parse().ok()?, beyond.parse().ok()?))
    };
    let parts = inner.split_inclusive(')').map(|part| range(part.trim_start_matches(',')));
    Ok(Stored { ranges: parts.collect::<Option<_>>().ok_or_else(damaged)? })
}

pub(crate) fn name(text: &str) -> Result<Name> {
    text.parse().map_err(damaged)
}

pub(crate) fn key(text: &str) -> Result<Key> {
    text.parse().map_err(damaged)
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(damaged)
}

/// What was written is not what is read.
pub(crate) fn damaged(error: impl std::fmt::Display) -> Error {
    Error::Damaged(error.to_string())
}

/// A number that is never negative where it was written.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A number that [`crate::unfit`] has looked at, or one that a human being counts.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn code<T: Copy + PartialEq>(table: &[(i16, T)], thing: T) -> i16 {
    table.iter().find(|(_, known)| *known == thing).map(|(code, _)| *code).expect("each of them has a number")
}

fn thing<T: Copy>(table: &[(i16, T)], code: i16, what: &str) -> Result<T> {
    let found = table.iter().find(|(known, _)| *known == code);
    found.map(|(_, thing)| *thing).ok_or_else(|| Error::Damaged(format!("{code} is no {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_number_of_its_own() {
        for known in Metric::ALL {
            assert_eq!(of_metric(known).map(metric), Some(Ok(known)));
        }
        assert!(metric(99).is_err());
    }

    #[test]
    fn ranges_are_read_as_written() {
        for ranges in [vec![], vec![(1, 5)], vec![(1, 5), (7, 9), (11, 12)]] {
            let one = Stored { ranges };
            assert_eq!(stored(&of_stored(&one)), Ok(one));
        }
        for text in ["", "{", "{[1,5}", "{[1,5),7}", "{[a,5)}"] {
            assert!(stored(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_and_origins_are_read_as_written() {
        let all = [Flag::OwnLoad, Flag::HostBusy, Flag::ClockUnsynchronised];
        assert_eq!(flags(of_flags(&all)), all);
        assert_eq!(flags(of_flags(&[Flag::HostBusy])), [Flag::HostBusy]);
        for one in [Origin::Mesh, Origin::Repeated, Origin::Order(Uuid::from_u128(7))] {
            let (code, order) = of_origin(one);
            assert_eq!(origin(code, order), Ok(one));
        }
        assert!(origin(ORDERED, None).is_err());
    }
}
