//! IGI: estimates available IP-layer path capacity from the gaps that grew in the train that left as fast as the path lets through.
//!
//! # Model
//!
//! One FIFO link is narrow and tight; traffic of others takes a share of its capacity `C`.
//!
//! ```text
//!  gap in                 gap out, where the queue never empties
//!  |-----|-----|          |--own--|##others##|--own--|#|--own--|
//!     g                    own gap g_B = L/C; what is more than that is others' traffic
//!
//!  mean gap out
//!   |         __/ = gap in        below the turning point the path stretches trains,
//!   |______.-'                    above it they come as they left;
//!   |      |                      at it, they leave at the available rate
//!   +------+------- mean gap in
//!          turning point
//! ```
//!
//! The sender's gap grows until trains come as they left. There the packets are as close as they can be without driving
//! others away, so their gaps show the traffic of others as it is: *initial gap increasing*. [`ptr`](super::ptr) is the same search, and
//! answers with the rate of that train.
//!
//! # Assumptions
//!
//! - A1 FIFO queues; the tight link is the narrow one.
//! - A2 In the train the queue at that link never empties.
//! - A3 The narrow link's gap is the commonest of a back-to-back train.
//! - A4 Stamps resolve single gaps: no batches, fine clocks.
//! - A5 Both hosts are faster than what is available.
//!
//! # Formula
//!
//! Gaps `g` of packets that arrived one after the other, ns; `L` bits of a packet at the IP layer, `g_B` the commonest gap of the first trains
//! (`gaps/narrow.rs`: fullest bin and its two neighbours), `C = L / g_B`. The answer is stated for full-size packets: `C` counts the
//! octets of the wire, and their IP octets.
//!
//! - Grew (`session.rs`): `S_out > S_in (1 + tolerance)` with `S` the sum of the trains' mean gaps at one gap; the tool: by more than
//!   5 us per train. Two gaps in a row that do not grow end the search.
//! - Next gap: one step more; or half-way between mean gap in and mean gap out; or nine tenths of the way to where the line through the last
//!   two meets `g_out = g_in`: the farthest. In a fluid none passes the turning point, `g_out = g_B + u g_in`. After the end the
//!   bracket is halved to 2 % (ours).
//! - `X = C sum(g - g_B) / sum g`: above over gaps with `g > max(g_B, mean g_in)`, below over all (`answer.rs`). `A = C - X`, median over trains.
//! - Interval: Student's t of the trains' values, at least 2 % of `C`, and `C`'s own error; its lower end is that of all gaps, since those
//!   that did not grow may hold others' traffic, too.
//!
//! # Parameters
//!
//! Declared below; `narrows methods igi` prints the table.
//!
//! # Cost
//!
//! 8 to 14 gaps of three trains of 120 packets: 4 to 8 MB, 2 to 5 s on a 100 Mbit/s path. Faithful: three trains of 60 small packets
//! for 4 to 30 gaps, 0.4 to 3 MB.
//!
//! # Fails when
//!
//! - A1, a tight link that is not narrow: `C` is the wrong link's, and the answer is wrong without a sign (`igi-tight-is-not-narrow`);
//!   [`ptr`](super::ptr) does not use `C`.
//! - A2, bursts: at the turning point the queue empties, and gaps that did not grow hide traffic: too high. Confidence is low, and the
//!   interval reaches down to what all gaps say.
//! - A3: [`Caveat::CapacityAssumed`] where the sender, not a link, may have set that gap.
//! - A4: [`Reason::ReceiveBatching`](narrows_probe::Reason), [`Reason::StampsTooCoarse`](narrows_probe::Reason) (`igi-coalescing`).
//! - A5: [`Verdict::LowerBound`](narrows_probe::Verdict), never a point (`igi-slow-sender`). As published the tool takes the slow host's gap for the
//!   narrow link's: 219 Mbit/s where 907 were free (`[Jin03a]`); preset faithful does so, too.
//! - Not reproduced from the tool: bins of 25 us whatever the rate (above 150 Mbit/s all gaps share the first); a slack of
//!   5 us whatever the rate (at 1 Gbit/s no congestion is ever seen); the jump towards the middle that a division by the packet count
//!   disables; an end that waits for ever for a train that is lost. IP octets count, not payload. The published sum is taken where
//!   trains still grow: in a fluid no gap grows at the turning point itself, and the sum there is zero.
//!
//! # References
//!
//! - `[IGI03]` N. Hu, P. Steenkiste, Evaluation and Characterization of Available Bandwidth Probing Techniques, IEEE JSAC 21(6), 2003.
//!   Constants of the tool as in its release 2.2.
//! - `[Jin03a]` G. Jin, B. Tierney, System Capability Effects on Algorithms for Network Bandwidth Measurement, IMC 2003.

mod answer;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::campaign::Machine;

pub(super) use params::PTR;
pub use params::{Params, Preset};
pub(super) use session::{Formula, Session};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Igi;

static INFO: MethodInfo = MethodInfo {
    name: "igi",
    summary: "available bandwidth from gaps that grew in the train at the turning point",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeGap,
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
        pacing: true,
    },
    imposes: IMPOSES,
    parameters: &params::IGI,
    source: include_str!("igi.rs"),
};

/// What a search for the turning point imposes.
pub(super) const IMPOSES: Imposes = Imposes {
    typical_octets: 6_000_000,
    max_octets: 40_000_000,
    typical_time: Duration::from_secs(4),
    max_time: Duration::from_secs(60),
    fills_path: false,
};

impl Method for Igi {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        Params::of_igi(raw).map_or(IMPOSES, |params| params.imposes(&IMPOSES))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Machine::new(Session::new(Formula::Igi, Params::of_igi(raw)?))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        observations::lead(
            Machine::new(Session::new(Formula::Igi, Params::of_igi(raw)?)),
            observations,
        )
    }
}
