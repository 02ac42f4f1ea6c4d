//! Kite 2: estimates available IP-layer path capacity from the spacing of packet pairs or trains, lowered until it survives the path.
//!
//! # Model
//!
//! FIFO links; on the tight one the traffic of others, `X`, takes a share `u = X/C` of the capacity `C` and leaves `A = C - X`.
//!
//! ```text
//!  train of pairs  ||      ||     ||       ||     spacing inside pairs: g_in out, g_out in;
//!                  g  silence                     mean growth above its error: slower, g := g_in + growth
//!  packet train    | | | | | | | | | | | |        the same with the mean spacing of a train
//! ```
//!
//! It begins as fast as the sender can, compares the mean inter-packet interval at the receiver with that at the sender, and
//! slows down until they match, in three iterations at least.
//!
//! # Assumptions
//!
//! - A1 FIFO queues, and traffic of others that does not yield.
//! - A2 That traffic is a fluid: over a train; for pairs over the few packet times of one spacing, which it hardly ever is.
//! - A3 The sender can go faster than what is available.
//! - A4 Departure stamps are true; planned gaps are never used.
//! - A5 What is available stays for the time of the search, for it never goes back.
//! - A6 Pairs alone: stamps tell the spacing of two packets; the narrow link is the tight one.
//!
//! # Formula
//!
//! Spacings in ns, `L` bits of a packet at the IP layer, `d` the mean growth.
//!
//! - Trains: as `yaz` with full steps, `g := g_out`; three rounds at least; the value is the mean rate of the matching rounds.
//! - Pairs: `d` without the tenth at either end; too fast if `d` is above the resolution and above twice its standard error
//!   (`congested`). Next `g := g_in + max(d, resolution)`. Value: `L/g_in` where it stops, kept to the interval.
//! - Interval of pairs. Bursts lengthen the mean spacing beyond the fluid's, at any rate: `E[g_out] >= max(g_in, L/C + u g_in)`
//!   (`[LRL07]`, recalled), with equality while the queue never empties between the two, `g_in <= L/C`. So each rate gives
//!   `A >= R (1 - (d + 2 se) C/L)`, and pairs about as close as `L/C` give `A = C (1 - (g_out - L/C)/g_in)` with twice its
//!   standard error, as `spruce` has it (`bounds`). `L/C` is where the spacings of the closest pairs crowd (`pairs.rs`).
//! - Silence: pairs take `occupied` of the fastest rate seen.
//!
//! # Parameters
//!
//! Declared below; `narrows methods kite2` prints the table.
//!
//! # Cost
//!
//! Pairs at 100 Mbit/s: 0.5 to 1.5 MB, 5 to 15 s (with `preset=tool` a hundred times as long: the budget ends it); at 1 Gbit/s a
//! tenth of that time. Trains as `yaz`. `[Kachan17]` saw 1.6 Gbit/s of load with trains at 10 Gbit/s.
//!
//! # Fails when
//!
//! - A2, pairs: under traffic in packets of the probes' own size the mean spacing grows at any rate. The point is 10 to 40 % low with many
//!   pairs, high with few; the interval says how little is known, and confidence is low.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict), [`Caveat::SenderLimited`](narrows_probe::Caveat), with trains; pairs of which most come as they
//!   left show no narrow link: `mode=auto` changes to trains, `mode=pairs` ends with [`Reason::SenderTooSlow`](narrows_probe::Reason).
//! - A6, a receiver that batches or stamps coarsely: `mode=auto` changes to trains, `mode=pairs` ends with
//!   [`Reason::ReceiveBatching`](narrows_probe::Reason) or [`Reason::StampsTooCoarse`](narrows_probe::Reason).
//! - A6, a tight link that is not narrow: the pairs' interval is too high.
//! - Loss: torn pairs are left out; more than half torn, [`Reason::TooMuchLoss`](narrows_probe::Reason). Trains as `yaz`.
//! - The text of `[Kachan17]` contradicts itself on the sign of its error: over "at high speeds", and under by up to 100 Mbit/s.
//!
//! # References
//!
//! - `[Kachan17]` D. Kachan, V. Kirova, M. Korniichuk, Performance evaluation of PRM-based available bandwidth using estimation tools
//!   in a high-speed network environment, 2017: parts, order and settings. Tests, filter and bounds are derived; no source was found.
//! - `[LRL07]` X. Liu, K. Ravindran, D. Loguinov, A Queueing-Theoretic Foundation of Available Bandwidth Estimation: Single-Hop
//!   Analysis, IEEE/ACM Transactions on Networking 15, 2007. Recalled.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.

