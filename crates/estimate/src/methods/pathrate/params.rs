//! What can be set, and the two presets.

use std::time::Duration;

use stat::Merit;
use units::{Framing, Octets};

use crate::registry::{Imposes, ParamError, RawParams};

/// Which machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The same phases, as short as the samples allow (ours).
    Adaptive,
    /// The lengths, counts and spacings of pathrate 2.4.1.
    Faithful,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Which machine runs; it also sets the defaults of the others.
    pub preset: Preset,
    /// Figure of merit of a mode.
    pub merit: Merit,
    /// How the narrow link frames packets: samples of different sizes are compared as rates on that wire.
    pub framing: Framing,
    /// Ask packets of several sizes whether it has that framing (adaptive).
    pub invert: bool,
    /// Least time from the begin of one train to the begin of the next.
    pub spacing: Duration,
    /// Quick termination: largest coefficient of variation of the preliminary rates.
    pub quick_cv: f64,
    /// Take one packet less per batch in the receive-batching branch, as the tool does.
    pub batch_minus_one: bool,
    /// Largest share of the narrow link that probes take on average (adaptive).
    pub utilisation: f64,
    /// No further round begins once this many octets were sent (adaptive).
    pub max_octets: u64,
    /// Most octets of a train that looks for a token bucket; none is sent with 0 (adaptive).
    pub bucket_octets: u64,
    /// Packet sizes of Phase I (faithful).
    pub sizes: u32,
    /// Pairs of each size (faithful).
    pub pairs_per_size: u32,
    /// Trains of Phase II (faithful).
    pub trains: u32,
}

impl Params {
    fn of(preset: Preset) -> Self {
        let faithful = preset == Preset::Faithful;
        Self {
            preset,
            merit: if faithful { Merit::Kurtosis } else { Merit::Density },
            framing: if faithful { Framing::BARE } else { Framing::ETHERNET },
            invert: !faithful,
            spacing: if faithful {
                Duration::from_millis(500)
            } else {
                Duration::ZERO
            },
            quick_cv: 0.05,
            batch_minus_one: faithful,
            utilisation: 0.15,
            max_octets: 1_700_000,
            bucket_octets: MOST_BUCKET_OCTETS,
            sizes: 40,
            pairs_per_size: 25,
            trains: 500,
        }
    }

    /// What the longest faithful run imposes: every phase to its end, trains as long as they get, and round trips of up to half a
    /// second (ours).
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
    pub fn faithful() -> Self {
        Self::of(Preset::Faithful)
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::of(Preset::Adaptive)
    }
}

/// The same of the automatic choice, which has one preset.
pub(crate) const AUTOMATIC_PARAMETERS: &[(&str, &str)] = &[
    ("merit", "figure of merit of a mode, density or kurtosis; density"),
    (
        "framing",
        "of the narrow link: ethernet, vlan, bare, or octets per packet; what packets of several sizes show",
    ),
    ("spacing", "least time between begins of trains, s; 0"),
    ("utilisation", "largest mean share of the narrow link, 0.001..1; 0.15"),
    ("max_octets", "no new round after this many IP octets; 1.7 MB"),
    (
        "bucket_octets",
        "most IP octets of a train that looks for a token bucket, 0 for none; 1.2 MB",
    ),
];

/// Names and descriptions, for the registry.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    (
        "preset",
        "faithful (pathrate 2.4.1: up to 18 min) or adaptive (the method capacity: seconds); faithful",
    ),
    (
        "merit",
        "figure of merit of a mode, density or kurtosis; kurtosis, adaptive: density",
    ),
    (
        "framing",
        "of the narrow link: ethernet, vlan, bare, or octets per packet; bare, adaptive: ethernet",
    ),
    ("spacing", "least time between begins of trains, s; 500 ms, adaptive: 0"),
    (
        "quick_cv",
        "coefficient of variation that ends a faithful run early, 0..1; 0.05",
    ),
    (
        "batch_minus_one",
        "count one packet less per receive batch, true or false; true, adaptive: false",
    ),
    (
        "utilisation",
        "largest mean share of the narrow link, 0.001..1, adaptive only; 0.15",
    ),
    (
        "max_octets",
        "no new round after this many IP octets, adaptive only; 1.7 MB",
    ),
    (
        "bucket_octets",
        "most IP octets of a train that looks for a token bucket, 0 for none, adaptive only; 1.2 MB",
    ),
    ("sizes", "packet sizes of Phase I, 1..1000, faithful only; 40"),
    ("pairs_per_size", "pairs of each size, 1..1000, faithful only; 25"),
    ("trains", "trains of Phase II, 1..10000, faithful only; 500"),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    /// The tool, unless `preset` says otherwise.
    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let word: String = raw.get("preset", "faithful".to_owned())?;
        match word.as_str() {
            "adaptive" => Self::read(raw, Preset::Adaptive),
            "faithful" => Self::read(raw, Preset::Faithful),
            _ => Err(unreadable("preset", &word, "write adaptive or faithful")),
        }
    }
}

