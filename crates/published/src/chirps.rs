//! What methods share that send trains whose rate changes from packet to packet: `pathchirp`,
//! `assolo` and `rapid`.
//!
//! ```text
//!  departures  |      |     |    |   |  | | ||     one train probes many rates
//!  delays      ..................__..--''   they grow from the packet on whose rate is too high
//! ```
//!
//! - `ladder`: the rates of a train, and the packets that make them;
//! - `points`: what of a report can be believed, with the departures as they were, not as they were
//!   planned;
//! - `excursions`: where delays leave their level and do not come back;
//! - `weigh`: from excursions to one rate per chirp;
//! - `session`: first a back-to-back train, then coarse chirps over a wide range, then as many fine
//!   ones as it takes, with more packets per rate where stamps are coarse or come in batches;
//! - `session/answer`: a number with its interval, a bound, or a reason.
//!
//! What differs between the methods is their [`Flavour`].

pub(super) mod excursions;
pub(super) mod ladder;
mod params;
pub(super) mod points;
mod session;
#[cfg(test)]
pub(super) mod testing;
pub(super) mod weigh;

pub(super) use params::{Common, Settings, Shared};
pub(super) use points::Chirp;
pub(super) use session::MethodRun;

/// What one chirp says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChirpReading {
    /// Its estimate, bit/s.
    pub(super) rate: f64,
    /// Delays never took off for good: what is available may lie above the highest rate.
    pub(super) open: bool,
    /// They did from the first rate on: what is available may lie below the lowest.
    pub(super) below: bool,
}

/// How one method departs from the others.
pub(super) trait Flavour: std::fmt::Debug + Clone {
    /// Its name, and what it reads.
    const READS: (&'static str, &'static str);
    /// Chirps that the answer rests on where nobody says otherwise.
    const CHIRPS: usize;

    /// The rates of a fine chirp over this range, in the order of sending.
    fn rates(&self, low: f64, high: f64) -> Vec<f64>;

    /// The range around what is expected, as factors.
    fn range(&self) -> (f64, f64);

    /// Where a rate lies in a range, 0 at its low end, 1 at its high end: outside of the two middle
    /// quarters the range moves.
    fn place(&self, rate: f64, low: f64, high: f64) -> f64 {
        (rate / low).ln() / (high / low).ln()
    }

    /// Share of chirps outside of the range from which on what is available varies by more than it
    /// holds, and whether a wider one helps.
    fn clipped(&self) -> (f64, bool) {
        (0.5, false)
    }

    /// Ratio of neighbouring rates where they lie closest, as which rates are told apart.
    fn step(&self) -> f64;

    /// What a chirp says; `None`: nothing.
    fn find(&self, chirp: &Chirp) -> Option<ChirpReading>;

    /// One value from those of all chirps, in the order of sending.
    fn combine(&self, rates: &[f64]) -> Option<f64>;

    /// Factors by which even without noise the truth may lie below and above what [`Flavour::find`]
    /// says.
    fn blur(&self) -> (f64, f64);

    /// What bursts of other traffic may hide below and above, in standard deviations of single
    /// chirps.
    fn hidden(&self) -> (f64, f64);

    /// Packets of a batch from which on the method gives up, however many packets there are per
    /// rate.
    fn most_batched(&self) -> Option<f64>;
}
