//! The queue behind the bursts: by the line of `1 / MBS` over `1 / R`, by delay, and what it
//! counts.

use super::analyse::{Cut, together};

/// Bursts at one rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rated {
    /// Rates at which they really left, bit/s.
    pub(super) departures: Vec<f64>,
    /// Rates at which what lay ahead of their first losses arrived.
    pub(super) through: Vec<f64>,
    /// Growth of the delay up to the longest, nanoseconds, of bursts that were cut.
    pub(super) growth: Vec<f64>,
    /// What became of them.
    pub(super) cuts: Vec<Cut>,
}

/// One point of the curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CurvePoint {
    /// Rate at which the bursts left, bit/s.
    pub(super) rate_bps: f64,
    /// Packets.
    pub(super) p10: u64,
    pub(super) median: u64,
    pub(super) max: u64,
    pub(super) bursts: usize,
    /// The median is a size that survived.
    pub(super) bound: bool,
}

impl Rated {
    /// The point; `None` where nobody knows the rate.
    pub(super) fn point(&self) -> Option<CurvePoint> {
        let rate_bps = narrows_stat::median(&self.departures)?;
        let all = together(&self.cuts)?;
        Some(CurvePoint {
            rate_bps,
            p10: all.p10,
            median: all.median,
            max: all.max,
            bursts: all.bursts,
            bound: all.median_is_bound,
        })
    }

    /// Octets that a full queue holds, by delay: packets wait as long as what is ahead of them
    /// takes, and are part of it themselves.
    pub(super) fn queue_by_delay(&self, ip_octets: u16) -> Option<f64> {
        let (growth, through) = (narrows_stat::median(&self.growth)?, narrows_stat::median(&self.through)?);
        Some(growth * through / 8e9 + f64::from(ip_octets))
    }

    /// The same by the fluid model, in packets: `MBS (1 - A / R)`. Bursts of which nobody knows the
    /// rate are taken for infinitely fast.
    fn queue_by_model(&self) -> Option<f64> {
        let all = together(&self.cuts)?;
        let through = narrows_stat::median(&self.through)?;
        let share = narrows_stat::median(&self.departures).map_or(1.0, |rate| 1.0 - through / rate);
        (!all.median_is_bound && share > LEAST_SHARE).then_some(all.median as f64 * share)
    }

    /// The same, where the rate is known.
    pub(super) fn queue_by_rate(&self) -> Option<f64> {
        self.queue_by_model().filter(|_| !self.departures.is_empty())
    }
}

/// A burst whose rate exceeds what comes through by less than this share tells nothing of the queue
/// (ours).
const LEAST_SHARE: f64 = 0.15;

/// What a queue's room is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Octets,
    Packets,
}

/// Distance from the border between the two, as a share of the way to either, within which nothing
/// is claimed (ours).
const UNSURE: f64 = 0.4;

/// Whether bursts of large and small packets fill the same octets or the same packets. The border
/// is the geometric mean of both.
pub(super) fn counted(large: &Rated, large_octets: u16, small: &Rated, small_octets: u16) -> Option<Counted> {
    let packets = small.queue_by_model()? / large.queue_by_model()?.max(1.0);
    let sizes = f64::from(large_octets) / f64::from(small_octets);
    // 0: as many packets; 1: as many octets.
    let place = packets.ln() / sizes.ln();
    if !place.is_finite() || !(-0.5..=1.5).contains(&place) || (place - 0.5).abs() < UNSURE / 2.0 {
        return None;
    }
    Some(if place > 0.5 { Counted::Octets } else { Counted::Packets })
}

/// Points of the curve that say something of the line: those at which more came through than at any
/// faster rate. Behind a link that is slower than the sender all faster bursts are the same.
pub(super) fn telling(curve: &[CurvePoint], ip_octets: u16) -> Vec<(f64, f64)> {
    let mut sorted: Vec<CurvePoint> = curve.iter().copied().filter(|point| !point.bound && point.median > 0).collect();
    sorted.sort_by(|a, b| b.rate_bps.total_cmp(&a.rate_bps));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        let octets = point.median as f64 * f64::from(ip_octets);
        match points.last_mut() {
            // A slower burst that gets no more through left no faster than it really did.
            Some(last) if octets < last.1 * 1.03 => *last = (point.rate_bps, octets.max(last.1)),
            _ => points.push((point.rate_bps, octets)),
        }
    }
    points
}

