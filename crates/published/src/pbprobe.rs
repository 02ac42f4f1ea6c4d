//! pbprobe: estimates IP capacity from the bulk of packets that waited least, long enough for coarse stamps.
//!
//! # Model
//!
//! ```text
//!  sender ──▶ [hop 1] ──▶ [narrow hop, C] ──▶ receiver
//!  ▮▮▮▮▮▮       ▮▮▮▮▮▮      ▮ ▮ ▮ ▮ ▮ ▮         ▮ ▮ ▮ ▮ ▮ ▮
//!  k + 1, back to back                          d1         d2
//!                                               └─ k packets' time ─┘
//! ```
//!
//! The filter of `capprobe` on bulks instead of pairs: `d1` is the delay of the first packet, `d2` that of the last. A bulk takes
//! long enough for stamps of a microsecond and worse to tell its dispersion at any rate, and needs a longer idle moment.
//!
//! # Assumptions
//!
//! - A1 FIFO hops of constant rate, no reordering; queues hold a bulk.
//! - A2 The sender is faster than the narrow link.
//! - A3 Arrival stamps resolve the bulk's dispersion.
//! - A4 Now and then a bulk crosses all hops without waiting.
//! - A5 Delays compare: clocks drift steadily, and the route stays.
//! - A6 With echoes: the way back is no narrower than the way there.
//!
//! # Formula
//!
//! `C = 8 W(L) k / δ`, δ the dispersion in seconds of the bulks that met no queue, `W(L)` the octets that the narrow link's framing
//! makes of L IP octets. k begins at 1; while the selected δ is below the threshold, `k := 10 k` and the count begins anew: 1 at
//! 10 Mbit/s, 10 at 100 Mbit/s, 100 at 1 Gbit/s, 1000 at 10 Gbit/s, 10 000 at 100 Gbit/s. From the begin of one bulk to the next
//! passes `G = 2 δ / U` on average, with U the permitted utilisation. A bulk with any loss or reordering is dropped. The run ends
//! as one of `capprobe` (`stable` bulks without a new minimum, the condition met) or with the `bulks`-th bulk.
//!
//! Ours: the threshold rises to 50 steps of the clock (or errors of a stamp), and to 20 batches of a receiver that batches. There,
//! the time counts from the second batch that begins within the bulk to the last one, whose stamps are late alike, and the condition
//! holds to one batch. Bulks that some queue cannot hold are halved; where bulks find no idle moment and stamps allow it, bulks of
//! a tenth are tried. Packets come in whole ones, so that the best of many bulks may hold as many packets of others each, and tie:
//! under load, the mean gap of the clean bulks must be their median gap to 5 %, or, where stamps do not tell gaps, bulks of packets
//! 0.7 times as long must agree to 5 %. The interval reaches to the median gap, or, without gaps, to what the scatter s of all
//! dispersions allows (`Run::least_each_ns`).
//!
//! Ours, too: traffic at a steady rate on the narrow link, or on one not much faster behind it, takes the same share of all bulks, and
//! no bulk does without. Of bulks that leave at 0.95 of the answer it takes a share again; one of these must come as it left, to 1 %
//! and what stamps and batches blur, or the answer is a lower bound (`paced.rs`).
//!
//! # Parameters
//!
//! Declared below; `narrows methods pbprobe` prints the table.
//!
//! # Cost
//!
//! Idle path: 10 bulks of each shorter length and 41 of the last; 0.8 MB at 100 Mbit/s, 6.5 MB at 1 Gbit/s, 630 MB at 100 Gbit/s,
//! some 10 s at each (2 δ / 1 % is a quarter of a second), 100 s at 1 Mbit/s. At most 200 bulks of each length.
//!
//! # Fails when
//!
//! - A1: a bulk longer than a queue loses packets and is halved; if nothing comes through, [`Reason::TooMuchLoss`] or
//!   [`Reason::NoAnswer`]. A token bucket deeper than a bulk is not seen: the answer is the link's rate.
//! - A2: a winner that left as wide as it came is a lower bound, [`Caveat::SenderLimited`]; a program that reads slower than packets
//!   come, [`Caveat::ReceiverLimited`].
//! - A3: with `most_packets` reached and stamps above a twentieth of δ, [`Reason::StampsTooCoarse`]; fewer than four batches per
//!   bulk, [`Reason::ReceiveBatching`].
//! - A4: load on links not much faster than the narrow one, where a bulk takes as long as on it: [`Reason::NotConverged`].
//!   Packets at a steady rate on a hop as slow as the narrow one part all bulks alike: no paced bulk comes as it left, and the answer is
//!   a lower bound with [`Caveat::NotConverged`]; so it is where load leaves no idle moment as long as a bulk. A sender that cannot keep
//!   that pace leaves it open: the same caveat beside an answer of low confidence.
//! - A5, A6: as `capprobe`.
//!
//! # References
//!
//! - `[PBProbe08]` L.-J. Chen, T. Sun, B.-C. Wang, M. Y. Sanadidi, M. Gerla: `PBProbe`: a capacity estimation tool for high speed
//!   networks, Computer Communications 31(17), 2008.
//! - `[pbprobe]` source of its tool.
//! - `[CapProbe04]` R. Kapoor, L.-J. Chen, L. Lao, M. Gerla, M. Y. Sanadidi: `CapProbe`: a simple and accurate capacity
//!   estimation technique, SIGCOMM 2004.

mod answer;
mod paced;
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
    Activity, Classification, Deployment, EVERYTHING, Imposes, Method, MethodInfo, Methodology, Needs, ParamError,
    Privilege, Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct PbProbe;

static INFO: MethodInfo = MethodInfo {
    name: "pbprobe",
    summary: "capacity from the bulk of packets that met no queue; for fast paths and coarse stamps",
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
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 1_000_000,
        max_octets: 3_300_000_000,
        typical_time: Duration::from_secs(14),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("pbprobe.rs"),
};

impl Method for PbProbe {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn answered_by(&self) -> &'static [Answering] {
        &EVERYTHING
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        let Ok(params) = Params::try_from(raw) else {
            return usual;
        };
        let usual_parameters = Params::default();
        let factor = params.bulks as f64 / usual_parameters.bulks as f64 * usual_parameters.utilisation
            / params.utilisation.min(usual_parameters.utilisation);
        usual.clone().lasting(usual.max_time.mul_f64(factor.clamp(1.0, 1e4)))
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
