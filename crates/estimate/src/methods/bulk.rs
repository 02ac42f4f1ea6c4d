//! What the methods for bursts, loads and bulk transfers share.

pub(crate) mod series;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use units::{BitRate, Framing, Layer};

use crate::contract::Refusal;
use crate::facts::PathFacts;
use crate::outcome::Reason;
use crate::registry::{ParamError, RawParams};

/// Registers a method for loads or transfers: `INFO`, `Params`, `Run` and `LAST_PROBE` are those of the module that says so, and the closure
/// tells how long `Params` may last without the last probe.
macro_rules! method {
    ($name:ident, $lasting:expr) => {
        crate::registry::method!(
            $name,
            run: |raw| {
                raw.check_names(&INFO)?;
                Ok(Run::new(Params::try_from(raw)?))
            },
            imposes: |raw, usual| {
                let lasting: fn(&Params) -> std::time::Duration = $lasting;
                match Params::try_from(raw) {
                    Ok(params) => usual.lasting(lasting(&params) + LAST_PROBE),
                    Err(_) => usual,
                }
            }
        );
    };
}
pub(super) use method;

/// The value of `name`, `None` if it was not given; `unused` is what [`RawParams::get`] wants as a default.
pub(super) fn optional<T>(params: &RawParams, name: &'static str, unused: T) -> Result<Option<T>, ParamError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    if params.iter().any(|(known, _)| known == name) {
        params.get(name, unused).map(Some)
    } else {
        Ok(None)
    }
}

/// A rate above zero, `None` if it was not given.
pub(super) fn optional_rate(params: &RawParams, name: &'static str) -> Result<Option<BitRate>, ParamError> {
    let rate = optional(params, name, BitRate::ZERO)?;
    check(name, rate != Some(BitRate::ZERO), "0", "a rate above zero")?;
    Ok(rate)
}

/// Refuses a value outside its range.
pub(super) fn check(name: &'static str, ok: bool, value: impl fmt::Display, why: &str) -> Result<(), ParamError> {
    if ok {
        return Ok(());
    }
    Err(ParamError::OutOfRange {
        name,
        value: value.to_string(),
        why: why.to_owned(),
    })
}

/// A duration within `low..=high`.
pub(super) fn duration_within(
    params: &RawParams,
    name: &'static str,
    default: Duration,
    low: Duration,
    high: Duration,
) -> Result<Duration, ParamError> {
    let value = params.get_duration(name, default)?;
    let why = format!("{} to {}", units::format_duration(low), units::format_duration(high));
    check(name, (low..=high).contains(&value), units::format_duration(value), &why)?;
    Ok(value)
}

/// A duration within `low..=high`, `None` if it was not given.
pub(super) fn optional_duration(
    params: &RawParams,
    name: &'static str,
    low: Duration,
    high: Duration,
) -> Result<Option<Duration>, ParamError> {
    if params.iter().any(|(known, _)| known == name) {
        duration_within(params, name, low, low, high).map(Some)
    } else {
        Ok(None)
    }
}

/// Why a refused probe leaves no number.
pub(super) fn reason_of(refusal: Refusal, what: &str) -> Reason {
    match refusal {
        Refusal::ForbiddenByPeer => Reason::ForbiddenByPeer,
        Refusal::NotOffered => Reason::NotOffered { what: what.to_owned() },
        Refusal::TooLarge { max_ip_octets } => Reason::NotOffered {
            what: format!("packets of more than {max_ip_octets} octets"),
        },
        Refusal::TooSmall { min_ip_octets } => Reason::NotOffered {
            what: format!("packets of less than {min_ip_octets} octets"),
        },
    }
}

/// An IP-layer rate of full-size packets, counted at `layer` instead.
pub(super) fn from_ip(rate: BitRate, layer: Layer, facts: &PathFacts) -> BitRate {
    Framing::BARE
        .convert(rate, Layer::Ip, layer, u32::from(facts.path_mtu), facts.ipv6)
        .unwrap_or(rate)
}

/// A non-negative number as a whole count; saturates, and is zero for what is no number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(super) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A count that fits the platform's size; saturates.
pub(super) fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
