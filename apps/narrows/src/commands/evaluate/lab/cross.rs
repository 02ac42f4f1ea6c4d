//! Cross traffic that real hosts carry, beside a run.

use std::time::Duration;

use narrows_evaluate::RunFault;
use narrows_lab::{Lab, Meter, RealFlow};
use narrows_scenario::{Counted, Cross, Crossed, Elastic, PathDirection, Scenario, Source, Workload};
use narrows_traffic::{Flow, Pacing, Sender, SenderOptions, Sink, SinkOptions};

use super::broke;
use super::host_pair::{self, PathClock};
use crate::interrupt;

/// Generators and sinks in the cross-traffic hosts. Dropping it ends them.
pub(super) struct CrossTraffic(Vec<Running>);

struct Running {
    // In this order they end.
    sender: Sender,
    sink: Sink,
    /// Counts what crosses.
    meter: Meter,
    cross: Cross,
}

/// Departure from the planned rate, in thousandths, beyond which cross traffic was not what the
/// scenario says: a tenth of what makes an estimate wrong (ours).
const OFF_PER_MILLE: u64 = 10;

impl CrossTraffic {
    /// Starts what the scenario has at this time of the path, and lets it run for the scenario's
    /// warm-up, as it does in the simulator: connections find their rate, queues their length.
    pub(super) fn start(lab: &Lab, seed: u64, clock: PathClock) -> Result<Self, RunFault> {
        let flows = lab.real_flows();
        let none = flows.is_empty();
        let running: Result<Vec<_>, _> = flows.iter().map(|flow| start(lab, flow, seed, clock)).collect();
        let running = Self(running?.into_iter().flatten().collect());
        if !none {
            interrupt::nap(lab.scenario().warm_up);
        }
        Ok(running)
    }

    /// What crossed each hop of a way by now; `None` if not all of its cross traffic is carried by
    /// hosts: what a link reckons with has no counters.
    pub(super) fn counted(&self, scenario: &Scenario, way: PathDirection) -> Option<Counted> {
        let real = self.0.iter().filter(|running| running.cross.way == way);
        if real.clone().count() < scenario.cross.iter().filter(|cross| cross.way == way).count() {
            return None;
        }
        let mut hops = vec![Vec::new(); scenario.hops(way).len()];
        for Running { meter, cross, .. } in real {
            let crossed = meter.crossed();
            for hop in hops.iter_mut().take(cross.last_hop + 1).skip(cross.first_hop) {
                let longer = crossed.len().max(hop.len());
                hop.resize_with(longer, Crossed::default);
                hop.iter_mut().zip(&crossed).for_each(|(sum, more)| sum.merge(more));
            }
        }
        Some(Counted::new(Duration::ZERO, hops))
    }

    /// Ends it; says if it was not what the scenario asks for.
    pub(super) fn stop(self) -> Option<String> {
        let mut complaint = None;
        for Running { sender, sink, cross, .. } in self.0 {
            let report = sender.stop();
            sink.stop();
            let open_loop = matches!(cross.source, Source::Open { .. });
            for flow in report.flows.iter().filter(|_| open_loop) {
                let (Some(planned), Some(achieved)) = (flow.planned_bps, flow.achieved_bps) else {
                    continue;
                };
                if planned.abs_diff(achieved) * 1000 > planned * OFF_PER_MILLE {
                    complaint = Some(format!(
                        "cross traffic {:?} was sent at {achieved} bit/s instead of {planned} bit/s",
                        flow.name
                    ));
                }
            }
        }
        complaint
    }
}

/// `None` if its time is over.
fn start(lab: &Lab, flow: &RealFlow, seed: u64, clock: PathClock) -> Result<Option<Running>, RunFault> {
    let Some(traffic) = in_path_time(flow, seed, clock.now()) else {
        return Ok(None);
    };
    let address = flow.sink.addresses();
    let address = address.ok_or_else(|| broke("a cross-traffic host has no address"))?;
    let trouble = |error: narrows_traffic::TrafficError| broke(format!("cross traffic: {error}"));
    let sink = flow
        .sink
        .run(|| Sink::start(SinkOptions::private(address.ipv4.into())))
        .map_err(|error| host_pair::fault(&error))?
        .map_err(trouble)?;
    let at = sink.addresses().first().copied();
    let at = at.ok_or_else(|| broke("a sink has no address"))?;
    // The processor is the path's and the methods': what departs some 50 µs late is cross traffic
    // still.
    let options = SenderOptions { pacing: Pacing::Sleep, ..SenderOptions::default() };
    let sender = flow
        .source
        .run(|| Sender::start(at, vec![traffic], options))
        .map_err(|error| host_pair::fault(&error))?
        .map_err(trouble)?;
    let meter = lab.meter(flow).map_err(|error| host_pair::fault(&error))?;
    Ok(Some(Running { sender, sink, meter, cross: flow.cross.clone() }))
}

/// Its times are the path's; the generator counts from its own start.
fn in_path_time(flow: &RealFlow, seed: u64, now: Duration) -> Option<Flow> {
    let mut traffic = Flow::from_cross(&flow.cross, seed, flow.index);
    traffic.from = begins(&flow.cross, now);
    if let Some(until) = traffic.until {
        traffic.until = Some(until.checked_sub(now).filter(|left| !left.is_zero())?);
    }
    Some(traffic)
}

/// How long after the generator's start it begins. What is carried once counts from the begin of
/// the warm-up, as in the simulator: by the path's clock, which is further then, it would be over
/// before anything is measured.
fn begins(cross: &Cross, now: Duration) -> Duration {
    match &cross.source {
        Source::Elastic(Elastic { workload: Workload::Backup { .. }, .. }) => cross.from,
        Source::Elastic(_) | Source::Open { .. } => cross.from.saturating_sub(now),
    }
}

#[cfg(test)]
mod tests {
    use narrows_scenario::ElasticControl;
    use narrows_units::Octets;

    use super::*;

    /// A lab's path begins at the end of the scenario's warm-up, which its cross traffic then gets
    /// once more.
    #[test]
    fn a_backup_begins_as_long_after_the_warm_up_as_its_scenario_says() {
        let carrying = |workload| {
            let elastic = Elastic { workload, ..Elastic::greedy(1, ElasticControl::Cubic) };
            Cross { from: Duration::from_secs(2), ..Cross::elastic_on_hop(0, elastic) }
        };
        let now = Duration::from_millis(2300);
        let backup = Workload::Backup { payload: Octets::new(10_000_000) };
        assert_eq!(begins(&carrying(backup), now), Duration::from_secs(2));
        assert_eq!(begins(&carrying(Workload::Greedy), now), Duration::ZERO);
        assert_eq!(begins(&carrying(Workload::Greedy), Duration::from_millis(500)), Duration::from_millis(1500));
    }
}
