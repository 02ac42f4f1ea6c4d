//! Rust source as far as constants need it: names, numbers and signs, without comments and texts.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Name,
    /// A number.
    Number,
    /// Any other sign.
    Sign,
    /// A text, a character or a lifetime.
    Other,
}

/// One token, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: Kind,
    /// Its octets in the source.
    pub(super) at: Range<usize>,
}

/// All tokens of a source, comments left out.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let octets = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < octets.len() {
        let rest = &text[at..];
        let (kind, length) = if let Some(length) = comment(rest) {
            at += length;
            continue;
        } else if octets[at].is_ascii_whitespace() {
            at += 1;
            continue;
        } else if let Some(length) = literal_text(rest) {
            (Kind::Other, length)
        } else if octets[at].is_ascii_digit() {
            (Kind::Number, number(rest))
        } else if named(rest.chars().next()) {
            (Kind::Name, rest.find(|letter| !named(Some(letter))).unwrap_or(rest.len()))
        } else {
            (Kind::Sign, rest.chars().next().map_or(1, char::len_utf8))
        };
        tokens.push(Token { kind, at: at..at + length });
        at += length;
    }
    tokens
}

fn named(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
}

/// Length of the comment that begins here.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    Some(at)
}

/// Length of the text, character or lifetime that begins here.
fn literal_text(rest: &str) -> Option<usize> {
    let plain = rest.trim_start_matches(['b', 'c', 'r']);
    let prefix = rest.len() - plain.len();
    let hashes = plain.len() - plain.trim_start_matches('#').len();
    if prefix <= 2 && plain[hashes..].starts_with('"') {
        if rest[..prefix].contains('r') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = prefix + hashes + 1;
            return Some(rest[body..].find(&end).map_or(rest.len(), |found| body + found + end.len()));
        }
        return (hashes == 0).then(|| prefix + quoted(plain, '"'));
    }
    if prefix <= 1 && plain.starts_with('\'') {
        let mut letters = plain.chars().skip(1);
        let (first, second) = (letters.next(), letters.next());
        let lifetime = named(first) && second != Some('\'');
        let name = plain[1..].find(|letter| !named(Some(letter))).map_or(plain.len(), |end| end + 1);
        return Some(prefix + if lifetime { name } else { quoted(plain, '\'') });
    }
    None
}

/// Length of what is quoted from the first letter on.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if letter == '\\' {
            escaped = true;
        } else if letter == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Length of the number that begins here: `1.0 / 1.5`, `60 * 1500`, `0.95..1.1`, `1e-4`, `pair.0`.
fn number(rest: &str) -> usize {
    let octets = rest.as_bytes();
    let decimal = !rest.starts_with("0x");
    let mut at = 0;
    while let Some(&octet) = octets.get(at) {
        let before = &rest[..at];
        let exponent = decimal && before.ends_with(['e', 'E']) && (octet == b'-' || octet == b'+');
        let digit_follows = octets.get(at + 1).is_some_and(u8::is_ascii_digit);
        let point = decimal && octet == b'.' && digit_follows && !before.contains('.');
        if !(octet.is_ascii_alphanumeric() || octet == b'_' || exponent || point) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(Kind, &str)> {
        tokens(text).into_iter().map(|token| (token.kind, &text[token.at])).collect()
    }

    fn names(text: &str) -> Vec<&str> {
        words(text).into_iter().filter(|(kind, _)| *kind == Kind::Name).map(|(_, word)| word).collect()
    }

    #[test]
    fn comments_and_texts_have_no_names() {
        assert_eq!(names("a // NEAR\n/* FAR /* x */ y */ b \"NEAR \\\" q\" c r#\"z \" w\"# d"), ["a", "b", "c", "d"]);
        assert_eq!(names("fn f<'a>(x: &'a str) { '\\'' ; 'x'; b'y' }"), ["fn", "f", "x", "str"]);
        assert_eq!(names("break 'outer; r"), ["break", "r"]);
    }

    #[test]
    fn numbers_are_whole() {
        let numbers = |text: &'static str| -> Vec<&str> {
            words(text).into_iter().filter(|(kind, _)| *kind == Kind::Number).map(|(_, word)| word).collect()
        };
        assert_eq!(numbers("(0.65, 2.0)"), ["0.65", "2.0"]);
        assert_eq!(numbers("0.95..1.105"), ["0.95", "1.105"]);
        assert_eq!(numbers("1e-4 + 880_000.0 - 5u32 * 0xf << 24"), ["1e-4", "880_000.0", "5u32", "0xf", "24"]);
        assert_eq!(numbers("0..9"), ["0", "9"]);
    }
}
