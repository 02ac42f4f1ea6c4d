//! capacity: the automatic choice for IP capacity, from packet pairs and trains as short as the samples allow.
//!
//! # Model
//!
//! ```text
//!  sender ──▶ [hop 1] ──▶ [narrow hop, C] ──▶ [hop 3] ──▶ receiver
//!  ▮▮           ▮▮           ▮   ▮              ▮   ▮         ▮   ▮
//!  back to back              └─Δ─┘ set here, kept by faster hops
//! ```
//!
//! The phases of `pathrate` (its manual has the model), shortened, checked, and ended by the samples themselves. It is what the main
//! job asks, and what `narrows capacity` asks without a method's name.
//!
//! # Assumptions
//!
//! - A1 FIFO hops of constant rate, no reordering; a token bucket holds no more than the longest train.
//! - A2 The sender is faster than the narrow link.
//! - A3 Arrival stamps resolve the dispersion of a train that the path lets through.
//! - A4 Some pairs cross the path undisturbed.
//! - A5 Other traffic comes in packets of the probes' order of size; very small ones at a steady rate act like a slower link
//!   unless the sender is much faster than the narrow link.
//!
//! # Formula
//!
//! After a first train come up to three *looks* (3 short trains, 2 long ones, 2 of small packets) that end the run when all
//! agree; then *rounds* of 16 pairs and 2 trains, until the winning mode leads by a factor of two, three rounds in a row, with
//! the dispersion rate below it. Where stamps are too coarse for pairs the "pairs" are bulks long enough to bring the timing
//! error to 4 %, as in `[PBProbe08]`.
//!
//! *Check.* Low variation alone ends no run, because traffic of constant rate x slows all trains alike, from C to
//! `r C / (r + x)`. A train paced at the rate found tells the two apart: `r C / (r + x) + x > C` whenever
//! `r + x > C`, so that the check is slowed unless the rate found is the capacity (`Session::narrow_is_loaded`). What checks
//! say bounds the candidates: with an idle narrow link only modes near the trains' rate remain, or that rate itself; with a
//! loaded one nothing above twice the dispersion rate, since `r C / (r + x) >= C / 2` while `r >= C >= x`.
//!
//! *Filter.* The second opinion, on the pairs that were sent anyway (`[CapProbe04]`; `capprobe`): to squeeze a pair or to
//! widen it takes a queue, and a queue delays, so that the pair with the least `d1 + d2` of one-way delays shows the
//! capacity. It counts as converged if three pairs have `d1 + d2 <= min d1 + min d2` to 1 % of their dispersion (or three
//! stamp errors) and agree to 3 %. From the second round
//! on up to 960 pairs of 250 octets (and a third of them 600) follow, behind a packet of 60 and eight to a report: the shorter the time
//! for which all queues must be empty, the more often they are. Where stamps are too coarse for them, larger ones or bulks. All pairs come at
//! random times, for to those that keep step with regular traffic a queue looks like none.
//! Converged, it needs no mode to be strong: if it agrees with the winner within the bin width or
//! 3 % the confidence is high; if not, and two sizes have converged alike or six pairs are clean, its rate is the answer and
//! the mode the [`Caveat::Multimodal`], unless it lies below the dispersion rate. Without it, and with other traffic on the
//! narrow link not ruled out, a mode is an answer only if it holds two in five pairs and has no rival; else the dispersion rate
//! is a lower bound.
//!
//! *Framing.* The value is that of full-size packets, measured with them wherever enough came through undisturbed. Packets of 1500, 600
//! and 576 octets on an idle path, or clean pairs of two sizes, also tell what layer 2 adds: `o = (L1 T2 - L2 T1) / (T1 - T2)` of the times of
//! two sizes, and cells of ATM by a third (`framing`). `layer2_framing`, `layer2_octets` and `marginal_bps` in the evidence say it; rates of
//! small packets are restated by it. A rate of small packets alone whose framing nothing tells is no answer, but a strong mode of
//! full-size pairs that some framing makes the same is one.
//!
//! *Buckets.* `bucket::look` reads every train of twelve packets and more. On a path that agreed at once, one long train follows:
//! what is left of 97 kB, or, from 15 Mbit/s on, 480 kB or 10 ms of the rate, at most 800 packets. If it bends, more follow, each after a
//! pause in which the bucket fills. Trains that bend at one place make the answer the bucket's rate, [`Caveat::Shaped`], with
//! `peak_bps` and `burst_octets` beside it. If none bends, `bucket_excluded_octets` says what depth was ruled out (of buckets that
//! hold a train to four fifths of the peak; of slower ones more), and the confidence is high only from 90 kB on; below, [`Caveat::BucketNotExcluded`] says up
//! to which depth there is none. The same is asked where the sender is the narrowest of all, whose rate would else be a bound above a
//! bucket's, and behind rounds whose trains begin fast and end slow. Trains that all bend, each elsewhere, make the least that one kept up a bound.
//!
//! *Batches.* Where the receiver sees packets in batches, the stamps are instants of interrupts, and the packets between two of
//! them are known to one: `8 W(L) (b - a) / (t_b - t_a)` from the begin of the second batch to that of the last, of four trains of
//! ten batches (at most 1000 packets). Three paced trains then tell whether other traffic slowed them, which makes it a
//! lower bound.
//!
//! *Odd paths.* Where packets came in batches or overtook, where trains of one rate began after random delays, or where the answer is a
//! value of low confidence, a second part sends what `signature` sends, with at most 600 packets a train and one flow. Not below 8 Mbit/s,
//! where that lasts (20 Mbit/s for signs that other traffic gives as well), nor above 12 Gbit/s, or 6 Gbit/s in batches,
//! which only receivers make there. Channels, aggregation, grants, a bucket, and receivers whose batches contradict the pairs make its answer the answer; a
//! single link or other traffic leave the pairs' answer as it is; two rates without a cause leave the lower as a lower bound, as
//! does a low confidence in pairs that came a tenth faster than long trains: they may show no more than what passes within one burst of a
//! medium. The cause is in the evidence.
//! Delays of which one in five are the least are those of a queue, and no medium is asked for.
//!
//! *Interval.* Of nine tenths, of two errors whose squares add (`interval`): the 5th to the 95th percentile of what the clock's ticks make
//! probable, a dispersion of `s` ticks being read as `m` with the probability `1 - |m - s|`, where readings that never differ may be in step and
//! count as one; and 50 ppm, within which nine in ten clocks are. Where dispersions differ by more than ticks explain, instead of the first
//! `t(0.95, n - 1) s √n / T` of `n` that last `T` together and differ from one rate by `s`. What only the filter says may also hide a queue of
//! half a step. The long train that looks for a bucket counts where its packets came along one line.
//!
//! # Parameters
//!
//! Declared below; `narrows methods capacity` prints the table.
//!
//! # Cost
//!
//! Idle path below 15 Mbit/s: some 70 packets, 97 kB, 0.3 s at 10 Mbit/s. Faster: 0.6 MB at 100 Mbit/s in 0.1 s, 1.3 MB at 1 Gbit/s in 50 ms,
//! nearly all of it the look for buckets. Loaded path: 0.4 to 1.9 MB, 2 to 10 s at 10 Mbit/s. Receiver that batches: 4 to 9 MB, from
//! 10 Gbit/s on. The mean is below 15 % of the narrow link.
//! A second part: 4 to 14 MB more, 2 to 6 s.
//!
//! # Fails when
//!
//! - A1: reordered trains are no samples, [`Caveat::Reordering`]. A bucket too deep to bend the longest train does not show: the
//!   answer is then the link's rate, not the bucket's, its confidence is medium, and [`Caveat::BucketNotExcluded`] says so. Below 15 Mbit/s
//!   that is any bucket of more than a few packets, and beside other traffic none is looked for. Bursts of a medium that hold a whole train show by their delays alone; below
//!   8 Mbit/s nobody asks, and the answer is the rate within a burst.
//! - A2: departures as wide as arrivals make it a lower bound, [`Caveat::SenderLimited`] (unless the rate is that of the
//!   sender's interface, which is a link of the path).
//! - A3: the program reading slower than packets come gives a lower bound, [`Caveat::ReceiverLimited`]; bins
//!   wider than a quarter of the value, [`Reason::StampsTooCoarse`] or [`Reason::NoAgreement`]. A rate above one packet per
//!   three receive costs may be that of the host taking packets out of a batch: [`Caveat::TimerLimited`].
//! - A4: the dispersion rate is a lower bound, [`Caveat::NotConverged`]; where a quarter of the packets is lost,
//!   [`Reason::TooMuchLoss`].
//! - A5: the samples may agree on a rate that is too low; the check keeps the confidence below high where that traffic exceeds
//!   some tenth of the link, and `narrow_link_loaded` in the evidence is the warning.
//!
//! # References
//!
//! - `[Pathrate04]` C. Dovrolis, P. Ramanathan, D. Moore: Packet-dispersion techniques and a capacity-estimation methodology,
//!   IEEE/ACM Transactions on Networking 12(6), 2004.
//! - `[CapProbe04]` R. Kapoor, L.-J. Chen, L. Lao, M. Gerla, M. Y. Sanadidi: `CapProbe`: a simple and accurate capacity
//!   estimation technique, SIGCOMM 2004.
//! - `[PBProbe08]` L.-J. Chen, T. Sun, B.-C. Wang, M. Y. Sanadidi, M. Gerla: `PBProbe`: a capacity estimation tool for high
//!   speed networks, Computer Communications 31(17), 2008.
//! - `[ShaperProbe11]` P. Kanuparthy, C. Dovrolis: `ShaperProbe`: end-to-end detection of ISP traffic shaping using active methods,
//!   IMC 2011.

mod odd;
pub mod pathrate;
mod run;
pub mod signature;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use self::run::Run;

use crate::capacity::pathrate::Preset;
use narrows_probe::contract::Estimator;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// `pathrate`'s phases as short as the samples allow, with checks of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity;

static INFO: MethodInfo = MethodInfo {
    name: "capacity",
    summary: "capacity from pairs and trains, as few as agree; the automatic choice",
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
        typical_octets: 97_000,
        max_octets: 25_000_000,
        typical_time: Duration::from_millis(300),
        max_time: Duration::from_secs(35),
        fills_path: false,
    },
    parameters: pathrate::AUTOMATIC_PARAMETERS,
    source: include_str!("capacity.rs"),
};

impl Method for Capacity {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(pathrate::Params::read(raw, Preset::Adaptive)?)))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        run::analyse(observations, pathrate::Params::read(raw, Preset::Adaptive)?)
    }
}