/// Queue and available rate behind bursts at several rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effective {
    /// Effective queue `Q'`, octets.
    pub(super) queue_octets: f64,
    /// Available rate `A`, bit/s.
    pub(super) available_bps: f64,
}

/// Least squares of `1/m = (1/Q') (1 - A/R)` over `(R in bit/s, m in octets)`, at least three of
/// them. The error of `m` is one packet whatever `m` is, so `1/m` weighs `m^4`. `None` where the
/// line makes no sense.
pub(super) fn effective(points: &[(f64, f64)]) -> Option<Effective> {
    let inverse_rates: Vec<f64> = points.iter().map(|(rate, _)| 1e6 / rate).collect();
    let inverse_bursts: Vec<f64> = points.iter().map(|(_, burst)| 1e3 / burst).collect();
    let weights: Vec<f64> = points.iter().map(|(_, burst)| (burst / 1e3).powi(4)).collect();
    let line = narrows_stat::weighted_ols(&inverse_rates, &inverse_bursts, &weights).ok()?.line;
    let fit = Effective { queue_octets: 1e3 / line.intercept, available_bps: -line.slope / line.intercept * 1e6 };
    (line.intercept > 0.0 && fit.queue_octets.is_finite() && fit.available_bps.is_finite()).then_some(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(rate: f64, through: f64, packets: u64) -> Rated {
        Rated {
            departures: vec![rate; 3],
            through: vec![through; 3],
            growth: vec![5.0e6; 3],
            cuts: vec![Cut { through: packets, whole: false }; 3],
        }
    }

    /// 40 packets of room: 44 of either size at tenfold the rate. 60 kB of room: 44 of 1500 octets,
    /// 222 of 300.
    #[test]
    fn octets_or_packets() {
        let large = rated(1e9, 1e8, 44);
        assert_eq!(counted(&large, 1500, &rated(1e9, 1e8, 44), 300), Some(Counted::Packets));
        assert_eq!(counted(&large, 1500, &rated(1e9, 1e8, 222), 300), Some(Counted::Octets));
        // Between the two nothing is claimed, nor of bursts that hardly overrun.
        assert_eq!(counted(&large, 1500, &rated(1e9, 1e8, 98), 300), None);
        assert_eq!(counted(&large, 1500, &rated(1.1e8, 1e8, 44), 300), None);
    }

    /// 5 ms at 100 Mbit/s are 62.5 kB, and the packet itself.
    #[test]
    fn by_delay() {
        assert_eq!(rated(1e9, 1e8, 44).queue_by_delay(1500), Some(64_000.0));
    }

    /// Behind a first link of 240 Mbit/s bursts at 1 Gbit/s and 480 Mbit/s arrive alike: the
    /// slowest of the rates that are told apart from it stands for all.
    #[test]
    fn rates_that_a_link_hides() {
        let point =
            |rate_bps, median| CurvePoint { rate_bps, p10: median, median, max: median, bursts: 3, bound: false };
        let curve = [point(1e9, 100), point(480e6, 100), point(240e6, 101), point(150e6, 170), point(120e6, 250)];
        let points = telling(&curve, 1000);
        assert_eq!(points, [(240e6, 101e3), (150e6, 170e3), (120e6, 250e3)]);
    }

    /// MBS(R) = Q R / (R - A) with Q = 100 kB, A = 60 Mbit/s: at 90, 120, 240 Mbit/s 300, 200,
    /// 133.3 kB.
    #[test]
    fn queue_and_available_rate_from_three_rates() {
        let fit = effective(&[(90e6, 300e3), (120e6, 200e3), (240e6, 400e3 / 3.0)]).unwrap();
        assert!((fit.queue_octets - 100e3).abs() < 1.0, "{fit:?}");
        assert!((fit.available_bps - 60e6).abs() < 1e3, "{fit:?}");
        assert_eq!(effective(&[(90e6, 300e3), (120e6, 200e3)]), None);
    }
}
