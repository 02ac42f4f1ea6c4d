//! tailgate: estimates the capacity of every hop from a small packet that travels behind a large one which dies on the way.
//!
//! # Model
//!
//! ```text
//!  hop limit 2:  [======]q ──▶ link 1 ──▶ [======]q ──▶ link 2 ──▶ x   q ──▶ link 3 ──▶ far end
//!                 large p holds the small q back on links 1 and 2; from there on q travels alone
//! ```
//!
//! As long as the large packet lives the small one queues right behind it; where it dies the small one is free. One hop more of
//! the large packet delays the small one by what that link takes for the large packet, and nothing but the small one's arrival is
//! looked at: no router's answer is timed.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time, and each hop one link: a switch inside a hop adds its own time.
//! - A2 Of the trains for each hop some meet no queue.
//! - A3 The small packet catches up on each link: `C_h / C_h-1 <= W(Lp) / W(Lq)`.
//! - A4 The route does not change, and routers count the hop limit down.
//! - A5 Delays are of one way, or the way back disturbs the small packet's reply no more than its minimum shows.
//!
//! # Formula
//!
//! `D(h)`, ns: least time from the departure of p with hop limit h to the arrival of q; `D(0)`: of q alone. With `w = W(Lq) / W(Lp)`,
//! octets on the wire, and `B(0) = D(0)`:
//!
//! `x(h) = D(h) - B(h-1)`, `C_h = 8 W(Lp) / x(h)`, `B(h) = B(h-1) + (1 - w) x(h)` (`chain`)
//!
//! which is `C_h = 8 Lp / (D(h) - D(h-1) + 8 Lq / C_h-1)` with its errors in order: `B(h) = w B(h-1) + (1 - w) D(h)`, so what is wrong
//! with one hop hardly reaches the next. The *sigma* phase is `D(0)` and the least delay of a large packet alone, which must be
//! `B(H)` of the last hop: `closure_ns` in the evidence is the difference, which the range takes in if it is more than the errors. The error of `D` is half the distance from the least to the
//! fifth sample, up to five times that where samples thin out towards the least (many loaded hops), and the clock's tick at least; ranges are two of them. Where `D(h) - D(h-1)` is below two, the hop is refused: it
//! has a lower bound. Stamps of the far end's own clock are freed of its drift by the line below the small packets' delays.
//!
//! # Parameters
//!
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `rounds` | 1 | 60 | 4 to 1000 | ours: trains per hop at most; ends when errors are 1 % of the slowest hop's time |
//! | `hops` | 1 | 16 | 1 to 64 | ours: more make the chain's errors large anyway |
//! | `octets` | IP octets | path MTU | 200 to 65535 | `[Lai00]`: as large as fits |
//! | `small` | IP octets | 64 | 40 to 500 | `[Lai00]`: 40; raised to what the world takes |
//! | `spacing` | s | 20 ms | 0 to 10 s | ours, varied by half either way |
//! | `lead` | s | 5 ms | 100 us to 1 s | ours: by which a lone small packet goes before each train |
//! | `framing` | | ethernet | ethernet, vlan, bare, octets | ours: of every link |
//!
//! # Cost
//!
//! Per hop 8 to 60 trains of 3 packets, 1.6 kB: 50 kB and 1 s for three idle hops, 300 kB and 8 s loaded (pathchar: 5 MB and an hour).
//! Routers that do not answer cost a patience per train.
//!
//! # Fails when
//!
//! - A1: switches inside a hop make it look slower: two links of 100 Mbit/s look like 50 (`[PDM03]`). Estimates of single hops have low
//!   confidence for that.
//! - A2: the fifth sample is far from the least: wide ranges, [`Caveat::NotConverged`], refused hops; all of them:
//!   [`Reason::NotConverged`] (`nettimer-six-loaded-hops`).
//! - A3: the hop is refused; a lower bound that holds. The same where the small packet leaves later than the first link needs for the
//!   large one.
//! - A4: p never arrives within `hops`: [`Reason::MissingInput`].
//! - A5: over round trips routers' error messages about p go back in front of q's reply, and on slow ways back that are short delay it:
//!   estimates come out low. [`Caveat::AsymmetricLimit`]. Where the far end stamps what it receives this does not arise.
//! - Hosts that gather interrupts, or read slowly, hold back a small packet that comes right behind a large one: the last hop. The large
//!   packet alone then contradicts the hops: [`Caveat::NotConverged`] and a wider range, [`Reason::NoAgreement`] above a quarter.
//! - Ticks of the size of a hop's time: refused hops; all of them: [`Reason::StampsTooCoarse`] (`nettimer-coarse-stamps`).
//!
//! # References
//!
//! - `[Lai00]` K. Lai, M. Baker: Measuring link bandwidths using a deterministic model of packet delay, SIGCOMM 2000.
//! - `[PDM03]` R. Prasad, C. Dovrolis, B. Mah: The effect of layer-2 store-and-forward devices on per-hop capacity estimation, Infocom 2003.

