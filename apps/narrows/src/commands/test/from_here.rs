//! What can be said of the path to a host that runs nothing of ours: by what its kernel answers.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_methods as methods;
use narrows_methods::job::JobReport;
use narrows_net::via::Via;
use narrows_probe::probes::{Fate, HopReplyKind, PacketPlan, Probe, Train, TrainId};
use narrows_probe::{Answering, Budget, Cost, Entry, Event, Order, RawParams, World};
use narrows_report::{Document, Note, SINGLE_ENDED, Target};
use narrows_units::{Direction, Metric};

use super::{Plan, TestArgs, ended, parameters};
use crate::connect::Peer;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::progress::{Progress, Wanted};
use crate::remote::Remote;
use crate::{environment, interrupt};

/// Nobody there has agreed to be measured: ours.
const TIME: Duration = Duration::from_secs(15);
const OCTETS: u64 = 2_000_000;
/// What each measurement may take of that; the last has what is left.
const PARTS: [(Metric, &str, Duration); 3] = [
    (Metric::RoundTripTime, "rtt", Duration::from_secs(3)),
    (Metric::PathMtu, "pmtu", Duration::from_secs(3)),
    (Metric::IpCapacity, "answers", TIME),
];
/// A host that has not answered TCP for three seconds is not asked for that long again.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// By what a host is made to answer, the one that tells most first. SYNs are not sent unasked.
const WAYS: [Via; 2] = [Via::Icmp, Via::Udp { port: Via::UDP_PORT }];
/// What only a server can tell.
const MISSING: &str = "Measured from here alone; missing: free now, UDP, TCP, each direction.";

/// Where no server answered: the same fault, or for people what can be had without one.
pub(super) fn instead(
    args: &TestArgs,
    plan: &Plan,
    peer: &Peer,
    fault: Failure,
    progress: &Progress,
) -> Result<Exit, Failure> {
    let for_people = args.print.format() == Format::Text && !args.print.json_stream && !args.fail_if.is_given();
    // A recording is of a session; a key says that the caller knows of a server.
    let wants_server = args.record.file.is_some() || peer.has_key() || args.netest;
    let is_absent = fault.exit == Exit::Unreachable && matches!(fault.who, "peer" | "path");
    if !for_people || wants_server || !is_absent || !plan.directions.contains(&Direction::Forward) {
        return Err(progress.failed(fault));
    }
    // The screen shows a whole job, and this is none.
    progress.finish();
    let how = if fault.who == "peer" { "refused" } else { "silent" };
    let why = format!("{} runs no narrows serve (TCP {} {how}). {MISSING}", peer.name, peer.port);
    let progress = Progress::new(args.print.quiet);
    match connect(peer, Some(ANSWERS_WITHIN), &progress) {
        Ok(world) => run(args, plan, peer, (world, why), &progress),
        // A host that answers to nothing is unreachable, as was said at first.
        Err(failure) if failure.who == "path" => {
            Err(Failure { text: format!("{fault}; it answers neither ICMP echoes nor UDP"), ..fault })
        }
        Err(_) => Err(fault),
    }
}

/// The caller wants no server: `--single-ended`.
pub(super) fn asked(args: &TestArgs, plan: &Plan, peer: &Peer) -> Result<Exit, Failure> {
    let wanted = Wanted { screen: None, ..args.print.progress(args.screen) };
    let progress = Progress::start(wanted, plan.announced(&peer.name, None))?;
    connect(peer, None, &progress)
        .and_then(|world| run(args, plan, peer, (world, MISSING.to_owned()), &progress))
        .map_err(|failure| progress.failed(failure))
}

