//! What can be set, for IGI and PTR alike.

use std::time::Duration;

use units::{BitRate, Framing};

use crate::methods::campaign::{read_framing, unreadable, within};
use crate::methods::gaps::Binning;
use crate::registry::{Imposes, ParamError, RawParams};

/// Whose constants are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Relative thresholds, full-size packets, a search that closes in on the turning point, and checks of the hosts (ours).
    Adaptive,
    /// The constants of igi-ptr 2.x, absolute ones among them, and none of the checks.
    Faithful,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Whose constants are used.
    pub preset: Preset,
    /// IP octets of a probe packet; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// IP-layer capacity of the tight link for full-size packets, if known.
    pub capacity: Option<BitRate>,
    /// How the narrow link wraps packets (IGI): its probes are smaller than the packets for which the answer is stated.
    pub framing: Framing,
    /// Packets of a train.
    pub packets: usize,
    /// Trains at each gap.
    pub trains: usize,
    /// Stretch of the mean gap up to which a train came as it left.
    pub tolerance: f64,
    /// Step of the gap, as a share of the gap of a back-to-back train.
    pub step: f64,
    /// Mean load, as a share of the path's rate.
    pub load: f64,
}

/// What IGI and PTR take, in this order.
pub(in crate::methods) const PARAMETERS: &[(&str, &str)] = &[
    ("preset", "adaptive, or faithful to igi-ptr 2.x; adaptive"),
    (
        "size",
        "IP octets of a probe packet, 68..65535; path MTU (faithful: 528)",
    ),
    ("train", "packets of a train, 8..1000; 120 (faithful: 60)"),
    ("trains", "trains at each gap, 2..20; 3"),
    (
        "tolerance",
        "stretch of the mean gap that passes for none, 0.001..0.2; 0.01 (faithful: 5 us per gap)",
    ),
    (
        "step",
        "step of the gap as a share of the back-to-back train's, 0.05..1; 0.125 (faithful: 0.25)",
    ),
    ("load", "mean load as a share of the path's rate, 0.001..1; 0.2"),
];

impl Params {
    fn of(preset: Preset) -> Self {
        let faithful = preset == Preset::Faithful;
        Self {
            preset,
            ip_octets: faithful.then_some(528),
            capacity: None,
            framing: Framing::ETHERNET,
            packets: if faithful { 60 } else { 120 },
            trains: 3,
            tolerance: 0.01,
            step: if faithful { 0.25 } else { 0.125 },
            load: 0.2,
        }
    }

    /// As IGI takes them: packets smaller than the path allows sample others' traffic in finer grains (`[IGI03]`, recalled: about 700).
    pub(super) fn of_igi(raw: &RawParams) -> Result<Self, ParamError> {
        let params = Self::try_from(raw)?;
        Ok(Self {
            ip_octets: params.ip_octets.or(Some(IGI_OCTETS)),
            ..params
        })
    }

    pub(in crate::methods) fn faithful(&self) -> bool {
        self.preset == Preset::Faithful
    }

    /// How gaps are sorted for capacity.
    pub(super) fn binning(&self) -> Binning {
        if self.faithful() {
            Binning::Absolute(25_000.0)
        } else {
            Binning::Relative(0.02)
        }
    }

    /// What the longest run imposes: as many trains as a search may take, and a round trip of up to 200 ms for each (ours).
    pub(in crate::methods) fn imposes(&self, usual: &Imposes) -> Imposes {
        let each = self.packets as u64 * u64::from(self.ip_octets.unwrap_or(1500));
        let trains = (MOST_LEVELS * self.trains) as u64;
        let slow = Duration::from_millis(200).mul_f64((0.2 / self.load).max(1.0));
        Imposes {
            max_octets: usual.max_octets.max(each * trains),
            max_time: usual
                .max_time
                .max(slow * u32::try_from(trains).unwrap_or(u32::MAX))
                .min(Duration::from_secs(600)),
            ..usual.clone()
        }
    }
}

/// IP octets of IGI's probe packets.
const IGI_OCTETS: u16 = 700;
/// Gaps tried at most (ours).
pub(super) const MOST_LEVELS: usize = 64;

impl Default for Params {
    fn default() -> Self {
        Self::of(Preset::Adaptive)
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let word: String = raw.get("preset", "adaptive".to_owned())?;
        let base = Self::of(match word.as_str() {
            "adaptive" => Preset::Adaptive,
            "faithful" => Preset::Faithful,
            _ => return Err(unreadable("preset", &word, "write adaptive or faithful")),
        });
        let size: u16 = raw.get("size", 0)?;
        let capacity = raw.get("capacity", BitRate::ZERO)?;
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let params = Self {
            ip_octets: if given("size") { Some(size) } else { base.ip_octets },
            capacity: given("capacity").then_some(capacity),
            framing: read_framing(raw, base.framing)?,
            packets: raw.get("train", base.packets)?,
            trains: raw.get("trains", base.trains)?,
            tolerance: raw.get("tolerance", base.tolerance)?,
            step: raw.get("step", base.step)?,
            load: raw.get("load", base.load)?,
            ..base
        };
        within(!given("size") || size >= 68, "size", size, "68 to 65535")?;
        within(params.capacity != Some(BitRate::ZERO), "capacity", 0, "above 0")?;
        within(
            (8..=1000).contains(&params.packets),
            "train",
            params.packets,
            "8 to 1000",
        )?;
        within((2..=20).contains(&params.trains), "trains", params.trains, "2 to 20")?;
        within(
            (0.001..=0.2).contains(&params.tolerance),
            "tolerance",
            params.tolerance,
            "0.001 to 0.2",
        )?;
        within((0.05..=1.0).contains(&params.step), "step", params.step, "0.05 to 1")?;
        within((0.001..=1.0).contains(&params.load), "load", params.load, "0.001 to 1")?;
        Ok(params)
    }
}
