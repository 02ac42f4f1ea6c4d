//! What the tools set differently.

use std::time::Duration;

use units::Framing;

use crate::methods::campaign::{read_framing, unreadable, within};
use crate::registry::{Imposes, ParamError, RawParams};

/// What the round trip is fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Regress {
    /// The probe's length alone.
    Probe,
    /// The sum of both lengths: right where both ways are alike.
    Sum,
    /// Both, each with a slope of its own; where answers do not vary, or vary with the probes, the one or the other of the above.
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
    /// The interval is the range of rates from even and odd probes (clink), not two standard errors.
    pub(crate) halves: bool,
    /// More probes of sizes above the line until the halves agree within a tenth.
    pub(crate) adaptive: bool,
    /// Of every link.
    pub(crate) framing: Framing,
}

/// Names and meanings, for the registry.
pub(crate) const PARAMETERS: &[(&str, &str)] = &[
    ("repeats", "probes per size and hop, 1..1000"),
    ("step", "IP octets from size to size, 4..700"),
    ("gap", "pause after each answer, 0..10 s"),
    ("hops", "hops at most, 1..64; 30"),
    ("regress", "what round trips are fitted on: probe, sum, or both"),
    ("fit", "how: lsq, kendall, or lms"),
    (
        "adaptive",
        "more probes where sizes lie above the line, until halves agree",
    ),
    (
        "framing",
        "of every link: ethernet, vlan, bare, or octets per packet; ethernet",
    ),
    ("preset", "tool: the original's pauses and regressor"),
];

impl Settings {
    /// With the caller's parameters over the method's own; `tool` are the original's, where that is asked for.
    pub(crate) fn read(self, tool: Self, raw: &RawParams) -> Result<Self, ParamError> {
        let preset: String = raw.get("preset", String::new())?;
        let base = match preset.as_str() {
            "" => self,
            "tool" => tool,
            _ => return Err(unreadable("preset", &preset, "write tool")),
        };
        let settings = Self {
            repeats: raw.get("repeats", base.repeats)?,
            step: raw.get("step", base.step)?,
            pause: read_pause(raw, base.pause)?,
            hops: raw.get("hops", base.hops)?,
            regress: read_regress(raw, base.regress)?,
            draw: read_draw(raw, base.draw)?,
            adaptive: raw.get("adaptive", base.adaptive)?,
            framing: read_framing(raw, base.framing)?,
            ..base
        };
        within(
            (1..=1000).contains(&settings.repeats),
            "repeats",
            settings.repeats,
            "1 to 1000",
        )?;
        within((4..=700).contains(&settings.step), "step", settings.step, "4 to 700")?;
        within((1..=64).contains(&settings.hops), "hops", settings.hops, "1 to 64")?;
        Ok(settings)
    }

    /// Sizes up to `most`, each at least what the world takes.
    pub(crate) fn sizes(&self, least: u16, most: u16) -> Vec<u16> {
        let sizes = (self.smallest..=most).step_by(usize::from(self.step));
        let mut sizes: Vec<u16> = sizes.filter(|&octets| octets >= least).collect();
        if sizes.first().is_none_or(|&first| first > least) && (self.smallest..=most).contains(&least) {
            sizes.insert(0, least);
        }
        sizes
    }

    /// What the longest run imposes: every size, repeat and hop of a path of `hops`, and round trips of a tenth of a second (ours).
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
            max_time: usual
                .max_time
                .max((pause + Duration::from_millis(100)).saturating_mul(probes)),
            ..usual.clone()
        }
    }
}

fn read_pause(raw: &RawParams, default: Pause) -> Result<Pause, ParamError> {
    if raw.iter().all(|(name, _)| name != "gap") {
        return Ok(default);
    }
    let gap = raw.get_duration("gap", Duration::ZERO)?;
    let text = units::format_duration(gap);
    within(gap <= Duration::from_secs(10), "gap", text.as_str(), "0 to 10 s")?;
    Ok(Pause::Of(gap))
}

fn read_regress(raw: &RawParams, default: Regress) -> Result<Regress, ParamError> {
    let word: String = raw.get("regress", String::new())?;
    match word.as_str() {
        "" => Ok(default),
        "probe" => Ok(Regress::Probe),
        "sum" => Ok(Regress::Sum),
        "both" => Ok(Regress::Both),
        _ => Err(unreadable("regress", &word, "write probe, sum or both")),
    }
}

fn read_draw(raw: &RawParams, default: Draw) -> Result<Draw, ParamError> {
    let word: String = raw.get("fit", String::new())?;
    match word.as_str() {
        "" => Ok(default),
        "lsq" => Ok(Draw::Lsq),
        "kendall" => Ok(Draw::Kendall),
        "lms" => Ok(Draw::Lms),
        _ => Err(unreadable("fit", &word, "write lsq, kendall or lms")),
    }
}
