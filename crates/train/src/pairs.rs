//! Packet pairs and the filter of nettimer, active and passive: which pairs can tell anything, and
//! the rate at which those crowd.
//!
//! Shapes: a [`Pair`] holds the rate at which its second packet came behind its first, and the rate
//! at which it left behind it where that is known (*sent*, the paper's potential). A pair measures
//! only rates below the one it was sent at: if it came as fast as it left, no link closed it up
//! ([`Pair::closed`]). [`pair_mode`] takes the pairs of a run, or of a flow so far, and finds the
//! rate at which they are densest, under a kernel whose width is relative to the rate: other
//! traffic spreads the wrong rates, and the right one repeats.
//!
//! Rates are `f64` bit/s, at whatever layer the caller counts: state pairs of several sizes at the
//! wire, and convert the answer once.
//!
//! Source: `[Nettimer01]` §2.2, kernel, width, ratio, weights and window as recalled from it; the
//! parts of the paper that could be read again agree on the idea (densities of received rates; the
//! ratio of received to sent) and on the width being relative. All of them are parameters.

use narrows_units::BitRate;

/// One packet pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Octets of the second packet over the time between the arrivals, bit/s. Positive and finite.
    pub received: f64,
    /// The same over the time between the departures: infinite if they left at one time, `None` if
    /// nobody saw them leave.
    pub sent: Option<f64>,
}

/// What the filter can be set to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filter {
    /// The kernel's half-width, relative to the rate (0.10 in the paper, recalled).
    pub half_width: f64,
    /// Weight of the density (0.4, recalled).
    pub density: f64,
    /// Weight of the distance between received and sent (0.3, recalled).
    pub ratio: f64,
    /// Weight of recency: the last pair counts one, the first next to nothing (0.3, recalled).
    pub recency: f64,
    /// Pairs that count at most, the latest (128, recalled).
    pub window: usize,
    /// A pair whose received rate is at most this share of its sent rate was closed up by a link
    /// (ours: two half-widths of the kernel below; `1.0` is the paper's rule, which calls a pair
    /// that came as it left a weak one and keeps it).
    pub closed_below: f64,
}

impl Filter {
    /// The paper's weights.
    pub const NETTIMER: Self =
        Self { half_width: 0.10, density: 0.4, ratio: 0.3, recency: 0.3, window: 128, closed_below: 1.0 };

    /// Density alone, over pairs that a link surely closed up: for probes that are all sent alike
    /// within a second or two, where ratio and recency tell nothing (ours).
    pub const DENSITY: Self = Self { density: 1.0, ratio: 0.0, recency: 0.0, closed_below: 0.8, ..Self::NETTIMER };
}

/// Where the pairs of a run crowd.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairMode {
    /// The point: the received rate of highest score, bit/s.
    pub rate: f64,
    /// Lower end of the stretch around it in which the density is at least half of that at the
    /// point.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Share of the pairs that count whose rate lies in that stretch.
    pub share: f64,
    /// How many those are.
    pub inside: u64,
    /// Highest density far from the point: its rate, and its ratio to the point's density.
    pub second: Option<(f64, f64)>,
}

/// Pairs told apart, and where those that count crowd.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sifted {
    /// Pairs that count.
    pub closed: usize,
    /// Pairs that came no slower than they left: compressed, or never closed up.
    pub open: usize,
    /// Median rate of the open pairs: what the path carries at least, unless something behind the
    /// narrow link closed them up again.
    pub open_rate: Option<f64>,
    /// Where the pairs that count crowd; `None` without any.
    pub pair_mode: Option<PairMode>,
}

impl Pair {
    /// The pair of that many octets; `None` if no time passed between its arrivals.
    pub fn new(octets: u32, received_ns: i64, sent_ns: Option<i64>) -> Option<Self> {
        let rate = |ns: i64| f64::from(octets) * 8e9 / ns as f64;
        (octets > 0 && received_ns > 0).then(|| Self {
            received: rate(received_ns),
            sent: sent_ns.map(|ns| if ns > 0 { rate(ns) } else { f64::INFINITY }),
        })
    }

    /// Whether a link closed the pair up: it came at most at this share of the rate at which it
    /// left, or nobody saw it leave.
    pub fn closed(&self, closed_below: f64) -> bool {
        self.sent.is_none_or(|sent| self.received <= closed_below * sent)
    }

