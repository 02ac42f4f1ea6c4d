//! Instants on named clocks, and signed differences.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Neg, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A clock that stamps can belong to.
pub trait Clock: Copy + Ord + fmt::Debug {
    /// What reports call it.
    const NAME: &'static str;
}

/// The clock of the host that sends the probes and runs the estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {}

/// The clock of the remote host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Receiver {}

impl Clock for Sender {
    const NAME: &'static str = "sender";
}

impl Clock for Receiver {
    const NAME: &'static str = "receiver";
}

/// Nanoseconds on clock `C`, from an origin that the clock's owner chose. Stamps of one clock
/// subtract to a [`Delta`]; stamps of two clocks do not, except through [`Stamp::relative_to`],
/// whose result holds an unknown offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp<C>(i64, PhantomData<C>);

impl<C: Clock> Stamp<C> {
    /// From nanoseconds since the clock's origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos, PhantomData)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// This stamp minus one of another clock: the true difference plus the clocks' unknown offset.
    /// Only differences of such deltas mean anything.
    pub const fn relative_to<D: Clock>(self, other: Stamp<D>) -> Delta {
        Delta(self.0.saturating_sub(other.0))
    }

    /// The time from `earlier` to this stamp; zero if `earlier` is the later one.
    pub fn since(self, earlier: Self) -> Duration {
        (self - earlier).to_duration().unwrap_or_default()
    }
}

impl<C: Clock> Sub for Stamp<C> {
    type Output = Delta;

    fn sub(self, other: Self) -> Delta {
        Delta(self.0.saturating_sub(other.0))
    }
}

impl<C: Clock> Add<Duration> for Stamp<C> {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self::from_nanos(self.0.saturating_add(Delta::from(time).0))
    }
}

impl<C: Clock> Add<Delta> for Stamp<C> {
    type Output = Self;

    fn add(self, delta: Delta) -> Self {
        Self::from_nanos(self.0.saturating_add(delta.0))
    }
}

/// Signed nanoseconds: a one-way delay with an unknown clock offset may well be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delta(i64);

impl Delta {
    /// No difference.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Nanoseconds, for arithmetic that needs fractions.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// As an unsigned duration; `None` if negative.
    pub fn to_duration(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }
}

impl From<Duration> for Delta {
    fn from(time: Duration) -> Self {
        Self(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Add for Delta {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Delta {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Delta {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = crate::format_duration(Duration::from_nanos(self.0.unsigned_abs()));
        f.pad(&if self.0 < 0 { format!("-{magnitude}") } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_subtract_within_a_clock() {
        let a = Stamp::<Sender>::from_nanos(5);
        let b = a + Duration::from_nanos(7);
        assert_eq!(b - a, Delta::from_nanos(7));
        assert_eq!(a - b, Delta::from_nanos(-7));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(Stamp::<Receiver>::from_nanos(2).relative_to(a), Delta::from_nanos(-3));
    }

    #[test]
    fn extremes_saturate() {
        let end = Stamp::<Sender>::from_nanos(i64::MAX);
        assert_eq!(end + Duration::MAX, end);
        assert_eq!(-Delta::from_nanos(i64::MIN), Delta::from_nanos(i64::MAX));
        assert_eq!(Delta::from_nanos(-1_500_000).to_string(), "-1.5 ms");
    }
}
