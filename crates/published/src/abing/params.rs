//! What can be set.

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::registry::{Imposes, params};

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// IP octets of a packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "original: about 1450, recalled",
        },
        /// Pairs of one measurement.
        pub pairs: usize = "20" { range: Between("10", "200"), source: "original, recalled" },
        /// Measurements.
        pub measurements: usize = "20" { range: Between("1", "500"), source: "ours; the original goes on for ever" },
        /// Spacing inside pairs over the packet time at the capacity.
        pub gap: f64 = "0.75" {
            unit: "share", range: Between("0", "0.95"), source: "ours; 0 is the original's back to back",
        },
        /// From pair to pair, varied by half.
        pub silence: Duration = "10 ms" { range: Between("100 us", "1 s"), source: "ours" },
        /// Weight of the newest value in the smoothed one.
        pub weight: f64 = "0.25" { unit: "share", range: Between("0.01", "1"), source: "ours" },
        /// The narrow link's IP-layer capacity, if known.
        pub capacity: Option<BitRate> = "where spacings crowd" { range: AtLeast("1 bit/s"), source: "ours" },
    }
}

impl Params {
    /// What a run imposes with these.
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let pairs = (self.pairs * self.measurements.saturating_add(2)) as u64;
        let octets = u64::from(self.ip_octets.unwrap_or(9000)).max(1500);
        let time = self.silence * u32::try_from(2 * pairs).unwrap_or(u32::MAX);
        Imposes {
            max_octets: usual.max_octets.max(4 * pairs * octets),
            max_time: usual.max_time.max(time),
            ..usual.clone()
        }
    }
}
