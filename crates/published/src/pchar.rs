//! pchar: estimates the capacity of every hop from least round trips over 46 packet sizes by one of three fits, as pchar 1.5.
//!
//! # Model
//!
//! ```text
//!  hop limit n, length L ──▶ link 1 ──▶ … ──▶ link n ──▶ x  router n answers with R octets
//!  ◀──────────────────────── the way back ────────────────┘
//!  RTT = a + F_n W(L) + B_n W(R)        W: octets on the wire, F_n: sum of 8/C over the n links
//! ```
//!
//! The least of many round trips of each length has met no queue. Over the length they lie on a line; the next hop's line is steeper
//! by what its link takes per octet.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time, and each hop one link: a switch inside a hop adds its own time.
//! - A2 Of the probes of each length at least one meets no queue, there or back.
//! - A3 A router takes as long to make its answer whatever the length.
//! - A4 The route does not change, and each router answers.
//! - A5 The way back is as good as the way there: its queues empty at times, its slope known or none.
//!
//! # Formula
//!
//! `F_n`: the line of the least round trips over the sum of both lengths (`regress=sum`, as the tool), by least squares, by the median of the
//! slopes of all pairs (`kendall`), or by least median of squares (`lms`), which half of the sizes may have met queues without moving. The
//! tool's standard error of the intercept (integer division) and its table of Kendall's quantiles (a gap, a misprint) are not followed.
//!
//! `C_n = 8 / (F_n - F_n-1)` per octet on the wire, stated for full packets at the IP layer: times `L / W(L)`. A hop whose slope is not
//! twice its error above zero has a lower bound, and so has a hop behind a silent one. A hop whose line is steeper than the next one's by
//! three errors had a slow router: it is left out, and the next hop is bounded by both together.
//!
//! # Parameters
//!
//! Declared below; `narrows methods pchar` prints the table.
//!
//! # Cost
//!
//! 1472 probes per hop, 1.1 MB there and 0.9 MB back; 15 s a hop and its round trips. With the tool's pauses 6 minutes a hop.
//!
//! # Fails when
//!
//! - A1: two links of 100 Mbit/s around a switch look like 50 (`[PDM03]`). Confidence is low for that.
//! - A2: loaded paths with few repeats read low, hop by hop more; the interval knows of it only by the spread about the line.
//! - A3: a router that copies the packet into its answer looks like one more link.
//! - A4: hops are missing ([`Caveat::NotConverged`], `unknown_hops`), or mixed; [`Reason::NoAnswer`] if none answers.
//! - A5: the sum of both lengths is right only where both ways are alike: [`Caveat::AsymmetricLimit`]; `regress=both` is there for others.
//! - Ticks, or errors of stamps, of the size of what a link takes for a packet: that hop is bounded below; all of them:
//!   [`Reason::StampsTooCoarse`]. With stamps good to 5 us and packets of 1500 octets that is so from about 200 Mbit/s on, and behind a
//!   link thirty times as slow.
//!
//! # References
//!
//! - `[pchar]` B. Mah: pchar 1.5, source.
//! - `[Abut18]` tables 7 to 9: what it read.
//! - `[PDM03]` R. Prasad, C. Dovrolis, B. Mah: The effect of layer-2 store-and-forward devices on per-hop capacity estimation, Infocom 2003.

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
    source: include_str!("pchar.rs"),
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
