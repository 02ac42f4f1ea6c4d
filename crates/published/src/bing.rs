//! bing: estimates the capacity of every hop from the least round trips of few packet sizes to both of its ends, as bing 1.3.5.
//!
//! # Model
//!
//! ```text
//!  hop limit n-1, length L ──▶ link 1 ──▶ … ──▶ x  R octets back
//!  hop limit n,   length L ──▶ link 1 ──▶ … ────────▶ link n ──▶ x  R octets back
//!  what the second takes longer: a + 8 (W(L) + W(R)) / C_n        W: octets on the wire
//! ```
//!
//! Two neighbours are asked, with packets of two or more sizes. What the further one's least round trip is longer by grows with what
//! crosses the link between them, there and back.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time, and each hop one link: a switch inside a hop adds its own time.
//! - A2 Of the probes of each length at least one meets no queue, there or back.
//! - A3 A router takes as long to make its answer whatever the length.
//! - A4 The route does not change, and each router answers.
//! - A5 Every link is as fast on the way back as on the way there.
//!
//! # Formula
//!
//! Of two sizes, which is where the tool began:
//!
//! `C_n = 8 (X_2 - X_1) / ((T_n(2) - T_n-1(2)) - (T_n(1) - T_n-1(1)))`, `X = W(L) + W(R)`, T: least round trip
//!
//! and of more the slope of least squares in the place of the quotient; the tool's answers are echoes, and its X is twice the probe. Each end
//! gets a line of its own, whose slopes subtract: the same wherever both ends answer in packets of one length, and right where they do not.
//! Rates are stated for full packets at the IP layer: times `L / W(L)`.
//!
//! A least round trip is left out (`rules`) (a) if a hop further on has answered the same size sooner, in as long an answer, (b) if the
//! same hop has answered a larger size sooner: it met a queue. Where (a) holds for all sizes the router is slow to answer, alike for all of
//! them, and rule (a) is not used there; where more than a quarter of the sizes are left out, the hop is (ours, both: the tool loses slow
//! routers, and draws lines through what is left of others). (c) The difference of neighbours must grow with size; sizes where
//! it does not are probed again.
//!
//! After `repeats` rounds come `passes` more over the worst half: links in order of the correlation of difference and size, the lower
//! half of them, the half of their sizes furthest from the line, at the far end of the link, and at both where the correlation is below
//! 0.8. Links whose correlation is above 0.9999 are left alone (ours).
//!
//! # Parameters
//!
//! Declared below; `narrows methods bing` prints the table.
//!
//! # Cost
//!
//! 160 probes per hop and at most 80 more: 0.13 MB there, and as much or less back; three hops take 6 s and their round trips. Hops are
//! asked in turn, so that each router sees one probe per round.
//!
//! # Fails when
//!
//! - A1: two links of 100 Mbit/s around a switch look like 50 (`[PDM03]`). Confidence is low for that.
//! - A2: loaded paths with few repeats read low or have wide ranges (`bing-three-hops` still reads right); rules (a) and (b) see some.
//! - A3, A5: where answers grow with probes up to a point and then no more, probes and answers can be given a slope each, and where these
//!   differ by more than a twentieth and three errors the hop is left out (ours), and the next one bounded; all of them:
//!   [`Reason::NoAgreement`] (`bing-slow-way-back`). Where answers grow all the way, or not at all, nothing can tell:
//!   [`Caveat::AsymmetricLimit`].
//! - A4: hops are missing ([`Caveat::NotConverged`], `unknown_hops`), or mixed; [`Reason::NoAnswer`] if none answers (`pathchar-dead-path`).
//! - Behind a link more than 15 to 30 times as slow (the tool's rule of thumb), or with ticks and errors of stamps of the size of what a link
//!   takes for a packet, a hop is bounded below; all of them: [`Reason::StampsTooCoarse`] (`pathchar-coarse-stamps`).
//!
//! # References
//!
//! - `[bing]` P. Beyssac: bing 1.3.5, source.
//! - `[PDM03]` R. Prasad, C. Dovrolis, B. Mah: The effect of layer-2 store-and-forward devices on per-hop capacity estimation, Infocom 2003.

mod rules;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::campaign;

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Bing;

static INFO: MethodInfo = MethodInfo {
    name: "bing",
    summary: "capacity of each hop from least round trips of few sizes to both of its ends",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Icmp,
        works_on_asymmetric: false,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: false,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 500_000,
        max_octets: 8_000_000,
        typical_time: Duration::from_secs(9),
        max_time: Duration::from_secs(600),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("bing.rs"),
};

campaign::method!(Bing, answered_by: &EVERYTHING);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Packet sizes.
        pub sizes: u16 = "10" { range: Between("2", "100"), source: "tool; 2: as it began" },
        /// IP octets of the smallest.
        pub smallest: u16 = "64" {
            unit: "IP octets", range: Between("28", "700"), source: "tool: what its header needs",
        },
        /// Probes per size and hop.
        pub repeats: u32 = "16" { range: Between("1", "1000"), source: "ours: the tool goes on until it is stopped" },
        /// Times that the worst half is probed again.
        pub passes: u32 = "4" { range: Between("0", "100"), source: "ours, likewise" },
        /// From an answer to the next probe.
        pub gap: Duration = "10 ms" { range: Between("0 s", "10 s"), source: "ours, varied by half either way" },
        /// Hops at most.
        pub hops: u8 = "30" { range: Between("1", "64"), source: "ours: the tool is given two hosts" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
}

impl Params {
    /// What the longest run imposes: all sizes at all hops, and round trips of a tenth of a second (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let rounds = self.repeats.saturating_add(self.passes);
        let probes = rounds
            .saturating_mul(u32::from(self.sizes))
            .saturating_mul(u32::from(self.hops));
        Imposes {
            max_octets: usual.max_octets.max(u64::from(probes) * 1500),
            max_time: usual
                .max_time
                .max((self.gap + Duration::from_millis(100)).saturating_mul(probes)),
            ..usual.clone()
        }
    }
}
