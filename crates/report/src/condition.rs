//! Conditions on results: `available<50M,loss>1%`.
//!
//! A condition that is met is a fault, as in `--fail-if`. It is judged by everything that the truth
//! may be: an estimate is its value (or, with `.low` and `.high`, an end of its interval), a bound
//! leaves one side open, and what is inconclusive leaves both.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use narrows_probe::BoundKind;
use narrows_units::Direction;
use thiserror::Error;

use crate::readings::{QUANTITIES, Quantity, Reading};

/// Conditions of which each alone is a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions(Vec<Condition>);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    quantity: &'static Quantity,
    end: End,
    operator: Operator,
    limit: f64,
}

/// Which figure of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Value,
    Low,
    High,
}

/// How it relates to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// What became of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// It is not met.
    Clear,
    /// A bound, or no conclusion, leaves it open.
    Open,
    /// It is met: a fault.
    Crossed,
}

/// A condition that cannot be read, or that a command cannot judge. The caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// No comparison in it.
    #[error("\"{text}\" compares nothing; write for example available<50M")]
    NoComparison {
        /// What was given.
        text: String,
    },
    /// Nothing has this name.
    #[error("\"{name}\" is no metric; there are {}", list(QUANTITIES.iter()))]
    UnknownName {
        /// What was given.
        name: String,
    },
    /// The figure makes no sense for the metric.
    #[error("{name}: {reason}")]
    Figure {
        /// The metric.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The command does not measure it.
    #[error("{name} is not measured here; this command has {offered}")]
    NotOffered {
        /// The metric.
        name: &'static str,
        /// What there is.
        offered: String,
    },
}

fn list<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> String {
    quantities.map(|quantity| quantity.short).collect::<Vec<_>>().join(", ")
}

impl Conditions {
    /// Whether a command that has these quantities can judge all conditions.
    pub fn check(&self, offered: &[&'static Quantity]) -> Result<(), ConditionError> {
        let missing = self.0.iter().map(|one| one.quantity).find(|quantity| !offered.contains(quantity));
        missing.map_or(Ok(()), |quantity| {
            Err(ConditionError::NotOffered { name: quantity.short, offered: list(offered.iter().copied()) })
        })
    }

    /// What became of each, with a line for people. Where there are two directions, the worse.
    pub fn judge(&self, readings: &[Reading]) -> Vec<(Judgement, String)> {
        self.0.iter().map(|condition| condition.judge(readings)).collect()
    }
}

impl Condition {
    fn judge(&self, readings: &[Reading]) -> (Judgement, String) {
        let these = readings.iter().filter(|reading| reading.quantity == self.quantity);
        let judged = these.map(|reading| (self.of(reading), self.text(reading)));
        let worst = judged.max_by_key(|(judgement, _)| *judgement);
        worst.unwrap_or_else(|| (Judgement::Open, format!("{self}: open, it was not measured")))
    }

    fn of(&self, reading: &Reading) -> Judgement {
        let (least, most) = self.end.possible(reading);
        let limit = self.limit;
        let (all, none) = match self.operator {
            Operator::Below => (most < limit, least >= limit),
            Operator::AtMost => (most <= limit, least > limit),
            Operator::Above => (least > limit, most <= limit),
            Operator::AtLeast => (least >= limit, most < limit),
        };
        match (all, none) {
            (true, _) => Judgement::Crossed,
            (_, true) => Judgement::Clear,
            _ => Judgement::Open,
        }
    }

    fn text(&self, reading: &Reading) -> String {
        let unit = self.quantity.unit;
        let figure = match self.end {
            End::Value => reading.value,
            End::Low => reading.low,
            End::High => reading.high,
        };
        let claim = match reading.claim {
            BoundKind::LowerBound => "at least ",
            BoundKind::UpperBound => "at most ",
            BoundKind::Estimated | BoundKind::Inconclusive => "",
        };
        let figure = figure.map_or_else(|| "inconclusive".to_owned(), |figure| unit.text(figure));
        let state = match self.of(reading) {
            Judgement::Crossed => "crossed",
            Judgement::Open => "open",
            Judgement::Clear => "clear",
        };
        let way = if reading.direction == Direction::Reverse { ", reverse direction" } else { "" };
        format!("{self}: {state}, it is {claim}{figure}{way}")
    }
}

impl End {
    /// Everything that this figure of a result may be.
    fn possible(self, reading: &Reading) -> (f64, f64) {
        let exactly = |figure: Option<f64>| figure.map_or((0.0, f64::INFINITY), |figure| (figure, figure));
        match (reading.claim, self) {
            // A bound is the one end that is known.
            (BoundKind::Estimated, Self::Value)
            | (BoundKind::LowerBound, Self::Low)
            | (BoundKind::UpperBound, Self::High) => exactly(reading.value),
            (BoundKind::Estimated, Self::Low) => exactly(reading.low),
            (BoundKind::Estimated, Self::High) => exactly(reading.high),
            _ => reading.possible(),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::Value => "",
            End::Low => ".low",
            End::High => ".high",
        };
        let operator = match self.operator {
            Operator::Below => "<",
            Operator::AtMost => "<=",
            Operator::Above => ">",
            Operator::AtLeast => ">=",
        };
        write!(f, "{}{end} {operator} {}", self.quantity.short, self.quantity.unit.text(self.limit))
    }
}

impl FromStr for Conditions {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split(',').map(str::trim).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let nothing = || ConditionError::NoComparison { text: text.to_owned() };
        let at = text.find(['<', '>']).ok_or_else(nothing)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (operator, figure) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(figure), _) => (Operator::AtMost, figure),
            (_, Some(figure)) => (Operator::AtLeast, figure),
            _ if rest.starts_with('<') => (Operator::Below, &rest[1..]),
            _ => (Operator::Above, &rest[1..]),
        };
        let ends = [(".low", End::Low), (".high", End::High)];
        let (name, end) = ends
            .into_iter()
            .find_map(|(suffix, end)| Some((name.strip_suffix(suffix)?, end)))
            .unwrap_or((name, End::Value));
        let unknown = || ConditionError::UnknownName { name: name.to_owned() };
        let quantity = Quantity::named(name).ok_or_else(unknown)?;
        let limit = quantity.unit.read(figure.trim());
        let limit = limit.map_err(|reason| ConditionError::Figure { name: quantity.short, reason })?;
        Ok(Self { quantity, end, operator, limit })
    }
}
