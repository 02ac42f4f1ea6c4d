//! The main job: one description of a path, from many methods.
//!
//! [`main_job`] runs the methods in order over any world, hands each what the earlier ones found,
//! skips what the host cannot do, spends a second method where doubt remains, and keeps what is
//! known when something breaks. It is as pure as the methods are: the same world gives the same
//! report.

mod available;
mod combine;
mod plan;

use std::time::Duration;

pub use narrows_probe::Entry;
use narrows_units::{Direction, Metric};

use crate as methods;
use narrows_probe::budget::{Budget, Cost};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, Quantity, Reason};
use narrows_probe::progress::{Feed, Observed, PlannedStage, Progress, StageBegan, StageEnded};
use narrows_probe::registry::RawParams;
use narrows_probe::world::{Measured, Order, World, run};

pub use available::Available;
pub use plan::Profile;

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
    let mut job = Job { facts: world.facts(), options, entries: Vec::new(), cost: Cost::default() };
    let fault = plan::carry_out(&mut job, &mut Observed::new(world, feed), feed).err();
    JobReport { facts: job.facts, entries: job.entries, cost: job.cost, fault }
}

/// The job under way.
struct Job<'a> {
    facts: PathFacts,
    options: &'a JobOptions,
    entries: Vec<Entry>,
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

    /// Runs one method and returns its entry; its cost is on the account.
    fn measure<W: World>(
        &mut self,
        world: &mut W,
        feed: &dyn Feed,
        metric: Metric,
        name: &'static str,
        params: &[(&'static str, String)],
    ) -> Result<Entry, W::Fault> {
        self.measure_within(world, feed, metric, name, params, Duration::MAX)
    }

    /// The same, ended after `time` at the latest.
    fn measure_within<W: World>(
        &mut self,
        world: &mut W,
        feed: &dyn Feed,
        metric: Metric,
        name: &'static str,
        params: &[(&'static str, String)],
        time: Duration,
    ) -> Result<Entry, W::Fault> {
        let direction = self.options.direction;
        let began = StageBegan { metric, direction, method: name.to_owned() };
        feed.tell(world.now(), Progress::StageBegan(began));
        let mut fault = None;
        let measured = match begin(name, params) {
            Ok((method, raw, estimator)) => {
                let mut budget = self.budget_left(method, &raw);
                budget.time = budget.time.min(time);
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
        doubt_stalled_hosts(&mut entry.outcome);
        feed.tell(world.now(), Progress::StageEnded(StageEnded::of(&entry)));
        match fault {
            None => Ok(entry),
            Some(fault) => {
                self.keep(entry);
                Err(fault)
            }
        }
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
/// path.
fn doubt_stalled_hosts(outcome: &mut Outcome) {
    if let Outcome::Estimated(estimate) = outcome
        && estimate.caveats.iter().any(|caveat| matches!(caveat, Caveat::HostStall | Caveat::ClockStep))
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
