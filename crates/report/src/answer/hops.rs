//! The answer of a path that was measured hop by hop.

use narrows_probe::BoundKind;
use narrows_units::Direction;

use super::figures::{beside, estimated, rate};
use super::is_doubt;
use super::rules::{Rule, Said, of_direction};
use crate::answer_line::{AnswerLine, Topic};
use crate::hops::{HopRow, HopsDocument};

/// What is free from this share of the capacity on is all of it.
const ALL: f64 = 0.9;
/// What is free below this share is next to nothing.
const NOTHING: f64 = 0.1;

impl HopsDocument {
    /// Fills in the answer, when all else stands.
    pub fn conclude(&mut self) {
        self.answer = lines(self);
    }

    fn hop(&self, ttl: Option<u16>) -> Option<&HopRow> {
        self.hops.iter().find(|hop| Some(hop.ttl) == ttl)
    }

    /// Trains over the whole path met a token bucket, which single packets pass.
    fn is_shaped(&self) -> bool {
        let forward = self.server.as_ref().and_then(|server| server.forward.as_ref());
        forward.is_some_and(|way| way.verdict == BoundKind::Estimated && way.is_shaped())
    }

    /// What is free is known of each hop.
    fn is_all_seen(&self) -> bool {
        self.hops.iter().all(|hop| hop.available.is_some())
    }

    /// Whether probes to this hop may have waited for traffic on one before it.
    fn is_unseen_before(&self, hop: &HopRow) -> bool {
        self.hops.iter().any(|other| other.ttl < hop.ttl && other.available.is_none())
    }

    /// What trains went through the whole path at.
    fn least_by_trains(&self) -> Option<u64> {
        let by_trains = self.server.as_ref().and_then(|server| server.forward.as_ref());
        by_trains.filter(|row| row.verdict == BoundKind::LowerBound).and_then(|row| row.capacity)
    }

    /// What every hop passes single packets at. A token bucket lets those through at once, so the
    /// path may carry less for longer.
    fn least_by_hops(&self) -> Option<u64> {
        let lows: Option<Vec<u64>> = self.hops.iter().map(|hop| hop.low).collect();
        lows?.into_iter().min().filter(|_| self.reached)
    }

    /// What the whole path carries: as trains told, or else its slowest link.
    fn whole(&self) -> Option<Whole> {
        let by_trains = self.server.as_ref().and_then(|server| server.forward.as_ref());
        let by_trains = by_trains.and_then(|row| Whole::of(row.verdict, row.capacity, row.low, row.high));
        let narrow = || {
            let hop = self.hop(self.narrow_hop)?;
            let by_hop = Whole::of(hop.verdict, hop.capacity, hop.low, hop.high)?;
            Some(Whole { single_packets: true, ..by_hop })
        };
        by_trains.or_else(narrow)
    }
}

/// A rate of the whole path, with both bounds.
struct Whole {
    value: u64,
    low: u64,
    high: u64,
    /// It is that of single packets, which a token bucket lets through at once.
    single_packets: bool,
}

impl Whole {
    fn of(verdict: BoundKind, value: Option<u64>, low: Option<u64>, high: Option<u64>) -> Option<Self> {
        (verdict == BoundKind::Estimated).then_some(())?;
        Some(Self { value: value?, low: low?, high: high?, single_packets: false })
    }
}

fn lines(document: &HopsDocument) -> Vec<AnswerLine> {
    let limit = limit(document);
    let action = action(document, limit.0);
    let said = [
        (Topic::Carries, Some(carries(document))),
        (Topic::FreeNow, free_now(document)),
        (Topic::Limit, Some(limit)),
        (Topic::Do, action),
        (Topic::Doubts, doubts(document)),
    ];
    of_direction(Direction::Forward, said)
}

/// A token bucket lets single packets through at once: what is told by them it may not sustain.
const SINGLE: &str = "for single packets";

fn carries(document: &HopsDocument) -> Rule {
    let slowest = document.narrow_hop.map_or_else(String::new, |ttl| format!("; hop {ttl} is the slowest link"));
    if let Some(whole) = document.whole() {
        let rate = estimated(whole.value, whole.low, whole.high);
        if document.is_shaped() {
            return ("c1", format!("{rate} sustained; single packets pass faster"));
        }
        let of = if whole.single_packets { SINGLE.to_owned() } else { format!("to {}", document.target.name) };
        return ("c2", format!("{rate} {of}{slowest}"));
    }
    let known = document.hops.iter().filter(|hop| hop.verdict == BoundKind::Estimated);
    if let Some((ttl, high)) = known.filter_map(|hop| Some((hop.ttl, hop.high?))).min_by_key(|(_, high)| *high) {
        return ("c4", format!("at most {} (hop {ttl}); hops without a rate may be slower", rate(high)));
    }
    if let Some(least) = document.least_by_trains() {
        return ("c4", format!("at least {}", rate(least)));
    }
    if let Some(least) = document.least_by_hops() {
        return ("c4", format!("at least {} {SINGLE}; a token bucket would not show", rate(least)));
    }
    let reason = document.reason.as_ref().map_or("no hop's rate was found", |reason| reason.brief);
    ("c6", format!("unknown: {reason}"))
}

