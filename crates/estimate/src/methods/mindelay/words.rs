//! Parameters that the minimum-delay methods have in common.

use std::time::Duration;

use units::Framing;

use super::Reads;
use crate::facts::{Answering, PathFacts};
use crate::outcome::Reason;
use crate::probe::{FarEnd, Fate, Train, TrainReport};
use crate::registry::{ParamError, RawParams};

/// Who answers, as the user says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A receiver that stamps, or an echo where there is none.
    Auto,
    /// A receiver that stamps.
    Receiver,
    /// Echoes, of which nothing but their return is used.
    Echo,
    /// Echoes that bring the far end's own receive stamps.
    Reflector,
    /// ICMP errors for UDP to a port on which nothing listens.
    ClosedPort,
    /// TCP's answers to SYN segments.
    Syn,
}

impl Via {
    /// Reads the parameter `far_end`.
    pub(crate) fn read(raw: &RawParams) -> Result<Self, ParamError> {
        let word: String = raw.get("far_end", "auto".to_owned())?;
        Ok(match word.as_str() {
            "auto" => Self::Auto,
            "receiver" => Self::Receiver,
            "echo" => Self::Echo,
            "reflector" => Self::Reflector,
            "closed_port" => Self::ClosedPort,
            "syn" => Self::Syn,
            _ => {
                let why = "write auto, receiver, echo, reflector, closed_port or syn";
                return Err(unreadable("far_end", &word, why));
            }
        })
    }

    /// The same for a far end that is known: `auto` asks what answers there.
    pub(crate) fn met_by(self, answering: Answering) -> Self {
        match (self, answering) {
            (Self::Auto, Answering::Echo) => Self::Echo,
            (Self::Auto, Answering::Reflector) => Self::Reflector,
            (Self::Auto, Answering::ClosedPort) => Self::ClosedPort,
            (Self::Auto, Answering::TcpSyn) => Self::Syn,
            (Self::Auto, Answering::Server) => Self::Auto,
            (named, _) => named,
        }
    }

    /// The train, as this far end is asked.
    pub(crate) fn ask(self, mut train: Train) -> Train {
        train.far_end = match self {
            Self::Auto | Self::Receiver => FarEnd::Receiver,
            Self::Echo | Self::Reflector => FarEnd::Echo,
            Self::ClosedPort => FarEnd::ClosedPort,
            Self::Syn => FarEnd::TcpSyn,
        };
        train
    }

    /// Whose stamps are read.
    pub(crate) fn reads(self) -> Reads {
        match self {
            Self::Auto | Self::Receiver => Reads::Arrivals,
            Self::Reflector => Reads::Turns,
            Self::Echo | Self::ClosedPort | Self::Syn => Reads::Returns,
        }
    }

    /// The next to try where the world does not offer this one. Of an echo, the far end's stamps are used if they come.
    pub(crate) fn instead(self) -> Option<Self> {
        (self == Self::Auto).then_some(Self::Reflector)
    }

    /// The same without the far end's stamps, once an echo came without any.
    pub(crate) fn without_stamps(self, report: &TrainReport) -> Option<Self> {
        let bare = |fate: Fate| matches!(fate, Fate::Echoed { turned: None, .. });
        let any = report.arrivals.iter().any(|row| bare(row.fate));
        (self == Self::Reflector && any).then_some(Self::Echo)
    }
}

/// Why a run that needs so many answers at least is not begun: the far host limits them, and would take longer than that.
pub(crate) fn answers_take_too_long(facts: &PathFacts, answers: u64, longest: Duration) -> Option<Reason> {
    let limit = facts.answer_limit?;
    let awaited = u32::try_from(answers).unwrap_or(u32::MAX).saturating_sub(limit.burst());
    let takes = limit.every().saturating_mul(awaited);
    (takes > longest).then(|| Reason::NotOffered {
        what: format!(
            "{answers} answers in time: it gives {} at once and then one per {}",
            limit.burst(),
            units::format_duration(limit.every())
        ),
    })
}

/// Reads the parameter `framing`: how the narrow link frames packets.
pub(crate) fn framing(raw: &RawParams) -> Result<Framing, ParamError> {
    let word: String = raw.get("framing", "ethernet".to_owned())?;
    match word.as_str() {
        "ethernet" => Ok(Framing::ETHERNET),
        "vlan" => Ok(Framing::ethernet(1)),
        "bare" => Ok(Framing::BARE),
        other => match other.parse::<u16>() {
            Ok(octets) if octets <= 1000 => Ok(Framing::fixed(octets)),
            _ => {
                let why = "write ethernet, vlan, bare, or 0 to 1000 octets per packet";
                Err(unreadable("framing", other, why))
            }
        },
    }
}

/// Reads a number that must lie in a range; `why` says which.
pub(crate) fn checked<T>(
    raw: &RawParams,
    name: &'static str,
    default: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, ParamError>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
    T::Err: std::fmt::Display,
{
    let value = raw.get(name, default)?;
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ParamError::OutOfRange {
        name,
        value: value.to_string(),
        why: format!("{} to {}", range.start(), range.end()),
    })
}

/// Reads a share, `least` to 1.
pub(crate) fn share(raw: &RawParams, name: &'static str, default: f64, least: f64) -> Result<f64, ParamError> {
    checked(raw, name, default, least..=1.0)
}

fn unreadable(name: &str, value: &str, why: &str) -> ParamError {
    ParamError::Unreadable {
        name: name.to_owned(),
        value: value.to_owned(),
        why: why.to_owned(),
    }
}
