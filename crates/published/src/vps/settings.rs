//! What the tools set differently.

use std::time::Duration;

use narrows_units::Framing;

use narrows_probe::registry::Imposes;

/// What the round trip is fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Regress {
    /// The probe's length alone.
    Probe,
    /// The sum of both lengths: right where both ways are alike.
    Sum,
    /// Both, each with a slope of its own; where answers do not vary, or vary with the probes, the
    /// one or the other of the above.
    Both,
}

/// What lies between an answer and the next probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// This long, by half more or less.
    Of(Duration),
    /// So many times the last round trip.
    RoundTrips(u32),
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Least squares.
    Lsq,
    /// The median of the slopes of all pairs (Kendall, Theil and Sen).
    Kendall,
    /// Least median of squares.
    Lms,
}

/// The settings of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// Smallest size, and from size to size, IP octets.
    pub(crate) smallest: u16,
    pub(crate) step: u16,
    /// Probes per size.
    pub(crate) repeats: u32,
    /// Sizes are put into a new order for each cycle, or once.
    pub(crate) reshuffled: bool,
    /// From an answer to the next probe.
    pub(crate) pause: Pause,
    /// Most hops.
    pub(crate) hops: u8,
    pub(crate) regress: Regress,
    pub(crate) draw: Draw,
    /// The interval is the range of rates from even and odd probes (clink), not two standard
    /// errors.
    pub(crate) halves: bool,
    /// More probes of sizes above the line until the halves agree within a tenth.
    pub(crate) adaptive: bool,
    /// Of every link.
    pub(crate) framing: Framing,
}

/// Declares the parameters of a tool: what its defaults are, and what its preset changes. The
/// preset itself comes first; what holds only without it is a preset of the empty word.
macro_rules! declared {
    (
        preset: $preset:literal,
        repeats: $repeats:literal $repeats_source:literal,
        step: $step:literal $step_source:literal,
        gap: $gap:literal $gaps:expr,
        regress: $regress:literal $regressions:expr => $regress_source:literal,
        fit: $fit_source:literal,
        adaptive: $adaptive:literal $adaptives:expr => $adaptive_source:literal,
    ) => {
        narrows_probe::registry::params! {
            /// What can be set.
            #[derive(Debug)]
            #[allow(dead_code, reason = "the preset only picks the defaults of the others")]
            struct Params {
                /// `tool`: the original's pauses and regressor.
                tool: bool = "" is { "" => false, "tool" => true } { name: "preset", source: $preset },
                /// Probes per size and hop.
                repeats: u32 = $repeats { range: Between("1", "1000"), source: $repeats_source },
                /// From size to size.
                step: u16 = $step { unit: "IP octets", range: Between("4", "700"), source: $step_source },
                /// Pause after each answer.
                gap: Option<std::time::Duration> = $gap {
                    range: Between("0 s", "10 s"), presets: $gaps,
                    source: "ours, varied by half either way, lest even traffic be met at one point",
                },
                /// Hops at most.
                hops: u8 = "30" { range: Between("1", "64"), source: $repeats_source },
                /// What round trips are fitted on: the probe's length, the sum of both lengths, or
                /// both.
                regress: Regress = $regress is { "probe" => Regress::Probe, "sum" => Regress::Sum, "both" => Regress::Both } {
                    unset: Some(""), presets: $regressions, source: $regress_source,
                },
                /// How a line is drawn: least squares, median of slopes, least median of squares.
                fit: Draw = "lsq" is { "lsq" => Draw::Lsq, "kendall" => Draw::Kendall, "lms" => Draw::Lms } {
                    unset: Some(""), source: $fit_source,
                },
                /// More probes where sizes lie above the line, until the halves agree.
                adaptive: bool = $adaptive { range: Range::SWITCH, presets: $adaptives, source: $adaptive_source },
                /// How links wrap packets.
                framing: narrows_units::Framing = "ethernet" {
                    range: Range::FRAMING, unset: Some(""), source: "ours: of every link",
                },
            }
        }
    };
}
pub(crate) use declared;

impl Settings {
    /// Sizes up to `most`, each at least what the world takes.
    pub(crate) fn sizes(&self, least: u16, most: u16) -> Vec<u16> {
        let sizes = (self.smallest..=most).step_by(usize::from(self.step));
        let mut sizes: Vec<u16> = sizes.filter(|&octets| octets >= least).collect();
        if sizes.first().is_none_or(|&first| first > least) && (self.smallest..=most).contains(&least) {
            sizes.insert(0, least);
        }
        sizes
    }

    /// What the longest run imposes: every size, repeat and hop of a path of `hops`, and round
    /// trips of a tenth of a second (ours).
    pub(crate) fn imposes(&self, usual: &Imposes) -> Imposes {
        let sizes = u32::from((1500 - self.smallest.min(1499)) / self.step) + 1;
        let cycles = if self.adaptive { 4 * self.repeats } else { self.repeats };
        let probes = sizes.saturating_mul(cycles).saturating_mul(self.hops.into());
        let pause = match self.pause {
            Pause::Of(gap) => gap,
            Pause::RoundTrips(_) => Duration::from_secs(1),
        };
        Imposes {
            max_octets: usual.max_octets.max(u64::from(probes) * 1500),
            max_time: usual.max_time.max((pause + Duration::from_millis(100)).saturating_mul(probes)),
            ..usual.clone()
        }
    }
}
