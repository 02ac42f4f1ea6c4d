//! Axes with ticks at round values.

use crate::picture::quantity::{Quantity, fixed, significant};

/// Values beyond this, far above any quantity drawn here, are left out, so that differences never
/// overflow.
const LARGEST: f64 = 1e30;

/// How many ticks are aimed at.
const TICKS: f64 = 5.0;

/// Positive values that span more than this factor get a logarithmic axis where a picture allows
/// it.
const WIDE: f64 = 100.0;

/// Whether a value can be drawn at all.
pub(crate) fn drawable(value: f64) -> bool {
    value.is_finite() && value.abs() <= LARGEST
}

/// The extent of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    low: f64,
    high: f64,
    smallest_positive: f64,
}

impl Extent {
    const EMPTY: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY, smallest_positive: f64::INFINITY };

    /// Of these values; what cannot be drawn does not count.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        values.into_iter().fold(Self::EMPTY, Self::with)
    }

    pub(crate) fn with(mut self, value: f64) -> Self {
        if drawable(value) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
            if value > 0.0 {
                self.smallest_positive = self.smallest_positive.min(value);
            }
        }
        self
    }

    /// Narrowed to `low..=high`, for axes that a few outliers would otherwise squash.
    pub(crate) fn within(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high), ..self }
    }

    /// Its two ends, if it has any.
    pub(crate) fn ends(self) -> [Option<f64>; 2] {
        if self.is_empty() { [None, None] } else { [Some(self.low), Some(self.high)] }
    }

    fn is_empty(self) -> bool {
        self.low > self.high
    }
}

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// An axis: where a value lies on it, its ticks and its title with the unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) ticks: Vec<Tick>,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// From the round value below the extent to the round value above.
    pub(crate) fn linear(title: &str, quantity: Quantity, extent: Extent) -> Self {
        let least_step = if quantity == Quantity::Count { 1.0 } else { 0.0 };
        Self::stepped(title, quantity, extent, least_step)
    }

    /// The same for numbers that need not be whole and have no unit.
    pub(crate) fn plain(title: &str, extent: Extent) -> Self {
        Self::stepped(title, Quantity::Count, extent, 0.0)
    }

    fn stepped(title: &str, quantity: Quantity, extent: Extent, least_step: f64) -> Self {
        let (low, high) = spread(extent);
        let (divisor, unit) = quantity.scale(low.abs().max(high.abs()));
        let (low, high) = (low / divisor, high / divisor);
        let (mut step, mut decimals) = round_step((high - low) / TICKS);
        if step < least_step {
            (step, decimals) = (least_step, 0);
        }
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let mut ticks = Vec::new();
        let mut k = first;
        while k <= last && ticks.len() < 20 {
            ticks.push(Tick { at: k * step * divisor, label: fixed(k * step, decimals, false) });
            k += 1.0;
        }
        Self {
            title: titled(title, unit),
            ticks,
            low: first * step * divisor,
            high: last * step * divisor,
            logarithmic: false,
        }
    }

    /// Logarithmic where the values are positive and span more than two decades, linear elsewhere.
    pub(crate) fn fitting(title: &str, quantity: Quantity, extent: Extent) -> Self {
        if extent.low > 0.0 && extent.high / extent.low > WIDE {
            Self::logarithmic(title, quantity, extent)
        } else {
            Self::linear(title, quantity, extent.with(0.0))
        }
    }

    /// Logarithmic over the positive values; linear if there are none or if they hardly differ.
    pub(crate) fn logarithmic(title: &str, quantity: Quantity, extent: Extent) -> Self {
        let (low, high) = (extent.smallest_positive, extent.high);
        // Below this factor two ticks of 1, 2, 5 need not fall inside, and a line is as good.
        if low > high || high / low < 3.0 {
            return Self::linear(title, quantity, extent);
        }
        let values = log_ticks(low, high);
        let (low, high) = match (values.first(), values.last()) {
            (Some(&first), Some(&last)) => (first.min(low), last.max(high)),
            _ => (low, high),
        };
        let ticks = values.iter().map(|&at| Tick { at, label: brief(quantity, at) });
        Self { title: title.to_owned(), ticks: ticks.collect(), low, high, logarithmic: true }
    }

    /// Where the value lies, 0 at the low end and 1 at the high end; beyond the ends outside of
    /// that. `None` if it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !drawable(value) || (self.logarithmic && value <= 0.0) {
            return None;
        }
        let place = if self.logarithmic {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.is_finite().then_some(place)
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Values at equal distances on the axis, for curves.
    pub(crate) fn samples(&self, count: u32) -> Vec<f64> {
        let at = |k: u32| {
            let share = f64::from(k) / f64::from(count.max(1));
            if self.logarithmic {
                (self.low.ln() + share * (self.high.ln() - self.low.ln())).exp()
            } else {
                self.low + share * (self.high - self.low)
            }
        };
        (0..=count).map(at).collect()
    }
}

fn titled(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") }
}

fn brief(quantity: Quantity, value: f64) -> String {
    if quantity == Quantity::Count {
        return match value {
            v if v >= 1e9 => format!("{} G", significant(v / 1e9, 3)),
            v if v >= 1e6 => format!("{} M", significant(v / 1e6, 3)),
            v if v >= 1e3 => format!("{} k", significant(v / 1e3, 3)),
            v => significant(v, 3),
        };
    }
    quantity.print(value).replace(" octets", " B")
}

