//! Many runs of one method, on as many processors as allowed, in the order of their seeds.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use estimate::probe::{Probe, Then, Transfer};
use estimate::{Event, Measured, Method, RawParams, World, run};
use report::{RunRow, SimulationDocument};
use scenario::{Scenario, Way};
use sim::SimWorld;
use units::{BitRate, Metric};

use crate::exit::Failure;
use crate::truth;

/// What to run.
pub(super) struct Batch<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) way: Way,
    pub(super) method: &'static dyn Method,
    /// What is judged; `None`: the method's main metric.
    pub(super) metric: Option<Metric>,
    pub(super) params: &'a [(String, String)],
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) jobs: usize,
}

pub(super) fn simulate(batch: &Batch<'_>) -> Result<SimulationDocument, Failure> {
    // Bad parameters are the caller's, and are told once, before any run.
    begin(batch)?;
    let next = AtomicU32::new(0);
    let worker = || -> Result<Vec<(u32, RunRow)>, Failure> {
        let mut rows = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= batch.runs {
                return Ok(rows);
            }
            rows.push((index, one(batch, batch.seed.wrapping_add(u64::from(index)))?));
        }
    };
    let mut rows = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..batch.jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            match worker.join() {
                Ok(part) => rows.extend(part?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, Failure>(())
    })?;
    rows.sort_by_key(|(index, _)| *index);
    let rows: Vec<RunRow> = rows.into_iter().map(|(_, row)| row).collect();
    let metric = metric(batch);
    let is_rate = metric.unit() == units::Unit::BitPerSecond;
    let scale = is_rate.then(|| truth::scale(batch.scenario, batch.way));
    let (scenario, method) = (batch.scenario.name.clone(), batch.method.info().name.to_owned());
    Ok(SimulationDocument::new(
        scenario, method, metric, batch.seed, rows, scale,
    ))
}

fn metric(batch: &Batch<'_>) -> Metric {
    batch.metric.unwrap_or(batch.method.info().metric)
}

fn begin(batch: &Batch<'_>) -> Result<Box<dyn estimate::Estimator>, Failure> {
    let mut raw = RawParams::new();
    for (name, value) in batch.params {
        raw.set(name, value);
    }
    batch
        .method
        .begin(&raw)
        .map_err(|error| Failure::usage(error.to_string()))
}

fn one(batch: &Batch<'_>, seed: u64) -> Result<RunRow, Failure> {
    let mut world = SimWorld::new(batch.scenario, batch.way, seed);
    let began = Duration::from_nanos(world.true_time());
    let mut estimator = begin(batch)?;
    let Ok(mut measured) = run(&mut world, estimator.as_mut(), batch.method.info().default_budget());
    let ended = Duration::from_nanos(world.true_time()).max(began + Duration::from_millis(1));
    if let Some(other) = batch.metric {
        measured = judged(measured, other);
    }
    let metric = metric(batch);
    let estimate = measured.outcome.estimate();
    let mut truth = truth::of(batch.scenario, batch.way, metric, estimate, (began, ended));
    if truth.is_none() && metric == Metric::TcpAchievableSingle {
        truth = long_transfer(batch, seed).map(BitRate::bps);
    }
    Ok(RunRow::new(seed, truth, &measured))
}

/// The same run, judged by another of its quantities.
fn judged(measured: Measured, metric: Metric) -> Measured {
    let Some(main) = measured.outcome.estimate() else {
        return measured;
    };
    if main.metric == metric {
        return measured;
    }
    let other = main.also.iter().find(|also| also.metric == metric).cloned();
    let missing = || {
        estimate::Outcome::inconclusive(estimate::Reason::MissingInput {
            what: metric.to_string(),
        })
    };
    Measured {
        outcome: other.map_or_else(missing, Into::into),
        cost: measured.cost,
    }
}

/// Where no truth can be derived: what one connection gets in 20 s on the same path with the same seed, which is what quick mode is
/// to predict (`[QuickMode03]` §4).
fn long_transfer(batch: &Batch<'_>, seed: u64) -> Option<BitRate> {
    let mut world = SimWorld::new(batch.scenario, batch.way, seed);
    let transfer = Transfer {
        streams: 1,
        congestion: None,
        window_octets: None,
        pacing: None,
        duration: Duration::from_secs(20),
        sample_every: Duration::from_secs(1),
        then: Then::Finish,
    };
    let answer: Result<Event, Infallible> = world.send(Probe::Transfer(transfer));
    let Ok(Event::Transfer(report)) = answer else {
        return None;
    };
    let (octets, time) = report.far_end?;
    BitRate::over(octets, time)
}
