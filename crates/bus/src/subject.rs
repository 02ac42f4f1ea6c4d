//! Subjects and patterns, with the meaning that NATS gives them: tokens between dots, `*` for one
//! token, `>` for one or more at the end.

use crate::error::{Error, Result};

/// Longest subject, in octets; ours: the longest one of a fleet has about 120.
const LONGEST: usize = 255;

/// Whether it names one subject.
pub(crate) fn is_subject(text: &str) -> bool {
    let letter = |octet: u8| octet.is_ascii_graphic() && !b"*>\".".contains(&octet);
    text.len() <= LONGEST && text.split('.').all(|token| !token.is_empty() && token.bytes().all(letter))
}

/// Whether it names a set of subjects, or one.
pub(crate) fn is_pattern(text: &str) -> bool {
    let (body, rest) = text.strip_suffix(".>").map_or((text, false), |body| (body, true));
    (!rest && text == ">")
        || (text.len() <= LONGEST && body.split('.').all(|token| token == "*" || (is_subject(token))))
}

/// A subject for messages: names that begin with `$` and `_` belong to the bus itself.
pub(crate) fn subject(text: &str) -> Result<()> {
    if is_subject(text) && !text.starts_with(['$', '_']) { Ok(()) } else { Err(Error::Subject(text.to_owned())) }
}

/// A pattern to subscribe to.
pub(crate) fn pattern(text: &str) -> Result<()> {
    if is_pattern(text) { Ok(()) } else { Err(Error::Subject(text.to_owned())) }
}

/// The name of a bucket or a consumer: one token without anything that a file system or a subject
/// could take amiss.
pub(crate) fn name(text: &str) -> Result<()> {
    let fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let ok = !text.is_empty() && text.len() <= 64 && text.chars().all(fine);
    if ok { Ok(()) } else { Err(Error::Subject(text.to_owned())) }
}

/// A key of a bucket: tokens between dots.
pub(crate) fn key(text: &str) -> Result<()> {
    if is_subject(text) { Ok(()) } else { Err(Error::Subject(text.to_owned())) }
}

/// Whether every subject of `inner`, a pattern or a subject, belongs to the pattern `outer`.
pub(crate) fn covers(outer: &str, inner: &str) -> bool {
    let mut wanted = inner.split('.');
    for token in outer.split('.') {
        match (token, wanted.next()) {
            (">", Some(_)) => return true,
            (_, None | Some(">")) => return false,
            ("*", Some(_)) => {}
            (token, Some(other)) if token == other => {}
            _ => return false,
        }
    }
    wanted.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_its_subjects_alone() {
        for (outer, inner, covered) in [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.b", "a.b.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.*.c", "a.b.c", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a.b", true),
            // Patterns in patterns.
            ("a.*", "a.*", true),
            ("a.*", "a.>", false),
            ("a.b", "a.*", false),
            ("a.>", "a.*", true),
            ("a.>", "a.>", true),
            ("a.*.>", "a.>", false),
            (">", ">", true),
            ("a", ">", false),
        ] {
            assert_eq!(covers(outer, inner), covered, "{outer} {inner}");
        }
    }

    #[test]
    fn wildcards_and_blanks_are_in_no_subject() {
        for (text, is_one, is_set) in [
            ("a.b", true, true),
            ("a", true, true),
            ("", false, false),
            ("a..b", false, false),
            (".a", false, false),
            ("a b", false, false),
            ("a.\u{e4}", false, false),
            ("a.*", false, true),
            ("a.>", false, true),
            (">", false, true),
            ("a.>.b", false, false),
            ("a*", false, false),
        ] {
            assert_eq!((is_subject(text), is_pattern(text)), (is_one, is_set), "{text}");
        }
        assert!(subject("$JS.API").is_err() && subject("_INBOX.a").is_err() && subject("order.a").is_ok());
        assert!(name("lease_1").is_ok() && name("a.b").is_err() && name("").is_err());
    }
}
