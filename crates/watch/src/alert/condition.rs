//! What a rule asks: `available < 20 Mbit/s`, `change(available) < -20 %`, `route_changed`,
//! `silent > 5 min`.

use std::str::FromStr;
use std::time::Duration;

use narrows_units::{BitRate, nanos_f64, parse_duration};
use serde::{Deserialize, Serialize};

use crate::detect::{Change, Side};
use crate::signal::{Claim, Reading, Signal};

/// A value, and the side of it that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// Beyond which value, in the signal's unit.
    pub value: f64,
    /// `Down` for `<`, `Up` for `>`.
    pub side: Side,
}

/// When a rule fires.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Condition {
    /// A signal is beyond a threshold.
    Beyond(Signal, Threshold),
    /// A signal changed by more than a share of what was usual: -0.2 for `< -20 %`.
    Changed(Signal, Threshold),
    /// The route changed.
    RouteChanged,
    /// No pulse was answered for this long.
    Silent(Duration),
}

/// Text that is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no condition; write \"available < 20 Mbit/s\", \"change(available) < -20 %\", \"route_changed\" \
     or \"silent > 5 min\""
)]
pub struct ConditionError(pub(super) String);

impl Threshold {
    /// Whether the whole interval of a reading is beyond it. A bound has no end on its open side.
    pub fn is_passed_by(&self, reading: &Reading) -> bool {
        match (self.side, reading.claim) {
            (_, Claim::Inconclusive) | (Side::Down, Claim::AtLeast) | (Side::Up, Claim::AtMost) => false,
            (Side::Down, Claim::AtMost) => reading.value < self.value,
            (Side::Up, Claim::AtLeast) => reading.value > self.value,
            (Side::Down, Claim::Estimate) => reading.high < self.value,
            (Side::Up, Claim::Estimate) => reading.low > self.value,
        }
    }

    /// Reads `< 20 Mbit/s` as a value of `signal`.
    pub fn parse(signal: Signal, text: &str) -> Option<Self> {
        let (side, value) = sided(text)?;
        let value = match signal {
            Signal::AvailableForward | Signal::AvailableReverse | Signal::Capacity => {
                value.parse::<BitRate>().ok()?.as_f64()
            }
            Signal::LeastRoundTrip | Signal::Queueing => nanos_f64(parse_duration(value).ok()?),
            Signal::Loss => percent(value)? * 1e6,
        };
        Some(Self { value, side })
    }

    /// Whether a change is beyond it, as a share of what was usual.
    pub fn is_passed_by_change(&self, change: &Change) -> bool {
        let share = (change.after - change.before) / change.before.max(f64::MIN_POSITIVE);
        (share - self.value) * self.side.sign() > 0.0
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.trim()).ok_or_else(|| ConditionError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Condition> {
    if text == "route_changed" {
        return Some(Condition::RouteChanged);
    }
    let at = text.find(['<', '>'])?;
    let (name, rest) = (text[..at].trim(), &text[at..]);
    if name == "silent" {
        let (side, value) = sided(rest)?;
        let time = parse_time(value)?;
        return (side == Side::Up && !time.is_zero()).then_some(Condition::Silent(time));
    }
    if let Some(name) = name.strip_prefix("change(").and_then(|name| name.strip_suffix(')')) {
        let (side, value) = sided(rest)?;
        let share = percent(value)?;
        // `> -20 %` would be true of every change.
        let sensible = share * side.sign() > 0.0;
        return sensible.then_some(Condition::Changed(signal(name.trim())?, Threshold { value: share, side }));
    }
    let signal = signal(name)?;
    Threshold::parse(signal, rest).map(|threshold| Condition::Beyond(signal, threshold))
}

fn signal(name: &str) -> Option<Signal> {
    Signal::ALL.into_iter().find(|signal| signal.name() == name)
}

fn sided(text: &str) -> Option<(Side, &str)> {
    let text = text.trim();
    let less = text.strip_prefix('<').map(|rest| (Side::Down, rest.trim()));
    less.or_else(|| text.strip_prefix('>').map(|rest| (Side::Up, rest.trim())))
}

fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    value.is_finite().then_some(value / 100.0)
}

/// Times of minutes and hours, which the units of packets do not have.
fn parse_time(text: &str) -> Option<Duration> {
    let minutes = text.strip_suffix("min").map(|number| (number, 60.0));
    let hours = text.strip_suffix('h').map(|number| (number, 3600.0));
    match minutes.or(hours) {
        Some((number, scale)) => {
            let number: f64 = number.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * scale).ok()
        }
        None => parse_duration(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::WallTime;

    #[test]
    fn every_form_is_read() {
        let below = Threshold { value: 20e6, side: Side::Down };
        assert_eq!("available < 20 Mbit/s".parse(), Ok(Condition::Beyond(Signal::AvailableForward, below)));
        let above = Threshold { value: 30e6, side: Side::Up };
        assert_eq!("queueing > 30 ms".parse(), Ok(Condition::Beyond(Signal::Queueing, above)));
        let share = Threshold { value: -0.2, side: Side::Down };
        assert_eq!("change(available) < -20 %".parse(), Ok(Condition::Changed(Signal::AvailableForward, share)));
        assert_eq!("route_changed".parse(), Ok(Condition::RouteChanged));
        assert_eq!("silent > 5 min".parse(), Ok(Condition::Silent(Duration::from_secs(300))));
        assert!(
            matches!("loss>1 %".parse(), Ok(Condition::Beyond(Signal::Loss, Threshold { value, .. })) if (value - 1e4).abs() < 1e-6)
        );
    }

    #[test]
    fn nonsense_is_named() {
        for text in [
            "",
            "available",
            "speed < 3",
            "available < 3 ms",
            "silent < 5 min",
            "change(available) > -20 %",
            "loss > 1",
        ] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_whole_interval_must_be_beyond() {
        let below = Threshold { value: 20.0, side: Side::Down };
        let reading = |low, high| Reading::estimate(WallTime::default(), low, low, high);
        assert!(below.is_passed_by(&reading(15.0, 19.0)));
        assert!(!below.is_passed_by(&reading(15.0, 21.0)));
        assert!(!below.is_passed_by(&Reading { claim: Claim::AtLeast, ..reading(15.0, 15.0) }));
        assert!(below.is_passed_by(&Reading { claim: Claim::AtMost, high: 90.0, ..reading(15.0, 15.0) }));
    }
}
