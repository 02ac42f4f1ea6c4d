//! Parameters.

use std::time::Duration;

use narrows_probe::registry::params;

params! {
    /// Parameters of a run.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// IP octets of full-size packets.
        pub ip_octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("200", "65535"), unset: Some("0"), source: "ours",
        },
        /// Long trains where packets come in batches.
        pub trains: u32 = "10" { range: Between("3", "200"), source: "`capacity` §11.2: at least 10" },
        /// Most packets of a train.
        pub longest: u32 = "1000" {
            unit: "packets", range: Between("64", "20000"),
            source: "ours; §11.1 asks for at least 200 and three bursts, §11.2 for 20 slots",
        },
        /// Single packets far apart.
        pub singles: u32 = "32" { range: Between("0", "1000"), source: "ours; 10 to 11 ms apart, §11.1" },
        /// Flows that share a short load at the end; 1 leaves it out.
        pub flows: u16 = "8" { range: Between("1", "64"), source: "§11.3: up to 8" },
        /// Pause behind a train, in times that it took to arrive.
        pub rest: f64 = "2" {
            range: Between("0", "100"), source: "ours: a bucket that a train has emptied is full again",
        },
        /// Longest time that a long train shall take to arrive.
        pub span: Duration = "1 s" {
            range: Between("10 ms", "60 s"), source: "ours: bounds long trains on slow paths",
        },
    }
}
