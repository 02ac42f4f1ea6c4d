//! hops: estimates the capacity of every hop, its latency, waiting and losses from round trips over eight packet sizes, all hops at once.
//!
//! # Model
//!
//! ```text
//!  one round:  ttl 3 ▶ ▶   ttl 1 ▶ ▶   ttl 2 ▶ ▶          one probe to each hop, any order, sizes as each hop wants them
//!  RTT_n(L) = a_n + F_n W(L) + B_n W(R(L))               F_n: sum of 8/C over all links there, B_n over those back
//!  hop n:     F_n - F_n-1 = 8/C_n = 8/C_1' + 8/C_2' …    a switch inside a hop serialises each packet once more
//! ```
//!
//! As pathchar's, with what made that take an hour left out: hops are asked in turns instead of one after the other; there are eight sizes
//! at the ends that carry a slope instead of 45 along it; each gets more probes only while its quickest answers are not on the line.
//! Answers quote a part of the probe, so that they too grow with it: two slopes are fitted, one for each way. A first look (who is there,
//! who limits answers, how long packets take) foretells which hops will get a value and how long all will take at most; it ends then.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time on each link.
//! - A2 Of the probes of most sizes two meet no queue, there or back.
//! - A3 A router takes as long to make its answer whatever the length.
//! - A4 One flow takes one route, and that stays.
//! - A5 Devices inside a hop are Ethernet's, of standard rates.
//! - A6 Clocks and stamps are good to what the host says of them.
//!
//! # Formula
//!
//! Per hop and pair of lengths (probe, answer): the mean of the round trips that are within a tick of the least one. Over these a plane by
//! least squares, `a + F W(L) + B W(R)`, in which points that lie `r` above it weigh `(s/r)^2`, `s` the scatter of the rest. Where all
//! answers are of one length `B` is in `a`; where they quote all of the probe, `F = B` is assumed. The standard error of `F` is the fit's,
//! or half of what even and odd answers differ by if that is more.
//!
//! `C_n = 8 / (F_n - F_n-1)` per octet on the wire, stated for full packets at the IP layer, times `L / W(L)`; the interval is two standard
//! errors either side. Below 2.5 of them there is a lower bound alone, `8 / (F_n - F_n-1 + 2.33 se)`. `F_n` above `F_n+1` by three errors is
//! a router that copies: it is left out and the next hop bounded with it together.
//!
//! Where the interval is wide (4 %), the line tells `B` from `F`, nothing on the path says that its two ways differ (`|f - b|` of any hop beyond 3.36 errors and
//! 5 %), and the slowest hop before is known to be alike both ways (within 20 %), the *value* is that of one rate both ways, `g = s f + (1 - s) b`
//! with `s = (vb - c) / (vf + vb - 2c)` (variances and covariance of the hop's two slopes: least squares under `f = b`), if `|f - b|` is below two
//! errors: [`Caveat::SymmetryAssumed`]. The interval stays that of the way there.
//!
//! Hidden devices: an interval that holds no standard rate but a sum of two or three, `1/C = 1/C_1 + 1/C_2`, is read as a row of links,
//! the slowest of which is the hop's capacity. Where no link before it is as slow, seven pairs tell: sent back to back they come back as far
//! apart as the slowest link of a row makes them (`W/C_1`), or as far as one link of the whole rate would (`W/C`), whatever rates these have; what
//! they leave of the hop is another link or the router's own time, and in doubt at the next hop. Behind a narrower link
//! tails do where they can: trains as below whose last packet is so long (a share `w` of the large one) that the narrow link leaves it behind by some
//! half of the hop's time `P`. One link holds it back by `P - x`; of a row each link `p` in front of the last that holds it takes `w p` off that,
//! so that what is missing bounds `p` (the upper end of the interval has it). Elsewhere standard rates alone decide, and the interval holds both
//! readings; a rate that is none has [`Caveat::StagesAmbiguous`], and so has a row that tails tell.
//!
//! Where least round trips lie on no line, the mean of the second to the sixth tenth of each length's does instead if that is nearer to one:
//! waits have nothing to do with a packet's own length. Probes go to lengths by what they have in the slope: where answers quote 548 octets,
//! to those above. Where answers scatter by more than stamps, hops known to no better than 2 % get twice as many.
//!
//! Trains, where sizes tell too little behind the narrow link, and anywhere to check what they tell (`couriers`): a small packet, a large one that dies at
//! hop h or one sooner, and another small one behind it, both answered further on. The second small one is later by `max(0, P(h) - x(h-1))`, `P` what the
//! hop takes for the large packet, `x` by how much it is behind already: `x(h) = max(0, x(h-1) - P(h)) + w P(h)`, `w` the ratio of lengths. The
//! densest quarter of up to 40 spacings counts, less those whose answers may have waited for one another (where most do, the leader leaves 1, 3, 9
//! or 27 ms ahead; in front of the narrow link it always does; where they still do, nothing checks the sizes there); spacings that disagree bound nothing
//! tighter than what the large packet falls behind in front of the narrow link. Where sizes and trains disagree by a tenth beyond both
//! errors the router takes its own time per octet, and its line is left out.
//!
//! Stamps of a server at the far end (`last_hop`), where there is one: 8 to 24 trains of one packet of each size, one way. `F_N` of the last hop is then the
//! slope of their delays, drift of the clocks taken out by the line below all of them, in the place of that of its answers: nothing that
//! the host does with its answers is in it. First a packet of that flow to each router: another router than before anywhere, and they tell nothing.
//!
//! Latency: half the difference of the `a`, of which a later, smaller one counts instead (the difference is a router's own time).
//! Waiting: mean distance of answers from the line, less that of the hop before. Busy: the share of answers off the line, less the same.
//! Losses: of probes to routers that do not limit, and no more than at any hop behind.
//!
//! # Parameters
//!
//! Declared below; `narrows methods hops` prints the table.
//!
//! # Cost
//!
//! 32 to 200 probes per hop of 1 kB on average (400 where answers scatter), 7 pairs where they may tell, 14 to 32 trains of up to 2.5 kB where tails may, and 7 trains of 1.6 kB (up to 80 where sizes tell too little; each
//! costs a patience where a router keeps silent), and 45 to 133 kB for a server's stamps: 70 to 420 kB for three hops, in 2 to 10 s; 30 to 60 s where routers give one answer per
//! second. At most one probe per round trip and hop is under way.
//!
//! # Fails when
//!
//! - A1, token buckets: single packets pass a full bucket at the link's rate; the hop shows the link. Channels side by side show one.
//! - A2: queues that never empty lift the line; what halves of the answers differ by is in the interval, [`Caveat::NotConverged`] is not.
//! - A3: a router that copies looks like one more link: [`Caveat::SlowRouter`] where the next hop shows it, or trains do (`hops-silent-behind`);
//!   at the last hop without a server's stamps nothing does, unless pairs can: [`Caveat::UncheckedRouter`]. Where all answers of trains wait for
//!   one another, hops from there on have it.
//! - A4: [`Caveat::SeveralRouters`], [`Caveat::RouteChanged`]: the main router's answers count, after the change. Circles:
//!   [`Caveat::RoutingLoop`], and no number there. Routers that pass on what they should not: [`Caveat::ForwardsExpired`].
//! - A5: one link of 50 Mbit/s behind a narrower one is read as two of 100 where tails do not tell: [`Caveat::StagesAssumed`], and 50 in the interval.
//!   Tails tell nothing of the last hop, of hops more than some nine times as fast as a link before, and where answers wait for one another.
//! - A6: hops faster than the ceiling that is foretold are bounded below ([`Caveat::TimerLimited`]). A silent router
//!   ([`Caveat::SilentRouter`]) leaves a bound for the hop behind it, unless trains tell one of the two.
//! - Behind a link of rate C two packets are apart by what C takes for the second: trains see a hop only if that takes longer for the large
//!   packet than the small one is behind, less than `C / w` (18 C by full packets and 48 octets) right behind it, more with each hop that holds it back. No
//!   train of one's own meets itself on a faster link.
//!
//! # References
//!
//! - `[Lai00]` K. Lai, M. Baker: Measuring link bandwidths using a deterministic model of packet delay, SIGCOMM 2000 (tailgating).
//! - `[Downey99]` A. Downey: Using pathchar to estimate Internet link characteristics, SIGCOMM 1999.
//! - `[PDM03]` R. Prasad, C. Dovrolis, B. Mah: The effect of layer-2 store-and-forward devices on per-hop capacity estimation, Infocom 2003.
//! - `[Abut18]` tables 7 to 9.

