//! The lab's bench: a plan's runs over real paths between private hosts on this machine, ours and
//! other programs'.
//!
//! Each run has a path of its own, begun afresh with the run's seed. So every method and every
//! program meets the same cross traffic from the same moment on, and none meets what another left
//! behind: queues that drain, a kernel's memory of round trips and windows (`tcp_metrics`),
//! connections in TIME-WAIT. Bringing a path up takes milliseconds to tenths of a second, a run
//! takes seconds.
//!
//! A run counts only if the machine had valid timing in it: the path says so of its releases, the
//! generator of cross traffic of its rate, and of our own methods' trains their sender does. What
//! does not count is measured afresh, five times at most whatever came out, and the last one is
//! kept as not judged.

mod counters;
mod cross;
mod external_tools;
mod host_pair;
mod ours;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_evaluate::external_tool::{self, Adapter, AdapterError, ExternalToolError};
use narrows_evaluate::{Cell, ExternalRunner, Order, Run, RunFault, Subject};
use narrows_report::World;
use narrows_scenario::Scenario;

use self::host_pair::HostPair;

/// Measurements of one run before it is abandoned as not judged.
const ATTEMPTS: u32 = 5;

/// Runs cells in namespaces of this machine.
pub(crate) struct LabRunner {
    stop: Arc<AtomicBool>,
    /// By name, or by the text of the file.
    adapters: BTreeMap<String, Arc<Adapter>>,
    /// By the adapter's name.
    versions: BTreeMap<String, Option<String>>,
    /// By the text of the scenario.
    built: BTreeMap<String, Arc<Scenario>>,
}

impl LabRunner {
    /// A bench that ends its run when `stop` is set.
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, adapters: BTreeMap::new(), versions: BTreeMap::new(), built: BTreeMap::new() }
    }

    fn adapter(&mut self, planned: &narrows_evaluate::subject::PlannedExternalTool) -> Result<Arc<Adapter>, RunFault> {
        let key = planned.adapter.as_ref().unwrap_or(&planned.name);
        if let Some(known) = self.adapters.get(key) {
            return Ok(Arc::clone(known));
        }
        let adapter = match &planned.adapter {
            Some(text) => Adapter::from_toml(text),
            None => external_tool::builtin(&planned.name)
                .unwrap_or_else(|| Err(AdapterError::Unknown(planned.name.clone()))),
        };
        let adapter = adapter.map_err(|error| RunFault::NotOffered { why: format!("{}: {error}", planned.name) })?;
        let adapter = Arc::new(adapter);
        self.adapters.insert(key.clone(), Arc::clone(&adapter));
        Ok(adapter)
    }

    /// The scenario as this machine plays it, which is what is true here. Calibrated once: a
    /// machine does not change its rates between runs, and a run's path should have no past.
    fn as_built(&mut self, cell: &Cell) -> Result<Arc<Scenario>, RunFault> {
        let key = &cell.scenario.text;
        if let Some(known) = self.built.get(key) {
            return Ok(Arc::clone(known));
        }
        let built = Arc::new(host_pair::as_built(&cell.scenario.scenario)?);
        self.built.insert(key.clone(), Arc::clone(&built));
        Ok(built)
    }

    /// The program's name and version; asked once.
    fn version(&mut self, adapter: &Adapter) -> Option<String> {
        let ask = || {
            let version = external_tool::version(adapter)?;
            Some(format!("{} {version}", adapter.needs().first()?))
        };
        let name = adapter.name().to_owned();
        self.versions.entry(name).or_insert_with(ask).clone()
    }

    fn once(&mut self, cell: &Cell, order: Order<'_>) -> Result<Run, RunFault> {
        let built = self.as_built(cell)?;
        let adapter = match &cell.subject {
            Subject::Method(_) => None,
            Subject::ExternalTool(planned) => Some(self.adapter(planned)?),
        };
        let host_pair = HostPair::make(&cell.scenario.scenario, order.seed)?;
        let run = match (&cell.subject, &adapter) {
            (Subject::Method(planned), _) => {
                let trial =
                    ours::Trial { host_pair: &host_pair, cell, scenario: &built, planned, order, stop: &self.stop };
                trial.run()
            }
            (Subject::ExternalTool(planned), Some(adapter)) => {
                let trial = external_tools::Trial {
                    host_pair: &host_pair,
                    scenario: &built,
                    adapter,
                    metric: planned.metric.unwrap_or(adapter.metric()),
                    params: &planned.params,
                };
                trial.run(&self.stop)
            }
            (Subject::ExternalTool(_), None) => Err(broke("an adapter is gone")),
        };
        let not_judged = host_pair.end()?;
        let version = adapter.as_ref().and_then(|adapter| self.version(adapter));
        run.map(|mut run| {
            run.external_tool_version = version;
            run.not_judged = not_judged.or(run.not_judged);
            run
        })
    }
}

impl ExternalRunner for LabRunner {
    fn world(&self) -> World {
        World::Lab
    }

    fn offers(&mut self, cell: &Cell) -> Result<(), RunFault> {
        if let Subject::ExternalTool(planned) = &cell.subject {
            let adapter = self.adapter(planned)?;
            external_tool::installed(&adapter).map_err(|error| fault(&adapter, &error))?;
        }
        narrows_lab::namespaces_available().map_err(|why| RunFault::NotOffered { why: why.to_string() })
    }

    fn run(&mut self, cell: &Cell, order: Order<'_>) -> Result<Run, RunFault> {
        let mut attempt = 1;
        loop {
            let mut run = self.once(cell, order)?;
            run.measured_before = attempt - 1;
            if run.not_judged.is_none() || attempt == ATTEMPTS {
                return Ok(run);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(interrupted());
            }
            attempt += 1;
        }
    }
}

/// What another program's failure means to the row.
fn fault(adapter: &Adapter, error: &ExternalToolError) -> RunFault {
    match error {
        ExternalToolError::NotInstalled { program, package } => RunFault::NotInstalled {
            program: match package {
                Some(package) => format!("{program} (Debian package {package})"),
                None => program.clone(),
            },
        },
        ExternalToolError::UnknownParam { .. } | ExternalToolError::ParamValue { .. } => {
            RunFault::NotOffered { why: error.to_string() }
        }
        ExternalToolError::Interrupted => interrupted(),
        error => RunFault::Broke { why: format!("{}: {error}", adapter.name()) },
    }
}

fn interrupted() -> RunFault {
    broke("interrupted")
}

#[expect(clippy::needless_pass_by_value, reason = "errors end here")]
fn broke(why: impl ToString) -> RunFault {
    RunFault::Broke { why: why.to_string() }
}

/// What the sender's own link carries at the IP layer: all that a host knows of its path.
fn line_rate(scenario: &Scenario, way: narrows_scenario::PathDirection, mtu: u16) -> narrows_units::BitRate {
    let host = match way {
        narrows_scenario::PathDirection::Forward => &scenario.sender,
        narrows_scenario::PathDirection::Reverse => &scenario.receiver,
    };
    let (rate, framing) = scenario
        .hops(way)
        .first()
        .map_or((narrows_units::BitRate::from_gbps(1), narrows_units::Framing::BARE), |hop| (hop.rate, hop.framing));
    let rate = host.interface_rate.map_or(rate, |own| own.min(rate));
    framing.convert(rate, narrows_units::Layer::Wire, narrows_units::Layer::Ip, u32::from(mtu), false).unwrap_or(rate)
}

#[cfg(test)]
mod tests;
