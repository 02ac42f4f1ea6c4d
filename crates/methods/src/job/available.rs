#![doc = include_str!("available.md")]

use std::time::Duration;

use narrows_units::{Layer, Metric, Sender, Stamp};

use super::combine::{cap_by, taken_over};
use narrows_measure::available as slope;
use narrows_measure::available::machine::Machine as SlopeMachine;
use narrows_measure::capacity::Capacity;
use narrows_probe::budget::lasts;
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::facts::{Answering, PathFacts};
use narrows_probe::observations::{AnalyseError, Observations, Replayable, replay};
use narrows_probe::outcome::{Confidence, Estimate, Outcome, Reason};
use narrows_probe::probes::Probe;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::echoed::Echoed;

/// `capacity` in brief, then `slope`. Parameters are `slope`'s.
pub struct Available;

impl Method for Available {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(Echoed::begin(params, Joined::new)?))
    }

    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::Reflector, Answering::Echo]
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        replay(Echoed::begin(params, Joined::of_trains)?, observations)
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "available",
    summary: "available bandwidth by the growth of delays near the turning point, below the capacity",
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
    // What the two impose.
    imposes: Imposes {
        typical_octets: 1_500_000,
        max_octets: 825_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(23),
        fills_path: false,
    },
    parameters: slope::PARAMETERS,
    manual: include_str!("available.md"),
};

/// Octets after which no further round of the capacity's begins; octets and time after which it is
/// told to stop: shares of what the trains will cost (ours).
const CAPACITY_OCTETS: &str = "600 kB";
const CAPACITY_MOST: u64 = 5_000_000;
/// And one octet of so many that the run may send: the question is what is available.
const CAPACITY_SHARE: u64 = 4;
const CAPACITY_TIME: Duration = Duration::from_secs(3);
/// Parameters that say what the capacity would, or ask for something else than the usual run.
const NO_CAPACITY: [&str; 7] = ["narrow", "capacity", "start", "mode", "octets", "trains", "bucket"];

/// The state machines, one after the other.
struct Joined {
    /// What the trains run with, once the capacity is known.
    params: RawParams,
    /// What is asked for the capacity first, where a server answers.
    capacity: Option<Box<dyn Estimator>>,
    /// The same while it is under way.
    brief: Option<Brief>,
    /// What it came to.
    known: Option<Estimate>,
    trains: SlopeMachine,
    facts: Option<PathFacts>,
}

/// The capacity's estimator, the octets that it may still send, and when its time is over.
struct Brief {
    capacity: Box<dyn Estimator>,
    left: u64,
    until: Stamp<Sender>,
}

impl Joined {
    fn new(params: &RawParams) -> Result<Self, ParamError> {
        let mut brief = RawParams::new();
        brief.set("max_octets", CAPACITY_OCTETS);
        let wanted = NO_CAPACITY.iter().all(|name| params.typed(name).is_none());
        let capacity = wanted.then(|| Capacity.begin(&brief)).transpose()?;
        Ok(Self { capacity, ..Self::of_trains(params)? })
    }

    /// Without the capacity: what others have recorded is read as trains.
    fn of_trains(params: &RawParams) -> Result<Self, ParamError> {
        Ok(Self {
            params: params.clone(),
            capacity: None,
            brief: None,
            known: None,
            trains: SlopeMachine::new(slope::Params::try_from(params)?),
            facts: None,
        })
    }

    /// The capacity, where a server's stamps tell it; else the trains at once.
    fn begin(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        let answered = facts.answering == Answering::Server;
        match self.capacity.take().filter(|_| answered) {
            Some(mut capacity) => {
                let left = facts.octet_budget.map_or(CAPACITY_MOST, |all| CAPACITY_MOST.min(all / CAPACITY_SHARE));
                let step = capacity.step(now, Event::Started(facts));
                self.after_capacity(now, Brief { capacity, left, until: now + CAPACITY_TIME }, step, false)
            }
            None => self.trains.step(now, Event::Started(facts)),
        }
    }

    /// The capacity's step, or the trains' first one.
    fn after_capacity(&mut self, now: Stamp<Sender>, mut brief: Brief, step: Step, stopped: bool) -> Step {
        let outcome = match brief.within(now, step) {
            Step::Done(outcome) => outcome,
            step => {
                self.brief = Some(brief);
                return step;
            }
        };
        // One that was cut short, or is not sure of itself, bounds nothing.
        self.known = outcome.estimate().filter(|known| known.confidence > Confidence::Low).cloned();
        let mut params = self.params.clone();
        for (name, value) in outcome.estimate().map(taken_over).unwrap_or_default() {
            params.set(name, value);
        }
        let (Ok(params), Some(facts), false) = (slope::Params::try_from(&params), self.facts.clone(), stopped) else {
            let reason = match outcome {
                Outcome::Inconclusive { reason, .. } => reason,
                Outcome::Estimated(_) => Reason::NotConverged,
            };
            return Step::Done(answered_by_trains(Outcome::inconclusive(reason)));
        };
        self.trains = SlopeMachine::new(params);
        let step = self.trains.step(now, Event::Started(facts));
        self.capped(step)
    }