mod answer;
mod couriers;
mod far;
mod line;
mod pace;
mod picture;
mod plan;
mod round;
mod route;
mod session;
mod spacings;
mod stages;
mod table;
mod tails;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::campaign::method;
use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Hops;

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Hops at most.
        hops: u8 = "30" { range: Between("1", "64"), source: "traceroute" },
        /// Time from round to round.
        pace: Duration = "50 ms" {
            range: Between("1 ms", "10 s"), source: "`capacity` §8.7: 20 probes per second and hop; varied by half either way",
        },
        /// Probes per hop at most.
        probes: u32 = "200" {
            range: Between("24", "2000"), source: "ours; a fifth of it where the router limits its answers",
        },
        /// How links wrap packets.
        framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
        /// Whether the far end's own stamps tell the last hop, where they can be had.
        far_stamps: bool = "answers" is { "answers" => false, "stamps" => true } {
            name: "last_hop", source: "ours: by what the last hop is told; stamps need a server there",
        },
    }
}

impl Params {
    /// All probes to all hops, at routers that limit their answers to one in three seconds.
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let probes = u64::from(self.probes) * u64::from(self.hops);
        let time = self.pace.max(Duration::from_secs(1)).saturating_mul(self.probes) * 2;
        Imposes {
            max_octets: usual.max_octets.max(probes.saturating_mul(1500)),
            max_time: usual.max_time.max(time),
            ..usual.clone()
        }
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "hops",
    summary: "capacity, latency, waiting and loss of each hop, all hops at once, with devices inside hops told apart",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
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
        typical_octets: 100_000,
        max_octets: 6_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("hops.rs"),
};

method!(Hops, answered_by: &EVERYTHING);
