//! Which framing the narrow link has, from the time that packets of several sizes take on it.
//!
//! A packet of `L` IP octets takes `8 W(L) / C`, with `W(L) = L + o` where layer 2 adds `o` octets
//! to each, and `53 ceil((L + e + 8) / 48)` in ATM cells. Two sizes tell `o` and `C`:
//! `o = (L1 T2 - L2 T1) / (T1 - T2)` (`capacity` §1.1, inverted). Cells take a third size, for any
//! two lie on some line: two sizes of one number of cells take one time. Every framing of [`KNOWN`]
//! is tried, its rate fitted; those that meet all times within their errors are left. One alone is
//! named, and rates of different sizes are compared as rates of that wire from then on. If Ethernet
//! is among several it stays assumed; the others say how wrong that may be.

use narrows_units::Framing;

/// The time that one packet of a size takes on the narrow link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) ip_octets: u16,
    pub(super) gap_ns: f64,
    /// Half the width of its interval, relative.
    pub(super) error: f64,
}

/// What the sizes say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inverted {
    /// The framings of [`KNOWN`] that meet all times.
    pub(super) possible: Vec<(&'static str, Framing)>,
    /// Octets that each packet takes beside its own, if every one takes alike, and the half width
    /// of their interval.
    pub(super) overhead: (f64, f64),
    /// Rate of the line through the smallest and the largest size: that of one octet more, bit/s.
    pub(super) marginal_bps: f64,
}

impl Inverted {
    /// The only framing that is left; those that add alike count as one.
    pub(super) fn named(&self) -> Option<(&'static str, Framing)> {
        let (first, rest) = self.possible.split_first()?;
        rest.iter().all(|other| other.1 == first.1).then_some(*first)
    }

    /// The framing to reckon with.
    pub(super) fn framing(&self) -> Option<Framing> {
        let ethernet = self.possible.iter().any(|(_, framing)| *framing == Framing::ETHERNET);
        if ethernet { Some(Framing::ETHERNET) } else { self.named().map(|(_, framing)| framing) }
    }

    /// By how much the rate of packets of `ip_octets`, restated for packets of `full` octets, may
    /// be off, relative.
    pub(super) fn restated(&self, ip_octets: u16, full: u16) -> f64 {
        let own = self.framing().unwrap_or(Framing::ETHERNET);
        let others = self.possible.iter().map(|(_, framing)| *framing);
        others.map(|other| apart(own, other, ip_octets, full)).fold(0.0, f64::max)
    }
}

/// By how much two framings differ in what they make of the rate of packets of `ip_octets` for
/// packets of `full` octets, relative.
pub(super) fn apart(one: Framing, other: Framing, ip_octets: u16, full: u16) -> f64 {
    let ratio = |framing: Framing| {
        f64::from(framing.wire_octets(u32::from(ip_octets))) / f64::from(framing.wire_octets(u32::from(full)))
    };
    (ratio(other) / ratio(one) - 1.0).abs()
}

/// Inverts; `None` with fewer than two sizes.
pub(super) fn invert(points: &[Point]) -> Option<Inverted> {
    let least = points.iter().min_by_key(|point| point.ip_octets)?;
    let most = points.iter().max_by_key(|point| point.ip_octets)?;
    let (a, b) = (f64::from(least.ip_octets), f64::from(most.ip_octets));
    let apart = most.gap_ns - least.gap_ns;
    if b - a < LEAST_APART || apart <= 0.0 {
        return None;
    }
    let overhead = (b * least.gap_ns - a * most.gap_ns) / apart;
    // Of both times, by the formula's derivatives: dT is the error of a time.
    let scale = (b - a) / apart / apart;
    let error =
        (scale * most.gap_ns * least.gap_ns * least.error).hypot(scale * least.gap_ns * most.gap_ns * most.error);
    Some(Inverted {
        possible: KNOWN.into_iter().filter(|(_, framing)| meets(points, *framing)).collect(),
        overhead: (overhead, error),
        marginal_bps: 8e9 * (b - a) / apart,
    })
}

/// Whether one rate explains all times, each to its error and [`SLACK`].
fn meets(points: &[Point], framing: Framing) -> bool {
    let rate = |point: &Point| 8e9 * f64::from(framing.wire_octets(u32::from(point.ip_octets))) / point.gap_ns;
    let weight = |point: &Point| (point.error + SLACK).powi(-2);
    let sum: f64 = points.iter().map(weight).sum();
    let mean = points.iter().map(|point| weight(point) * rate(point)).sum::<f64>() / sum;
    points.iter().all(|point| (rate(point) / mean - 1.0).abs() <= WITHIN * (point.error + SLACK))
}

