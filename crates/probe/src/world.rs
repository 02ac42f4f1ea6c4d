//! What carries out probes, and the loop that joins it to a method.

use narrows_units::{Direction, Metric, Sender, Stamp};

use crate::budget::{Budget, Cost, Meter, restrain};
use crate::contract::{Estimator, Event, Latest, Step};
use crate::error::ParamError;
use crate::facts::PathFacts;
use crate::outcome::{Outcome, Reason};
use crate::probes::Probe;
use crate::registry::{Method, RawParams};

/// What the sockets, the simulator and a recording each implement.
///
/// A world measures one direction. Its *sender* is the host whose packets cross that direction
/// first; in the reverse direction that is the remote host, and
/// [`Arrival::departed`](crate::probes::Arrival) is on that host's clock. [`World::now`] is always
/// the clock of the host that runs the estimator, so a method compares `now` with `now` and rows
/// with rows, never one with the other.
pub trait World {
    /// The machine broke (not: the path gave no answer).
    type Fault;

    /// The sender's clock.
    fn now(&self) -> Stamp<Sender>;

    /// What is known of path and hosts.
    fn facts(&self) -> PathFacts;

    /// A method is about to run: [`run`] says so. Worlds that keep a record want to know which; the
    /// others need not.
    fn begins(&mut self, order: &Order<'_>) {
        let _ = order;
    }

    /// Carries out a probe, and returns when its answer is complete.
    fn send(&mut self, probe: Probe) -> Result<Event, Self::Fault>;

    /// Lets time pass.
    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Self::Fault>;

    /// The method has answered: by itself, or because it was told to stop for a reason. Comes
    /// before [`World::rest`].
    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        let _ = (measured, stopped);
    }

    /// A method is over: gives back what others may be waiting for. What was sent is on its way
    /// already.
    fn rest(&mut self) -> Result<(), Self::Fault> {
        Ok(())
    }

    /// The user asked for an end.
    fn stop_requested(&self) -> bool {
        false
    }
}

/// Everything that a run needs.
pub struct Order<'a> {
    /// What is asked for.
    pub metric: Metric,
    /// By which method.
    pub method: &'a str,
    /// With which parameters.
    pub params: &'a RawParams,
    /// Within which bounds.
    pub budget: Budget,
    /// The method with these parameters, at its beginning.
    pub estimator: Box<dyn Estimator>,
}

impl<'a> Order<'a> {
    /// Of a registered method, for its own metric; bad parameters are the caller's.
    pub fn new(method: &dyn Method, params: &'a RawParams, budget: Budget) -> Result<Self, ParamError> {
        let info = method.info();
        Ok(Self { metric: info.metric, method: info.name, params, budget, estimator: method.begin(params)? })
    }
}

/// An outcome and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What the method concluded.
    pub outcome: Outcome,
    /// What it imposed.
    pub cost: Cost,
}

/// One metric, answered or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// By which method.
    pub method: &'static str,
    /// The answer.
    pub outcome: Outcome,
    /// What it took. Quantities that fell out of another metric's observations cost nothing of
    /// their own.
    pub cost: Cost,
}

/// The world broke under a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Broken<F> {
    /// How.
    pub fault: F,
    /// What the method made of what it had by then.
    pub measured: Measured,
}

/// Carries out an order, of which the world is told first.
pub fn run<W: World>(world: &mut W, mut order: Order<'_>) -> Result<Measured, Broken<W::Fault>> {
    world.begins(&order);
    drive(world, order.estimator.as_mut(), order.budget)
}

/// The same, and tells what the method says on the way, whenever that has changed.
pub fn watch<W: World>(
    world: &mut W,
    mut order: Order<'_>,
    reported: &mut dyn FnMut(&Latest),
) -> Result<Measured, Broken<W::Fault>> {
    world.begins(&order);
    carry(world, order.estimator.as_mut(), order.budget, Some(reported))
}

/// The loop of [`run`] without a word to those who keep records: for replays, and for machines that
/// are not registered.
pub fn drive<W: World>(
    world: &mut W,
    method: &mut dyn Estimator,
    budget: Budget,
) -> Result<Measured, Broken<W::Fault>> {
    carry(world, method, budget, None)
}

/// Who listens to what a method says on its way. Without anybody it is not asked: its answer may be
/// as costly as the one at the end.
type Listener<'a> = Option<&'a mut dyn FnMut(&Latest)>;

/// The only loop. The budget bounds it, so no method can run for ever; a method that is out of
/// budget, or whose world breaks, is told so once and answers from what it has.
fn carry<W: World>(
    world: &mut W,
    method: &mut dyn Estimator,
    budget: Budget,
    mut reported: Listener<'_>,
) -> Result<Measured, Broken<W::Fault>> {
    let mut last = None;
    let mut meter = Meter::new(budget, world.now());
    let mut facts = world.facts();
    facts.rate_cap = [facts.rate_cap, budget.peak].into_iter().flatten().min();
    facts.octet_budget = Some(budget.octets);
    let cap = facts.rate_cap;
    let mut event = Event::Started(facts);
    loop {
        let now = world.now();
        let step = match method.step(now, event) {
            Step::Send(probe) => Step::Send(restrain(probe, cap)),
            other => other,
        };
        if let Some(reported) = &mut reported {
            let latest = method.latest();
            if latest != last {
                latest.iter().for_each(&mut **reported);
                last = latest;
            }
        }
        let admitted = if world.stop_requested() { Err(Reason::Interrupted) } else { meter.admit(now, &step) };
        event = match (step, admitted) {
            (Step::Done(outcome), _) => return rested(world, outcome, &meter, None),
            (Step::Send(_) | Step::Wait { .. }, Err(reason)) => {
                let outcome = last_word(method, now, reason.clone());
                return rested(world, outcome, &meter, Some(&reason));
            }
            (Step::Send(probe), Ok(())) => match world.send(probe) {
                Ok(answer) => {
                    meter.settle(&answer);
                    answer
                }
                Err(fault) => return broken(world, method, fault, &meter),
            },
            (Step::Wait { until }, Ok(())) => match world.wait(until) {
                Ok(()) => Event::TimerFired,
                Err(fault) => return broken(world, method, fault, &meter),
            },
        };
    }
}

