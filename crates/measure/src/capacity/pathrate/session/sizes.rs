//! The time that packets of each size take on the narrow link, from a run's samples.

use super::MethodRun;
use super::interval::{Pooled, pool};
use crate::capacity::pathrate::framing::{Inverted, Point, invert};
use crate::capacity::pathrate::sample::{Phase, Sample};

impl Point {
    /// Of samples of one size.
    pub(in super::super) fn of(session: &MethodRun, samples: &[&Sample]) -> Option<Self> {
        let first = samples.first()?;
        let Pooled { rate, high, .. } = pool(session, samples)?;
        let wire = session.framing().wire_octets(u32::from(first.ip_octets));
        Some(Self { ip_octets: first.ip_octets, gap_ns: 8e9 * f64::from(wire) / rate, error: high / rate - 1.0 })
    }
}

/// What preliminary trains say that were not disturbed: of each size those near the size's fastest
/// half.
pub(super) fn of_preliminary(session: &MethodRun) -> Option<Inverted> {
    let mut sizes: Vec<u16> = session.of(Phase::Preliminary).map(|sample| sample.ip_octets).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let points: Vec<Point> = sizes.into_iter().filter_map(|size| undisturbed(session, size)).collect();
    invert(&points)
}

/// Trains of one size that agree on a rate; `None` unless most do.
fn undisturbed(session: &MethodRun, size: u16) -> Option<Point> {
    let of_size: Vec<&Sample> =
        session.of(Phase::Preliminary).filter(|sample| sample.ip_octets == size && sample.span_ns() > 0.0).collect();
    let gap = |sample: &Sample| sample.span_ns() / sample.gaps_ns.len() as f64;
    let middle = narrows_stat::median(&of_size.iter().map(|sample| gap(sample)).collect::<Vec<_>>())?;
    let near: Vec<&Sample> = of_size
        .iter()
        .filter(|sample| {
            (gap(sample) / middle - 1.0).abs() <= UNDISTURBED + 2.0 * session.timing_error(sample.span_ns())
        })
        .copied()
        .collect();
    (near.len() * 3 >= of_size.len() * 2).then(|| Point::of(session, &near)).flatten()
}

/// Ours: as for an agreement.
const UNDISTURBED: f64 = 0.01;
