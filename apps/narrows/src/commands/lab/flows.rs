//! Cross traffic that real hosts carry: a generator and a sink per flow, inside the lab.

use lab::{Lab, Node, RealFlow};
use traffic::{Flow, Pacing, Sender, SenderOptions, Sink, SinkOptions, TrafficError};

use super::failure;
use crate::exit::{Exit, Failure};

/// Traffic under way; it ends with this value.
pub(super) struct Flows {
    // Senders go first, so that each can still be told what arrived.
    _senders: Vec<Sender>,
    _sinks: Vec<Sink>,
}

/// Starts all of a lab's real flows, in the time of its path: what the scenario begins at 10 s begins when the path's clock says so.
pub(super) fn start(lab: &Lab) -> Result<Flows, Failure> {
    let (mut senders, mut sinks) = (Vec::new(), Vec::new());
    let seed = lab.description().seed;
    for flow in lab.real_flows() {
        let Some(traffic) = in_path_time(lab, &flow, seed) else {
            continue;
        };
        let Some(addresses) = flow.sink.addresses() else {
            continue;
        };
        let sink = inside(&flow.sink, || Sink::start(SinkOptions::private(addresses.ipv4.into())))?;
        let target = sink.addresses().first().copied();
        let target = target.ok_or_else(|| Failure::host("a sink without an address"))?;
        // The processor is the path's and the programs': what departs some 50 µs late is cross traffic still.
        let options = SenderOptions {
            pacing: Pacing::Sleep,
            ..SenderOptions::default()
        };
        senders.push(inside(&flow.source, || Sender::start(target, vec![traffic], options))?);
        sinks.push(sink);
    }
    Ok(Flows {
        _senders: senders,
        _sinks: sinks,
    })
}

/// The flow from now on; `None` if its time is over.
fn in_path_time(lab: &Lab, flow: &RealFlow, seed: u64) -> Option<Flow> {
    let now = lab.path_time();
    let mut traffic = Flow::from_cross(&flow.cross, seed, flow.index);
    traffic.from = traffic.from.saturating_sub(now);
    if let Some(until) = traffic.until {
        traffic.until = Some(until.checked_sub(now).filter(|left| !left.is_zero())?);
    }
    Some(traffic)
}

fn inside<T: Send>(node: &Node, start: impl FnOnce() -> Result<T, TrafficError> + Send) -> Result<T, Failure> {
    node.run(start)
        .map_err(|error| failure(&error))?
        .map_err(|error| Failure {
            exit: Exit::Failure,
            who: "host",
            text: format!("cross traffic in the {}: {error}", node.name()),
        })
}
