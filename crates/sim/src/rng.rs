//! One independent random stream per source, wire, router and host.
//!
//! PCG XSL RR 128/64 (Pcg64) has 2^127 streams; each user of randomness gets its own, so that adding a hop or a source changes
//! nothing that the others draw. The generator and the ziggurat exponential are value-stable; a test pins their first values.

use rand::Rng;
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;
use scenario::Way;

/// Who draws.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// A source of cross traffic, by its index in the scenario.
    Source(usize),
    /// Loss and jitter of one hop.
    Wire(Way, usize),
    /// Overtaking on one hop.
    Hold(Way, usize),
    /// The time that a node takes to answer.
    Router(Way, usize),
    /// Departures of the host at the beginning of this way.
    Departures(Way),
    /// Stalls of the host at the beginning of this way.
    Stalls(Way),
}

/// A random stream.
#[derive(Debug, Clone)]
pub(crate) struct Stream(Pcg64);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let way = |way: Way| u64::from(way == Way::Reverse);
        let (kind, way, index) = match purpose {
            Purpose::Source(index) => (1, 0, index),
            Purpose::Wire(on, hop) => (2, way(on), hop),
            Purpose::Router(on, node) => (3, way(on), node),
            Purpose::Departures(on) => (4, way(on), 0),
            Purpose::Stalls(on) => (5, way(on), 0),
            Purpose::Hold(on, hop) => (6, way(on), hop),
        };
        // Two streams of one seed differ in their increment alone; scattering the state too keeps their first values apart.
        let low = scatter(seed ^ scatter(index as u64 ^ scatter((kind << 8) | way)));
        let state = (u128::from(scatter(low)) << 64) | u128::from(low);
        let stream = (u128::from(kind) << 80) | (u128::from(way) << 72) | index as u128;
        Self(Pcg64::new(state, stream))
    }

    /// Exponential with mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        Exp1.sample(&mut self.0)
    }

    /// Uniform over all 64-bit values.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in (0, 1], in steps of 2^-53.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with this probability (0..1; 1 is certain, 0 impossible).
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// Uniform over 0..bound; 0 if the bound is 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.bits()) * u128::from(bound)) >> 64).unwrap_or(0)
    }
}

/// The nearest whole number of nanoseconds; negative and undefined values become zero, large ones saturate.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, which is what is wanted here"
)]
pub(crate) fn round_ns(ns: f64) -> u64 {
    (ns + 0.5) as u64
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).
const fn scatter(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