mod pairs;
mod params;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric, Sender, Stamp};

use crate::turning::{Ending, Round, Rule, Seen, Session, Settings, Turn};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Follower, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::probes::Probe;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::campaign::Machine;

use pairs::PairSession;
pub use params::{Mode, Params};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Kite2;

/// Lowers trains until they match.
#[derive(Debug, Clone)]
struct Matching {
    iterations: usize,
}

impl Rule for Matching {
    const READS: (&'static str, &'static str) = (
        "kite2",
        "trains of 16 packets or more to the receiver, of ever lower rates",
    );

    fn turn(&mut self, settings: &Settings, seen: &Seen) -> Turn {
        let Some(round) = seen.judged().next_back() else {
            return Turn::Stop(Ending::Exhausted);
        };
        if round.is_congested() {
            let gap = round.gap_in() + round.stretch().max(seen.limit_ns(settings, round));
            return if gap < WIDEST_NS {
                Turn::Gap(gap)
            } else {
                Turn::Stop(Ending::TooLow)
            };
        }
        let first = seen.judged().all(|round| !round.is_congested()) && settings.start.is_some();
        if seen.judged().count() < self.iterations {
            Turn::Gap(round.gap_in())
        } else if first {
            Turn::Stop(Ending::BelowStart)
        } else {
            Turn::Stop(Ending::Settled)
        }
    }

    fn value(&self, _: &Settings, seen: &Seen) -> Option<f64> {
        let matched: Vec<f64> = seen
            .judged()
            .filter(|round| !round.is_congested())
            .map(Round::rate_in)
            .collect();
        narrows_stat::mean(&matched).filter(|rate| rate.is_finite())
    }
}

/// Spacings wider than this are not tried: 100 ms from packet to packet.
const WIDEST_NS: f64 = 1e8;

/// Pairs until they are seen not to do, trains from then on.
#[derive(Debug, Clone)]
struct Both {
    params: Params,
    facts: Option<PathFacts>,
    now: Running,
}

/// What is under way.
#[derive(Debug, Clone)]
enum Running {
    Pairs(Box<Machine<PairSession>>),
    Trains(Box<Machine<Session<Matching>>>),
}

impl Both {
    fn new(params: Params) -> Self {
        let now = match params.mode {
            Mode::Trains => Running::trains(&params),
            Mode::Auto | Mode::Pairs => Running::Pairs(Box::new(Machine::new(PairSession::new(params.clone())))),
        };
        Self {
            params,
            facts: None,
            now,
        }
    }
}

impl Running {
    fn trains(params: &Params) -> Self {
        let rule = Matching {
            iterations: params.iterations,
        };
        Self::Trains(Box::new(Machine::new(Session::new(rule, params.search.clone()))))
    }
}

impl Estimator for Both {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        if let Event::Started(facts) = &event {
            self.facts = Some(facts.clone());
        }
        let stopped = matches!(event, Event::Stop(_));
        let step = match &mut self.now {
            Running::Trains(machine) => return machine.step(now, event),
            Running::Pairs(machine) => machine.step(now, event),
        };
        let hidden = |outcome: &Outcome| match outcome {
            Outcome::Inconclusive { reason, .. } => pairs::hidden(reason),
            Outcome::Estimated(_) => false,
        };
        match (&step, self.facts.clone()) {
            (Step::Done(outcome), Some(facts)) if hidden(outcome) && self.params.mode == Mode::Auto && !stopped => {
                self.now = Running::trains(&self.params);
                match &mut self.now {
                    Running::Trains(machine) => machine.step(now, Event::Started(facts)),
                    Running::Pairs(_) => step,
                }
            }
            _ => step,
        }
    }
}

impl Follower for Both {
    const READS: (&'static str, &'static str) = (
        "kite2",
        "trains of pairs, or trains of 16 packets or more, to the receiver",
    );

    fn follow(&mut self, asked: &Probe) -> bool {
        match &mut self.now {
            Running::Pairs(machine) => machine.follow(asked),
            Running::Trains(machine) => machine.follow(asked),
        }
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "kite2",
    summary: "available bandwidth from pairs or trains that slow down until their mean spacing survives the path",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeRate,
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
        typical_octets: 2_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: params::Typed::PARAMETERS,
    source: include_str!("kite2.rs"),
};

impl Method for Kite2 {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        Params::try_from(raw).map_or(usual.clone(), |params| params.search.imposes(&usual))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Both::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        observations::lead(Both::new(Params::try_from(raw)?), observations)
    }
}
