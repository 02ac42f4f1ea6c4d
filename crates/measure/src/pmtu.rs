#![doc = include_str!("pmtu.md")]

mod search;
#[cfg(test)]
mod tests;

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_units::{Layer, Metric, Octets, Sender, Stamp};

use self::search::Search;
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations, Replayable};
use narrows_probe::outcome::{
    Caveat, Confidence, Details, Diagnostics, Estimate, Finding, Outcome, PathMtuFinding, Ranged, Reason,
};
use narrows_probe::probes::{PacketPlan, PeerKind, Probe, Train, TrainId, TrainReport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, Method, MethodInfo, Methodology, Needs, ParamError,
    Privilege, Protocol, RawParams, Scope, params,
};
use narrows_train::train_method::refusal_reason;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pmtu;

static INFO: MethodInfo = MethodInfo {
    name: "pmtu",
    summary: "largest IP packet that crosses the path unfragmented",
    metric: Metric::PathMtu,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::Echo,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: false, pacing: false },
    imposes: Imposes {
        typical_octets: 6000,
        max_octets: 1_000_000,
        typical_time: Duration::from_millis(50),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("pmtu.md"),
};

impl Method for Pmtu {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn answered_by(&self) -> &'static [Answering] {
        &EVERYTHING
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::replay(Run::new(Params::try_from(params)?), observations)
    }
}

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// IP octets that surely fit.
        pub floor: Option<u16> = "576, over IPv6 1280" {
            unit: "IP octets", range: Between("68", "9000"), unset: Some("0"),
            source: "RFC 791 and RFC 8200: what any host must take",
        },
        /// IP octets to try at most, no fewer than the floor.
        pub ceiling: u16 = "65535" {
            unit: "IP octets", range: Between("68", "65535"), source: "ours: the interface's limit holds anyway",
        },
        /// Time between packets.
        pub spacing: Duration = "5 ms" {
            range: Between("0 s", "1 s"), source: "ours: apart enough not to fill a queue",
        },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        if self.floor.is_none_or(|floor| floor <= self.ceiling) {
            return Ok(());
        }
        Err(ParamError::OutOfRange {
            name: "ceiling",
            value: self.ceiling.to_string(),
            why: "68, or the floor, to 65535".to_owned(),
        })
    }
}

/// What the echoes say.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport], params: &Params) -> Outcome {
    let mut search = Search::new(facts, params);
    for report in reports {
        search.take(report);
    }
    conclude(&search, None)
}

fn conclude(search: &Search, stopped: Option<&Reason>) -> Outcome {
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("sent", search.sent);
    diagnostics.insert("small_sent", search.small_sent);
    diagnostics.insert("small_lost", search.small_lost);
    diagnostics.insert("largest_that_passed_octets", u32::from(search.low.unwrap_or(0)));
    diagnostics.insert("smallest_that_failed_octets", u32::from(search.high));
    diagnostics.insert("black_hole", search.black_hole);
    if let Some(mtu) = search.reported {
        diagnostics.insert("reported_by_router_octets", u32::from(mtu));
    }
    let details =
        Details { finding: Finding::PathMtu(PathMtuFinding { black_hole: search.black_hole }), ..Details::default() };
    let mut caveats = Vec::new();
    if search.small_lost > 0 {
        let ratio = search.small_lost as f64 / search.small_sent.max(1) as f64;
        caveats.push(Caveat::Loss { ratio });
    }
    if search.whole_echoes {
        caveats.push(Caveat::AsymmetricLimit);
    }
    let Some(low) = search.low else {
        let lost = if search.small_lost < search.small_sent || search.sent == 0 {
            Reason::TooMuchLoss { lost: search.small_lost, sent: search.small_sent }
        } else {
            search.silence()
        };
        return Outcome::Inconclusive { reason: stopped.cloned().unwrap_or(lost), caveats, details, diagnostics };
    };
    let high = (search.high - 1).max(low);
    let octets = |size: u16| Octets::new(size.into());
    let mut estimate = Estimate::new(Metric::PathMtu, Some(Layer::Ip), Ranged::new(low, low, high).map(octets));
    // The probes and a router, or the probes and the sender's own interface, say the same.
    let agrees = search.reported == Some(low) || search.first_high - 1 == low;
    if agrees && !search.whole_echoes {
        estimate.confidence = Confidence::High;
    }
    if high > low {
        estimate.confidence = Confidence::Low;
        caveats.push(if stopped.is_some() { Caveat::StoppedEarly } else { Caveat::NotConverged });
    }
    for caveat in caveats {
        estimate = estimate.caveat(caveat);
    }
    estimate.details = details;
    estimate.diagnostics = diagnostics;
    estimate.into()
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    params: Params,
    search: Option<Search>,
    serial: u32,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, search: None, serial: 0 }
    }

    fn proceed(&mut self) -> Step {
        let Some(search) = &mut self.search else {
            return Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent));
        };
        let Some(size) = search.next() else {
            return Step::Done(conclude(search, None));
        };
        self.serial += 1;
        let packet = |ip_octets| PacketPlan { gap: self.params.spacing, ip_octets, hop_limit: None::<NonZeroU8> };
        let packets = search.sizes(size).into_iter().map(packet).collect();
        Step::Send(Probe::Train(Train { id: TrainId(self.serial), packets, peer_kind: search.peer_kind() }))
    }

    fn refused(&mut self, refusal: Refusal) -> Step {
        let Some(search) = &mut self.search else {
            return Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent));
        };
        let reason = match refusal {
            Refusal::TooLarge { max_ip_octets } if search.cap(max_ip_octets) => return self.proceed(),
            Refusal::TooSmall { min_ip_octets } if search.raise(min_ip_octets) => return self.proceed(),
            Refusal::NotOffered if matches!(search.peer_kind(), PeerKind::EchoSized(_)) => {
                search.whole_echoes = true;
                return self.proceed();
            }
            other => refusal_reason(other, "unfragmented packets that the peer answers"),
        };
        Step::Done(conclude(search, Some(&reason)))
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("pmtu", "echoed trains");

    /// Whether echoes come back whole is the peer's affair, and the rows', not the plan's.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        if let Some(search) = &mut self.search {
            search.whole_echoes |= train.peer_kind == PeerKind::Echo;
        }
        true
    }
}

impl Estimator for Run {
    fn step(&mut self, _now: Stamp<Sender>, event: Event) -> Step {
        match (event, &mut self.search) {
            (Event::Started(facts), _) => {
                self.search = Some(Search::new(&facts, &self.params));
                self.proceed()
            }
            (Event::Train(report), Some(search)) if report.id == TrainId(self.serial) => {
                search.take(&report);
                self.proceed()
            }
            (Event::Refused(refusal), Some(_)) => self.refused(refusal),
            (Event::Stop(reason), Some(search)) => Step::Done(conclude(search, Some(&reason))),
            (Event::Stop(reason), None) => Step::Done(Outcome::inconclusive(reason)),
            _ => Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent)),
        }
    }
}
