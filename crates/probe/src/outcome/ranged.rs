//! A value, its interval and its claim, in the type of their unit.

use std::fmt;

use narrows_units::{BitRate, Delta, Octets, Unit};
use serde::{Deserialize, Serialize};

/// What a number claims. The serialised names are the machine contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// The truth lies in `low..=high`.
    Estimated,
    /// The truth is at least `value`; something other than the path ended the search.
    LowerBound,
    /// The truth is at most `value`.
    UpperBound,
    /// No claim.
    Inconclusive,
}

/// A value, its interval, and what they claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranged<T> {
    /// The value; of a bound, the bound.
    pub value: T,
    /// Lower end of the interval, `<= value`.
    pub low: T,
    /// Upper end of the interval, `>= value`. For a lower bound it is the value again.
    pub high: T,
    /// What the number claims.
    pub verdict: BoundKind,
}

impl<T: Copy + Ord> Ranged<T> {
    /// An estimate. `low` and `high` are put in order around `value`.
    pub fn new(value: T, low: T, high: T) -> Self {
        Self { value, low: low.min(value), high: high.max(value), verdict: BoundKind::Estimated }
    }

    /// An estimate that can be nothing else.
    pub fn exactly(value: T) -> Self {
        Self::new(value, value, value)
    }

    /// The same as a bound: the truth is at least this.
    #[must_use]
    pub fn at_least(self) -> Self {
        Self { high: self.value, verdict: BoundKind::LowerBound, ..self }
    }

    /// The same as a bound: the truth is at most this.
    #[must_use]
    pub fn at_most(self) -> Self {
        Self { low: self.value, verdict: BoundKind::UpperBound, ..self }
    }

    /// The same in other terms, which are in the same order.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> Ranged<U> {
        Ranged { value: of(self.value), low: of(self.low), high: of(self.high), verdict: self.verdict }
    }
}

/// What can be estimated: each unit has one type, so that a rate is never read as octets.
pub trait Quantity: Copy + Ord + fmt::Debug {
    /// The unit of the number.
    const UNIT: Unit;

    /// From a whole number of the unit; saturates.
    fn from_number(number: u64) -> Self;

    /// As a whole number of the unit.
    fn number(self) -> u64;
}

impl Quantity for BitRate {
    const UNIT: Unit = Unit::BitPerSecond;

    fn from_number(number: u64) -> Self {
        Self::from_bps(number)
    }

    fn number(self) -> u64 {
        self.bps()
    }
}

impl Quantity for Octets {
    const UNIT: Unit = Unit::Octet;

    fn from_number(number: u64) -> Self {
        Self::new(number)
    }

    fn number(self) -> u64 {
        self.count()
    }
}

/// Times that are estimated are not negative: what is, counts as none.
impl Quantity for Delta {
    const UNIT: Unit = Unit::Nanosecond;

    fn from_number(number: u64) -> Self {
        Self::from_nanos(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn number(self) -> u64 {
        u64::try_from(self.nanos()).unwrap_or(0)
    }
}

impl Quantity for u32 {
    const UNIT: Unit = Unit::Count;

    fn from_number(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }

    fn number(self) -> u64 {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use narrows_units::{Layer, Metric};

    use super::*;
    use crate::outcome::{Estimate, Limit};

    #[test]
    fn a_rate_is_no_count_of_octets() {
        let rate = BitRate::from_mbps(7);
        let mut estimate = Estimate::ip_rate(Metric::IpCapacity, rate, BitRate::from_mbps(6), rate);
        assert_eq!(estimate.rate(), Some(Ranged::new(rate, BitRate::from_mbps(6), rate)));
        assert_eq!(estimate.ranged::<Octets>(), None);
        assert_eq!(estimate.ranged::<u32>(), None);
        estimate.adjust(|rate: &mut Ranged<BitRate>| rate.low = BitRate::ZERO);
        assert_eq!((estimate.in_unit().low, estimate.in_unit().value), (0, 7_000_000));
    }

    #[test]
    fn json_is_flat_and_comes_back() {
        let octets = Ranged::new(Octets::new(1500), Octets::new(1400), Octets::new(1600));
        let estimate = Estimate::new(Metric::MaximumBurstOctets, Some(Layer::Ip), octets).at_least(Limit::Budget);
        let text = serde_json::to_string(&estimate).unwrap();
        let begin = r#"{"metric":"maximum_burst_octets","layer":"ip","value":1500,"low":1400,"high":1500,"verdict":"lower_bound","confidence":"low","#;
        assert!(text.starts_with(begin), "{text}");
        assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), estimate);
    }

    #[test]
    fn intervals_are_put_in_order_and_bounds_close_them() {
        let range = Ranged::new(5u32, 7, 3);
        assert_eq!((range.low, range.value, range.high), (5, 5, 5));
        let wide = Ranged::new(5u32, 3, 7);
        assert_eq!((wide.at_least().low, wide.at_least().high), (3, 5));
        assert_eq!((wide.at_most().low, wide.at_most().high), (5, 7));
        assert_eq!(Delta::from_nanos(-3).number(), 0);
    }
}