/// Tells a method that it is over, and takes its answer.
fn last_word(method: &mut dyn Estimator, now: Stamp<Sender>, reason: Reason) -> Outcome {
    match method.step(now, Event::Stop(reason.clone())) {
        Step::Done(outcome) => outcome,
        Step::Send(_) | Step::Wait { .. } => Outcome::inconclusive(reason),
    }
}

fn rested<W: World>(
    world: &mut W,
    outcome: Outcome,
    meter: &Meter,
    stopped: Option<&Reason>,
) -> Result<Measured, Broken<W::Fault>> {
    let cost = meter.cost(world.now());
    let measured = Measured { outcome, cost };
    world.concluded(&measured, stopped);
    match world.rest() {
        Ok(()) => Ok(measured),
        Err(fault) => Err(Broken { fault, measured }),
    }
}

fn broken<W: World>(
    world: &mut W,
    method: &mut dyn Estimator,
    fault: W::Fault,
    meter: &Meter,
) -> Result<Measured, Broken<W::Fault>> {
    let now = world.now();
    let outcome = last_word(method, now, Reason::WorldBroke);
    let cost = meter.cost(now);
    let measured = Measured { outcome, cost };
    world.concluded(&measured, Some(&Reason::WorldBroke));
    Err(Broken { fault, measured })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;
    use crate::contract::Refusal;
    use narrows_units::Octets;

    use crate::outcome::{Estimate, Ranged};

    /// A world in which time passes only by waiting.
    struct Idle(Stamp<Sender>);

    impl World for Idle {
        type Fault = Infallible;

        fn now(&self) -> Stamp<Sender> {
            self.0
        }

        fn facts(&self) -> PathFacts {
            PathFacts::ideal(1500, Duration::from_millis(10))
        }

        fn send(&mut self, _: Probe) -> Result<Event, Infallible> {
            Ok(Event::Refused(Refusal::NotOffered))
        }

        fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
            self.0 = until;
            Ok(())
        }
    }

    /// Tells how often it was asked, every second time.
    struct Teller(u64);

    impl Estimator for Teller {
        fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
            self.0 += 1;
            match event {
                Event::Stop(reason) => Step::Done(Outcome::inconclusive(reason)),
                _ => Step::Wait { until: now + Duration::from_secs(1) },
            }
        }

        fn latest(&self) -> Option<Latest> {
            let value = self.0 / 2;
            (value > 0).then(|| Latest {
                at: Stamp::from_nanos(0),
                estimate: Estimate::new(Metric::PathMtu, None, Ranged::exactly(Octets::new(value))),
            })
        }
    }

    #[test]
    fn what_changes_on_the_way_is_reported_once() {
        let mut reported = Vec::new();
        let mut world = Idle(Stamp::from_nanos(0));
        let budget = Budget { time: Duration::from_secs(6), ..Budget::default() };
        let order = Order {
            metric: Metric::PathMtu,
            method: "teller",
            params: &RawParams::new(),
            budget,
            estimator: Box::new(Teller(0)),
        };
        let Ok(_) = watch(&mut world, order, &mut |latest| {
            reported.push(latest.estimate.in_unit().value);
        });
        assert_eq!(reported, [1, 2, 3]);
    }

    /// Nobody may ask it.
    struct Silent;

    impl Estimator for Silent {
        fn step(&mut self, _: Stamp<Sender>, _: Event) -> Step {
            Step::Done(Outcome::inconclusive(Reason::NoAnswer))
        }

        fn latest(&self) -> Option<Latest> {
            panic!("nobody listens")
        }
    }

    #[test]
    fn where_nobody_listens_nothing_is_asked() {
        let Ok(measured) = drive(&mut Idle(Stamp::from_nanos(0)), &mut Silent, Budget::default());
        assert_eq!(measured.outcome, Outcome::inconclusive(Reason::NoAnswer));
    }

    /// Waits for ever, and counts.
    struct Waiter {
        stops: u32,
        fired: u32,
    }

    impl Estimator for Waiter {
        fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
            match event {
                Event::Stop(reason) => {
                    self.stops += 1;
                    return Step::Done(Outcome::inconclusive(reason));
                }
                Event::TimerFired => self.fired += 1,
                _ => {}
            }
            Step::Wait { until: now + Duration::from_secs(1) }
        }
    }

    #[test]
    fn a_method_that_never_ends_is_reported_to_stop_once() {
        let mut waiter = Waiter { stops: 0, fired: 0 };
        let mut world = Idle(Stamp::from_nanos(0));
        let Ok(measured) = drive(&mut world, &mut waiter, Budget::default());
        assert_eq!(measured.outcome, Outcome::inconclusive(Reason::TimeSpent));
        assert_eq!((waiter.stops, waiter.fired), (1, 60));
        assert_eq!(measured.cost.time, Duration::from_secs(60));
    }
}
