//! The first checker: no two runs send on one key at a time, by the simulation's true time.

use std::collections::BTreeMap;

use narrows_fleet::keys::Key;
use uuid::Uuid;

/// A time in which a run sent on a key, in true microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sent {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) run: Uuid,
}

/// Pairs of neighbours in time that overlap.
pub(super) fn overlaps(sent: &mut BTreeMap<Key, Vec<Sent>>) -> usize {
    let mut count = 0;
    for spans in sent.values_mut() {
        spans.sort_unstable();
        let mut last: Option<Sent> = None;
        for span in spans.iter() {
            if last.is_some_and(|last| last.run != span.run && span.from < last.until) {
                count += 1;
            }
            last = last.filter(|last| last.until > span.until).or(Some(*span));
        }
    }
    count
}

#[test]
fn spans_of_one_run_may_touch_and_others_may_not_overlap() {
    let of = |spans: &[(u64, u64, u128)]| {
        let sent =
            |(from, until, run): &(u64, u64, u128)| Sent { from: *from, until: *until, run: Uuid::from_u128(*run) };
        overlaps(&mut BTreeMap::from([(Key::Link(1, 0), spans.iter().map(sent).collect())]))
    };
    assert_eq!(of(&[(5, 9, 1), (0, 5, 2), (8, 12, 1)]), 0);
    assert_eq!(of(&[(0, 5, 1), (4, 6, 2)]), 1);
    assert_eq!(of(&[(0, 9, 1), (1, 2, 1), (8, 12, 2)]), 1);
}