/// Names, and what they add: `capacity` §1.1 and §1.2; of ATM the encapsulations of RFC 2364 and
/// RFC 2684.
pub(super) const KNOWN: [(&str, Framing); 14] = [
    ("ethernet", Framing::ETHERNET),
    ("vlan", Framing::ethernet(1)),
    ("pppoe or two vlan tags", Framing::fixed(46)),
    ("pppoe and vlan", Framing::fixed(50)),
    ("bare", Framing::BARE),
    ("ethernet header alone", Framing::fixed(14)),
    ("ethernet frame without gap", Framing::fixed(18)),
    ("atm, vc-mux", Framing::atm(0)),
    ("atm, pppoa vc-mux", Framing::atm(2)),
    ("atm, pppoa llc", Framing::atm(6)),
    ("atm, llc", Framing::atm(8)),
    ("atm, pppoe vc-mux", Framing::atm(24)),
    ("atm, pppoe llc", Framing::atm(32)),
    ("atm, pppoe llc with fcs", Framing::atm(36)),
];
/// Ours: sizes nearer than this tell nothing.
const LEAST_APART: f64 = 100.0;
/// Ours: what a time may be off beyond its own error; the nearest framings, tagged and not, differ
/// by 0.4 % at 600 octets.
const SLACK: f64 = 0.0002;
/// Ours: intervals hold nine in ten; this many of their half widths, 99.9 in 100.
const WITHIN: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of packets on a link of 10 Mbit/s, by the definition of the framing, each known to
    /// `error`.
    fn points(framing: Framing, sizes: &[u16], error: f64) -> Vec<Point> {
        let gap = |size: u16| 800.0 * f64::from(framing.wire_octets(u32::from(size)));
        sizes.iter().map(|size| Point { ip_octets: *size, gap_ns: gap(*size), error }).collect()
    }

    #[test]
    fn two_sizes_tell_what_is_added() {
        // 1230.4 µs and 510.4 µs: (1500 · 510.4 - 600 · 1230.4) / 720 = 38.
        for (framing, octets, name) in [
            (Framing::ETHERNET, 38.0, "ethernet"),
            (Framing::ethernet(1), 42.0, "vlan"),
            (Framing::fixed(46), 46.0, "pppoe or two vlan tags"),
            (Framing::BARE, 0.0, "bare"),
            (Framing::fixed(14), 14.0, "ethernet header alone"),
        ] {
            let found = invert(&points(framing, &[1500, 600], 0.0002)).unwrap();
            assert!((found.overhead.0 - octets).abs() < 1e-6, "{found:?}");
            assert!((found.marginal_bps - 10e6).abs() < 1.0, "{found:?}");
            let linear: Vec<&str> = found.possible.iter().filter(|(_, f)| !f.is_cells()).map(|one| one.0).collect();
            assert_eq!(linear, [name], "{found:?}");
        }
    }

    #[test]
    fn cells_take_a_third_size() {
        for (name, framing) in KNOWN.into_iter().filter(|(_, framing)| framing.is_cells()) {
            let found = invert(&points(framing, &[1500, 600, 576, 250], 0.0002)).unwrap();
            assert!(found.possible.iter().all(|(_, other)| other.is_cells()), "{name}: {found:?}");
            assert!(found.possible.contains(&(name, framing)), "{name}: {found:?}");
        }
        let found = invert(&points(Framing::ETHERNET, &[1500, 600, 576], 0.0002)).unwrap();
        assert_eq!(found.named(), Some(("ethernet", Framing::ETHERNET)));
    }

    #[test]
    fn coarse_times_leave_several_and_say_how_remote_apart() {
        let found = invert(&points(Framing::ETHERNET, &[1500, 600], 0.01)).unwrap();
        assert!(found.possible.len() > 4, "{found:?}");
        assert_eq!((found.named(), found.framing()), (None, Some(Framing::ETHERNET)));
        // Of 50 octets instead of 38: 650 / 1550 against 638 / 1538 is 1.1 %.
        let off = found.restated(600, 1500);
        assert!((0.01..0.1).contains(&off), "{off}");
        assert!((apart(Framing::ETHERNET, Framing::fixed(50), 600, 1500) - 0.0109).abs() < 1e-3);
    }

    #[test]
    fn what_no_framing_explains_is_not_named() {
        let mut points = points(Framing::ETHERNET, &[1500, 600, 1000], 0.0002);
        points[2].gap_ns *= 1.05;
        let found = invert(&points).unwrap();
        assert!(found.possible.is_empty() && found.framing().is_none(), "{found:?}");
        assert_eq!(invert(&points[..1]), None);
    }
}