    /// The trains' step; their answer is no more than the capacity.
    fn capped(&self, step: Step) -> Step {
        let Step::Done(mut outcome) = step else { return step };
        if let Some(known) = &self.known {
            cap_by(known, &mut outcome);
        }
        Step::Done(answered_by_trains(outcome))
    }
}

impl Brief {
    /// The capacity's step, or its answer if the step would take too long or too many octets.
    fn within(&mut self, now: Stamp<Sender>, step: Step) -> Step {
        let (octets, ends) = match &step {
            Step::Send(Probe::Train(train)) => (train.ip_octets(), now + lasts(&step)),
            Step::Wait { until } => (0, *until),
            Step::Send(_) | Step::Done(_) => return step,
        };
        if octets <= self.left && ends <= self.until {
            self.left -= octets;
            return step;
        }
        self.capacity.step(now, Event::Stop(Reason::TimeSpent))
    }
}

impl Estimator for Joined {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        let stopped = matches!(event, Event::Stop(_));
        if let Event::Started(facts) = event {
            self.facts = Some(facts.clone());
            return self.begin(now, facts);
        }
        if let Some(mut brief) = self.brief.take() {
            let step = brief.capacity.step(now, event);
            return self.after_capacity(now, brief, step, stopped);
        }
        let step = self.trains.step(now, event);
        self.capped(step)
    }
}

impl Replayable for Joined {
    const READS: (&'static str, &'static str) = SlopeMachine::READS;

    fn replay_step(&mut self, asked: &Probe) -> bool {
        self.trains.replay_step(asked)
    }
}

/// Named in the evidence, since the trains are a method of their own.
fn answered_by_trains(mut outcome: Outcome) -> Outcome {
    let (details, diagnostics) = match &mut outcome {
        Outcome::Estimated(estimate) => (&mut estimate.details, &mut estimate.diagnostics),
        Outcome::Inconclusive { details, diagnostics, .. } => (details, diagnostics),
    };
    details.answered_by = Some("slope".to_owned());
    diagnostics.insert("answered_by", "slope");
    outcome
}

#[cfg(test)]
mod tests {
    use narrows_units::BitRate;

    use super::*;
    use narrows_probe::outcome::BoundKind;
    use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};

    fn measured(hops: Vec<Hop>, seed: u64) -> Outcome {
        let mut estimator = Available.begin(&RawParams::new()).expect("defaults are fine");
        let mut host_pair = ClosedFormWorld::new(hops, seed);
        host_pair.measure(estimator.as_mut(), Available.info().imposes.budget()).outcome
    }

    fn by(outcome: &Outcome) -> String {
        format!("{:?}", outcome.details().answered_by)
    }

    #[test]
    fn an_even_path_needs_no_second_opinion() {
        let hop = Hop::loaded(BitRate::from_mbps(100), Cross::constant(BitRate::from_mbps(40)));
        let outcome = measured(vec![hop], 3);
        assert!(by(&outcome).contains("\"slope\""), "{}", by(&outcome));
        let estimate = outcome.estimate().expect("a value");
        assert_eq!(estimate.verdict(), BoundKind::Estimated);
        assert!((50_000_000..65_000_000).contains(&estimate.in_unit().value), "{}", estimate.in_unit().value);
    }

    /// Traffic in bursts of twenty packets: most intervals hold what is free in the long run, in at
    /// most six seconds. Single values may be far off.
    #[test]
    fn bursts_make_a_range() {
        let traffic = Cross { burst: 20, ..Cross::poisson(BitRate::from_mbps(50)) };
        let (mut held, mut values) = (0, Vec::new());
        for seed in 1..=10 {
            let outcome = measured(vec![Hop::loaded(BitRate::from_mbps(100), traffic.clone())], seed);
            let estimate = outcome.estimate().expect("a value");
            values.push(estimate.in_unit().value as f64);
            assert!(estimate.interval.is_some_and(|time| time < Duration::from_secs(12)));
            let truth = 47_530_000;
            held += u32::from(estimate.in_unit().low <= truth && truth <= estimate.in_unit().high);
        }
        assert!((8..=10).contains(&held), "{held}");
        let median = narrows_stat::median(&values).unwrap();
        assert!((25e6..75e6).contains(&median), "{values:?}");
    }

    /// Told to stop, it answers at once, whichever machine is at work, and its time is bounded.
    #[test]
    fn stops_and_ends() {
        let mut estimator = Available.begin(&RawParams::new()).expect("defaults are fine");
        let facts = PathFacts::ideal(1500, Duration::from_millis(10));
        let at = Stamp::from_nanos(0);
        assert!(matches!(estimator.step(at, Event::Started(facts)), Step::Send(_)));
        assert!(matches!(estimator.step(at, Event::Stop(Reason::Interrupted)), Step::Done(_)));
        let hop = Hop::loaded(BitRate::from_mbps(2), Cross::poisson(BitRate::from_mbps(1)));
        let mut host_pair = ClosedFormWorld::new(vec![hop], 7);
        let mut estimator = Available.begin(&RawParams::new()).expect("defaults are fine");
        let cost = host_pair.measure(estimator.as_mut(), Available.info().imposes.budget()).cost;
        assert!(cost.time <= Duration::from_secs(60), "{cost:?}");
    }
}
