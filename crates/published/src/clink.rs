#![doc = include_str!("clink.md")]

use std::time::Duration;

use super::vps;
use super::vps::settings::{Draw, Pause, Regress, Settings};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{Imposes, MethodInfo, ParamError, Range, RawParams};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Clink;

static INFO: MethodInfo = MethodInfo {
    name: "clink",
    summary: "capacity of each hop from least round trips over packet sizes, with a range from even and odd probes",
    imposes: Imposes { typical_octets: 1_700_000, typical_time: Duration::from_secs(25), ..vps::INFO.imposes },
    parameters: Params::PARAMETERS,
    manual: include_str!("clink.md"),
    ..vps::INFO
};

vps::method!(Clink);

vps::settings::declared! {
    preset: "pauses of ten round trips, the probe's length alone, not adaptive",
    repeats: "8" "tool",
    step: "16" "tool: sizes from 28",
    gap: "10 ms; tool: ten round trips" &[("", "10 ms")],
    regress: "both" &[("tool", "probe")] => "ours: undoes what quotes do",
    fit: "tool",
    adaptive: "true" &[("tool", "false")] => "tool's source; tool: as released",
}

fn settings(raw: &RawParams) -> Result<Settings, ParamError> {
    raw.check_names(&INFO)?;
    let params = Params::try_from(raw)?;
    Ok(Settings {
        smallest: 28,
        step: params.step,
        repeats: params.repeats,
        reshuffled: true,
        pause: params.gap.map_or(Pause::RoundTrips(10), Pause::Of),
        hops: params.hops,
        regress: params.regress,
        draw: params.fit,
        halves: true,
        adaptive: params.adaptive,
        framing: params.framing,
    })
}
