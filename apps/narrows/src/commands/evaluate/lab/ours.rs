//! A run of one of our methods: the server in one host, the client in the other, over real sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use estimate::{Beginning, Estimator, Measured, RawParams, World as _, run as drive};
use evaluate::plan::PlannedMethod;
use evaluate::rival::Host;
use evaluate::simulated::Simulation;
use evaluate::{Cell, Order, Run, RunFault};
use scenario::Way;
use trace::{Played, Recorder, Setting, WorldKind, Writer};
use units::Direction;

use super::bed::{self, Bed, PathClock};
use super::broke;
use super::watch::Watch;
use crate::connect::Peer;
use crate::progress::Progress;

/// What one attempt gave.
struct Attempt {
    measured: Measured,
    span: (Duration, Duration),
    complaint: Option<String>,
    recording: Option<Vec<u8>>,
}

pub(super) fn run(
    bed: &dyn Bed,
    cell: &Cell,
    planned: &PlannedMethod,
    order: Order<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Run, RunFault> {
    let method = planned.method().ok_or_else(|| RunFault::NotOffered {
        why: format!("there is no method {} yet", planned.name),
    })?;
    let simulation = Simulation {
        scenario: &cell.scenario.scenario,
        way: Way::Forward,
        method,
        metric: planned.metric,
        params: &planned.params,
    };
    let far = bed.host(Host::Receiver).addresses().ipv4;
    let server = bed
        .host(Host::Receiver)
        .run(|| crate::commands::serve::start_private(far.into()))
        .map_err(|error| bed::fault(&error))?
        .map_err(|failure| broke(failure.text))?;
    let port = server
        .addresses()
        .first()
        .map_or(wire::DEFAULT_PORT, std::net::SocketAddr::port);
    let client = Client {
        simulation,
        planned,
        peer: Peer::plain(far.to_string(), port),
        clock: bed.path_time(),
        setting: order.record.map(|_| setting(cell, order.seed)),
        stop,
    };
    // What came before is not the run's: bringing up the server took the processor too.
    bed.take_honesty()?;
    let attempt = bed
        .host(Host::Sender)
        .run(|| client.measure())
        .map_err(|error| bed::fault(&error))??;
    let honesty = bed.take_honesty()?;
    drop(server);
    let simulated = simulation.judged(attempt.measured, attempt.span, order.seed);
    let mut run = Run::new(&simulated.measured, simulated.truth, simulated.hops);
    run.not_judged = (!honesty.kept_time()).then(|| told(&honesty)).or(attempt.complaint);
    if let (Some(path), Some(octets)) = (order.record, attempt.recording) {
        std::fs::write(path, octets).map_err(|error| broke(format!("{}: {error}", path.display())))?;
    }
    Ok(run)
}

/// A path's report of a run in which it kept no time, on one line.
pub(super) fn told(honesty: &lab::Honesty) -> String {
    honesty.to_string().replace('\n', "; ")
}

fn setting(cell: &Cell, seed: u64) -> Setting {
    Setting::new(WorldKind::Lab).playing(Played {
        scenario: cell.scenario.name.clone(),
        text: cell.scenario.text.clone(),
        seed,
    })
}

/// The client's part, inside the sending host.
struct Client<'a> {
    simulation: Simulation<'a>,
    planned: &'a PlannedMethod,
    peer: Peer,
    clock: PathClock,
    /// Of the recording, if there is to be one.
    setting: Option<Setting>,
    stop: &'a Arc<AtomicBool>,
}

impl Client<'_> {
    fn measure(&self) -> Result<Attempt, RunFault> {
        let mut estimator = self
            .simulation
            .begin()
            .map_err(|error| RunFault::NotOffered { why: error.to_string() })?;
        let world = self
            .peer
            .connect(Direction::Forward, self.stop, &Progress::new(true))
            .map_err(|failure| broke(failure.text))?;
        let world = Watch::new(world, self.clock);
        // To memory: a disk that is written to between probes is heard in them.
        let mut world = match &self.setting {
            Some(setting) => {
                let writer = Writer::new(Vec::new()).map_err(broke)?;
                Recorder::new(world, writer, setting.clone())
            }
            None => Recorder::silent(world, Setting::new(WorldKind::Lab)),
        }
        .with_true_time(|watch: &Watch<_>| u64::try_from(watch.path_time().as_nanos()).ok());
        let (measured, span) = self.drive(&mut world, estimator.as_mut())?;
        if let Some(fault) = world.fault() {
            return Err(broke(format!("recording: {fault}")));
        }
        let (watch, writer, _) = world.into_parts();
        let recording = writer.map(Writer::finish).transpose().map_err(broke)?;
        Ok(Attempt {
            measured,
            span,
            complaint: watch.complaint(),
            recording,
        })
    }

    fn drive<W>(
        &self,
        world: &mut W,
        estimator: &mut dyn Estimator,
    ) -> Result<(Measured, (Duration, Duration)), RunFault>
    where
        W: estimate::World,
        W::Fault: std::fmt::Display,
    {
        let mut params = RawParams::new();
        for (name, value) in &self.planned.params {
            params.set(name, value);
        }
        let info = self.simulation.method.info();
        let budget = info.default_budget();
        let began = self.clock.now();
        world.begins(&Beginning {
            metric: self.planned.metric,
            method: info.name,
            params: &params,
            budget: &budget,
        });
        let measured = drive(world, estimator, budget).map_err(|broken| broke(broken.fault))?;
        if world.stop_requested() {
            return Err(super::interrupted());
        }
        Ok((measured, (began, self.clock.now())))
    }
}
