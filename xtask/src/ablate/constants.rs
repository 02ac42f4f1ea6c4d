//! The constants of an estimator: what they are, and where their values come from.

use std::ops::Range;

use super::source::{Kind, Token, tokens};

/// A constant at the level of its module.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Constant {
    /// The file that defines it, below the crate's `src`.
    pub(super) file: String,
    pub(super) name: String,
    /// Its type, as written.
    pub(super) kind: String,
    /// Its value, as written.
    pub(super) value: String,
    /// Paper or RFC, "ours", or "not said".
    pub(super) origin: String,
    /// The numbers in its value, in their order.
    pub(super) numbers: Vec<Number>,
    /// From `const` to its semicolon.
    pub(super) item: Range<usize>,
    /// The value within the file.
    pub(super) value_at: Range<usize>,
}

/// One number of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    /// As written.
    pub(super) text: String,
    /// Where, within the value.
    pub(super) at: Range<usize>,
}

/// Everything that a file defines at its own level, with why a constant cannot be varied.
pub(super) struct FileConstants {
    pub(super) constants: Vec<Constant>,
    /// Name and reason.
    pub(super) skipped: Vec<(String, &'static str)>,
}

/// The constants of one file.
pub(super) fn constants(file: &str, text: &str) -> FileConstants {
    let tokens = tokens(text);
    let mut found = FileConstants { constants: Vec::new(), skipped: Vec::new() };
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match &text[token.at.clone()] {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "const" => {
                let Some(constant) = constant(file, text, &tokens[index..]) else { continue };
                let tested = text[..token.at.start].contains("#[cfg(test)]\nmod ");
                match not_varied(&constant, depth) {
                    _ if tested => {}
                    Some(reason) => found.skipped.push((constant.name, reason)),
                    None => found.constants.push(constant),
                }
            }
            _ => {}
        }
    }
    found
}

/// The constant whose `const` is the first of these tokens; `None` of functions, pointers and
/// blocks.
fn constant(file: &str, text: &str, tokens: &[Token]) -> Option<Constant> {
    let word = |index: usize| tokens.get(index).map(|token: &Token| &text[token.at.clone()]);
    let name = word(1)?;
    if word(2)? != ":" || name == "_" {
        return None;
    }
    let until = |sign: &str, from: usize| {
        let mut depth = 0_i32;
        (from..tokens.len()).find(|&index| {
            match word(index) {
                Some("(" | "[" | "{") => depth += 1,
                Some(")" | "]" | "}") => depth -= 1,
                _ => {}
            }
            depth == 0 && word(index) == Some(sign)
        })
    };
    let equals = until("=", 3)?;
    let end = until(";", equals)?;
    let value_at = tokens[equals + 1].at.start..tokens[end - 1].at.end;
    let numbers = tokens[equals + 1..end].iter().filter(|token| token.kind == Kind::Number).map(|token| Number {
        text: text[token.at.clone()].to_owned(),
        at: token.at.start - value_at.start..token.at.end - value_at.start,
    });
    Some(Constant {
        file: file.to_owned(),
        name: name.to_owned(),
        kind: text[tokens[3].at.start..tokens[equals - 1].at.end].to_owned(),
        value: text[value_at.clone()].to_owned(),
        origin: origin(&documentation(&text[..tokens[0].at.start])),
        numbers: numbers.collect(),
        item: tokens[0].at.start..tokens[end].at.end,
        value_at,
    })
}

/// Why a constant stays as it is; `None` if it is a number that may be varied.
fn not_varied(constant: &Constant, depth: usize) -> Option<&'static str> {
    let types =
        ["f64", "f32", "u8", "u16", "u32", "u64", "usize", "i32", "i64", "Duration", "std", "ops", "Range", "time"];
    let numeric = tokens(&constant.kind)
        .iter()
        .filter(|token| token.kind == Kind::Name)
        .all(|token| types.contains(&&constant.kind[token.at.clone()]));
    if depth > 0 {
        Some("of a type or a function")
    } else if !numeric || constant.kind.contains('&') {
        Some("no number")
    } else if constant.value.contains("<<") || constant.value.contains("0x") {
        Some("an identifier")
    } else {
        None
    }
}

/// The comment of a constant that begins behind `before`, or of the group of lines that it is in.
fn documentation(before: &str) -> String {
    let mut lines: Vec<&str> = before.lines().collect();
    // What stands before `const` in its own line.
    lines.pop_if(|line| !before.ends_with('\n') && !line.trim_start().starts_with("///"));
    let mut lines = lines.into_iter().rev().peekable();
    while lines.next_if(|line| line.contains("const ") || line.trim_start().starts_with("#[")).is_some() {}
    let mut comment: Vec<&str> = Vec::new();
    while let Some(line) = lines.next_if(|line| line.trim_start().starts_with("///")) {
        comment.push(line.trim_start().trim_start_matches('/').trim());
    }
    comment.reverse();
    comment.join(" ")
}

