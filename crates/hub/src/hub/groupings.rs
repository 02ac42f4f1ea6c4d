//! Groupings of paths by their delays, and how far they are.

use std::collections::BTreeSet;

use narrows_fleet::keys::Name;
use narrows_fleet::sharing::Stream;
use narrows_fleet::sharing::rfc8382::GroupVerdict;
use narrows_record::KeptGrouping;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::hub::bottlenecks::Ordered;
use crate::hub::comparisons::{Comparison, Comparisons};

/// The newest grouping of each set of paths.
pub(crate) type Groupings = Comparisons<Grouping>;

/// Streams over several paths at one time, and what they say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Grouping {
    pub(super) row: GroupingRow,
    pub(super) streams: Vec<Stream<Name>>,
    /// The order of each stream; nothing while they are given.
    pub(super) orders: Option<Vec<Uuid>>,
}

/// How far a grouping of paths by their delays is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct GroupingRow {
    /// `running`, `together`, `apart`, `no_queue` or `inconclusive`.
    #[cfg_attr(test, schema(value_type = String))]
    pub(super) state: GroupingState,
    /// Paths that wait in queues, those whose delays move together in one list.
    pub(super) groups: Vec<Vec<Ordered>>,
    /// Paths that wait in no queue.
    pub(super) no_queue: Vec<Ordered>,
    /// What was not read, and why.
    pub(super) why: Option<String>,
    pub(super) at_ms: i64,
}

/// Whether a grouping has ended, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GroupingState {
    Running,
    Together,
    Apart,
    NoQueue,
    Inconclusive,
}

impl From<&Stream<Name>> for Ordered {
    fn from(stream: &Stream<Name>) -> Self {
        Self { source: stream.source.clone(), target: stream.target.clone() }
    }
}

impl GroupingRow {
    /// Without groups.
    pub(super) const fn bare(state: GroupingState, why: Option<String>, at_ms: i64) -> Self {
        Self { state, groups: Vec::new(), no_queue: Vec::new(), why, at_ms }
    }
}

impl GroupingState {
    pub(super) const fn of(verdict: GroupVerdict) -> Self {
        match verdict {
            GroupVerdict::Together => Self::Together,
            GroupVerdict::Apart => Self::Apart,
            GroupVerdict::NoQueue => Self::NoQueue,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Together => "together",
            Self::Apart => "apart",
            Self::NoQueue => "no_queue",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl Comparison for Grouping {
    type Kept = KeptGrouping;
    const WHAT: &str = "grouping";

    fn parts(kept: KeptGrouping) -> (String, String) {
        (kept.paths, kept.doc)
    }

    fn is_running(&self) -> bool {
        self.row.state == GroupingState::Running
    }
}

impl Grouping {
    pub(super) fn paths(&self) -> impl Iterator<Item = Ordered> {
        self.streams.iter().map(Ordered::from)
    }

    /// The number of its paths, whichever order they have.
    pub(super) fn id(&self) -> String {
        let paths: BTreeSet<Ordered> = self.paths().collect();
        let lines: Vec<String> = paths.iter().map(|path| format!("{} {}", path.source, path.target)).collect();
        narrows_units::hex::to_text(&Sha256::digest(lines.join("\n"))[..6])
    }

    /// As the record is to have it.
    pub(super) fn kept(&self) -> KeptGrouping {
        KeptGrouping {
            paths: self.id(),
            running: self.is_running(),
            at_ms: self.row.at_ms,
            doc: serde_json::to_string(self).expect("it has text keys"),
        }
    }
}

impl Comparisons<Grouping> {
    /// The newest one of which these paths have two at least: what it says is of them.
    pub(crate) fn row(&self, paths: &[Ordered]) -> Option<GroupingRow> {
        let all = self.lock();
        let of_these = |one: &&Grouping| one.paths().filter(|path| paths.contains(path)).count() > 1;
        all.values().filter(of_these).max_by_key(|one| one.row.at_ms).map(|one| one.row.clone())
    }

    /// Paths that had a grouping since then.
    pub(super) fn paths_since(&self, since_ms: i64) -> BTreeSet<Ordered> {
        let all = self.lock();
        all.values().filter(|one| one.row.at_ms >= since_ms).flat_map(Grouping::paths).collect()
    }

    /// Whether one runs, or ended since then.
    pub(super) fn is_any_since(&self, since_ms: i64) -> bool {
        self.lock().values().any(|one| one.is_running() || one.row.at_ms >= since_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouping(ends: &[(&str, &str)], state: GroupingState, at_ms: i64) -> Grouping {
        let stream = |(source, target): &(&str, &str)| Stream {
            source: source.parse().unwrap(),
            target: target.parse().unwrap(),
            from_target: false,
        };
        Grouping {
            row: GroupingRow::bare(state, None, at_ms),
            streams: ends.iter().map(stream).collect(),
            orders: None,
        }
    }

    #[test]
    fn a_row_is_of_paths_that_it_has_two_of() {
        let all = Groupings::default();
        let put = |one: Grouping| all.put(&one.id(), one);
        put(grouping(&[("a", "c"), ("b", "c")], GroupingState::Together, 1));
        put(grouping(&[("a", "c"), ("b", "c"), ("e", "c")], GroupingState::Apart, 2));
        put(grouping(&[("a", "c"), ("x", "c")], GroupingState::Running, 3));
        let of = |ends: &[(&str, &str)]| {
            let paths: Vec<Ordered> = grouping(ends, GroupingState::Running, 0).paths().collect();
            all.row(&paths).map(|row| row.at_ms)
        };
        assert_eq!(of(&[("a", "c"), ("b", "c")]), Some(2), "the newest");
        assert_eq!(of(&[("a", "c"), ("x", "c"), ("z", "c")]), Some(3));
        assert_eq!(of(&[("a", "c"), ("z", "c")]), None, "one path alone moves with nothing");
        assert_eq!(all.paths_since(2).len(), 4);
        assert!(all.is_any_since(99), "one runs");
    }

    #[test]
    fn the_record_has_all_of_it_whatever_the_order_of_its_paths() {
        let one = grouping(&[("a", "c"), ("b", "c")], GroupingState::Running, 7);
        assert_eq!(one.id(), grouping(&[("b", "c"), ("a", "c")], GroupingState::Apart, 9).id());
        assert_ne!(one.id(), grouping(&[("a", "b"), ("c", "c")], GroupingState::Running, 7).id());
        let all = Groupings::default();
        all.learn(vec![one.kept(), KeptGrouping { paths: "x".to_owned(), doc: "{}".to_owned(), ..one.kept() }]);
        let [(_, read)] = &all.running()[..] else { panic!() };
        assert_eq!((&read.row, read.paths().count()), (&one.row, 2));
    }
}
