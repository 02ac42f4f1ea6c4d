//! What can be set.

use std::time::Duration;

use units::BitRate;

use crate::methods::campaign::within;
use crate::registry::{Imposes, ParamError, RawParams};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// IP octets of a packet; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// Pairs of one measurement.
    pub pairs: usize,
    /// Measurements.
    pub measurements: usize,
    /// Spacing inside pairs over the packet time at the capacity.
    pub gap: f64,
    /// From pair to pair.
    pub silence: Duration,
    /// Weight of the newest value in the smoothed one.
    pub weight: f64,
    /// The narrow link's, if known.
    pub capacity: Option<BitRate>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            ip_octets: None,
            pairs: 20,
            measurements: 20,
            gap: 0.75,
            silence: Duration::from_millis(10),
            weight: 0.25,
            capacity: None,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let params = Self {
            ip_octets: given("size").then(|| raw.get("size", 1500)).transpose()?,
            pairs: raw.get("pairs", base.pairs)?,
            measurements: raw.get("measurements", base.measurements)?,
            gap: raw.get("gap", base.gap)?,
            silence: raw.get_duration("silence", base.silence)?,
            weight: raw.get("weight", base.weight)?,
            capacity: given("capacity")
                .then(|| raw.get("capacity", BitRate::ZERO))
                .transpose()?,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let octets = self.ip_octets.unwrap_or(1500);
        within(octets >= 68, "size", octets, "at least 68, the smallest MTU (RFC 791)")?;
        within((10..=200).contains(&self.pairs), "pairs", self.pairs, "10 to 200")?;
        let many = (1..=500).contains(&self.measurements);
        within(many, "measurements", self.measurements, "1 to 500")?;
        within((0.0..=0.95).contains(&self.gap), "gap", self.gap, "0 to 0.95")?;
        let silence = (Duration::from_micros(100)..=Duration::from_secs(1)).contains(&self.silence);
        within(silence, "silence", self.silence.as_secs_f64(), "100 us to 1 s")?;
        within((0.01..=1.0).contains(&self.weight), "weight", self.weight, "0.01 to 1")?;
        let capacity = self.capacity.map_or(1, BitRate::bps);
        within(capacity > 0, "capacity", capacity, "above 0")
    }

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

/// Name and meaning of each.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("size", "IP octets of a packet (default: path MTU)"),
    ("pairs", "pairs of a measurement, 10..200; 20"),
    ("measurements", "measurements, 1..500; 20"),
    (
        "gap",
        "spacing inside pairs over the packet time at the capacity, 0..0.95; 0.75, back to back 0",
    ),
    ("silence", "from pair to pair, varied by half, 100 us..1 s; 10 ms"),
    (
        "weight",
        "of the newest measurement in the smoothed value, 0.01..1; 0.25",
    ),
    (
        "capacity",
        "IP-layer capacity of the narrow link, if known (default: where spacings crowd)",
    ),
];
