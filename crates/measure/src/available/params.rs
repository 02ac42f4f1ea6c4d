//! What the caller may set.

use std::time::Duration;

use narrows_units::BitRate;

use super::INFO;
use narrows_probe::registry::{ParamError, params};
use narrows_train::train_method::within;

/// What the trains look like, and what is made of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Constant rates, and the slopes of their delays.
    Slope,
    /// Growing rates, and the curve that their delays should follow.
    Curve,
}

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Slopes of trains of constant rates, or curves of trains of growing ones.
        pub mode: Mode = "slope" is { "slope" => Mode::Slope, "curve" => Mode::Curve } {
            source: "the specification's two estimators",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "fitted" { range: AtLeast("1 bit/s"), source: "ours" },
        /// IP-layer capacity of the path's narrow link, if known; likely, not certain, to be the
        /// tight one's.
        pub narrow: Option<BitRate> = "fitted" { range: AtLeast("1 bit/s"), source: "ours" },
        /// What the path is known to carry at least, IP layer: where hosts stand still, trains that
        /// came far slower say nothing of it.
        pub least: Option<BitRate> = "unknown" { range: AtLeast("1 bit/s"), source: "ours: as `capacity` finds it" },
        /// Expected turning point; skips the coarse search.
        pub start: Option<BitRate> = "searched" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Fewest trains near the turning point behind an answer.
        pub min_trains: usize = "5" { name: "trains", range: Between("3", "1000"), source: "ours" },
        /// Trains at most, whatever they are for; no fewer than trains.
        pub max_trains: usize = "120" { name: "max-trains", range: Between("3", "10000"), source: "ours: the end" },
        /// Packets of a train at most.
        pub max_packets: usize = "4000" {
            name: "max-packets", range: Between("50", "20000"), source: "10 ms at 5 Gbit/s outweigh a 50 us interrupt timer",
        },
        /// Octets after which a run ends if its interval is fair by then.
        pub octets: Option<u64> = "0.88 MB, or 55 ms of the path's rate" {
            unit: "octets", range: Between("100000", "10000000000"),
            source: "ours: 2 % of the capacity at Poisson traffic of six tenths",
        },
        /// Octets of queue that a train may build; losses lower it.
        pub burst_octets: Option<u64> = "100 kB, or 0.5 ms of the path's rate" {
            name: "burst", unit: "octets", range: Between("20000", "1000000000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// What a token bucket on the path lets through at once, if that is known: each train
        /// empties it first.
        pub bucket: Option<u64> = "none" {
            unit: "octets", range: Between("1000", "10000000"), source: "ours: as `capacity` finds it",
        },
        /// The rate at which packets come to that bucket, if links in front of it are slower than
        /// the sender.
        pub bucket_peak: Option<BitRate> = "as fast as they leave" {
            name: "bucket-peak", unit: "bit/s", range: Between("1000", "1000000000000"), source: "ours: as `capacity` finds it",
        },
        /// Mean load that the trains impose, of the path's rate.
        pub load: Option<f64> = "what spends the octets in 2.4 s, 0.027 to 0.2" {
            unit: "share", range: Between("0.001", "1"), source: "ours",
        },
        /// Time after which a run ends if its interval is fair by then.
        pub time: Duration = "2.6 s" { range: Between("10 ms", "600 s"), source: "ours" },
    }
    names INFO;
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let enough = self.max_trains >= self.min_trains;
        within(enough, "max-trains", self.max_trains, "at least trains, at most 10000")
    }
}
