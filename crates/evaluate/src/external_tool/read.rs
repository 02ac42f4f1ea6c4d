//! From what a program printed to numbers. Pure: text in, numbers out.

use std::collections::BTreeMap;

use regex_lite::{Captures, Regex, RegexBuilder};
use serde_json::Value as Json;

use super::error::{AdapterError, ReadError};
use super::file::{self, From, Stream, Which};
use super::unit;

/// What the commands of one run printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    /// The client.
    pub client: Printed,
    /// The server, if there is one.
    pub server: Printed,
    /// What ran afterwards.
    pub after: Printed,
}

/// Both streams of one command, as text: what is not UTF-8 became U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Printed {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// What a program said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// One number, or one per hop in order of hops.
    pub numbers: Vec<Number>,
    /// What it says that it imposed.
    pub printed: PrintedCost,
}

/// One number of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Which hop it is about, counted from 1 at the sender's own link; `None`: the whole path.
    pub hop: Option<u16>,
    /// The number, if it came to one.
    pub found: ParsedNumber,
}

/// A number, or that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedNumber {
    /// Bit/s at the adapter's layer.
    Rate {
        /// The value; where the program prints a range alone, its middle.
        value_bps: u64,
        /// Lower and upper end, where the program prints them.
        interval_bps: Option<(u64, u64)>,
    },
    /// It came to no number, and said so: the words that stand in its place.
    Inconclusive(String),
}

/// What a program says that it sent. Its octets are those that it counts, mostly payload.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PrintedCost {
    /// Octets.
    pub octets: Option<u64>,
    /// Packets.
    pub packets: Option<u64>,
    /// Time of the measurement proper, seconds.
    pub seconds: Option<f64>,
}

/// Most hops of a path: a hop limit has 8 bits.
const HOPS: usize = 255;
/// Highest rate that is taken for one, bit/s.
const HIGHEST: f64 = 1e15;
/// Lowest value that is taken for one: what rounds to nothing is nothing. The lower end of an
/// interval may be zero.
const LEAST: f64 = 0.5;
/// Characters of a program's output that an error quotes.
const EXCERPT: usize = 200;

/// How to find the number.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    from: From,
    stream: Stream,
    how: How,
    which: Which,
    factor: f64,
    hop_offset: u16,
    none: Option<Regex>,
    octets: Option<Rule>,
    packets: Option<Rule>,
    seconds: Option<Rule>,
}

#[derive(Debug, Clone)]
enum How {
    Pattern(Regex),
    Json { value: String, range: Option<(String, String)> },
}

#[derive(Debug, Clone)]
struct Rule {
    how: How,
    scale: f64,
}

/// An expression of a description. `^` and `$` are those of lines; its size is bounded, and its
/// time is linear in the text's.
pub(super) fn pattern(key: &'static str, text: &str) -> Result<Regex, AdapterError> {
    let mut builder = RegexBuilder::new(text);
    builder.multi_line(true).crlf(true).size_limit(1 << 20);
    builder.build().map_err(|error| AdapterError::Pattern { key, why: error.to_string() })
}

/// Complains if the expression has no such group.
pub(super) fn needs_group(key: &'static str, pattern: &Regex, missing: &'static str) -> Result<(), AdapterError> {
    if has_group(pattern, missing) { Ok(()) } else { Err(AdapterError::Capture { key, missing }) }
}

fn has_group(pattern: &Regex, name: &str) -> bool {
    pattern.capture_names().flatten().any(|known| known == name)
}