    /// The paper's ratio, `1 - ln x / ln s` of received rate `x` and sent rate `s` in bit/s: zero
    /// for a pair that came as it left, and for one of which nobody saw it leave.
    pub fn ratio(&self) -> f64 {
        match self.sent {
            Some(sent) if sent > 1.0 && self.received >= 1.0 => (1.0 - self.received.ln() / sent.ln()).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }
}

/// Sifts pairs, in the order in which they were sent, and finds the densest rate of those that
/// count.
///
/// The score of a pair is `density * d + ratio * p + recency * r`, each of the three over its
/// maximum; `d(x)` is the share of pairs under a triangular kernel at `x`, `p` is [`Pair::ratio`],
/// and `r` grows evenly from the oldest pair to the latest. Of equal scores the lower rate counts.
/// Pairs that are not positive and finite are left out.
pub fn pair_mode(pairs: &[Pair], filter: &Filter) -> Sifted {
    let window = &pairs[pairs.len().saturating_sub(filter.window)..];
    let sane = window.iter().filter(|pair| pair.received.is_finite() && pair.received > 0.0);
    let (closed, open): (Vec<Pair>, Vec<Pair>) = sane.partition(|pair| pair.closed(filter.closed_below));
    let open_rates: Vec<f64> = open.iter().map(|pair| pair.received).collect();
    Sifted {
        closed: closed.len(),
        open: open.len(),
        open_rate: narrows_stat::median(&open_rates),
        pair_mode: peak(&closed, filter),
    }
}

fn peak(pairs: &[Pair], filter: &Filter) -> Option<PairMode> {
    let rates: Vec<f64> = pairs.iter().map(|pair| pair.received).collect();
    let density = narrows_stat::relative_density(&rates, filter.half_width).ok()?;
    let heights: Vec<f64> = rates.iter().map(|rate| density.at(*rate)).collect();
    let ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
    let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (highest, farthest) = (most(&heights), most(&ratios));
    let count = rates.len() as f64;
    let score = |index: usize| {
        let recency = (index as f64 + 1.0) / count;
        filter.density * heights[index] / highest + filter.ratio * ratios[index] / farthest + filter.recency * recency
    };
    let best = (0..rates.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)).then(rates[*b].total_cmp(&rates[*a])))?;
    let peak = density.around(rates[best]);
    Some(PairMode {
        rate: peak.at,
        low: peak.half_maximum.low(),
        high: peak.half_maximum.high(),
        share: peak.share,
        inside: rates.iter().filter(|rate| peak.half_maximum.contains(**rate)).map(|_| 1).sum(),
        second: peak.second.map(|second| (second.at, second.ratio)),
    })
}

impl PairMode {
    /// The runner-up, if it is so strong that the answer is no longer sure (ours: at least half the
    /// density of the point).
    pub fn runner_up(&self) -> Option<BitRate> {
        let (rate, ratio) = self.second?;
        (ratio >= RUNNER_UP).then(|| BitRate::from_bps_f64(rate)).flatten()
    }
}

