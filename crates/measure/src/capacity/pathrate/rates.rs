//! From wire rates to estimates.

use narrows_units::{BitRate, Metric};

use super::session::MethodRun;
use narrows_probe::outcome::{Estimate, Reason};

/// An IP-layer estimate from wire rates.
pub(super) fn plain(session: &MethodRun, rate: f64, low: f64, high: f64) -> Result<Estimate, Reason> {
    let ip = |wire: f64| bit_rate(session.ip_rate(wire.max(0.0))).ok_or(Reason::NoAgreement);
    Ok(Estimate::ip_rate(Metric::IpCapacity, ip(rate)?, ip(low)?, ip(high)?))
}

pub(super) fn bit_rate(bps: f64) -> Option<BitRate> {
    BitRate::from_bps_f64(bps)
}