impl Reader {
    /// Checks; `has` says whether there is a server, and a command afterwards.
    pub(super) fn check(read: file::Read, cost: file::Cost, has: (bool, bool)) -> Result<Self, AdapterError> {
        match (read.from, has) {
            (From::Server, (false, _)) => return Err(AdapterError::NoSuchCommand("server")),
            (From::After, (_, false)) => return Err(AdapterError::NoSuchCommand("after")),
            _ => {}
        }
        let how = match (read.pattern, read.json) {
            (Some(text), None) => {
                let pattern = pattern("read.pattern", &text)?;
                let has = |name| has_group(&pattern, name);
                let is_number = has("value") || (has("low") && has("high"));
                if !is_number {
                    let missing = "`value`, nor both `low` and `high`";
                    return Err(AdapterError::Capture { key: "read.pattern", missing });
                }
                How::Pattern(pattern)
            }
            (None, Some(json)) => {
                let range = json.low.zip(json.high);
                let pointers =
                    [Some(&json.value), range.as_ref().map(|(low, _)| low), range.as_ref().map(|(_, high)| high)];
                for text in pointers.into_iter().flatten() {
                    pointer("read.json", text)?;
                }
                How::Json { value: json.value, range }
            }
            _ => return Err(AdapterError::OneWayToRead { key: "read" }),
        };
        let unit = read.unit.as_deref().unwrap_or("bit/s");
        let in_bps = unit::bps(unit).ok_or_else(|| AdapterError::Unit { key: "read.unit", unit: unit.to_owned() })?;
        Ok(Self {
            from: read.from,
            stream: read.stream,
            how,
            which: read.which,
            factor: in_bps * scale("read.scale", read.scale)?,
            hop_offset: read.hop_offset,
            none: read.none.map(|text| pattern("read.none", &text)).transpose()?,
            octets: cost.octets.map(|rule| Rule::check("cost.octets", rule)).transpose()?,
            packets: cost.packets.map(|rule| Rule::check("cost.packets", rule)).transpose()?,
            seconds: cost.seconds.map(|rule| Rule::check("cost.seconds", rule)).transpose()?,
        })
    }

    pub(super) fn is_per_hop(&self) -> bool {
        matches!(&self.how, How::Pattern(pattern) if has_group(pattern, "hop"))
    }

    pub(super) fn read(&self, texts: &Texts) -> Result<Reading, ReadError> {
        let printed = match self.from {
            From::Client => &texts.client,
            From::Server => &texts.server,
            From::After => &texts.after,
        };
        let text = match self.stream {
            Stream::Stdout => printed.stdout.as_str(),
            Stream::Stderr => printed.stderr.as_str(),
        };
        let numbers = match (self.none.as_ref().and_then(|none| none.find(text)), &self.how) {
            (Some(said), _) => vec![Number {
                hop: None,
                found: ParsedNumber::Inconclusive(said.as_str().chars().take(EXCERPT).collect()),
            }],
            (None, How::Pattern(pattern)) => self.by_pattern(pattern, text)?,
            (None, How::Json { value, range }) => vec![self.by_pointer(value, range.as_ref(), text)?],
        };
        // Of the client: it is the one that sends.
        let own = texts.client.stdout.as_str();
        let count = |rule: &Option<Rule>| rule.as_ref().and_then(|rule| rule.read(own));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rules give finite numbers that are not negative, and a cast saturates"
        )]
        let whole = |number: f64| number.round() as u64;
        Ok(Reading {
            numbers,
            printed: PrintedCost {
                octets: count(&self.octets).map(whole),
                packets: count(&self.packets).map(whole),
                seconds: count(&self.seconds),
            },
        })
    }

    fn by_pattern(&self, pattern: &Regex, text: &str) -> Result<Vec<Number>, ReadError> {
        let mut hops: BTreeMap<Option<u16>, ParsedNumber> = BTreeMap::new();
        for captures in pattern.captures_iter(text) {
            let hop = captures.name("hop").map(|hop| self.hop(hop.as_str())).transpose()?;
            if self.which == Which::First && hops.contains_key(&hop) {
                continue;
            }
            hops.insert(hop, self.found(&captures)?);
            if hops.len() > HOPS {
                return Err(ReadError::TooManyHops(HOPS));
            }
        }
        if hops.is_empty() {
            return Err(ReadError::NoMatch { excerpt: tail(text) });
        }
        Ok(hops.into_iter().map(|(hop, found)| Number { hop, found }).collect())
    }

    fn hop(&self, text: &str) -> Result<u16, ReadError> {
        let hop = text.parse::<u16>().ok().and_then(|hop| hop.checked_add(self.hop_offset));
        hop.ok_or_else(|| ReadError::Hop(text.to_owned()))
    }

    fn found(&self, captures: &Captures<'_>) -> Result<ParsedNumber, ReadError> {
        let factor = match captures.name("unit") {
            None => self.factor,
            Some(unit) => {
                self.factor * unit::bps(unit.as_str()).ok_or_else(|| ReadError::Unit(unit.as_str().to_owned()))?
            }
        };
        let number = |name: &str, least: f64| {
            let text = captures.name(name)?.as_str();
            let number = text.parse::<f64>().ok();
            Some(number.and_then(|number| checked(number * factor, least)).ok_or(text))
        };
        found(number("value", LEAST), number("low", 0.0), number("high", 0.0))
    }

    fn by_pointer(&self, value: &str, range: Option<&(String, String)>, text: &str) -> Result<Number, ReadError> {
        let document: Json = serde_json::from_str(text).map_err(|error| ReadError::Json(error.to_string()))?;
        let number = |pointer: &str| {
            let there = document.pointer(pointer).and_then(Json::as_f64);
            there.ok_or_else(|| ReadError::NoNumber { pointer: pointer.to_owned(), said: said(&document) })
        };
        let checked = |number: f64, least: f64| checked(number * self.factor, least).ok_or("a number that is no rate");
        let ends = range.map(|(low, high)| Ok((number(low)?, number(high)?))).transpose()?;
        let found = found(
            Some(checked(number(value)?, LEAST)),
            ends.map(|(low, _)| checked(low, 0.0)),
            ends.map(|(_, high)| checked(high, 0.0)),
        )?;
        Ok(Number { hop: None, found })
    }
}