impl Params {
    /// Parameters as typed, over the defaults of this preset.
    pub(crate) fn read(raw: &RawParams, preset: Preset) -> Result<Self, ParamError> {
        let base = Self::of(preset);
        let params = Self {
            merit: read_merit(raw, base.merit)?,
            framing: read_framing(raw, base.framing)?,
            invert: base.invert && raw.get("framing", String::new())?.is_empty(),
            spacing: raw.get_duration("spacing", base.spacing)?,
            quick_cv: raw.get("quick_cv", base.quick_cv)?,
            batch_minus_one: raw.get("batch_minus_one", base.batch_minus_one)?,
            utilisation: raw.get("utilisation", base.utilisation)?,
            max_octets: raw.get("max_octets", Octets::new(base.max_octets))?.count(),
            bucket_octets: raw.get("bucket_octets", Octets::new(base.bucket_octets))?.count(),
            sizes: raw.get("sizes", base.sizes)?,
            pairs_per_size: raw.get("pairs_per_size", base.pairs_per_size)?,
            trains: raw.get("trains", base.trains)?,
            preset: base.preset,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let range = |good: bool, name: &'static str, value: String, why: &str| {
            let error = || ParamError::OutOfRange {
                name,
                value,
                why: why.to_owned(),
            };
            if good { Ok(()) } else { Err(error()) }
        };
        let ten_seconds = Duration::from_secs(10);
        range(
            self.spacing <= ten_seconds,
            "spacing",
            format!("{:?}", self.spacing),
            "at most 10 s",
        )?;
        range(
            (0.0..=1.0).contains(&self.quick_cv),
            "quick_cv",
            self.quick_cv.to_string(),
            "0 to 1",
        )?;
        let share = (0.001..=1.0).contains(&self.utilisation);
        range(share, "utilisation", self.utilisation.to_string(), "0.001 to 1")?;
        range(
            (1..=1000).contains(&self.sizes),
            "sizes",
            self.sizes.to_string(),
            "1 to 1000",
        )?;
        range(
            self.bucket_octets <= MOST_BUCKET_OCTETS,
            "bucket_octets",
            self.bucket_octets.to_string(),
            "at most 1.2 MB",
        )?;
        let pairs = (1..=1000).contains(&self.pairs_per_size);
        range(pairs, "pairs_per_size", self.pairs_per_size.to_string(), "1 to 1000")?;
        range(
            (1..=10_000).contains(&self.trains),
            "trains",
            self.trains.to_string(),
            "1 to 10000",
        )
    }
}

/// Ours: 800 packets, what empties a bucket of 300 at half the link's rate, and some more behind the bend.
const MOST_BUCKET_OCTETS: u64 = 1_200_000;

fn read_merit(raw: &RawParams, default: Merit) -> Result<Merit, ParamError> {
    let word: String = raw.get("merit", String::new())?;
    match word.as_str() {
        "" => Ok(default),
        "density" => Ok(Merit::Density),
        "kurtosis" => Ok(Merit::Kurtosis),
        _ => Err(unreadable("merit", &word, "write density or kurtosis")),
    }
}

fn read_framing(raw: &RawParams, default: Framing) -> Result<Framing, ParamError> {
    let word: String = raw.get("framing", String::new())?;
    match word.as_str() {
        "" => Ok(default),
        "ethernet" => Ok(Framing::ETHERNET),
        "vlan" => Ok(Framing::ethernet(1)),
        "bare" => Ok(Framing::BARE),
        other => match other.parse::<u16>() {
            Ok(octets) if octets <= 1000 => Ok(Framing::fixed(octets)),
            _ => Err(unreadable(
                "framing",
                other,
                "write ethernet, vlan, bare, or 0 to 1000 octets per packet",
            )),
        },
    }
}

fn unreadable(name: &str, value: &str, why: &str) -> ParamError {
    ParamError::Unreadable {
        name: name.to_owned(),
        value: value.to_owned(),
        why: why.to_owned(),
    }
}
