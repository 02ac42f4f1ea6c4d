#![doc = include_str!("pathchar.md")]

use super::vps;
use super::vps::settings::{Draw, Pause, Regress, Settings};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, Range, RawParams};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pathchar;

static INFO: MethodInfo = MethodInfo {
    name: "pathchar",
    summary: "capacity of each hop from least round trips over packet sizes",
    parameters: Params::PARAMETERS,
    manual: include_str!("pathchar.md"),
    ..vps::INFO
};

vps::method!(Pathchar);

vps::settings::declared! {
    preset: "[Abut18] table 9, derived: pauses of 0.9 s, the probe's length alone",
    repeats: "32" "[Abut18]: 45 sizes, 32 repeats; from 64 on is recalled",
    step: "32" "[Abut18]: 45 sizes, 32 repeats; from 64 on is recalled",
    gap: "10 ms" &[("", "10 ms"), ("tool", "900 ms")],
    regress: "both" &[("tool", "probe")] => "ours: undoes what quotes do",
    fit: "[Downey99]",
    adaptive: "false" &[] => "ours",
}

fn settings(raw: &RawParams) -> Result<Settings, ParamError> {
    raw.check_names(&INFO)?;
    let params = Params::try_from(raw)?;
    Ok(Settings {
        smallest: 64,
        step: params.step,
        repeats: params.repeats,
        reshuffled: false,
        pause: params.gap.map_or(Pause::RoundTrips(10), Pause::Of),
        hops: params.hops,
        regress: params.regress,
        draw: params.fit,
        halves: false,
        adaptive: params.adaptive,
        framing: params.framing,
    })
}