/// A second peak of at least this share of the first makes the answer ambiguous (ours).
const RUNNER_UP: f64 = 0.5;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn pair(received: f64, sent: f64) -> Pair {
        Pair { received, sent: Some(sent) }
    }

    #[test]
    fn rates_of_a_pair() {
        // 1500 octets in 1.2304 ms, sent 12.304 us apart.
        let pair = Pair::new(1500, 1_230_400, Some(12_304)).unwrap();
        assert!((pair.received / 9.752_925e6 - 1.0).abs() < 1e-6);
        assert!((pair.sent.unwrap() / 975.29e6 - 1.0).abs() < 1e-4);
        assert_eq!(Pair::new(1500, 0, None), None);
        assert_eq!(Pair::new(1500, 1, Some(0)).unwrap().sent, Some(f64::INFINITY));
        // 1 - ln(10^7) / ln(10^9) = 1 - 7/9.
        assert!((self::pair(1e7, 1e9).ratio() - 2.0 / 9.0).abs() < 1e-12);
        assert_eq!(Some(self::pair(1e7, 1e6).ratio()), Some(0.0));
        assert_eq!(Some(self::pair(1e7, f64::INFINITY).ratio()), Some(1.0));
    }

    #[test]
    fn a_pair_that_came_as_it_left_only_bounds() {
        let pairs = [pair(9.75e6, 1e9), pair(9.75e6, 1e9), pair(9.0e6, 9.1e6), pair(30e6, 20e6)];
        let sifted = pair_mode(&pairs, &Filter::DENSITY);
        assert_eq!((sifted.closed, sifted.open), (2, 2));
        assert_eq!(sifted.open_rate, Some(19.5e6));
        let peak = sifted.pair_mode.unwrap();
        assert_eq!(Some(peak.rate), Some(9.75e6));
        assert_eq!((peak.share, peak.second), (1.0, None));
        assert!(peak.low < 9.75e6 / 1.04 && peak.high > 9.75e6 * 1.04);
        // The paper keeps the one that came a little slower than it left.
        assert_eq!(pair_mode(&pairs, &Filter::NETTIMER).closed, 3);
    }

    #[test]
    fn the_rate_that_repeats_wins_over_those_that_scatter() {
        let spread = [2.6e6, 3.4e6, 4.5e6, 5.9e6, 7.6e6, 20e6];
        let pairs: Vec<Pair> = [9.75e6, 9.74e6, 9.76e6].into_iter().chain(spread).map(|x| pair(x, 1e9)).collect();
        for filter in [Filter::DENSITY, Filter::NETTIMER] {
            let peak = pair_mode(&pairs, &filter).pair_mode.unwrap();
            assert!((9.7e6..9.8e6).contains(&peak.rate), "{peak:?}");
            assert!((peak.share - 3.0 / 9.0).abs() < 1e-12);
            assert_eq!(peak.runner_up(), None);
        }
    }

    #[test]
    fn two_rates_alike_are_runner_ups() {
        let pairs: Vec<Pair> = [10e6, 10e6, 10e6, 5e6, 5e6].map(|x| pair(x, 1e9)).to_vec();
        let peak = pair_mode(&pairs, &Filter::DENSITY).pair_mode.unwrap();
        assert_eq!(Some(peak.rate), Some(10e6));
        assert_eq!(peak.runner_up(), Some(BitRate::from_mbps(5)));
    }

    #[test]
    fn recency_and_ratio_decide_between_equals() {
        let none = |received: f64| Pair { received, sent: None };
        let moved = [10e6, 10e6, 5e6, 5e6].map(none);
        assert_eq!(Some(pair_mode(&moved, &Filter::NETTIMER).pair_mode.unwrap().rate), Some(5e6));
        let reverse: Vec<Pair> = moved.iter().rev().copied().collect();
        assert_eq!(Some(pair_mode(&reverse, &Filter::NETTIMER).pair_mode.unwrap().rate), Some(10e6));
        let late = Filter { recency: 0.0, ..Filter::NETTIMER };
        let sent = [pair(10e6, 1e9), pair(10e6, 1e9), pair(5e6, 6e6), pair(5e6, 6e6)];
        assert_eq!(Some(pair_mode(&sent, &late).pair_mode.unwrap().rate), Some(10e6));
        // Only the window's latest count.
        let two = Filter { window: 2, ..Filter::DENSITY };
        assert_eq!(Some(pair_mode(&moved, &two).pair_mode.unwrap().rate), Some(5e6));
    }

    proptest! {
        #[test]
        fn whatever_the_pairs_the_peak_is_one_of_them(rates in vec((1.0..1e11_f64, 1.0..1e12_f64), 0..80)) {
            let pairs: Vec<Pair> = rates.iter().map(|(a, b)| pair(*a, *b)).collect();
            for filter in [Filter::DENSITY, Filter::NETTIMER] {
                let sifted = pair_mode(&pairs, &filter);
                prop_assert_eq!(sifted.closed + sifted.open, pairs.len());
                prop_assert_eq!(sifted.pair_mode.is_some(), sifted.closed > 0);
                if let Some(peak) = sifted.pair_mode {
                    prop_assert!(peak.low <= peak.rate && peak.rate <= peak.high);
                    prop_assert!(peak.share > 0.0 && peak.share <= 1.0);
                    prop_assert!(pairs.iter().any(|pair| Some(pair.received) == Some(peak.rate)));
                }
            }
        }

        #[test]
        fn hostile_rates_do_not_panic(bits in vec(any::<u64>(), 0..20)) {
            let pairs: Vec<Pair> = bits.chunks(2).map(|two| Pair {
                received: f64::from_bits(two[0]),
                sent: two.get(1).map(|bits| f64::from_bits(*bits)),
            }).collect();
            let _ = pair_mode(&pairs, &Filter::DENSITY);
            let _ = pair_mode(&pairs, &Filter::NETTIMER);
        }
    }
}
