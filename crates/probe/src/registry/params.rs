//! Parameters of a method, declared once: [`params!`] makes of one declaration the fields, their
//! defaults, the reading of what a user typed, the refusal of what is out of range, and the table
//! that manuals and `--json` show.

use std::fmt;
use std::time::Duration;

use narrows_units::{BitRate, Framing, Octets};
use serde::{Serialize, Serializer};

use super::{ParamError, RawParams};

/// What a user can set of a method. Values are written as a user types them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// What the user types.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Unit of a bare number; empty where the value says it itself.
    pub unit: &'static str,
    /// Its value unless given; where nothing is set then, in words ("path MTU").
    pub default: &'static str,
    /// A given value that sets nothing: of an optional parameter, even where a preset does; else it
    /// leaves the default.
    pub unset: Option<&'static str>,
    /// What is accepted.
    pub range: Range,
    /// Where default and range come from: an RFC, a paper with its section, or "ours" with the
    /// reason.
    pub source: &'static str,
    /// Other defaults, each with the value of the method's first parameter under which it holds.
    pub presets: &'static [(&'static str, &'static str)],
}

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// All that can be read.
    Any,
    /// From the first to the second value, both included.
    Between(&'static str, &'static str),
    /// Above the first, up to the second value.
    Above(&'static str, &'static str),
    /// From this value on.
    AtLeast(&'static str),
    /// One of these words.
    Words(&'static [&'static str]),
    /// What this describes; the parameter has a reader of its own.
    Described(&'static str),
}

impl Range {
    /// Yes or no.
    pub const SWITCH: Self = Self::Words(&["true", "false"]);
    /// How a link wraps packets.
    pub const FRAMING: Self = Self::Described("ethernet, vlan, bare, or 0 to 1000 octets per packet");
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Between(low, high) => write!(f, "{low} to {high}"),
            Self::Above(low, high) => write!(f, "above {low}, at most {high}"),
            Self::AtLeast(low) => write!(f, "at least {low}"),
            Self::Words(words) => {
                let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
                match words.as_slice() {
                    [most @ .., last] if !most.is_empty() => write!(f, "{} or {last}", most.join(", ")),
                    _ => f.write_str(&words.concat()),
                }
            }
            Self::Described(text) => f.write_str(text),
        }
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Parameter {
    /// One that accepts all that can be read.
    pub const fn new(name: &'static str, summary: &'static str, default: &'static str) -> Self {
        Self {
            name,
            summary: summary.trim_ascii(),
            unit: "",
            default,
            unset: None,
            range: Range::Any,
            source: "",
            presets: &[],
        }
    }

    /// The same where there is no choice of presets.
    #[must_use]
    pub const fn without_presets(self) -> Self {
        Self { presets: &[], ..self }
    }

    /// Its row in the table of a manual.
    fn row(&self) -> [String; 6] {
        let named = self.presets.iter().filter(|(word, _)| !word.is_empty());
        let presets: Vec<String> = named.map(|(word, value)| format!("{word}: {value}")).collect();
        let default = match presets.as_slice() {
            [] => self.default.to_owned(),
            _ => format!("{} ({})", self.default, presets.join(", ")),
        };
        let range = match self.unset {
            None | Some("") => self.range.to_string(),
            Some(unset) => format!("{}; {unset}: {}", self.range, self.default),
        };
        let summary = self.summary.trim_end_matches('.').to_owned();
        [self.name.to_owned(), self.unit.to_owned(), default, range, summary, self.source.to_owned()]
    }

    fn out_of_range(&self, value: &str) -> ParamError {
        let space = if self.unit.is_empty() { "" } else { " " };
        ParamError::OutOfRange {
            name: self.name,
            value: value.to_owned(),
            why: format!("{}{space}{}", self.range, self.unit),
        }
    }

    fn unreadable(&self, value: &str, why: String) -> ParamError {
        ParamError::Unreadable { name: self.name.to_owned(), value: value.to_owned(), why }
    }
}

