//! pathneck: locates the hops at which a path grows narrow, and bounds what is available there, by recursive packet trains, as pathneck 1.2.
//!
//! # Model
//!
//! ```text
//!  hop limits  1 2 … 30 [ 60 load packets ] 30 … 2 1        sent back to back
//!  at router 1: 1 and 1 die      two answers, a gap of g_1 apart
//!  at router 2:   2 … 2 die      two answers, g_2 apart     …
//! ```
//!
//! At each router the present head and tail of the train die together, and their two answers are as far apart as the train is long
//! there. A link that has less to spare than the train takes makes it longer; one that has more leaves it as it is.
//!
//! # Assumptions
//!
//! - A1 First come, first served: what crosses with the train shares the link with it as a fluid would.
//! - A2 A router takes as long for one answer as for the other, and the way back as long for both.
//! - A3 Routers answer, two packets per train each, and the route is the same for most trains.
//! - A4 The sender sends faster than what is to be found.
//!
//! # Formula
//!
//! `g_h`, ns: from the answer to the head with hop limit h to that to the tail with the same; of the far end, where the first head that
//! gets there and its tail arrive, or are echoed. Per run (`steps`): a gap below a fifth of the median takes the value of the one before; a
//! hill or valley of one hop is clipped to its nearer neighbour (at least four hops); then the hops are cut into segments so that the
//! sum of `|g - mean of the segment|` is least, neighbours differing by more than `step`; of the cuts the three largest count. Where
//! the gap rises the hop is a choke point with confidence `|1/g_before - 1/g_after| g_before` (of the segments' means).
//!
//! Over the runs on the most frequent route, five at least: a hop is a choke point if its confidence is 0.1 or more in half of the runs. The
//! first hop is compared with the gap that the sender left (ours).
//!
//! Rate at a hop: IP octets of everything between the two packets over `g_h`, with its framing, stated for full packets. At a choke point it
//! bounds what is available from above, and where it falls by less than 2 % (ours) from below. The answer is the bound at the last
//! and worst choke point. The same rates are lower bounds of each hop's capacity (ours): no link passes a train faster than it is.
//!
//! Bugs of the tool that are not followed: it counts load packets only, so that its upper bounds are a sixth and more below what
//! passed; its clean-up gives leading small gaps the value of the first large one, which moves a choke point behind fast links to
//! the first hop; it takes the first hop for one whatever the sender did. `preset=tool` does all three.
//!
//! # Parameters
//!
//! Declared below; `narrows methods pathneck` prints the table.
//!
//! # Cost
//!
//! Ten trains of 33.6 kB, 0.34 MB in 4 s and the patience for what is not answered. Each fills the narrow link for its own length.
//!
//! # Fails when
//!
//! - A1: between trains and traffic in bursts single runs miss or invent choke points; half of the runs must agree.
//! - A2: slow routers make a hill, which is clipped; two of them in a row are a choke point that is none. Slow ways back stretch nothing:
//!   two answers per train.
//!   A far end that takes packets in by batches is left out where they last more than a twentieth of its gap; the only hop:
//!   [`Reason::ReceiveBatching`]. Batches whose packets the host's reading spaces apart go unseen, and bounds may be wrong.
//! - A3: silent hops are left out, and a choke point behind them is named at the first that answers (`pathneck-silent-router`); routers that
//!   limit answers to one per second and train still give two in six. [`Caveat::VariableRate`] and fewer runs where routes change;
//!   [`Reason::TooFewSamples`] below five. A far end that answers neither is invisible.
//! - A4: no choke point, and what the sender did is a lower bound, [`Caveat::SenderLimited`] (`pathneck-slow-sender`).
//! - Links on which the whole train takes less than `step` (above 2.5 Gbit/s) do not show as choke points.
//! - It locates. What is available lies anywhere below an upper bound, capacity anywhere above a lower one.
//!
//! # References
//!
//! - `[Pathneck04]` N. Hu, L. Li, Z. Mao, P. Steenkiste, J. Wang: Locating Internet bottlenecks: algorithms, measurements, and implications,
//!   SIGCOMM 2004; tool 1.2, source.

mod answer;
mod session;
mod steps;
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
pub struct Pathneck;

static INFO: MethodInfo = MethodInfo {
    name: "pathneck",
    summary: "choke points along the path, and bounds of what is available there, from recursive packet trains",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Icmp,
        works_on_asymmetric: true,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 336_000,
        max_octets: 2_000_000,
        typical_time: Duration::from_secs(8),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("pathneck.rs"),
};

campaign::method!(Pathneck, answered_by: &EVERYTHING);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// With `tool` as the original counts, cleans up, and sees the first hop.
        pub as_tool: bool = "" is { "" => false, "tool" => true } {
            name: "preset", source: "the three bugs of the tool",
        },
        /// Measurement packets on either side.
        pub hops: u8 = "30" { range: Between("2", "60"), source: "tool" },
        /// Load packets.
        pub load: u16 = "60" { range: Between("10", "1000"), source: "tool; 20 on access links of 10 Mbit/s and less" },
        /// IP octets of a load packet.
        pub load_octets: u16 = "500" {
            name: "octets", unit: "IP octets", range: Between("100", "9000"), source: "tool",
        },
        /// IP octets of a measurement packet.
        pub small_octets: u16 = "60" { name: "small", unit: "IP octets", range: Between("28", "500"), source: "tool" },
        /// Trains.
        pub runs: u32 = "10" { range: Between("5", "1000"), source: "tool" },
        /// Least difference of two segments' gaps.
        pub step: Duration = "100 us" { range: Between("1 us", "1 s"), source: "tool" },
        /// Pause before a train.
        pub spacing: Duration = "300 ms" { range: Between("0 s", "60 s"), source: "tool, varied by half either way" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
}

impl Params {
    /// What the longest run imposes: a second of patience per train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let ends = 2 * u64::from(self.hops) * u64::from(self.small_octets);
        let train = ends + u64::from(self.load) * u64::from(self.load_octets);
        let each = self.spacing.mul_f64(1.5) + Duration::from_secs(2);
        Imposes {
            max_octets: usual.max_octets.max(train * u64::from(self.runs)),
            max_time: usual.max_time.max(each.saturating_mul(self.runs)),
            ..usual.clone()
        }
    }
}
