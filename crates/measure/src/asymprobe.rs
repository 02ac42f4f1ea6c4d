//! asymprobe: estimates IP capacity of both directions from echoed pairs whose requests and replies differ in length.
//!
//! # Model
//!
//! ```text
//!            P1 long ▮▮ ──▶ [narrow there, C1] ──▶ far end
//!  sender                                             │ replies of P2 octets
//!            T  ▪  ▪ ◀── [narrow back, C2] ◀──────────┘
//!
//!  T = max(8 P1 / C1, 8 P2 / C2)
//! ```
//!
//! Requests leave the way there dispersed by its narrow link; the replies keep that dispersion on the way back, unless they are so
//! long that the narrow link there takes longer for one. Long requests with short replies show the way there, short requests with
//! long replies the way back, as long as the directions differ by no more than the sizes do.
//!
//! # Assumptions
//!
//! - A1 FIFO hops of constant rate, no reordering, in both directions.
//! - A2 The sender is faster than the narrow link there; the far end answers faster than it is asked.
//! - A3 The sender's stamps resolve the dispersion, and neither host sees packets in batches.
//! - A4 Now and then a pair crosses all hops, there and back, without waiting.
//! - A5 The far end answers in packets of the length asked for.
//!
//! # Formula
//!
//! With `W(L)` the octets that framing makes of L IP octets: `C1' = 8 W(P1) / T`, `C2' = 8 W(P2) / T`, T from the pairs that met no queue
//! (the filter of `capprobe`, on round trips of one clock). Each is at most the capacity. `C1'` is it if and only if
//! `W(P1)/W(P2) >= C1/C2`, `C2'` if and only if the reverse: with 1500 and 64 octets directions may differ by a factor of 15.
//!
//! *Size test.* T is taken again with a third size in the long packets' place. If it shrank, the other direction's part of the
//! maximum, which is the same in both, was not the greater one before: exact. If it did not, or shrank by more than the sizes, the
//! value is a bound. (`[AsymProbe05]` asks for proportional change; a change at all is enough, since the third size alone may fall
//! below the other direction's part.)
//!
//! *Least round trips* (our derivation, with the plan of `[TRIO]`: three solve, a fourth validates). Of first packets that met no
//! queue, `R(P1, P2) = k + Σ 8 W(P1)/C_i + Σ 8 W(P2)/C_j` over the hops there and back. So `R(long, short) - R(short, short)` is what a
//! long packet takes longer on all hops there together, `R(short, long) - R(short, short)` on all hops back, and
//! `R(long, long) - R(short, short)` must be the sum of the two, to 5 %. The narrow link takes no longer than all hops together: a
//! second lower bound on either capacity, without any limit of asymmetry, and close to it where one slow hop dominates. It replaces the first
//! where that is lower (`by_round_trips`).
//!
//! Two numbers come out: the capacity there is the main estimate, the capacity back stands beside it as `reverse_ip_capacity`, each
//! with its own interval and verdict (exact: estimated; else lower bound).
//!
//! # Parameters
//!
//! Declared below; `narrows methods asymprobe` prints the table.
//!
//! # Cost
//!
//! Idle path: 41 pairs of each of six kinds, 300 kB there and as much back; 4 s at 10 Mbit/s, 25 s where one direction has
//! 1 Mbit/s. At most ten times that.
//!
//! # Fails when
//!
//! - A1: as `capprobe`. A2: a host that takes 95 % of T per packet makes a lower bound, [`Caveat::ReceiverLimited`].
//! - A3: [`Reason::ReceiveBatching`], [`Reason::StampsTooCoarse`] (100 Mbit/s need stamps of 12 us). Batches at the far end alone are
//!   not seen: they join requests, and the replies are spread by the way back.
//! - A4: [`Reason::NotConverged`] if the way there has no settled pairs. Twice as many hops must be idle as one way.
//! - A5: far ends that echo what they get have one size: [`Reason::NotOffered`]. TCP's answers (40 octets) and ICMP errors (576 at most,
//!   which requests of both long sizes must fill) have one size too, but another: two of the six kinds, and the way there alone.
//! - Directions that differ by more than the sizes: the faster one is a lower bound with [`Caveat::AsymmetricLimit`].
//!
//! # References
//!
//! - `[AsymProbe05]` L.-J. Chen, T. Sun, G. Yang, M. Y. Sanadidi, M. Gerla: End-to-end asymmetric link capacity estimation, IFIP
//!   Networking 2005.
//! - `[TRIO]` E. W. W. Chan, X. Luo, R. K. C. Chang: TRIO: measuring asymmetric capacity with three minimum round-trip times, `CoNEXT`
//!   2011.
//! - `[CapProbe04]` R. Kapoor, L.-J. Chen, L. Lao, M. Gerla, M. Y. Sanadidi: `CapProbe`: a simple and accurate capacity
//!   estimation technique, SIGCOMM 2004.

mod answer;
mod params;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

pub use self::params::Params;
pub use self::run::Run;
use narrows_probe::contract::Estimator;
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct AsymProbe;

static INFO: MethodInfo = MethodInfo {
    name: "asymprobe",
    summary: "capacity of both directions from echoed pairs of unlike requests and replies",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 300_000,
        max_octets: 4_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("asymprobe.rs"),
};

impl Method for AsymProbe {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    /// Echoes of another size need a server; answers of one known size show the way there alone.
    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::ClosedPort, Answering::TcpSyn]
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        let Ok(params) = Params::try_from(raw) else {
            return usual;
        };
        let factor = params.most.div_ceil(Params::default().most);
        let time = usual.max_time * u32::try_from(factor).unwrap_or(u32::MAX).max(1);
        usual.lasting(time)
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::lead(Run::new(Params::try_from(params)?), observations)
    }
}