/// The extent, widened if it is empty or a single value (to the precision of a double).
fn spread(extent: Extent) -> (f64, f64) {
    if extent.is_empty() {
        return (0.0, 1.0);
    }
    let (low, high) = (extent.low, extent.high);
    let size = low.abs().max(high.abs());
    if high - low > size * 1e-9 && high - low > 1e-12 {
        return (low, high);
    }
    if size < 1e-12 {
        return (0.0, 1.0);
    }
    let around = size * 0.05;
    (low - around, high + around)
}

/// The step of 1, 2 or 5 times a power of ten that is not below `raw`, and the decimals it needs.
fn round_step(raw: f64) -> (f64, usize) {
    #[expect(clippy::cast_possible_truncation, reason = "a decimal exponent is below 400")]
    let exponent = raw.log10().floor() as i32;
    let power = 10f64.powi(exponent);
    let ratio = raw / power;
    // A hair of tolerance: 5.000000001 is five.
    let (factor, up) = match ratio {
        r if r <= 1.0 + 1e-9 => (1.0, 0),
        r if r <= 2.0 + 1e-9 => (2.0, 0),
        r if r <= 5.0 + 1e-9 => (5.0, 0),
        _ => (10.0, 1),
    };
    let decimals = usize::try_from(-(exponent + up)).unwrap_or(0).min(12);
    (factor * power, decimals)
}

/// 1, 2, 5 per decade where that is few, whole decades or every n-th where it is many; the first at
/// or below `low`, the last at or above `high`.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    #[expect(clippy::cast_possible_truncation, reason = "decimal exponents are below 400")]
    let (first, last) = ((low.log10() + 1e-9).floor() as i32, (high.log10() - 1e-9).ceil() as i32);
    let decades = (last - first).max(1);
    let factors: &[f64] = if decades <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = usize::try_from((decades + 7) / 8).unwrap_or(1).max(1);
    let mut all: Vec<f64> =
        (first..=last).step_by(stride).flat_map(|e| factors.iter().map(move |factor| factor * 10f64.powi(e))).collect();
    if let Some(&end) = all.last()
        && end < high
    {
        all.push(10f64.powi(last));
    }
    let start = all.iter().rposition(|&v| v <= low * (1.0 + 1e-9)).unwrap_or(0);
    let end = all.iter().position(|&v| v >= high * (1.0 - 1e-9)).unwrap_or(all.len().saturating_sub(1));
    all.get(start..=end).map(<[f64]>::to_vec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    /// By hand: 0 to 97.5 in five steps is 19.5 each, so 20: 0, 20, …, 100.
    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::linear("truth", Quantity::Rate, Extent::of([0.0, 97.5e6]));
        assert_eq!(labels(&axis), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(axis.title, "truth (Mbit/s)");
        assert_eq!((axis.low(), axis.high()), (0.0, 100e6));
        // −0.169 to 0.009: 0.178 / 5 = 3.56 %, so 5 %: −20, −15, …, 5.
        let axis = Axis::linear("error", Quantity::Ratio, Extent::of([-0.169, 0.009]));
        assert_eq!(labels(&axis), ["−20", "−15", "−10", "−5", "0", "5"]);
        // 0 to 2: 0.4 each, so 0.5.
        let axis = Axis::linear("t", Quantity::Time, Extent::of([0.0, 2e9]));
        assert_eq!(labels(&axis), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        // Whole things have whole ticks.
        let axis = Axis::linear("packets", Quantity::Count, Extent::of([0.0, 2.0]));
        assert_eq!(labels(&axis), ["0", "1", "2"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_1_2_5() {
        let axis = Axis::fitting("sent", Quantity::Octets, Extent::of([1.2e4, 4.3e7]));
        assert_eq!(labels(&axis), ["10 kB", "100 kB", "1 MB", "10 MB", "100 MB"]);
        let axis = Axis::logarithmic("sent", Quantity::Octets, Extent::of([300.0, 4_500.0]));
        assert_eq!(labels(&axis), ["200 B", "500 B", "1 kB", "2 kB", "5 kB"]);
        let axis = Axis::logarithmic("n", Quantity::Count, Extent::of([1.0, 1e20]));
        assert!(axis.ticks.len() <= 9 && axis.high() >= 1e20 && axis.low() <= 1.0, "{axis:?}");
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(-1.0), None);
    }

    #[test]
    fn empty_single_and_extreme_extents_have_axes() {
        let cases: [&[f64]; 8] = [
            &[],
            &[0.0],
            &[5.0],
            &[-3.0, -3.0],
            &[1e18, 1e18 + 200.0],
            &[-1e30, 1e30],
            &[1e-30, 1e30],
            &[f64::NAN, f64::INFINITY, f64::MAX],
        ];
        for values in cases {
            for axis in [
                Axis::linear("x", Quantity::Rate, Extent::of(values.iter().copied())),
                Axis::fitting("x", Quantity::Time, Extent::of(values.iter().copied())),
                Axis::logarithmic("x", Quantity::Ratio, Extent::of(values.iter().copied())),
                Axis::linear("x", Quantity::Count, Extent::of(values.iter().copied())),
            ] {
                assert!(axis.low() < axis.high(), "{values:?} {axis:?}");
                assert!((2..=21).contains(&axis.ticks.len()), "{values:?} {axis:?}");
                for &value in values.iter().filter(|&&value| drawable(value) && value > 0.0) {
                    let place = axis.place(value).unwrap();
                    assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{values:?} {axis:?} {place}");
                }
            }
        }
    }

    #[test]
    fn narrowing_keeps_the_order() {
        assert_eq!(Extent::of([-5.0, 9.0]).within(-1.0, 2.0), Extent { low: -1.0, high: 2.0, smallest_positive: 9.0 });
        assert!(Extent::of([]).within(-1.0, 1.0).is_empty());
    }
}
