//! signature: estimates IP capacity of links that are not one FIFO link, from the rates of trains over their length.
//!
//! # Model
//!
//! ```text
//!              ┌─ channel 1, c ─┐        b(N)  ▲ pairs: the link before
//!  sender ──▶──┼─ channel 2, c ─┼──▶           │╲  ╱╲
//!              └─ channel n, c ─┘              │ ╲╱  ╲╱╲___ n·c
//!                                              └──────────▶ N
//!  burst  ▮▮▮▮▮▮▮▮ contention ▮▮▮▮▮▮▮▮         slot  │▮▮▮▮│▮▮▮▮│▮▮▮▮│
//! ```
//!
//! A train of N packets, back to back, arrives at the rate b(N), first packet not counted. On one idle FIFO link b(N) is flat. Links of several
//! channels, links that gather frames into bursts (IEEE 802.11 A-MPDU), links with slots and grants (LTE, DOCSIS, GPON), token buckets, other
//! traffic and receivers that see batches each bend it in their own way (`capacity` §11.3), and on each of them pairs show something else than
//! what the link carries. The method sends trains of all lengths, small packets, sizes mixed, single packets, and trains below the path's rate;
//! says which of these it is; and measures the rate accordingly.
//!
//! | what is seen | cause |
//! |---|---|
//! | b(N) flat | single link |
//! | b(N) falls to a plateau, or scatters; a train paced below the rate is slowed | cross traffic |
//! | groups of n packets whatever their size, or gaps that repeat after n, and small packets overtake large ones | n channels |
//! | one rate, then a lower one from a fixed number of octets on | token bucket |
//! | batches under load that shrink below it; single packets delayed at random | aggregation |
//! | single packets arrive in the phase of a slot in which they did not leave | grants |
//! | batches of one period (or count) under load and below it | receive batching |
//! | b(N) rises, the ends of trains agree | startup |
//! | trains arrive as they left | sender limited |
//! | several flows together get more than one | channels by flow |
//!
//! # Assumptions
//!
//! - A1 The sender is faster than the narrow link, by a quarter at least.
//! - A2 The narrow link is little used by others, or its use shows as a delay that grows over a train paced just below the rate found.
//! - A3 Links behind the narrow one are faster, and leave the gaps that it made.
//! - A4 Stamps resolve a tenth of a slot, and an eighth of a batch's period.
//! - A5 A bucket holds less than a long train (360 kB by default), and fills again between trains.
//!
//! # Formula
//!
//! - Rate of a train with batches: IP octets of batches 2..n over the time from the last packet of the first batch to the last of the nth, n
//!   the last whole one (`capacity` §11.1; `Split::rate_bps`). On n channels of rate c that is n c exactly, for groups follow one another
//!   at `8 W / c`: a train of N packets takes `(ceil(N/n) - 1) 8 W / c` (`capacity` §11.3 \[D\]), and what the link before adds,
//!   `((N - 1) mod n) 8 W / r`.
//! - Slots: least squares of octets over the ends of slots, whole ones (§11.2; `Split::slope_bps`).
//! - Batches: gaps below 0.35 of the mean are 40 % of all, or gaps of 1.35 medians come regularly (`batches::split`; §11.1 asks for half
//!   of the gaps below a tenth of the mean, which bursts spaced at their PHY rate, and two channels, never have).
//! - Slot: the longest candidate T with `|sum exp(2 pi i t / T)| / n >= 0.9` over arrivals of single packets and at most 0.6 over their
//!   departures (Rayleigh's statistic, §11.2; `grants::slot_ns`). Candidates are those of the standards and the batches' period over 1 to 4.
//! - Knee: the arrival farthest from the chord of a train's arrivals; both parts even to 12 %, the second below 0.8 of the first
//!   (`knee::knee`). The value is the rate behind it.
//! - Aggregation or receiver (§11.1, two-sided): a train at a third to 0.6 of the rate keeps the period of a timer (0.75 to 1.35 of it, and
//!   a gap) or the count of a counter, and shrinks the bursts of a medium (below 0.7); single packets then differ by over 6 stamp errors.
//! - Load: slope of the one-way delay over a train paced at 0.97 (0.93 with batches) of the rate found, less half a period where there are
//!   batches; above 0.03 the link carries others too, and the rate is a lower bound (`Path::is_loaded`).
//! - Value: median over trains; low and high: 10th and 90th percentile, widened by 0.2 %. Never without that spread.
//!
//! # Parameters
//!
//! Declared below; `narrows methods signature` prints the table.
//!
//! # Cost
//!
//! Some 60 trains of 4 to 6 MB where there are no batches, up to 25 MB with bursts of 42 frames; 2 to 4 s, 7 s at 30 Mbit/s, 30 s at 5 Mbit/s.
//! Long trains fill the narrow link's queue. At the end eight flows send three times the rate for at least 20 ms (`flows = 1` leaves it out);
//! only if they get more follow loads of 16 and 32 flows.
//!
//! # Fails when
//!
//! - A1: trains arrive as they left: a lower bound, [`Caveat::SenderLimited`] (scenario `signature-slow-sender`).
//! - A2: the rate is a lower bound (`signature-loaded`, `signature-wifi-loaded`); less than some 5 % of others' traffic is not seen, and
//!   biases the value by as much over the sender's advantage. Jitter and random loss look alike.
//! - A3: a slower link behind that spaces what came in batches hides them: the rate is right, and called a single link's.
//! - A4: batches without a cause, [`Caveat::ReceiveBatching`] with low confidence. A receiver whose interrupt timer runs freely keeps a
//!   phase as slots do, and is called so.
//! - A5: the rate of the link in front of a deeper bucket is taken for the path's: confident and wrong.
//! - Bundles that put packets in order again show as batches unless their groups differ from a receiver's.
//! - Flows that a hash puts on one channel, all eight (one in 128 for two channels), show one.
//!
//! # References
//!
//! - `[Pathrate04]` C. Dovrolis, P. Ramanathan, D. Moore: Packet-dispersion techniques and a capacity-estimation methodology,
//!   IEEE/ACM Transactions on Networking 12(6), 2004 (the preliminary phase: lengths 2 to 10).
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis: Effects of interrupt coalescence on network measurements, PAM 2004.
//! - `[Dovrolis01]` C. Dovrolis, P. Ramanathan, D. Moore: What do packet dispersion techniques measure? Infocom 2001 (multichannel links).
//! - `[80211]` IEEE 802.11-2016: aggregation, block acknowledgement.
//! - `[Mardia00]` K. Mardia, P. Jupp: Directional Statistics, 2000 (Rayleigh's statistic).

