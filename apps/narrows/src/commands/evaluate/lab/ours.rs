//! A run of one of our methods: the server in one host, the client in the other, over real sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_evaluate::external_tool::Host;
use narrows_evaluate::simulated::Simulation;
use narrows_evaluate::subject::PlannedMethod;
use narrows_evaluate::{Cell, Order, Run, RunFault};
use narrows_probe::{Estimator, Measured, RawParams, run as drive};
use narrows_scenario::{PathDirection, Scenario, TruthFrom};
use narrows_trace::{Played, Recorder, Setting, WorldKind, Writer};
use narrows_units::Direction;

use super::broke;
use super::host_pair::{self, HostPair, PathClock};
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

/// One method over one path.
pub(super) struct Trial<'a> {
    pub(super) host_pair: &'a HostPair,
    pub(super) cell: &'a Cell,
    /// As this machine plays it.
    pub(super) scenario: &'a Scenario,
    pub(super) planned: &'a PlannedMethod,
    pub(super) order: Order<'a>,
    pub(super) stop: &'a Arc<AtomicBool>,
}

impl Trial<'_> {
    pub(super) fn run(&self) -> Result<Run, RunFault> {
        let method = self
            .planned
            .method()
            .ok_or_else(|| RunFault::NotOffered { why: format!("there is no method {} yet", self.planned.name) })?;
        let simulation = Simulation {
            scenario: self.scenario,
            way: PathDirection::Forward,
            method,
            metric: self.planned.metric,
            params: &self.planned.params,
            truth: TruthFrom::Counted,
        };
        let remote = self.host_pair.address(Host::Receiver)?;
        let server = self
            .host_pair
            .node(Host::Receiver)
            .run(|| crate::commands::serve::start_private(remote))
            .map_err(|error| host_pair::fault(&error))?
            .map_err(|failure| broke(failure.text))?;
        let port = server.addresses().first().map_or(narrows_wire::DEFAULT_PORT, std::net::SocketAddr::port);
        let client = Client {
            simulation,
            planned: self.planned,
            peer: Peer::plain(remote.to_string(), port),
            clock: self.host_pair.clock(),
            setting: self.order.record.map(|_| self.setting()),
            stop: self.stop,
        };
        // Bringing up the server took the processor too.
        self.host_pair.begin()?;
        let attempt =
            self.host_pair.node(Host::Sender).run(|| client.measure()).map_err(|error| host_pair::fault(&error))??;
        drop(server);
        // Counted right away, while the traffic still runs.
        let counted = self.host_pair.counted().filter(|_| simulation.is_counted());
        let mut simulated = simulation.judged(attempt.measured, attempt.span, self.order.seed);
        if let Some(counted) = counted {
            simulated = simulation.judged_as_counted(simulated, attempt.span, &counted);
        }
        let mut run = Run::from(simulated);
        run.not_judged = attempt.complaint;
        if let (Some(path), Some(octets)) = (self.order.record, attempt.recording) {
            std::fs::write(path, octets).map_err(|error| broke(format!("{}: {error}", path.display())))?;
        }
        Ok(run)
    }

    fn setting(&self) -> Setting {
        Setting::new(WorldKind::Lab).playing(Played {
            scenario: self.cell.scenario.name.clone(),
            text: self.cell.scenario.text.clone(),
            seed: self.order.seed,
        })
    }
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
        let estimator = self.simulation.begin().map_err(|error| RunFault::NotOffered { why: error.to_string() })?;
        let world = self
            .peer
            .connect(Direction::Forward, self.stop, &Progress::new(true))
            .map_err(|failure| broke(failure.text))?;
        let world = Watch::new(world, self.clock);
        // To memory: a disk that is written to between probes is heard in them.
        let writer = self.setting.as_ref().map(|_| Writer::new(Vec::new())).transpose();
        let setting = self.setting.clone().unwrap_or_else(|| Setting::new(WorldKind::Lab));
        let mut world = Recorder::maybe(world, writer.map_err(broke)?, setting)
            .with_true_time(|watch: &Watch<_>| u64::try_from(watch.path_time().as_nanos()).ok());
        let (measured, span) = self.drive(&mut world, estimator)?;
        if let Some(fault) = world.fault() {
            return Err(broke(format!("recording: {fault}")));
        }
        let (watch, writer, _) = world.into_parts();
        let recording = writer.map(Writer::finish).transpose().map_err(broke)?;
        Ok(Attempt { measured, span, complaint: watch.complaint(), recording })
    }

    fn drive<W>(
        &self,
        world: &mut W,
        estimator: Box<dyn Estimator>,
    ) -> Result<(Measured, (Duration, Duration)), RunFault>
    where
        W: narrows_probe::World,
        W::Fault: std::fmt::Display,
    {
        let params: RawParams = self.planned.params.iter().cloned().collect();
        let info = self.simulation.method.info();
        let budget = self.simulation.method.imposes(&params).budget();
        let began = self.clock.now();
        let order =
            narrows_probe::Order { metric: self.planned.metric, method: info.name, params: &params, budget, estimator };
        let measured = drive(world, order).map_err(|broken| broke(broken.fault))?;
        if world.stop_requested() {
            return Err(super::interrupted());
        }
        Ok((measured, (began, self.clock.now())))
    }
}
