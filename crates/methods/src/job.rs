//! The main job: one description of a path, from many methods.
//!
//! [`main_job`] runs the methods in order over any world, hands each what the earlier ones found,
//! skips what the host cannot do, spends a second method where doubt remains, and keeps what is
//! known when something breaks. It is as pure as the methods are: the same world gives the same
//! report.

mod available;
mod combine;
mod plan;
mod timing;

pub use narrows_probe::Entry;
use narrows_units::{Direction, Metric};

use crate as methods;
use narrows_probe::budget::{Budget, Cost};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, Quantity, Reason};
use narrows_probe::progress::{Feed, Observed, PlannedStage, Progress, Repeated, StageBegan, StageEnded};
use narrows_probe::registry::RawParams;
use narrows_probe::world::{Measured, Order, World, run};

pub use available::Available;
pub use plan::Profile;
use timing::Repeats;
pub use timing::{StageTime, StageTiming, Timekeeper};

/// What the user wants of the main job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobOptions {
    /// How much to spend.
    pub profile: Profile,
    /// Bounds over the whole job.
    pub budget: Budget,
    /// The direction that the world measures.
    pub direction: Direction,
}

/// What the main job found.
#[derive(Debug)]
pub struct JobReport<F> {
    /// What was known before the first probe.
    pub facts: PathFacts,
    /// One entry per metric, in the order in which they were measured.
    pub entries: Vec<Entry>,
    /// How each stage was timed; empty where nobody kept the time.
    pub stages: Vec<StageTiming>,
    /// Sum over all runs, methods whose answer was superseded included.
    pub cost: Cost,
    /// The machine broke on the way; the entries say what was known by then.
    pub fault: Option<F>,
}

/// What a job with these options will measure, in its order, with what each stage usually takes.
pub fn stages(options: &JobOptions) -> Vec<PlannedStage> {
    plan::stages(options.profile, options.direction)
}

/// Runs the main job over `world`, and tells `feed` of it.
pub fn main_job<W: World>(world: &mut W, options: &JobOptions, feed: &dyn Feed) -> JobReport<W::Fault> {
    timed_job(world, options, feed, &())
}

/// The same over a path that is played on this machine: stages under which it did not keep time,
/// as `timekeeper` says, run again within bounds.
pub fn timed_job<W: World>(
    world: &mut W,
    options: &JobOptions,
    feed: &dyn Feed,
    timekeeper: &dyn Timekeeper,
) -> JobReport<W::Fault> {
    let mut job = Job {
        facts: world.facts(),
        options,
        timekeeper,
        repeats: Repeats::new(),
        entries: Vec::new(),
        stages: Vec::new(),
        cost: Cost::default(),
    };
    let fault = plan::carry_out(&mut job, &mut Observed::new(world, feed), feed).err();
    JobReport { facts: job.facts, entries: job.entries, stages: job.stages, cost: job.cost, fault }
}

/// The job under way.
struct Job<'a> {
    facts: PathFacts,
    options: &'a JobOptions,
    timekeeper: &'a dyn Timekeeper,
    repeats: Repeats,
    entries: Vec<Entry>,
    stages: Vec<StageTiming>,
    cost: Cost,
}

