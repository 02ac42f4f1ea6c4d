//! clink: estimates the capacity of every hop from least round trips over 93 packet sizes, and its interval from even and odd probes, as clink 1.0.
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
//! `F_n`: least squares on the probe's and the answer's length (`regress=both`; the tool fits on the probe's alone, which reads 24 % low
//! behind routers that quote: `[Abut18]` table 8). Even and odd probes give a line each; the four differences of two hops' lines, sorted, are
//! the range, and all probes' line the value. `adaptive`: sizes above the line are sent as often again, until a new least appears or the
//! range is within a tenth of its middle (in the tool's source, but not called there).
//!
//! `C_n = 8 / (F_n - F_n-1)` per octet on the wire, stated for full packets at the IP layer: times `L / W(L)`. A hop whose slope is not
//! twice its error above zero has a lower bound, and so has a hop behind a silent one. A hop whose line is steeper than the next one's by
//! three errors had a slow router: it is left out, and the next hop is bounded by both together.
//!
//! # Parameters
//!
//! Declared below; `narrows methods clink` prints the table.
//!
//! # Cost
//!
//! 744 probes per hop and up to three times as many more, 0.6 MB there and 0.5 MB back; 8 s a hop and its round trips.
//!
//! # Fails when
//!
//! - A1: two links of 100 Mbit/s around a switch look like 50 (`[PDM03]`). Confidence is low for that.
//! - A2: loaded paths with few repeats read low, hop by hop more; the interval knows of it only by the spread about the line.
//! - A3: a router that copies the packet into its answer looks like one more link.
//! - A4: hops are missing ([`Caveat::NotConverged`], `unknown_hops`), or mixed; [`Reason::NoAnswer`] if none answers.
//! - A5: where answers do not vary, or vary as the probes do, both ways are taken to be alike: [`Caveat::AsymmetricLimit`].
//! - Ticks, or errors of stamps, of the size of what a link takes for a packet: that hop is bounded below; all of them:
//!   [`Reason::StampsTooCoarse`]. With stamps good to 5 us and packets of 1500 octets that is so from about 200 Mbit/s on, and behind a
//!   link thirty times as slow.
//!
//! # References
//!
//! - `[clink]` A. Downey: clink 1.0, source.
//! - `[Downey99]` A. Downey: Using pathchar to estimate Internet link characteristics, SIGCOMM 1999.
//! - `[Abut18]` tables 7 to 9: what it read.
//! - `[PDM03]` R. Prasad, C. Dovrolis, B. Mah: The effect of layer-2 store-and-forward devices on per-hop capacity estimation, Infocom 2003.

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
    imposes: Imposes {
        typical_octets: 1_700_000,
        typical_time: Duration::from_secs(25),
        ..vps::INFO.imposes
    },
    parameters: Params::PARAMETERS,
    source: include_str!("clink.rs"),
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
