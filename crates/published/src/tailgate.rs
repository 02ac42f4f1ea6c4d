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
//! Declared below; `narrows methods tailgate` prints the table.
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

use narrows_units::{Framing, Layer, Metric};

use narrows_probe::facts::Answering;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::campaign;
use narrows_train::campaign::within;

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
    parameters: Params::PARAMETERS,
    source: include_str!("tailgate.rs"),
};

campaign::method!(Tailgate, answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Trains per hop at most.
        pub rounds: u32 = "60" {
            range: Between("4", "1000"), source: "ours; ends when errors are 1 % of the slowest hop's time",
        },
        /// Hops at most.
        pub hops: u8 = "16" { range: Between("1", "64"), source: "ours: more make the chain's errors large anyway" },
        /// IP octets of a large packet.
        pub large_octets: Option<u16> = "path MTU" {
            name: "octets", unit: "IP octets", range: Between("200", "65535"), unset: Some("0"),
            source: "[Lai00]: as large as fits",
        },
        /// IP octets of a small packet, half of a large one's at most.
        pub small_octets: u16 = "64" {
            name: "small", unit: "IP octets", range: Between("40", "500"),
            source: "[Lai00]: 40; raised to what the world takes",
        },
        /// From the begin of one train to the begin of the next.
        pub spacing: Duration = "20 ms" { range: Between("0 s", "10 s"), source: "ours, varied by half either way" },
        /// From the lone small packet to the train.
        pub lead: Duration = "5 ms" { range: Between("100 us", "1 s"), source: "ours" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let fits = self.large_octets.is_none_or(|large| self.small_octets * 2 <= large);
        within(
            fits,
            "small",
            self.small_octets,
            "40 to 500, and half of octets at most",
        )
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
