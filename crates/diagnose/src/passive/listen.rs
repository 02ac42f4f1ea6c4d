//! The active form of passive methods: listen for a while, sort what came into flows, and read
//! their logs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use narrows_units::{Layer, Metric, Sender, Stamp};

use super::{Conclusion, Course, FlowLog, PassiveMethod, SeenPacket, Sight, Vantage};
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations, Replayable};
use narrows_probe::outcome::{BoundKind, Outcome, Reason};
use narrows_probe::probes::{Capture, CaptureReport, CapturedPacket, Place, Probe, Transport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope, params,
};

/// What passive methods have in common.
pub(super) const INFO: MethodInfo = MethodInfo {
    name: "",
    summary: "",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Passive,
        protocol: Protocol::Tcp,
        works_on_asymmetric: true,
        deployment: Deployment::Receiver,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 0,
        max_octets: 0,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(12),
        fills_path: false,
    },
    parameters: &[],
    manual: "",
};

params! {
    /// Where and how long to listen.
    #[derive(Debug)]
    pub(super) struct Listening {
        /// Where to listen: here, at the sender, at the receiver, or behind a hop, by its number.
        vantage: Option<String> = "receiver, or by the stamps" {
            range: Described("here, sender, receiver, or a hop's number"), source: "where the simulator listens",
        },
        /// How long to listen.
        duration: Duration = "10 s" { range: Between("100 ms", "10 min"), source: "ours" },
    }
}

/// [`Method`](narrows_probe::registry::Method) for a passive method: its active form.
macro_rules! method {
    ($name:ident) => {
        impl narrows_probe::registry::Method for $name {
            fn info(&self) -> &'static MethodInfo {
                &INFO
            }

            fn imposes(&self, params: &RawParams) -> narrows_probe::registry::Imposes {
                super::listen::imposes(params)
            }

            fn begin(&self, params: &RawParams) -> Result<Box<dyn narrows_probe::contract::Estimator>, ParamError> {
                Ok(Box::new(super::listen::Run::new(&$name, params)?))
            }

            fn analyse(
                &self,
                observations: &narrows_probe::observations::Observations,
                params: &RawParams,
            ) -> Result<Outcome, narrows_probe::observations::AnalyseError> {
                super::listen::analyse(super::listen::Run::new(&$name, params)?, observations)
            }
        }
    };
}
pub(super) use method;

fn out_of_range(name: &'static str, value: &str, why: &str) -> ParamError {
    ParamError::OutOfRange { name, value: value.to_owned(), why: why.to_owned() }
}

/// What opening and closing a capture may take (ours).
const AROUND: Duration = Duration::from_secs(2);
/// Packets after which listening ends: far more than the methods keep (ours).
const MOST_PACKETS: u32 = 200_000;

pub(super) fn imposes(params: &RawParams) -> Imposes {
    let usual = INFO.imposes;
    match Listening::try_from(params) {
        Ok(listening) => usual.lasting(listening.duration + AROUND),
        Err(_) => usual,
    }
}

/// Where to listen.
fn places(raw: &RawParams, vantage: Option<&str>) -> Result<Vec<Place>, ParamError> {
    // nettimer's stamps say where, unless the caller does.
    let stamps: String = raw.get("stamps", "receiver".to_owned())?;
    let usual = match stamps.as_str() {
        "both" => return Ok(vec![Place::Sender, Place::Receiver]),
        "sender" => "sender",
        _ => "receiver",
    };
    Ok(vec![match vantage.unwrap_or(usual) {
        "here" => Place::Here,
        "sender" => Place::Sender,
        "receiver" => Place::Receiver,
        hop => match hop.parse::<u16>() {
            Ok(hop) if hop > 0 => Place::Node(hop),
            _ => return Err(out_of_range("vantage", hop, "here, sender, receiver or a hop's number")),
        },
    }])
}

/// A passive method that listens.
pub(super) struct Run {
    method: &'static dyn PassiveMethod,
    params: RawParams,
    places: Vec<Place>,
    duration: Duration,
}

impl Run {
    pub(super) fn new(method: &'static dyn PassiveMethod, params: &RawParams) -> Result<Self, ParamError> {
        params.check_names(method.info())?;
        let listening = Listening::try_from(params)?;
        let run = Self {
            method,
            params: params.clone(),
            places: places(params, listening.vantage.as_deref())?,
            duration: listening.duration,
        };
        // Every parameter is read here, so that none is refused after an hour of listening.
        method.check(params)?;
        Ok(run)
    }

    fn capture(&self) -> Capture {
        Capture { duration: self.duration, max_packets: MOST_PACKETS, remote_host: None, places: self.places.clone() }
    }

