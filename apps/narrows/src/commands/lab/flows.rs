//! Cross traffic that real hosts carry: a generator and a sink per flow, inside the lab.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_lab::{FlowStatus, Lab, Node, RealFlow};
use narrows_traffic::{Flow, Pacing, Progress, Sender, SenderOptions, Sink, SinkOptions, TrafficError};
use narrows_units::BitRate;

use super::failure;
use crate::exit::{Exit, Failure};

/// A lab's traffic lasts as long as the lab: the usual sink would end it after some hours, and
/// elastic flows would be gone unnoticed.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Traffic under way; it ends with this value.
pub(super) struct Flows(Vec<Running>);

/// One of the scenario's cross traffic.
struct Running {
    cross: usize,
    /// From where to where, for people.
    ends: String,
    // The sender goes first, so that it can still be told what arrived.
    sender: Sender,
    _sink: Sink,
    seen: Progress,
    seen_ns: i64,
}

impl Flows {
    /// What each has sent since this was asked before.
    pub(super) fn status(&mut self) -> Vec<FlowStatus> {
        self.0.iter_mut().map(Running::status).collect()
    }

    /// Ends all at once, and says of each what it achieved and what arrived.
    pub(super) fn end(self) -> Vec<String> {
        std::thread::scope(|scope| {
            let ending: Vec<_> = self.0.into_iter().map(|flow| scope.spawn(|| flow.end())).collect();
            // A thread that panicked has nothing to say.
            ending.into_iter().filter_map(|flow| flow.join().ok()).flatten().collect()
        })
    }
}

impl Running {
    fn status(&mut self) -> FlowStatus {
        let (now, now_ns) = (self.sender.progress(), narrows_net::clock::now_ns());
        let tcp = now.packets == 0 && now.tcp_octets > 0;
        let octets = |progress: &Progress| progress.ip_octets + progress.tcp_octets;
        let sent = octets(&now).saturating_sub(octets(&self.seen));
        let watched_ns = now_ns.saturating_sub(self.seen_ns).unsigned_abs();
        (self.seen, self.seen_ns) = (now, now_ns);
        FlowStatus {
            cross: self.cross,
            layer: if tcp { "tcp" } else { "ip" }.to_owned(),
            sent_octets: octets(&now),
            watched_ns,
            sent_bps: BitRate::over(sent, Duration::from_nanos(watched_ns)).map_or(0, BitRate::bps),
        }
    }

    fn end(self) -> Vec<String> {
        let report = self.sender.stop();
        let rate =
            |bps: Option<u64>| bps.map_or_else(|| "unknown".to_owned(), |bps| BitRate::from_bps(bps).to_string());
        let mut lines = Vec::new();
        for total in report.totals() {
            let asked =
                total.requested_bps.map_or_else(String::new, |_| format!("asked {}, ", rate(total.requested_bps)));
            let layer = if total.layer == "ip" { "IP" } else { "TCP payload" };
            let mut line = format!(
                "cross {} ({}, {layer}): {asked}achieved {}, received {}",
                self.cross,
                self.ends,
                rate(Some(total.achieved_bps)),
                rate(total.received_bps)
            );
            if total.sent_packets > 0 {
                let _ = write!(line, "; {} packets sent, {} lost", total.sent_packets, total.lost_packets);
            }
            lines.push(line);
        }
        lines.extend(report.notes.iter().map(|note| format!("cross {}: {note}", self.cross)));
        lines
    }
}

/// Starts all of a lab's real flows, in the time of its path: what the scenario begins at 10 s
/// begins when the path's clock says so.
pub(super) fn start(lab: &Lab) -> Result<Flows, Failure> {
    let mut running = Vec::new();
    let seed = lab.description().seed;
    for flow in lab.real_flows() {
        let Some(traffic) = in_path_time(lab, &flow, seed) else {
            continue;
        };
        let Some(addresses) = flow.sink.addresses() else {
            continue;
        };
        let mut sinks = SinkOptions::private(addresses.ipv4.into());
        sinks.limits.session_time = LONGEST;
        let sink = inside(&flow.sink, || Sink::start(sinks))?;
        let target = sink.addresses().first().copied();
        let target = target.ok_or_else(|| Failure::host("a sink without an address"))?;
        // The processor is the path's and the programs': what departs some 50 µs late is cross
        // traffic still.
        let options = SenderOptions { pacing: Pacing::Sleep, ..SenderOptions::default() };
        let sender = inside(&flow.source, || Sender::start(target, vec![traffic], options))?;
        running.push(Running {
            cross: flow.index,
            ends: format!("{} to {}", flow.source.name(), flow.sink.name()),
            sender,
            _sink: sink,
            seen: Progress::default(),
            seen_ns: narrows_net::clock::now_ns(),
        });
    }
    Ok(Flows(running))
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
    node.run(start).map_err(|error| failure(&error))?.map_err(|error| Failure {
        exit: Exit::Failure,
        who: "host",
        text: format!("cross traffic in the {}: {error}", node.name()),
    })
}
