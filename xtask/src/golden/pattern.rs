//! Patterns of JSON pointers: `*` within a segment is any text, `**` as a segment any number of
//! segments.

/// Whether the pointer, or one above it, matches: what holds for an object holds for its parts.
pub(super) fn covers(pattern: &str, pointer: &str) -> bool {
    let pattern: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    let pointer: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    segments(&pattern, &pointer)
}

fn segments(pattern: &[&str], pointer: &[&str]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((&"**", rest)) => (0..=pointer.len()).any(|skipped| segments(rest, &pointer[skipped..])),
        Some((first, rest)) => {
            pointer.split_first().is_some_and(|(segment, below)| like(first, segment) && segments(rest, below))
        }
    }
}

/// Whether the text matches a pattern in which `*` is any text.
pub(super) fn like(pattern: &str, text: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(front) else {
        return false;
    };
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().any(|at| like(rest, &text[at..]))
}

/// The pointer with `*` for its numbers: what differences have in common.
pub(super) fn general(pointer: &str) -> String {
    let number = |segment: &str| !segment.is_empty() && segment.bytes().all(|octet| octet.is_ascii_digit());
    let segments = pointer.split('/').map(|segment| if number(segment) { "*" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_texts_and_segments() {
        for (pattern, pointer, expected) in [
            ("/a/*/c", "/a/7/c", true),
            ("/a/*/c", "/a/7/8/c", false),
            ("**/c", "/a/7/8/c", true),
            ("**/per_*_bps", "/a/per_train_bps", true),
            ("**/per_*_bps", "/a/per_train_ns", false),
            ("/a", "/a/7", true),
            ("/a/7", "/a", false),
            ("/a/7", "/a/77", false),
            ("**", "/a", true),
        ] {
            assert_eq!(covers(pattern, pointer), expected, "{pattern} {pointer}");
        }
        assert!(like("scenarios: simulate *hops-*", "scenarios: simulate scenarios/hops-loop.toml"));
        assert!(!like("*hops", "scenarios/hops-loop.toml"));
    }

    #[test]
    fn numbers_are_what_pointers_differ_in() {
        assert_eq!(general("/stdout/0/runs/12/value_bps"), "/stdout/*/runs/*/value_bps");
    }
}
