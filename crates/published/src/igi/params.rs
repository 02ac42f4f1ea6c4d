//! What can be set, for IGI and PTR alike.

use std::time::Duration;

use narrows_units::{BitRate, Framing};

use crate::gaps::Binning;
use narrows_probe::registry::{Imposes, ParamError, Parameter, Range, RawParams, joined, params};

/// Whose constants are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Relative thresholds, full-size packets, a search that closes in on the turning point, and
    /// checks of the hosts (ours).
    Adaptive,
    /// The constants of igi-ptr 2.x, absolute ones among them, and none of the checks.
    Faithful,
}

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Whose constants are used: ours, or those of igi-ptr 2.x.
        pub preset: Preset = "adaptive" is { "adaptive" => Preset::Adaptive, "faithful" => Preset::Faithful } {
            source: "ours; constants of igi-ptr 2.x",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"),
            source: "ours; the tool: 500 of payload", presets: &[("faithful", "528")],
        },
        /// Packets of a train.
        pub packets: usize = "120" {
            name: "train", range: Between("8", "1000"), source: "ours; [IGI03] and the tool: 60", presets: &[("faithful", "60")],
        },
        /// Trains at each gap.
        pub trains: usize = "3" { range: Between("2", "20"), source: "the tool" },
        /// Stretch of the mean gap up to which a train came as it left; faithful: 5 us per gap
        /// instead.
        pub tolerance: f64 = "0.01" {
            unit: "share", range: Between("0.001", "0.2"), source: "ours; the tool: 5 us; the paper 10 % (recalled)",
        },
        /// Step of the gap, of the gap of a back-to-back train.
        pub step: f64 = "0.125" {
            unit: "share", range: Between("0.05", "1"), source: "the paper (recalled); the tool: 0.25",
            presets: &[("faithful", "0.25")],
        },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.2" { unit: "share", range: Between("0.001", "1"), source: "ours" },
        /// IP-layer capacity of the tight link for full-size packets, if known.
        pub capacity: Option<BitRate> = "measured" { range: AtLeast("1 bit/s"), source: "ours" },
        /// How the narrow link wraps packets: probes are smaller than the packets for which the
        /// answer is stated.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours" },
    }
}

/// What IGI takes.
pub(super) const IGI: [Parameter; 9] = {
    let mut all = joined(Params::PARAMETERS, &[]);
    all[1].default = "700";
    all[1].source = "the paper (recalled); the tool: 500 of payload";
    all
};
/// What PTR takes: the same without the capacity and the framing.
pub(crate) const PTR: &[Parameter] = Params::PARAMETERS.split_at(7).0;

impl Params {
    /// As IGI takes them: packets smaller than the path allows sample others' traffic in finer
    /// grains (`[IGI03]`, recalled: about 700).
    pub(super) fn of_igi(raw: &RawParams) -> Result<Self, ParamError> {
        let params = Self::try_from(raw)?;
        Ok(Self { ip_octets: params.ip_octets.or(Some(IGI_OCTETS)), ..params })
    }

    pub(crate) fn faithful(&self) -> bool {
        self.preset == Preset::Faithful
    }

    /// How gaps are sorted for capacity.
    pub(super) fn binning(&self) -> Binning {
        if self.faithful() { Binning::Absolute(25_000.0) } else { Binning::Relative(0.02) }
    }

    /// What the longest run imposes: as many trains as a search may take, and a round trip of up to
    /// 200 ms for each (ours).
    pub(crate) fn imposes(&self, usual: &Imposes) -> Imposes {
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