/// What the host answers, with the reason why no server was asked.
fn run(
    args: &TestArgs,
    plan: &Plan,
    peer: &Peer,
    (mut world, why): (Remote, String),
    progress: &Progress,
) -> Result<Exit, Failure> {
    let stop = interrupt::flag()?;
    let begun = environment::now();
    let address = world.address().ip();
    let budget = Budget { octets: plan.budget.octets.min(OCTETS), time: plan.budget.time.min(TIME), ..plan.budget };
    let (report, route) = measure(&mut world, peer, budget, (stop, progress));
    progress.finish();
    let target = Target { name: peer.name.clone(), address: Some(address), port: Some(peer.port) };
    let fault = report.fault.as_ref().map(crate::connect::failure);
    let mut document = Document::new("test", env!("CARGO_PKG_VERSION").to_owned(), target, &[report], &[]);
    document.started_at = Some(begun);
    document.params = parameters(plan, peer);
    document.params.insert("single_ended".to_owned(), "true".to_owned());
    document.notes.push(Note { id: SINGLE_ENDED, text: why });
    document.notes.extend(route);
    super::note_interruption(&mut document, stop);
    document.error = fault.as_ref().map(super::problem);
    document.conclude();
    let exit = ended(&document, document.error.as_ref());
    let redaction = document.redaction();
    let document = args.print.redacted(document);
    args.print.write_as(&document, if args.full { Document::long_text } else { Document::text }, progress)?;
    args.print.write_files(&document, &redaction)?;
    if let Some(problem) = &document.error {
        output::complain(&problem.text);
        return Ok(exit);
    }
    Ok(args.fail_if.exit(&document, exit))
}

/// By the first way that the host answers, in this time if there is a limit.
fn connect(peer: &Peer, within: Option<Duration>, progress: &Progress) -> Result<Remote, Failure> {
    progress.say(format!("what {} answers", peer.name));
    let stop = interrupt::flag()?;
    let mut first = None;
    for via in WAYS {
        match peer.connect_single_ended(via, within, stop) {
            Ok(world) => return Ok(Remote::SingleEnded(Box::new(world))),
            // A way that this host may not go says nothing of the other.
            Err(failure) if failure.who == "path" => first = first.or(Some(failure)),
            Err(failure) => first = Some(failure),
        }
    }
    Err(first.unwrap_or_else(|| Failure::host("the host answered neither ICMP nor UDP nor TCP")))
}

/// The measurements in their order, and whom the packets meet, once it is known that they arrive.
fn measure(
    world: &mut Remote,
    peer: &Peer,
    budget: Budget,
    (stop, progress): (&Arc<AtomicBool>, &Progress),
) -> (JobReport<narrows_net::Error>, Option<Note>) {
    let mut report =
        JobReport { facts: world.facts(), entries: Vec::new(), stages: Vec::new(), cost: Cost::default(), fault: None };
    let mut route = None;
    for (metric, name, most) in PARTS {
        if world.stop_requested() {
            break;
        }
        let answering = world.facts().answering;
        let Some(method) = methods::named(name, metric).filter(|method| method.answered_by().contains(&answering))
        else {
            continue;
        };
        progress.say(format!("{metric} by {name}"));
        let params = RawParams::default();
        let Ok(estimator) = method.begin(&params) else { continue };
        let own = method.imposes(&params).budget();
        let budget = Budget {
            octets: own.octets.min(budget.octets.saturating_sub(report.cost.octets)),
            time: own.time.min(budget.time.saturating_sub(report.cost.time)).min(most),
            ..budget
        };
        let order = Order { metric, method: name, params: &params, budget, estimator };
        let measured = narrows_probe::run(world, order).unwrap_or_else(|broken| {
            report.fault = Some(broken.fault);
            broken.measured
        });
        report.cost = report.cost.then(measured.cost);
        report.entries.push(Entry {
            metric,
            direction: world.direction(method.info(), &measured.outcome, Direction::Forward),
            method: name,
            outcome: world.reported(method.info(), measured.outcome),
            cost: measured.cost,
        });
        if report.fault.is_some() {
            break;
        }
        if metric == Metric::RoundTripTime {
            progress.say("the route".to_owned());
            route = Route::walk(peer, answering, stop).map(|route| route.note());
        }
    }
    (report, route)
}