/// The table of a manual.
pub(super) fn table(parameters: &[Parameter]) -> String {
    let head = ["name", "unit", "default", "range", "what it is", "source"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(parameters.iter().map(Parameter::row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect();
        format!("|{}|", cells.join("|"))
    };
    let rule = widths.map(|width| "-".repeat(width + 2)).join("|");
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.insert(1, format!("|{rule}|"));
    lines.join("\n")
}

/// Two tables as one.
#[allow(clippy::missing_panics_doc, reason = "evaluated by the compiler: a wrong length does not build")]
pub const fn joined<const N: usize>(first: &[Parameter], second: &[Parameter]) -> [Parameter; N] {
    assert!(first.len() + second.len() == N, "as many rows as both have");
    let mut all = [Parameter::new("", "", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// Something that a parameter can be: how it is read, and whether it lies between two others that
/// are written the same way.
pub trait Value: Sized {
    /// Reads what the user typed.
    fn parse(text: &str) -> Result<Self, String>;

    /// Whether it lies in a range whose limits are values of its own type.
    fn lies_in(&self, range: Range) -> bool {
        let _ = range;
        true
    }
}

macro_rules! ordered {
    ($($type:ty: $parse:expr,)+) => {
        $(impl Value for $type {
            fn parse(text: &str) -> Result<Self, String> {
                let parse: fn(&str) -> Result<$type, _> = $parse;
                parse(text).map_err(|error| error.to_string())
            }

            fn lies_in(&self, range: Range) -> bool {
                let limit = |text| Self::parse(text).expect("a test reads the limits of every declaration");
                match range {
                    Range::Between(low, high) => (limit(low)..=limit(high)).contains(self),
                    Range::Above(low, high) => *self > limit(low) && *self <= limit(high),
                    Range::AtLeast(low) => *self >= limit(low),
                    Range::Any | Range::Words(_) | Range::Described(_) => true,
                }
            }
        })+
    };
}

ordered! {
    u8: str::parse,
    u16: str::parse,
    u32: str::parse,
    u64: str::parse,
    usize: str::parse,
    f64: str::parse,
    bool: str::parse,
    String: str::parse,
    BitRate: str::parse,
    Octets: str::parse,
    Duration: narrows_units::parse_duration,
}

impl Value for Framing {
    fn parse(text: &str) -> Result<Self, String> {
        match (text, text.parse::<u16>()) {
            ("ethernet", _) => Ok(Self::ETHERNET),
            ("vlan", _) => Ok(Self::ethernet(1)),
            ("bare", _) => Ok(Self::BARE),
            (_, Ok(octets)) if octets <= 1000 => Ok(Self::fixed(octets)),
            _ => Err(format!("write {}", Range::FRAMING)),
        }
    }
}

/// What a parameter comes to: a value, or an optional one that is `None` unless given.
pub trait Declared: Sized {
    /// Reads it.
    fn read(given: &Given<'_>, parameter: &Parameter) -> Result<Self, ParamError>;
}

impl<T: Value> Declared for T {
    fn read(given: &Given<'_>, parameter: &Parameter) -> Result<Self, ParamError> {
        value(parameter, given.text(parameter).unwrap_or(parameter.default))
    }
}

impl<T: Value + PartialEq> Declared for Option<T> {
    fn read(given: &Given<'_>, parameter: &Parameter) -> Result<Self, ParamError> {
        let Some(text) = given.text(parameter) else {
            return Ok(None);
        };
        let unset = parameter.unset.and_then(|unset| T::parse(unset).ok());
        if unset.is_some() && T::parse(text).ok() == unset {
            return Ok(None);
        }
        value(parameter, text).map(Some)
    }
}

fn value<T: Value>(parameter: &Parameter, text: &str) -> Result<T, ParamError> {
    let value = T::parse(text).map_err(|why| parameter.unreadable(text, why))?;
    if value.lies_in(parameter.range) { Ok(value) } else { Err(parameter.out_of_range(text)) }
}

/// What the user typed, beside the value of the first parameter, which may change the defaults of
/// the others.
#[derive(Debug)]
pub struct Given<'a> {
    raw: &'a RawParams,
    first: &'a str,
}

impl<'a> Given<'a> {
    /// What the caller gave of these parameters.
    pub fn new(raw: &'a RawParams, parameters: &'a [Parameter]) -> Self {
        let first = parameters.first();
        let first = first.map_or("", |first| raw.typed(first.name).unwrap_or(first.default));
        Self { raw, first }
    }

    /// What was typed, or what the preset says.
    fn text<'b>(&'b self, parameter: &Parameter) -> Option<&'b str> {
        let typed = self.raw.typed(parameter.name);
        let preset = || parameter.presets.iter().find(|(word, _)| *word == self.first);
        let typed = typed.filter(|text| !text.is_empty() || parameter.unset != Some(""));
        typed.or_else(|| preset().map(|(_, value)| *value))
    }

    /// The value of its declared type.
    pub fn read<T: Declared>(&self, parameter: &Parameter) -> Result<T, ParamError> {
        T::read(self, parameter)
    }

    /// Of `values`, that of the word.
    pub fn pick<T, const N: usize>(&self, parameter: &Parameter, values: [T; N]) -> Result<T, ParamError> {
        let text = self.text(parameter).unwrap_or(parameter.default);
        let Range::Words(words) = parameter.range else {
            return Err(parameter.unreadable(text, "its words are not declared".to_owned()));
        };
        let mut pairs = words.iter().zip(values);
        let found = pairs.find(|(word, _)| **word == text).map(|(_, value)| value);
        found.ok_or_else(|| parameter.unreadable(text, format!("write {}", parameter.range)))
    }

    /// What a reader makes of it.
    pub fn with<T>(&self, parameter: &Parameter, read: impl Fn(&str) -> Result<T, String>) -> Result<T, ParamError> {
        let text = self.text(parameter).unwrap_or(parameter.default);
        read(text).map_err(|why| parameter.unreadable(text, why))
    }
}

/// Declares the parameters of a method: a struct, `PARAMETERS`, `Default`, and
/// `TryFrom<&RawParams>`.
///
/// ```text
/// params! {
///     /// Everything that can be set.
///     #[derive(Debug, Clone, PartialEq)]
///     pub struct Params {
///         /// Whose constants are used.
///         pub faithful: bool = "adaptive" is { "adaptive" => false, "faithful" => true } {
///             name: "preset", source: "ours",
///         },
///         /// Pairs to send.
///         pub pairs: u32 = "300" {
///             range: Between("10", "10000"), source: "ours", presets: &[("faithful", "100")],
///         },
///         /// IP octets of a packet.
///         pub size: Option<u16> = "path MTU" {
///             range: Between("68", "65535"), unit: "IP octets", source: "RFC 791",
///         },
///         /// Octets of a train at most.
///         pub most: u64 = "2 MB" from Octets => (Octets::count) {
///             range: AtLeast("1 B"), source: "ours",
///         },
///     }
///     names INFO; check Params::check;
/// }
/// ```
///
/// The braces at the end set fields of [`Parameter`]. Between default and braces may stand:
/// `is { word => value, }` for words; `from Type => (map)` for a value that is read as another
/// type; `with (reader)` for a `fn(&str) -> Result<T, String>`. `presets` go by the value of the
/// first parameter. Behind the struct, each optional: `names INFO;` refuses names that the method
/// does not have; `check PATH;` is a `fn(&Params) -> Result<(), ParamError>` for what holds between
/// parameters; `default "word";` is the value of the first parameter under which `Default` reads
/// the others.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $fvis:vis $field:ident: $type:ty = $default:literal
                $(is { $($word:literal => $value:expr),+ $(,)? })?
                $(from $from:ty => ($map:expr))?
                $(with ($with:expr))?
                { $($key:ident: $set:expr),* $(,)? },
            )+
        }
        $(names $info:path;)?
        $(check $check:path;)?
        $(default $usual:literal;)?
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $doc])+ $fvis $field: $type,)+
        }

        impl $name {
            /// What can be set.
            $vis const PARAMETERS: &'static [$crate::registry::Parameter] = &[
                $($crate::registry::params!(@one $field, concat!($($doc),+), $default, [$($($word),+)?], $($key: $set),*),)+
            ];
        }

        impl Default for $name {
            fn default() -> Self {
                #[allow(unused_mut, reason = "only some have a preset that is their default in code alone")]
                let mut raw = $crate::registry::RawParams::new();
                $(raw.set(Self::PARAMETERS[0].name, $usual);)?
                Self::try_from(&raw).expect("a test reads the defaults of every declaration")
            }
        }

        impl TryFrom<&$crate::registry::RawParams> for $name {
            type Error = $crate::registry::ParamError;

            fn try_from(raw: &$crate::registry::RawParams) -> Result<Self, Self::Error> {
                $(raw.check_names(&$info)?;)?
                let given = $crate::registry::Given::new(raw, Self::PARAMETERS);
                let params = Self {
                    $($field: {
                        const DECLARED: $crate::registry::Parameter =
                            $crate::registry::params!(@one $field, concat!($($doc),+), $default, [$($($word),+)?], $($key: $set),*);
                        $crate::registry::params!(
                            @read given, DECLARED, [$($($value),+)?] [$($from => ($map))?] [$($with)?]
                        )
                    },)+
                };
                $($check(&params)?;)?
                Ok(params)
            }
        }
    };
    (@one $field:ident, $doc:expr, $default:literal, [$($word:literal),*], $($key:ident: $set:expr),*) => {{
        #[allow(unused_imports, reason = "not every declaration has a range")]
        use $crate::registry::Range::{Above, Any, AtLeast, Between, Described, Words};
        #[allow(unused_mut, reason = "not every declaration sets more")]
        let mut parameter = $crate::registry::Parameter::new(stringify!($field), $doc, $default);
        $crate::registry::params!(@words parameter, $($word),*);
        $(parameter.$key = $set;)*
        parameter
    }};
    (@words $parameter:ident,) => {};
    (@words $parameter:ident, $($word:literal),+) => {
        $parameter.range = Words(&[$($word),+]);
    };
    (@read $given:ident, $declared:ident, [] [] []) => {
        $given.read(&$declared)?
    };
    (@read $given:ident, $declared:ident, [$($value:expr),+] [] []) => {
        $given.pick(&$declared, [$($value),+])?
    };
    (@read $given:ident, $declared:ident, [] [$from:ty => ($map:expr)] []) => {
        ($map)($given.read::<$from>(&$declared)?)
    };
    (@read $given:ident, $declared:ident, [] [] [$with:expr]) => {
        $given.with(&$declared, $with)?
    };
}
pub use crate::params;

#[cfg(test)]
mod tests;