mod answer;
mod chain;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{Framing, Layer, Metric};

use crate::facts::Answering;
use crate::methods::campaign::{self, read_framing, within};
#[cfg(doc)]
use crate::outcome::{Caveat, Reason};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope,
};

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Tailgate;

static INFO: MethodInfo = MethodInfo {
    name: "tailgate",
    summary: "capacity of each hop from small packets behind large ones that die on the way",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: false,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 60_000,
        max_octets: 3_000_000,
        typical_time: Duration::from_secs(2),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &[
        ("rounds", "trains per hop at most, 4..1000; 60"),
        ("hops", "hops at most, 1..64; 16"),
        ("octets", "IP octets of a large packet, 200..65535; path MTU"),
        ("small", "IP octets of a small packet, 40..500; 64"),
        ("spacing", "from train to train, 0..10 s; 20 ms"),
        (
            "lead",
            "by which a lone small packet goes before each train, 100 us..1 s; 5 ms",
        ),
        (
            "framing",
            "of every link: ethernet, vlan, bare, or octets per packet; ethernet",
        ),
    ],
    source: include_str!("tailgate.rs"),
};

campaign::method!(Tailgate, answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]);

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Trains per hop at most.
    pub rounds: u32,
    /// Hops at most.
    pub hops: u8,
    /// IP octets of a large packet; `None`: what the path takes.
    pub large_octets: Option<u16>,
    /// IP octets of a small packet.
    pub small_octets: u16,
    /// From the begin of one train to the begin of the next.
    pub spacing: Duration,
    /// From the lone small packet to the train.
    pub lead: Duration,
    /// How links wrap packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rounds: 60,
            hops: 16,
            large_octets: None,
            small_octets: 64,
            spacing: Duration::from_millis(20),
            lead: Duration::from_millis(5),
            framing: Framing::ETHERNET,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let octets: u16 = raw.get("octets", 0)?;
        let params = Self {
            rounds: raw.get("rounds", base.rounds)?,
            hops: raw.get("hops", base.hops)?,
            large_octets: Some(octets).filter(|octets| *octets > 0),
            small_octets: raw.get("small", base.small_octets)?,
            spacing: raw.get_duration("spacing", base.spacing)?,
            lead: raw.get_duration("lead", base.lead)?,
            framing: read_framing(raw, base.framing)?,
        };
        within(
            (4..=1000).contains(&params.rounds),
            "rounds",
            params.rounds,
            "4 to 1000",
        )?;
        within((1..=64).contains(&params.hops), "hops", params.hops, "1 to 64")?;
        let large = params.large_octets.is_none_or(|octets| octets >= 200);
        within(large, "octets", octets, "200 to 65535")?;
        let small = params.small_octets;
        let fits = (40..=500).contains(&small) && params.large_octets.is_none_or(|large| small * 2 <= large);
        within(fits, "small", small, "40 to 500, and half of octets at most")?;
        let spacing = params.spacing <= Duration::from_secs(10);
        within(
            spacing,
            "spacing",
            units::format_duration(params.spacing).as_str(),
            "0 to 10 s",
        )?;
        let lead = (Duration::from_micros(100)..=Duration::from_secs(1)).contains(&params.lead);
        within(
            lead,
            "lead",
            units::format_duration(params.lead).as_str(),
            "100 us to 1 s",
        )?;
        Ok(params)
    }
}

impl Params {
    /// What the longest run imposes: every hop and round, and round trips of up to a tenth of a second (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let trains = self.rounds.saturating_mul(u32::from(self.hops) + 1);
        let octets = u64::from(self.large_octets.unwrap_or(1500)) + 2 * u64::from(self.small_octets);
        let each = self.lead + self.spacing.max(Duration::from_millis(100)).saturating_mul(2);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(trains) * octets),
            max_time: usual.max_time.max(each.saturating_mul(trains)),
            ..usual.clone()
        }
    }
}