/// Who answers at each hop, the nearest first.
struct Route {
    hops: Vec<Option<IpAddr>>,
    arrived: bool,
}

impl Route {
    /// A few hops at a time, so that the host is not asked more often than it likes to answer.
    const AT_ONCE: u8 = 5;
    const MOST: u8 = 30;
    const GAP: Duration = Duration::from_millis(20);
    const IP_OCTETS: u16 = 64;

    /// `None` where not even the first hops can be asked.
    fn walk(peer: &Peer, answering: Answering, stop: &Arc<AtomicBool>) -> Option<Self> {
        let via = WAYS.into_iter().find(|via| via.answering() == answering)?;
        let mut world = peer.connect_per_hop(via, stop).ok()?;
        let mut route = Self { hops: Vec::new(), arrived: false };
        for first in (1..=Self::MOST).step_by(Self::AT_ONCE.into()) {
            let limits = (first..first + Self::AT_ONCE).filter_map(NonZeroU8::new);
            let packets =
                limits.map(|limit| PacketPlan { gap: Self::GAP, ip_octets: Self::IP_OCTETS, hop_limit: Some(limit) });
            let train = Train { id: TrainId(0), packets: packets.collect(), peer_kind: answering.peer_kind() };
            let Ok(Event::Train(report)) = world.send(Probe::Train(train)) else { break };
            for row in &report.arrivals {
                if route.arrived {
                    break;
                }
                route.meet(&row.fate);
            }
            if route.arrived || world.stop_requested() {
                break;
            }
        }
        Some(route)
    }

    fn meet(&mut self, fate: &Fate) {
        let (from, is_last) = match fate {
            Fate::Answered(reply) => (Some(reply.from), reply.kind != HopReplyKind::TimeExceeded),
            // The peer itself, with the packet whole.
            Fate::Echoed { .. } | Fate::Received(_) => (None, true),
            Fate::Lost => (None, false),
        };
        self.hops.push(from);
        self.arrived = is_last;
    }

    fn note(&self) -> Note {
        let known: BTreeSet<&IpAddr> = self.hops.iter().flatten().collect();
        let count = self.hops.len();
        let text = match (self.arrived, count) {
            (true, 1) => "1 hop: the host is a neighbour".to_owned(),
            (true, _) => {
                let routers = &self.hops[..count - 1];
                let names: Vec<String> =
                    routers.iter().map(|hop| hop.map_or_else(|| "?".to_owned(), |at| at.to_string())).collect();
                format!("{count} hops, by {}", names.join(", "))
            }
            _ => format!("the route was not found to its end; {} routers answered", known.len()),
        };
        Note { id: "route", text }
    }
}

#[cfg(test)]
mod tests {
    use narrows_probe::probes::HopReply;
    use narrows_units::Stamp;

    use super::*;

    fn from(octet: u8, kind: HopReplyKind) -> Fate {
        let from = IpAddr::from([10, 0, 0, octet]);
        Fate::Answered(HopReply { from, returned: Stamp::from_nanos(0), reply_ip_octets: 56, kind })
    }

    fn route(fates: &[Fate]) -> String {
        let mut route = Route { hops: Vec::new(), arrived: false };
        for fate in fates {
            route.meet(fate);
        }
        route.note().text
    }

    #[test]
    fn routes_name_their_routers() {
        let router = |octet| from(octet, HopReplyKind::TimeExceeded);
        let host = || from(9, HopReplyKind::PortUnreachable);
        assert_eq!(route(&[host()]), "1 hop: the host is a neighbour");
        assert_eq!(route(&[router(1), Fate::Lost, host()]), "3 hops, by 10.0.0.1, ?");
        assert_eq!(
            route(&[router(1), Fate::Lost, Fate::Lost]),
            "the route was not found to its end; 1 routers answered"
        );
    }
}
