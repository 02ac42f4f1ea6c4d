//! What the caller can set.

use std::time::Duration;

use narrows_units::{BitRate, Octets};

use narrows_probe::registry::{Imposes, params};

/// How much it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// Trains of doubling length; the long probe only if asked for.
    Adaptive,
    /// `ShaperProbe`'s phases.
    Faithful,
}

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct Params {
        /// How much it sends: trains of doubling length, or the phases of `ShaperProbe`.
        pub(super) preset: Preset = "adaptive" is { "adaptive" => Preset::Adaptive, "faithful" => Preset::Faithful } {
            source: "ours",
        },
        /// Length of each packet.
        pub(super) ip_octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: AtLeast("64"), presets: &[("faithful", "1428")],
            source: "the tool: 1400 octets of payload",
        },
        /// Adaptive: longest train.
        pub(super) max_octets: u64 = "1 MB" from Octets => (Octets::count) {
            range: Between("50 kB", "64 MB"), source: "ours; depth that is found is a fifth of it and more",
        },
        /// Adaptive: octets that end the search.
        pub(super) total_octets: u64 = "4 MB" from Octets => (Octets::count) { range: AtLeast("1 B"), source: "ours" },
        /// Adaptive: time of the longest train.
        pub(super) max_train: Duration = "400 ms" { range: Between("1 ms", "60 s"), source: "ours" },
        /// Adaptive: time that ends the search.
        pub(super) max_time: Duration = "15 s" { range: Between("10 ms", "1 h"), source: "ours" },
        /// Adaptive: trains that must agree.
        pub(super) confirm: usize = "3" { range: Between("2", "20"), source: "ours; capacity practice wants 2" },
        /// Least ratio of the rates before and after the bucket is empty.
        pub(super) min_ratio: f64 = "1.1" { range: Between("1.02", "10"), source: "the tool" },
        /// Adaptive: how far trains that agree may differ.
        pub(super) agreement: f64 = "0.1" { unit: "share", range: Between("0.01", "0.5"), source: "derived" },
        /// Faithful: trains of the capacity phase.
        pub(super) trains: u32 = "10" { range: Between("1", "100"), source: "the tool" },
        /// Faithful: packets of each.
        pub(super) train_packets: usize = "50" { range: Between("10", "1000"), source: "the tool" },
        /// Faithful: time between them.
        pub(super) spacing: Duration = "500 ms" { range: Between("1 ms", "60 s"), source: "the tool" },
        /// Faithful: constant-rate flow after them.
        pub(super) settle: Duration = "5 s" { range: Between("0 s", "60 s"), source: "the tool" },
        /// Faithful: capacity below which that flow corrects it.
        pub(super) settle_below: BitRate = "80 Mbit/s" { name: "settle_below_bps", source: "the tool" },
        /// Faithful: capacity from which the long probe keeps 2.5 % below this.
        pub(super) rate_cap: BitRate = "200 Mbit/s" {
            name: "rate_cap_bps", range: AtLeast("1 bit/s"), source: "the tool, which then probes at 195 M",
        },
        /// Time for the bucket to fill before the long probe.
        pub(super) quiet: Duration = "10 s" { range: Between("0 s", "10 min"), source: "the tool" },
        /// Longest long probe; 0 s: none.
        pub(super) probe_time: Duration = "0 s" {
            range: Between("0 s", "10 min"), presets: &[("faithful", "60 s")], source: "the tool",
        },
        /// Octets that end the long probe.
        pub(super) probe_octets: Option<u64> = "none" from Option<Octets> => (|octets: Option<Octets>| octets.map(Octets::count)) {
            range: AtLeast("1 B"), source: "ours",
        },
        /// Interval of the long probe.
        pub(super) bin: Duration = "300 ms" { range: Between("10 ms", "10 s"), source: "the tool (its library 0.5 s)" },
        /// Fewest intervals before the rate falls.
        pub(super) min_before: usize = "4" { range: Between("1", "100"), source: "the tool" },
        /// Fewest intervals after the rate fell.
        pub(super) min_after: usize = "8" { range: Between("1", "100"), source: "the tool" },
    }
}

impl Params {
    /// What a run with them imposes.
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let probes = self.probe_time > Duration::ZERO;
        let trains = if self.preset == Preset::Adaptive {
            (self.total_octets, self.max_time + LAST_PROBE)
        } else {
            (1_000_000, self.spacing * self.trains * 2 + self.settle + LAST_PROBE)
        };
        if !probes {
            return Imposes {
                max_octets: usual.max_octets.max(trains.0),
                max_time: usual.max_time.max(trains.1),
                ..usual.clone()
            };
        }
        // The tool probes at 195 Mbit/s at most; a deep probe of ours at what the trains found,
        // which nobody knows yet.
        let rate = if self.preset == Preset::Faithful { self.rate_cap } else { BitRate::from_gbps(1) };
        let settle = self.settle_below.octets_in(self.settle);
        let probe = rate.octets_in(self.probe_time);
        let max_octets = trains.0 + settle + self.probe_octets.map_or(probe, |most| most.min(probe));
        let max_time = trains.1 + LONGEST_QUIET.max(self.quiet) + self.probe_time;
        Imposes { typical_octets: max_octets / 4, max_octets, typical_time: max_time / 2, max_time, fills_path: true }
    }
}

/// So many seconds, within zero and `most`; zero for what is no number.
pub(super) fn seconds(time: f64, most: f64) -> Duration {
    Duration::try_from_secs_f64(time.clamp(0.0, most)).unwrap_or_default()
}

/// What the last probe may take beyond the end of its phase.
const LAST_PROBE: Duration = Duration::from_secs(3);
/// The longest wait for a bucket to fill again (ours).
pub(super) const LONGEST_QUIET: Duration = Duration::from_secs(60);