    fn conclude(&self, report: &CaptureReport) -> Outcome {
        let place = self.places.last().copied().unwrap_or(Place::Here);
        let mut sight = sight(place, resolution(report));
        sight.missed = report.dropped;
        let flows = flows(report, self.places.len());
        let conclusions = flows.values().filter_map(|log| self.method.conclude(log, &sight, &self.params).ok());
        let rank = |one: &Conclusion| {
            let estimate = one.outcome.estimate();
            let firm = estimate.is_some_and(|estimate| estimate.verdict() == BoundKind::Estimated);
            (firm, estimate.map(|estimate| estimate.confidence), one.samples)
        };
        // Of equals the first stays, so that the answer does not hang on which flow came last.
        let best = conclusions.reduce(|best, one| if rank(&one) > rank(&best) { one } else { best });
        best.map_or_else(|| Outcome::inconclusive(Reason::NoTraffic), |best| best.outcome)
    }
}

impl Estimator for Run {
    fn step(&mut self, _: Stamp<Sender>, event: Event) -> Step {
        Step::Done(match event {
            Event::Started(_) => return Step::Send(Probe::Capture(self.capture())),
            Event::Capture(report) => self.conclude(&report),
            Event::Refused(Refusal::ForbiddenByPeer) => Outcome::inconclusive(Reason::ForbiddenByPeer),
            Event::Refused(_) => {
                Outcome::inconclusive(Reason::NotOffered { what: "a capture of packets that pass there".to_owned() })
            }
            Event::Stop(reason) => Outcome::inconclusive(reason),
            Event::Train(_) | Event::Load(_) | Event::Transfer(_) | Event::TimerFired => {
                Outcome::inconclusive(Reason::UnexpectedEvent)
            }
        })
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("a passive method", "a capture");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Capture(capture) = asked else { return false };
        self.places.clone_from(&capture.places);
        true
    }
}

pub(super) fn analyse(run: Run, observations: &Observations) -> Result<Outcome, AnalyseError> {
    let name = run.method.info().name;
    observations::replay(run, observations).map_err(|error| match error {
        AnalyseError::NothingToGoOn { needs, holds, .. } => AnalyseError::NothingToGoOn { method: name, needs, holds },
        other => other,
    })
}

/// What is known of a place that was asked for.
fn sight(place: Place, resolution_ns: i64) -> Sight {
    Sight {
        vantage: match place {
            Place::Here => Vantage::Unknown,
            Place::Sender => Vantage::Sender,
            Place::Receiver => Vantage::Receiver,
            Place::Node(_) => Vantage::Middle,
        },
        ahead_ns: None,
        behind_ns: None,
        resolution_ns,
        missed: 0,
        began: false,
        window_shift: None,
        announced_mss: None,
    }
}

/// The largest common step of the stamps, of those that clocks have.
fn resolution(report: &CaptureReport) -> i64 {
    const STEPS: [i64; 7] = [10_000_000, 4_000_000, 1_000_000, 100_000, 10_000, 1000, 100];
    let all = |step: &i64| report.packets.iter().all(|packet| packet.at.nanos() % step == 0);
    STEPS.into_iter().find(all).unwrap_or(1)
}

/// A connection's direction: who sends the data, and to whom.
type Flow = (SocketAddr, SocketAddr);

/// What tells a packet from the others of its flow.
type Mark = (u32, u32, Option<u16>);

/// One log per direction that carries data, as seen at the last place; the first, if there are two,
/// gives the departures.
fn flows(report: &CaptureReport, places: usize) -> BTreeMap<Flow, FlowLog> {
    let last = u8::try_from(places.saturating_sub(1)).unwrap_or(0);
    let mut departures: BTreeMap<(Flow, Mark), i64> = BTreeMap::new();
    for packet in report.packets.iter().filter(|packet| packet.place < last) {
        if let Some((flow, mark)) = marked(packet) {
            departures.insert((flow, mark), packet.at.nanos());
        }
    }
    let mut logs: BTreeMap<Flow, FlowLog> = BTreeMap::new();
    for packet in report.packets.iter().filter(|packet| packet.place == last) {
        let Transport::Tcp(tcp) = packet.transport else {
            continue;
        };
        let along = (packet.source, packet.destination);
        let back = (packet.destination, packet.source);
        let seen = SeenPacket {
            at_ns: packet.at.nanos(),
            departed_ns: marked(packet).and_then(|mark| departures.get(&mark).copied()),
            ip_octets: packet.ip_octets,
            link_octets: 0,
            ip_id: packet.ip_id,
            tcp,
        };
        if tcp.payload_octets > 0 {
            logs.entry(along).or_default();
        }
        if let Some(log) = logs.get_mut(&along) {
            log.see(Course::Along, &seen);
        }
        if let Some(log) = logs.get_mut(&back) {
            log.see(Course::Back, &seen);
        }
    }
    logs
}

fn marked(packet: &CapturedPacket) -> Option<(Flow, Mark)> {
    let Transport::Tcp(tcp) = packet.transport else {
        return None;
    };
    let mark = (tcp.sequence, tcp.payload_octets, packet.ip_id);
    (tcp.payload_octets > 0).then_some(((packet.source, packet.destination), mark))
}