impl Job<'_> {
    /// The estimate of a metric, if there is one.
    fn known(&self, metric: Metric) -> Option<&Estimate> {
        self.entries.iter().find(|entry| entry.metric == metric).and_then(|entry| entry.outcome.estimate())
    }

    /// Its value, if there is one in this unit.
    fn value<T: Quantity>(&self, metric: Metric) -> Option<T> {
        self.known(metric)?.ranged().map(|range| range.value)
    }

    /// What is left of the whole job's budget, and at most what the method needs.
    fn budget_left(&self, method: &dyn narrows_probe::Method, params: &RawParams) -> Budget {
        let own = method.imposes(params).budget();
        let whole = self.options.budget;
        Budget {
            steps: whole.steps,
            octets: own.octets.min(whole.octets.saturating_sub(self.cost.octets)),
            time: own.time.min(whole.time.saturating_sub(self.cost.time)),
            peak: whole.peak,
        }
    }

    /// Runs one method, again if its timing was not valid, and returns the last entry; the cost of
    /// all runs is on the account.
    fn measure<W: World>(
        &mut self,
        world: &mut W,
        feed: &dyn Feed,
        metric: Metric,
        name: &'static str,
        params: &[(&'static str, String)],
    ) -> Result<Entry, W::Fault> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.timekeeper.stage_begins();
            let (entry, fault) = self.attempt(world, feed, metric, name, params);
            let time = self.timekeeper.stage_ended();
            let ends = fault.is_some() || world.stop_requested();
            if let Some(time) = time {
                let kept = timing::kept_for_later(metric, &self.stages);
                if !ends && self.repeats.again(attempts, time, entry.cost.time, kept) {
                    feed.tell(world.now(), Progress::Repeated(Repeated { metric, attempts }));
                    continue;
                }
                self.stages.push(StageTiming { metric, direction: entry.direction, attempts, time });
            }
            let Some(fault) = fault else { return Ok(entry) };
            self.keep(entry);
            return Err(fault);
        }
    }

    /// Runs one method once.
    fn attempt<W: World>(
        &mut self,
        world: &mut W,
        feed: &dyn Feed,
        metric: Metric,
        name: &'static str,
        params: &[(&'static str, String)],
    ) -> (Entry, Option<W::Fault>) {
        let direction = self.options.direction;
        let began = StageBegan { metric, direction, method: name.to_owned() };
        feed.tell(world.now(), Progress::StageBegan(began));
        let mut fault = None;
        let measured = match begin(name, params) {
            Ok((method, raw, estimator)) => {
                let budget = self.budget_left(method, &raw);
                let order = Order { metric, method: name, params: &raw, budget, estimator };
                run(world, order).unwrap_or_else(|broken| {
                    fault = Some(broken.fault);
                    broken.measured
                })
            }
            Err(reason) => Measured { outcome: Outcome::inconclusive(reason), cost: Cost::default() },
        };
        self.cost = self.cost.then(measured.cost);
        let mut entry = Entry { metric, direction, method: name, outcome: measured.outcome, cost: measured.cost };
        doubt_stalled_hosts(&mut entry);
        feed.tell(world.now(), Progress::StageEnded(StageEnded::of(&entry)));
        (entry, fault)
    }

    /// Adds an entry and, as entries of their own, the quantities that fell out of the same
    /// observations and that nothing else has measured.
    fn keep(&mut self, entry: Entry) {
        let also = entry.outcome.estimate().map(|estimate| estimate.also.clone()).unwrap_or_default();
        let (direction, method) = (entry.direction, entry.method);
        self.entries.push(entry);
        // What is said of one hop is no answer for the path.
        for estimate in also.into_iter().filter(|estimate| estimate.hop().is_none()) {
            if !self.entries.iter().any(|entry| entry.metric == estimate.metric) {
                self.entries.push(Entry {
                    metric: estimate.metric,
                    direction,
                    method,
                    outcome: estimate.into(),
                    cost: Cost::default(),
                });
            }
        }
    }
}

/// A host that stood still, or whose clock was set, has shown the method something else than the
/// path. The search for what is available tells its trains that met a standstill from the others,
/// and doubts them itself.
fn doubt_stalled_hosts(entry: &mut Entry) {
    let own = entry.metric == Metric::AvailableIpCapacity;
    let weighs = |caveat: &Caveat| match caveat {
        Caveat::HostStall => !own,
        Caveat::ClockStep => true,
        _ => false,
    };
    if let Outcome::Estimated(estimate) = &mut entry.outcome
        && estimate.caveats.iter().any(weighs)
    {
        estimate.confidence = Confidence::Low;
    }
}

/// A method, its parameters, and its state machine ready to run.
type Ready = (&'static dyn narrows_probe::Method, RawParams, Box<dyn narrows_probe::Estimator>);

fn begin(name: &'static str, params: &[(&'static str, String)]) -> Result<Ready, Reason> {
    let missing = |what: String| Reason::NotOffered { what };
    let method = methods::find(name).ok_or_else(|| missing(format!("the method {name}")))?;
    let raw: RawParams = params.iter().cloned().collect();
    let estimator = method.begin(&raw).map_err(|error| missing(error.to_string()))?;
    Ok((method, raw, estimator))
}

#[cfg(test)]
mod stalled {
    use super::*;

    #[test]
    fn what_is_available_is_not_doubted_for_a_standstill_alone() {
        let low = |metric: Metric, caveat: Caveat| {
            let rate = narrows_units::BitRate::from_mbps(50);
            let outcome = Estimate::ip_rate(metric, rate, rate, rate).caveat(caveat).into();
            let mut entry =
                Entry { metric, direction: Direction::Forward, method: "slope", outcome, cost: Cost::default() };
            doubt_stalled_hosts(&mut entry);
            entry.outcome.estimate().map(|estimate| estimate.confidence == Confidence::Low)
        };
        assert_eq!(low(Metric::AvailableIpCapacity, Caveat::HostStall), Some(false));
        assert_eq!(low(Metric::AvailableIpCapacity, Caveat::ClockStep), Some(true));
        assert_eq!(low(Metric::IpCapacity, Caveat::HostStall), Some(true));
    }
}
