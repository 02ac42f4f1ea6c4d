#![doc = include_str!("kite2.md")]

mod pairs;
mod params;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric, Sender, Stamp};

use crate::turning::{Ending, MethodRun, Round, RoundAccount, Rule, Settings, Turn};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations, Replayable};
use narrows_probe::outcome::Outcome;
use narrows_probe::probes::Probe;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::train_method::Machine;

use pairs::PairRun;
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
    const READS: (&'static str, &'static str) =
        ("kite2", "trains of 16 packets or more to the receiver, of ever lower rates");

    fn turn(&mut self, settings: &Settings, seen: &RoundAccount) -> Turn {
        let Some(round) = seen.judged().next_back() else {
            return Turn::Stop(Ending::Exhausted);
        };
        if round.is_congested() {
            let gap = round.gap_in() + round.stretch().max(seen.limit_ns(settings, round));
            return if gap < WIDEST_NS { Turn::Gap(gap) } else { Turn::Stop(Ending::TooLow) };
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

    fn value(&self, _: &Settings, seen: &RoundAccount) -> Option<f64> {
        let matched: Vec<f64> = seen.judged().filter(|round| !round.is_congested()).map(Round::rate_in).collect();
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
    Pairs(Box<Machine<PairRun>>),
    Trains(Box<Machine<MethodRun<Matching>>>),
}

impl Both {
    fn new(params: Params) -> Self {
        let now = match params.mode {
            Mode::Trains => Running::trains(&params),
            Mode::Auto | Mode::Pairs => Running::Pairs(Box::new(Machine::new(PairRun::new(params.clone())))),
        };
        Self { params, facts: None, now }
    }
}

impl Running {
    fn trains(params: &Params) -> Self {
        let rule = Matching { iterations: params.iterations };
        Self::Trains(Box::new(Machine::new(MethodRun::new(rule, params.search.clone()))))
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

impl Replayable for Both {
    const READS: (&'static str, &'static str) =
        ("kite2", "trains of pairs, or trains of 16 packets or more, to the receiver");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        match &mut self.now {
            Running::Pairs(machine) => machine.replay_step(asked),
            Running::Trains(machine) => machine.replay_step(asked),
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
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 2_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: params::Typed::PARAMETERS,
    manual: include_str!("kite2.md"),
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
        observations::replay(Both::new(Params::try_from(raw)?), observations)
    }
}
