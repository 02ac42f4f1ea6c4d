//! Types of quantities: rates, octets, time stamps per clock, signed time differences, layers,
//! metric names.
//!
//! Shapes: a [`BitRate`] is whole bits per second. A [`Stamp`] is nanoseconds on one *named* clock;
//! stamps of different clocks do not subtract. A [`Delta`] is signed nanoseconds. [`Octets`] counts
//! octets of a packet or a queue, at a layer that the context names. Durations without sign are
//! [`std::time::Duration`].
//!
//! The few conversions that every crate needs are here too, each with its rounding and edges:
//! [`nanos`], [`rounded`], [`to_u32`]. So are instants as text: [`format_rfc_3339`], [`Date`], and
//! octets as text: [`hex`].
//!
//! Each type parses the spellings that the field uses and prints what it parses (`"97.53 Mbit/s"`,
//! `"64 kB"`, `"1.5 ms"`). Prefixes are decimal. Text that is no quantity is an error; a rate over
//! no time is `None`.

mod budget;
mod calendar;
mod convert;
pub mod hex;
mod layer;
mod metric;
mod octets;
mod quantity;
mod rate;
mod stamp;

pub use budget::{BudgetError, BudgetLimits};
pub use calendar::{Date, format_clock, format_rfc_3339, format_rfc_3339_millis, parse_rfc_3339, weeks_since_1970};
pub use convert::{nanos, nanos_f64, rounded, rounded_signed, to_u32, to_u64, to_usize};
pub use layer::{Framing, Layer};
pub use metric::{Direction, Metric, Unit};
pub use octets::Octets;
pub use quantity::{ParseQuantityError, format_duration, parse_duration, parse_duration_or_seconds};
pub use rate::BitRate;
pub use stamp::{Clock, Delta, Receiver, Sender, Stamp};