impl Rule {
    fn check(key: &'static str, rule: file::Rule) -> Result<Self, AdapterError> {
        let how = match (rule.pattern, rule.json) {
            (Some(text), None) => {
                let pattern = pattern(key, &text)?;
                needs_group(key, &pattern, "value")?;
                How::Pattern(pattern)
            }
            (None, Some(value)) => {
                pointer(key, &value)?;
                How::Json { value, range: None }
            }
            _ => return Err(AdapterError::OneWayToRead { key }),
        };
        let scale = scale(key, rule.scale)?;
        Ok(Self { how, scale })
    }

    /// The last number that fits; what is not there is not known.
    fn read(&self, text: &str) -> Option<f64> {
        let number = match &self.how {
            How::Pattern(pattern) => pattern.captures_iter(text).last()?.name("value")?.as_str().parse::<f64>().ok()?,
            How::Json { value, .. } => serde_json::from_str::<Json>(text).ok()?.pointer(value)?.as_f64()?,
        };
        let number = number * self.scale;
        (number.is_finite() && number >= 0.0).then_some(number)
    }
}

/// A rate, or the words that stand in its place.
type ReportedValue<'a> = Option<Result<u64, &'a str>>;

/// A number is one only if all of it is: half an interval says nothing.
fn found(value: ReportedValue<'_>, low: ReportedValue<'_>, high: ReportedValue<'_>) -> Result<ParsedNumber, ReadError> {
    if let Some(words) = [value, low, high].into_iter().flatten().find_map(Result::err) {
        return Ok(ParsedNumber::Inconclusive(words.chars().take(EXCERPT).collect()));
    }
    let good = |reported: ReportedValue<'_>| reported.and_then(Result::ok);
    let interval_bps = good(low).zip(good(high));
    if let Some((low, high)) = interval_bps.filter(|(low, high)| low > high) {
        return Err(ReadError::Interval { low, high });
    }
    let value = good(value).or_else(|| interval_bps.map(|(low, high)| low.midpoint(high)));
    Ok(value.map_or_else(
        || ParsedNumber::Inconclusive(String::new()),
        |value_bps| ParsedNumber::Rate { value_bps, interval_bps },
    ))
}

/// A rate that a link may have, from the least that counts as one.
fn checked(bps: f64, least: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked in the same expression"
    )]
    (bps.is_finite() && (least..=HIGHEST).contains(&bps)).then(|| bps.round() as u64)
}

fn scale(key: &'static str, scale: f64) -> Result<f64, AdapterError> {
    if scale.is_finite() && scale > 0.0 { Ok(scale) } else { Err(AdapterError::Scale { key }) }
}

fn pointer(key: &'static str, pointer: &str) -> Result<(), AdapterError> {
    if pointer.starts_with('/') {
        return Ok(());
    }
    let pointer = pointer.to_owned();
    Err(AdapterError::Pointer { key, pointer })
}

/// What many programs put into a member of this name when there is nothing else to say.
fn said(document: &Json) -> String {
    let error = document.get("error").and_then(Json::as_str);
    error.map_or_else(String::new, |error| format!(": {}", tail(error)))
}

/// The end of a text, for an error.
pub(super) fn tail(text: &str) -> String {
    let text = text.trim_end();
    let skipped = text.chars().count().saturating_sub(EXCERPT);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests;
