#![doc = include_str!("pchar.md")]

use super::vps;
use super::vps::settings::{Draw, Pause, Regress, Settings};
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, Range, RawParams};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pchar;

static INFO: MethodInfo = MethodInfo {
    name: "pchar",
    summary: "capacity of each hop from least round trips over packet sizes, by one of three fits",
    parameters: Params::PARAMETERS,
    manual: include_str!("pchar.md"),
    ..vps::INFO
};

vps::method!(Pchar);

vps::settings::declared! {
    preset: "pauses of 0.25 s",
    repeats: "32" "tool",
    step: "32" "tool: multiples of 32 up to the MTU",
    gap: "10 ms" &[("", "10 ms"), ("tool", "250 ms")],
    regress: "sum" &[] => "tool",
    fit: "tool",
    adaptive: "false" &[] => "ours",
}

fn settings(raw: &RawParams) -> Result<Settings, ParamError> {
    raw.check_names(&INFO)?;
    let params = Params::try_from(raw)?;
    Ok(Settings {
        smallest: 32,
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
