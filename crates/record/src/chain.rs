//! The audit is a chain: each entry's hash covers the entry before.

use sha2::{Digest, Sha256};

use crate::fit::to_json;
use crate::rows::Audit;
use narrows_units::hex;

/// An entry after another one, whose hash is `before`; that of the first entry is empty.
pub(crate) fn entry(before: &str, number: u64, at_ms: i64, who: &str, what: &str, text: &str) -> Audit {
    let (who, what, text) = (crate::fit::clean(who), crate::fit::clean(what), crate::fit::clean(text));
    let hash = hash(before, number, at_ms, &who, &what, &text);
    Audit { number, at_ms, who, what, text, hash }
}

/// SHA-256 of a JSON array, which parts with any content cannot make ambiguous.
fn hash(before: &str, number: u64, at_ms: i64, who: &str, what: &str, text: &str) -> String {
    let whole = to_json(&(before, number, at_ms, who, what, text));
    hex::to_text(&Sha256::digest(whole))
}

/// The first entry of a list, the newest first, that does not follow from the one before it; the
/// last of the list is believed unless it is number 1.
pub fn broken_at(newest_first: &[Audit]) -> Option<u64> {
    let mut before: Option<(u64, String)> = None;
    for one in newest_first.iter().rev() {
        let follows = match &before {
            None if one.number > 1 => true,
            None => one.hash == hash("", one.number, one.at_ms, &one.who, &one.what, &one.text),
            Some((number, hash_before)) => {
                let expected = hash(hash_before, one.number, one.at_ms, &one.who, &one.what, &one.text);
                one.number == number + 1 && one.hash == expected
            }
        };
        if !follows {
            return Some(one.number);
        }
        before = Some((one.number, one.hash.clone()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Vec<Audit> {
        let mut all: Vec<Audit> = Vec::new();
        for number in 1..=5 {
            let before = all.first().map_or("", |one| &one.hash);
            let next = entry(before, number, 7, "hub", "plan.applied", &format!("{number}\0"));
            all.insert(0, next);
        }
        all
    }

    #[test]
    fn what_is_changed_or_missing_is_found() {
        assert_eq!(broken_at(&chain()), None);
        assert_eq!(broken_at(&chain()[..2]), None);
        let mut changed = chain();
        changed[2].text.push('!');
        assert_eq!(broken_at(&changed), Some(3));
        let mut missing = chain();
        missing.remove(2);
        assert_eq!(broken_at(&missing), Some(4));
        let mut first = chain();
        first[4].who = "nobody".to_owned();
        assert_eq!(broken_at(&first), Some(1));
    }
}