/// The hop with the least that is free, and that.
fn tight(document: &HopsDocument) -> Option<(&HopRow, u64)> {
    let hop = document.hop(document.tight_hop)?;
    Some((hop, hop.available?))
}

/// The least that is free as a share of what the path carries.
fn share_free(document: &HopsDocument) -> Option<f64> {
    let (_, free) = tight(document)?;
    Some(free as f64 / document.whole()?.value.max(1) as f64)
}

fn free_now(document: &HopsDocument) -> Said {
    let unclear = || ("f6", "unclear: single probes cannot show it; narrows available can".to_owned());
    let Some((_, free)) = tight(document).filter(|_| !document.is_shaped()) else {
        return document.whole().map(|_| unclear());
    };
    // Another hop may have less left, if that of each is not known.
    let all = document.is_all_seen();
    Some(match share_free(document) {
        Some(share) if share >= ALL && !all => unclear(),
        Some(share) if share >= NOTHING && !all => ("f4", format!("roughly {} or less", rate(free))),
        Some(share) if share >= ALL => ("f1", "all of it; no other traffic seen".to_owned()),
        Some(share) if share < NOTHING => ("f2", format!("only {}; other traffic fills the path", rate(free))),
        Some(_) => ("f4", format!("roughly {}; other traffic takes the rest", rate(free))),
        None => ("f4", format!("roughly {}", rate(free))),
    })
}

fn limit(document: &HopsDocument) -> Rule {
    if document.is_shaped() {
        return ("l3", "a token bucket; single packets cannot show at which hop".to_owned());
    }
    let busy = tight(document).filter(|_| share_free(document).is_some_and(|share| share < ALL));
    match (busy, document.narrow_hop) {
        (Some((hop, free)), Some(narrow)) if hop.ttl != narrow => {
            let rates = hop.capacity.map_or_else(|| rate(free), |bps| format!("{}, {}", rate(bps), beside(free, bps)));
            ("l5", format!("other traffic on hop {} ({rates} free), not the slowest link", hop.ttl))
        }
        (Some((hop, _)), _) if document.is_unseen_before(hop) => {
            ("l6", format!("other traffic on hop {} or before it", hop.ttl))
        }
        (Some((hop, _)), Some(_)) => ("l6", format!("other traffic on hop {}, the slowest link", hop.ttl)),
        (Some((hop, _)), None) => ("l6", format!("other traffic on hop {}", hop.ttl)),
        (None, _) if document.whole().is_some() && !document.is_all_seen() => {
            ("l7", "the slowest link of the path, or traffic that was not seen".to_owned())
        }
        (None, _) if document.whole().is_some() => ("l7", "the slowest link of the path".to_owned()),
        (None, _) => ("l8", "unknown: the slowest link was not found".to_owned()),
    }
}

/// Hosts were not looked at, so nothing is said of them.
fn action(document: &HopsDocument, limit: &str) -> Said {
    match limit {
        "l5" | "l6" => Some(("d4", "less traffic or a faster link there".to_owned())),
        "l3" => Some(("d3", "count on the sustained rate, whatever short tests say".to_owned())),
        "l8" => Some(("d2", format!("measure the path as a whole: narrows test {}", document.target.name))),
        _ => None,
    }
}

fn doubts(document: &HopsDocument) -> Said {
    let path = document.caveats.iter().map(|caveat| ("the path".to_owned(), caveat));
    let hops = document.hops.iter().flat_map(|hop| {
        let on = format!("hop {}", hop.ttl);
        hop.caveats.iter().map(move |caveat| (on.clone(), caveat))
    });
    let all: Vec<_> = path.chain(hops).filter(|(_, caveat)| is_doubt(caveat)).collect();
    let (on, caveat) = all.first()?;
    let first = if all.len() == 1 { "1 on".to_owned() } else { format!("{}, the first on", all.len()) };
    Some(("w1", format!("{first} {on}: {}", caveat.brief)))
}

#[cfg(test)]
mod tests;
