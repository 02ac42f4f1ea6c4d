//! What the methods for bursts, loads and bulk transfers share.

pub mod series;

use std::fmt;

use narrows_units::{BitRate, Framing, Layer};

use narrows_probe::contract::Refusal;
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::Reason;
use narrows_probe::registry::ParamError;

/// Registers a method for loads or transfers: `INFO`, `Params`, `Run` and `LAST_PROBE` are those of
/// the module that says so, and the closure tells how long `Params` may last without the last
/// probe.
#[doc(hidden)]
#[macro_export]
macro_rules! load_method {
    ($name:ident, $lasting:expr) => {
        narrows_probe::registry::method!(
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
pub use crate::load_method as method;

/// Refuses a value outside its range.
pub fn check(name: &'static str, ok: bool, value: impl fmt::Display, why: &str) -> Result<(), ParamError> {
    if ok {
        return Ok(());
    }
    Err(ParamError::OutOfRange { name, value: value.to_string(), why: why.to_owned() })
}

/// Why a refused probe leaves no number.
pub fn reason_of(refusal: Refusal, what: &str) -> Reason {
    match refusal {
        Refusal::ForbiddenByPeer => Reason::ForbiddenByPeer,
        Refusal::NotOffered => Reason::NotOffered { what: what.to_owned() },
        Refusal::TooLarge { max_ip_octets } => {
            Reason::NotOffered { what: format!("packets of more than {max_ip_octets} octets") }
        }
        Refusal::TooSmall { min_ip_octets } => {
            Reason::NotOffered { what: format!("packets of less than {min_ip_octets} octets") }
        }
    }
}

/// An IP-layer rate of full-size packets, counted at `layer` instead.
pub fn from_ip(rate: BitRate, layer: Layer, facts: &PathFacts) -> BitRate {
    Framing::BARE.convert(rate, Layer::Ip, layer, u32::from(facts.path_mtu), facts.ipv6).unwrap_or(rate)
}
