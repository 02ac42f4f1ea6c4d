//! Who answers where: circles, and routers that pass on what they should answer for.

use super::table::{HopTable, Sample};

/// Nothing is to be learned there: nobody answers, or not for that hop.
pub(super) fn is_idle(hops: &[HopTable], hop: usize) -> bool {
    hops.get(hop).is_none_or(|table| table.answers == 0) || is_no_hop(hops, hop) || passes_on(hops, hop)
}

/// Who answers here answered before: at which hop limit, if not the one before this.
pub(super) fn earlier(hops: &[HopTable], hop: usize) -> Option<usize> {
    let (router, _) = hops.get(hop)?.main_router().filter(|(from, _)| !from.is_unspecified())?;
    let same = |table: &HopTable| table.main_router().is_some_and(|(from, _)| from == router);
    hops.iter().take(hop).position(same)
}

/// The same router answers at this hop limit and at the next one, in the same time: here packets
/// are passed on that should not be.
pub(super) fn passes_on(hops: &[HopTable], hop: usize) -> bool {
    let router = |hop: usize| hops.get(hop).and_then(HopTable::main_router);
    let (Some((here, own)), Some((next, others))) = (router(hop), router(hop + 1)) else {
        return false;
    };
    let least = |samples: &[Sample]| samples.iter().map(|sample| sample.round_trip_ns).min();
    let alike = match (least(own), least(others)) {
        // A link takes some time for a packet there and its answer back: one more would be seen.
        // Half a millisecond of distance is the most that a loop between neighbours would have to
        // be shorter than.
        (Some(own), Some(others)) => own.abs_diff(others) <= (own.unsigned_abs() / 20).max(20_000),
        _ => false,
    };
    here == next && !here.is_unspecified() && alike
}

/// Part of a circle: its router answered at an earlier hop limit, and not because the one before
/// passes packets on.
pub(super) fn is_no_hop(hops: &[HopTable], hop: usize) -> bool {
    match earlier(hops, hop) {
        Some(before) => !(before..hop).all(|passed| passes_on(hops, passed)),
        None => false,
    }
}

/// The last three who answered had all answered before: packets go round.
pub(super) fn goes_round(hops: &[HopTable]) -> bool {
    let heard: Vec<usize> = (0..hops.len()).filter(|&hop| hops[hop].answers > 0).collect();
    heard.len() > 3 && heard.iter().rev().take(3).all(|&hop| is_no_hop(hops, hop))
}