mod answer;
mod batches;
mod cause;
mod classify;
mod grants;
mod knee;
mod params;
mod plan;
mod rungs;
#[cfg(test)]
mod tests;
mod trains;

use std::time::Duration;

use narrows_units::{Layer, Metric, Sender, Stamp};

pub use cause::{Cause, Rung, Signature, Spread};
pub use classify::classify;
pub use params::Params;

use self::plan::{Planner, Told};
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::{AnalyseError, Observations};
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{FarEnd, Probe, TrainId};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct SignatureMethod;

static INFO: MethodInfo = MethodInfo {
    name: "signature",
    summary: "capacity of parallel, aggregating and slotted links, and which of them it is",
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
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 6_000_000,
        max_octets: 400_000_000,
        typical_time: Duration::from_millis(2500),
        max_time: Duration::from_secs(60),
        fills_path: true,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("signature.rs"),
};

impl Method for SignatureMethod {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        let _: Params = Params::try_from(params)?;
        let mut told = Told::default();
        let mut stopped = observations.stopped.clone();
        for row in &observations.rows {
            match (&row.asked, &row.told) {
                (Probe::Train(train), Event::Train(report)) if train.far_end == FarEnd::Receiver => {
                    told.trains.push(report.clone());
                }
                (Probe::Load(load), Event::Load(report)) => told.loads.push((*load, report.clone())),
                // As in the state machine: only what ended the run.
                (Probe::Train(train), Event::Refused(refusal)) if train.far_end == FarEnd::Receiver => {
                    stopped = refusal_reason(*refusal).or(stopped);
                }
                _ => {}
            }
        }
        if told.trains.is_empty() && stopped.is_none() {
            return Err(observations.nothing("signature", "trains to the receiver"));
        }
        Ok(answer::conclude(&observations.facts, &told, stopped.as_ref()))
    }
}

