//! What can be set, and the two presets.

use std::time::Duration;

use narrows_stat::Merit;
use narrows_units::{Framing, Octets};

use narrows_probe::registry::{Imposes, ParamError, Parameter, Range, RawParams, params};

/// Which machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The same phases, as short as the samples allow (ours).
    Adaptive,
    /// The lengths, counts and spacings of pathrate 2.4.1.
    Faithful,
}

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// The lengths, counts and spacings of pathrate 2.4.1 (up to 18 minutes), or the machine of
        /// the method `capacity` (seconds).
        pub preset: Preset = "faithful" is { "adaptive" => Preset::Adaptive, "faithful" => Preset::Faithful } {
            source: "ours",
        },
        /// Figure of merit of a mode.
        pub merit: Merit = "density" is { "density" => Merit::Density, "kurtosis" => Merit::Kurtosis } {
            unset: Some(""), presets: &[("faithful", "kurtosis")], source: "the tool since 2.3.2: kurtosis; density before",
        },
        /// How the narrow link frames packets.
        pub framing: Option<Framing> = "what packets of several sizes show, else ethernet" {
            range: Range::FRAMING, unset: Some(""), presets: &[("faithful", "bare")], source: "the tool compares IP octets",
        },
        /// Least time from the begin of one train to the begin of the next.
        pub spacing: Duration = "0 s" {
            range: Between("0 s", "10 s"), presets: &[("faithful", "500 ms")], source: "the tool; at least 1.25 round trips",
        },
        /// Adaptive: largest share of the narrow link that probes take on average.
        pub utilisation: f64 = "0.15" { unit: "share", range: Between("0.001", "1"), source: "ours" },
        /// Adaptive: no further round begins once this many IP octets were sent; in
        /// proportion more where packets are larger than 1500 octets.
        pub max_octets: u64 = "1.7 MB" from Octets => (Octets::count) { source: "ours" },
        /// Adaptive: most IP octets of a train that looks for a token bucket; none is sent with 0.
        pub bucket_octets: u64 = "1.2 MB" from Octets => (Octets::count) {
            range: Between("0 B", "1.2 MB"),
            source: "ours: 800 packets empty a bucket of 300 at half the link's rate, and some more behind the bend",
        },
        /// Quick termination of a faithful run: largest coefficient of variation of the preliminary
        /// rates.
        pub quick_cv: f64 = "0.05" { range: Between("0", "1"), source: "the tool" },
        /// Takes one packet less per batch in the receive-batching branch.
        pub batch_minus_one: bool = "false" {
            range: Range::SWITCH, presets: &[("faithful", "true")], source: "the tool; false is the unbiased form",
        },
        /// Faithful: packet sizes of Phase I.
        pub sizes: u32 = "40" { range: Between("1", "1000"), source: "the tool" },
        /// Faithful: pairs of each size.
        pub pairs_per_size: u32 = "25" { range: Between("1", "1000"), source: "the tool" },
        /// Faithful: trains of Phase II.
        pub trains: u32 = "500" { range: Between("1", "10000"), source: "the tool" },
    }
    default "adaptive";
}

impl Params {
    /// Parameters as typed, whatever they say of the preset.
    pub(crate) fn read(raw: &RawParams, preset: Preset) -> Result<Self, ParamError> {
        let mut raw = raw.clone();
        raw.set("preset", if preset == Preset::Faithful { "faithful" } else { "adaptive" });
        Self::try_from(&raw)
    }

    /// IP octets after which no further round of packets of this size begins: as many packets as of
    /// 1500 octets, for it is packets that an answer needs.
    pub(super) fn max_octets_of(&self, full_size: u16) -> u64 {
        self.max_octets * u64::from(full_size.max(1500)) / 1500
    }

    /// Whether packets of several sizes are asked for the framing.
    pub(super) fn invert(&self) -> bool {
        self.framing.is_none()
    }
}

/// What can be set of the automatic choice, which has one preset.
pub(crate) const AUTOMATIC_PARAMETERS: &[Parameter] = &[
    Params::PARAMETERS[1].without_presets(),
    Params::PARAMETERS[2].without_presets(),
    Params::PARAMETERS[3].without_presets(),
    Params::PARAMETERS[4].without_presets(),
    Params::PARAMETERS[5].without_presets(),
    Params::PARAMETERS[6].without_presets(),
];

impl Params {
    /// What the longest faithful run imposes: every phase to its end, trains as long as they get,
    /// and round trips of up to half a second (ours).
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        const OTHER_TRAINS: u32 = 100;
        const TRAIN_OCTETS: u64 = 60 * 1500;
        let pairs = self.sizes.saturating_mul(self.pairs_per_size);
        let trains = self.trains.saturating_add(OTHER_TRAINS);
        let each = self.spacing.max(Duration::from_millis(625));
        Imposes {
            max_octets: u64::from(trains) * TRAIN_OCTETS + u64::from(pairs) * 3 * 1500,
            max_time: each.saturating_mul(trains.saturating_add(pairs)),
            ..usual.clone()
        }
    }

    /// pathrate 2.4.1.
    #[cfg(test)]
    pub(super) fn faithful() -> Self {
        Self::read(&RawParams::new(), Preset::Faithful).expect("a test reads the defaults of every declaration")
    }
}