/// Where a value comes from, as its comment says: keys of papers and numbers of RFCs, or ourselves.
fn origin(comment: &str) -> String {
    let mut keys: Vec<String> = Vec::new();
    let mut rest = comment;
    while let Some((_, behind)) = rest.split_once('[') {
        let Some((key, behind)) = behind.split_once(']') else { break };
        let is_key = key.starts_with(char::is_uppercase)
            && key.chars().all(char::is_alphanumeric)
            && key.ends_with(|letter: char| letter.is_ascii_digit() || letter.is_lowercase());
        if is_key && !behind.starts_with('(') {
            keys.push(format!("[{key}]"));
        }
        rest = behind;
    }
    let words: Vec<&str> = comment.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| pair[0].trim_start_matches('(') == "RFC") {
        keys.push(format!("RFC {}", pair[1].trim_matches(|letter: char| !letter.is_ascii_digit())));
    }
    let lower = comment.to_lowercase();
    if lower.contains("pathrate's") || lower.contains("in pathrate") {
        keys.push("pathrate".to_owned());
    }
    let ours = lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "ours");
    if ours || (keys.is_empty() && lower.contains("decision ")) {
        keys.push("ours".to_owned());
    }
    if keys.is_empty() { "not said".to_owned() } else { keys.join(", ") }
}

/// The values to try instead: without the constant, and with twice as much of it. A factor near 1
/// is left out at 1, and doubled by its distance from 1; any other number is halved and doubled.
/// `None` where there is nothing to halve.
pub(super) fn others(number: &str) -> Option<(String, String)> {
    let plain = number.replace('_', "");
    // A type may stand behind it.
    let plain = plain.split(['u', 'i', 'f']).next()?;
    if let Ok(whole) = plain.parse::<u64>() {
        return (whole > 0).then(|| ((whole / 2).to_string(), (whole * 2).to_string()));
    }
    let value: f64 = plain.parse().ok()?;
    let is_factor = value > 0.7 && value < 1.5 && (value - 1.0).abs() > 1e-9;
    let (without, twice) = if is_factor { (1.0, 1.0 + 2.0 * (value - 1.0)) } else { (value / 2.0, value * 2.0) };
    // Nine digits are enough, and hide what binary fractions add.
    let written = |value: f64| {
        let text = format!("{value:.9}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    (value != 0.0).then(|| (written(without), written(twice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
//! Docs with const X: u8 = 1;
use super::x::FAR;

/// Shares (ours: `[f64]`),
/// two of them.
const NEAR: (f64, f64) = (0.65, 2.0);
pub(super) const SURE: f64 = 0.625;
/// As in [SLoPS02] §4.2 and RFC 9097.
const LONGEST: Duration = Duration::from_secs(5);
/// A mark.
const MARK: u32 = 0xf << 24;
/// A [`Name`] and a [link](x).
const KNOWN: [(&str, u8); 1] = [(\"a\", 1)];
const HALF: f64 = SURE / 2.0;

impl A {
    const NONE: u8 = 1;
}

const fn f(x: *const u8) {}

#[cfg(test)]
mod tests {
    const T: u8 = 3;
}
";

    #[test]
    fn constants_are_read_with_their_comments() {
        let found = constants("a.rs", FILE);
        let brief: Vec<_> = found
            .constants
            .iter()
            .map(|one| (one.name.as_str(), one.kind.as_str(), one.value.as_str(), one.origin.as_str()))
            .collect();
        let expected = [
            ("NEAR", "(f64, f64)", "(0.65, 2.0)", "ours"),
            ("SURE", "f64", "0.625", "ours"),
            ("LONGEST", "Duration", "Duration::from_secs(5)", "[SLoPS02], RFC 9097"),
            ("HALF", "f64", "SURE / 2.0", "not said"),
        ];
        assert_eq!(brief, expected);
        assert_eq!(found.constants[0].numbers[1].text, "2.0");
        assert_eq!(&FILE[found.constants[0].item.clone()], "const NEAR: (f64, f64) = (0.65, 2.0);");
        let skipped = [("MARK", "an identifier"), ("KNOWN", "no number"), ("NONE", "of a type or a function")];
        assert_eq!(found.skipped, skipped.map(|(name, why)| (name.to_owned(), why)));
    }

    #[test]
    fn factors_are_left_out_at_one() {
        let pair = |low: &str, high: &str| Some((low.to_owned(), high.to_owned()));
        assert_eq!(others("0.03"), pair("0.015", "0.06"));
        assert_eq!(others("1.03"), pair("1", "1.06"));
        assert_eq!(others("0.9"), pair("1", "0.8"));
        assert_eq!(others("880_000.0"), pair("440000", "1760000"));
        assert_eq!(others("5u32"), pair("2", "10"));
        assert_eq!(others("1"), pair("0", "2"));
        assert_eq!(others("1.0"), pair("0.5", "2"));
        assert_eq!(others("1e-4"), pair("0.00005", "0.0002"));
        assert_eq!(others("0"), None);
    }
}