/// Why a refused train ends a run; a smaller size does not.
fn refusal_reason(refusal: Refusal) -> Option<Reason> {
    match refusal {
        Refusal::TooLarge { .. } => None,
        Refusal::TooSmall { .. } | Refusal::NotOffered => Some(Reason::NotOffered {
            what: "trains of packets towards a receiver that stamps them".to_owned(),
        }),
        Refusal::ForbiddenByPeer => Some(Reason::ForbiddenByPeer),
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    planner: Planner,
    facts: Option<PathFacts>,
    told: Told,
    /// What was asked last, on its way or waiting for its time.
    current: Option<Probe>,
    waits: bool,
    serial: u32,
    not_before: Option<Stamp<Sender>>,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            planner: Planner::new(params),
            facts: None,
            told: Told::default(),
            current: None,
            waits: false,
            serial: 0,
            not_before: None,
        }
    }

    fn proceed(&mut self, now: Stamp<Sender>) -> Step {
        let Some(facts) = &self.facts else {
            return unexpected();
        };
        self.serial += 1;
        self.current = self.planner.next(facts, &self.told, self.serial);
        match (&self.current, self.not_before.filter(|until| *until > now)) {
            (None, _) => Step::Done(self.conclude(None)),
            (Some(_), Some(until)) => {
                self.waits = true;
                Step::Wait { until }
            }
            (Some(probe), None) => Step::Send(probe.clone()),
        }
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        match &self.facts {
            Some(facts) => answer::conclude(facts, &self.told, stopped),
            None => Outcome::inconclusive(stopped.cloned().unwrap_or(Reason::UnexpectedEvent)),
        }
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        let asked = self.current.take();
        match (asked, refusal, &mut self.facts) {
            (Some(Probe::Train(train)), Refusal::TooLarge { max_ip_octets }, Some(facts))
                if max_ip_octets > 0
                    && train.packets.iter().any(|packet| packet.ip_octets > max_ip_octets)
                    && max_ip_octets < facts.path_mtu =>
            {
                facts.path_mtu = max_ip_octets;
                self.proceed(now)
            }
            // Several flows at once are the last question, and a luxury.
            (Some(Probe::Load(_)), _, _) => self.proceed(now),
            (Some(Probe::Train(_)), _, _) => {
                let reason = refusal_reason(refusal).unwrap_or(Reason::UnexpectedEvent);
                Step::Done(self.conclude(Some(&reason)))
            }
            _ => unexpected(),
        }
    }
}

fn unexpected() -> Step {
    Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent))
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => {
                self.facts = Some(facts);
                self.proceed(now)
            }
            Event::TimerFired if self.waits => {
                self.waits = false;
                match &self.current {
                    Some(probe) => Step::Send(probe.clone()),
                    None => unexpected(),
                }
            }
            Event::Train(report) if report.id == TrainId(self.serial) && self.current.is_some() => {
                if let Some(facts) = &self.facts {
                    self.not_before = Some(now + self.planner.pause(facts, &report));
                }
                self.told.trains.push(report);
                self.proceed(now)
            }
            Event::Load(report) => match self.current.take() {
                Some(Probe::Load(load)) => {
                    self.told.loads.push((load, report));
                    self.proceed(now)
                }
                _ => unexpected(),
            },
            Event::Refused(refusal) if !self.waits => self.refused(now, refusal),
            Event::Stop(reason) => Step::Done(self.conclude(Some(&reason))),
            _ => unexpected(),
        }
    }
}
