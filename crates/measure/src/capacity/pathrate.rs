#![doc = include_str!("pathrate.md")]

mod adaptive;
mod answer;
mod batches;
mod behind;
mod buckets;
mod by_trains;
mod capprobe;
mod core;
mod diagnostics;
mod faithful;
mod framing;
mod full_queue;
mod gaps;
mod hosts;
mod least_delay;
mod limits;
mod long_trains;
mod mixed;
mod modes;
mod neighbours;
mod paced;
mod params;
mod quick;
mod rates;
mod recorded;
mod sample;
mod session;
mod settled;
mod shape;
#[cfg(test)]
mod tests;
mod three_rates;
mod two_rates;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, Sender, Stamp};

pub(super) use gaps::densest;
pub(crate) use params::AUTOMATIC_PARAMETERS;
pub use params::{Params, Preset};
pub(crate) use recorded::analyse as analyse_recorded;

use self::adaptive::Adaptive;
use self::behind::Shape;
use self::faithful::Faithful;
use self::sample::Phase;
use self::session::{Acceptance, MethodRun};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::observations::{AnalyseError, Observations};
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Probe, Train, TrainReport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::bucket_head;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pathrate;

static INFO: MethodInfo = MethodInfo {
    name: "pathrate",
    summary: "the tool pathrate: capacity from the modes of packet-pair rates, bounded by trains",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 1_300_000,
        max_octets: 63_000_000,
        typical_time: Duration::from_secs(45),
        max_time: Duration::from_secs(1000),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("pathrate.md"),
};

impl Method for Pathrate {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        match Params::try_from(params) {
            Ok(params) if params.preset == Preset::Faithful => params.imposes(&INFO.imposes),
            _ => crate::capacity::Capacity.info().imposes.clone(),
        }
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        recorded::analyse(observations, Params::try_from(params)?)
    }
}

/// What the reports of a run say, in the order in which they came.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport], params: &Params) -> Outcome {
    let mut session = MethodRun::new(facts.clone(), params.clone());
    for report in reports {
        session.take(report, params.preset == Preset::Faithful);
    }
    answer::conclude(&session, None)
}

fn refusal_reason(refusal: Refusal) -> Reason {
    narrows_train::train_method::refusal_reason(refusal, "trains of packets towards a receiver that stamps them")
}

/// Ours: the packet in front of a pair for the filter only wakes hosts; the smaller it is, the
/// sooner the pair finds a queue empty.
const HEAD_OCTETS: u16 = 60;

/// Ours: a pair follows the one before after 0.6 to 1.4 of the mean time.
const WANDER: f64 = 0.4;
/// Ours: a report for so many pairs of the filter.
const PAIRS_PER_TRAIN: u32 = 8;
/// Ours: where a report takes this long, round trips and not the link set the pace of trains.
const FAR: Duration = Duration::from_millis(50);
/// Ours: packet times over which the begin of a pair is spread at least.
const PHASES: f64 = 4.0;

/// A train that a phase asks for. One packet more is sent, in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    phase: Phase,
    packets: usize,
    ip_octets: u16,
    /// IP-layer rate to pace at; `None` sends back to back.
    rate: Option<BitRate>,
}

/// What became of the last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    request: Request,
    taken: Acceptance,
}

#[derive(Debug, Clone)]
enum Planner {
    Adaptive(Adaptive),
    Faithful(Faithful),
}

impl Planner {
    fn new(preset: Preset) -> Self {
        match preset {
            Preset::Adaptive => Self::Adaptive(Adaptive::new()),
            Preset::Faithful => Self::Faithful(Faithful::new()),
        }
    }

    fn next(&mut self, session: &MethodRun, last: Option<Last>) -> Option<Request> {
        match self {
            Self::Adaptive(planner) => planner.next(session, last),
            Self::Faithful(planner) => planner.next(session, last),
        }
    }

    /// More trains of its phase that wait, to go along with one.
    fn alike(&mut self, request: Request, most: usize) -> Vec<Request> {
        match self {
            Self::Adaptive(planner) => planner.alike(request, most),
            Self::Faithful(_) => Vec::new(),
        }
    }

    /// Time to let pass before this train, whatever came before.
    fn pause(&self, session: &MethodRun, request: Request) -> Duration {
        match self {
            Self::Adaptive(_) => Adaptive::pause(session, request),
            Self::Faithful(_) => Duration::ZERO,
        }
    }

    fn spacing(&self, session: &MethodRun, request: Request) -> Duration {
        match self {
            Self::Adaptive(_) => Adaptive::spacing(session, request),
            Self::Faithful(planner) => planner.spacing(session),
        }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    params: Params,
    session: Option<MethodRun>,
    planner: Planner,
    /// The train asked for, on its way or waiting for its time.
    current: Option<Request>,
    /// Pairs or preliminary trains that go along with it, one report for all.
    beside: Vec<Request>,
    /// When it left, and the least time that a report has taken.
    sent: Option<Stamp<Sender>>,
    round_trip: Option<Duration>,
    serial: u32,
    not_before: Option<Stamp<Sender>>,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            planner: Planner::new(params.preset),
            params,
            session: None,
            current: None,
            beside: Vec::new(),
            sent: None,
            round_trip: None,
            serial: 0,
            not_before: None,
        }
    }

    fn begin(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.session = Some(MethodRun::new(facts, self.params.clone()));
        self.proceed(now, None)
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        let lengths = self.lengths();
        let (Some(session), Some(request)) = (&mut self.session, self.current.take()) else {
            return unexpected();
        };
        if report.id != request.phase.train_id(self.serial) {
            return unexpected();
        }
        let took = self.sent.take().map(|sent| now.since(sent));
        self.round_trip = self.round_trip.into_iter().chain(took).min();
        let taken = match lengths.as_slice() {
            [] | [_] => session.take(report, self.params.preset == Preset::Faithful),
            several => session.take_several(report, several),
        };
        self.beside.clear();
        self.proceed(now, Some(Last { request, taken }))
    }

    /// Whether more trains go along with this one: they are far from their reports, and where they
    /// are no pairs, so many take no longer than the round trip that they save.
    fn is_far(&self, session: &MethodRun, request: Request) -> bool {
        self.round_trip.filter(|time| *time >= FAR).is_some_and(|time| match request.phase {
            Phase::Pairs => true,
            Phase::Preliminary => self.planner.spacing(session, request) * PAIRS_PER_TRAIN <= time,
            _ => false,
        })
    }

    /// Packets of each train that the next report is on.
    fn lengths(&self) -> Vec<usize> {
        self.current.iter().chain(&self.beside).map(|one| one.packets + 1).collect()
    }

    /// A report on several trains as one of each, before the run takes it in.
    pub(in crate::capacity) fn apart_again(&self, report: &TrainReport) -> Vec<TrainReport> {
        session::several(report, &self.lengths())
    }

    fn proceed(&mut self, now: Stamp<Sender>, last: Option<Last>) -> Step {
        let Some(session) = &self.session else {
            return unexpected();
        };
        self.current = self.planner.next(session, last);
        if self.current.is_none() {
            return Step::Done(answer::conclude(session, None));
        }
        if let Some(request) = self.current {
            if self.is_far(session, request) {
                self.beside = self.planner.alike(request, PAIRS_PER_TRAIN as usize - 1);
            }
            let pause = now + self.pause(session, request);
            self.not_before = Some(self.not_before.map_or(pause, |before| before.max(pause)));
        }
        match self.not_before.filter(|until| *until > now) {
            Some(until) => Step::Wait { until },
            None => self.send(now),
        }
    }

    fn send(&mut self, now: Stamp<Sender>) -> Step {
        let (Some(session), Some(request)) = (&self.session, self.current) else {
            return unexpected();
        };
        self.serial += 1;
        let id = request.phase.train_id(self.serial);
        self.not_before = Some(now + self.spread(session, request));
        let rate = request.rate.unwrap_or(BitRate::ZERO);
        let found = if request.phase.is_behind() { buckets::found(session) } else { None };
        let mut train = match found.and_then(|found| behind::wanted(session, &found)) {
            Some(Shape { head, comes_in, tail, .. }) => {
                bucket_head::before(Train::at_rate(id, tail, request.ip_octets, rate), head, comes_in)
            }
            None => Train::at_rate(id, request.packets + 1, request.ip_octets, rate),
        };
        if request.phase == Phase::Filter {
            let apart = self.planner.spacing(session, request);
            self.several(&mut train, apart);
        }
        let mut before = request;
        for (number, beside) in (1..).zip(&self.beside) {
            let mut next = Train::uniform(id, beside.packets + 1, beside.ip_octets, Duration::ZERO);
            let mut apart = self.planner.spacing(session, before).max(self.planner.spacing(session, *beside));
            if request.phase == Phase::Preliminary {
                apart = apart.max(self.round_trip.unwrap_or(Duration::ZERO) / (2 * PAIRS_PER_TRAIN));
            }
            if let Some(head) = next.packets.first_mut() {
                head.gap = self.apart(number, apart);
            }
            train.packets.extend(next.packets);
            before = *beside;
        }
        self.sent = Some(now);
        Step::Send(Probe::Train(train))
    }

    /// Time to a train's pair of this number, where they are `mean` apart.
    fn apart(&self, number: u32, mean: Duration) -> Duration {
        let share = chance(self.serial.wrapping_add(number << 20));
        mean.mul_f64(1.0 + WANDER * (2.0 * share - 1.0))
    }

    /// The time to the next train.
    fn spread(&self, session: &MethodRun, request: Request) -> Duration {
        let mean = self.planner.spacing(session, request);
        if self.params.preset == Preset::Faithful {
            return mean;
        }
        let (share, resolution) = (chance(self.serial), session.facts.receiver.clock_resolution);
        let spread = if request.phase.is_spread() {
            mean.mul_f64(1.0 + WANDER * (2.0 * share - 1.0))
        } else {
            mean + resolution.saturating_sub(Duration::from_nanos(1)).mul_f64(share)
        };
        spread.max(self.params.spacing)
    }

    /// Makes one pair with a small packet in front of it several, at random times `apart` in the
    /// mean: one report for them all, where round trips and not the link set the pace.
    fn several(&self, train: &mut Train, apart: Duration) {
        if let Some(head) = train.packets.first_mut() {
            head.ip_octets = head.ip_octets.min(HEAD_OCTETS);
        }
        let one = train.packets.clone();
        for number in 1..PAIRS_PER_TRAIN {
            let from = train.packets.len();
            train.packets.extend_from_slice(&one);
            if let Some(head) = train.packets.get_mut(from) {
                head.gap = self.apart(number, apart);
            }
        }
    }

    /// Time before this train, whatever came before: some packet times at random where trains
    /// follow one another as fast as reports come back, which is a steady time, too.
    fn pause(&self, session: &MethodRun, request: Request) -> Duration {
        let pause = self.planner.pause(session, request);
        if self.params.preset == Preset::Faithful || !request.phase.is_spread() {
            return pause;
        }
        let gap_ns = adaptive::gap_ns(session, session.full_size()).unwrap_or(0.0);
        pause + Duration::try_from_secs_f64(PHASES * gap_ns * 1e-9 * chance(self.serial)).unwrap_or_default()
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        let Some(session) = &mut self.session else {
            return unexpected();
        };
        match refusal {
            // A smaller full size is another session: sizes and lengths are planned anew.
            Refusal::TooLarge { max_ip_octets } if max_ip_octets < session.facts.path_mtu && max_ip_octets > 0 => {
                let mut facts = session.facts.clone();
                facts.path_mtu = max_ip_octets;
                self.planner = Planner::new(self.params.preset);
                self.begin(now, facts)
            }
            other => Step::Done(answer::conclude(session, Some(&refusal_reason(other)))),
        }
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match (event, &self.session) {
            (Event::Started(facts), _) => self.begin(now, facts),
            (Event::Train(report), _) => self.take(now, &report),
            (Event::TimerFired, Some(_)) => self.send(now),
            (Event::Refused(refusal), Some(_)) => self.refused(now, refusal),
            (Event::Stop(reason), Some(session)) => Step::Done(answer::conclude(session, Some(&reason))),
            (Event::Stop(reason), None) => Step::Done(Outcome::inconclusive(reason)),
            _ => unexpected(),
        }
    }
}

/// A number of 0 to 1 that looks like chance and is the same in every run: `SplitMix64` of a serial
/// number.
fn chance(serial: u32) -> f64 {
    let mixed = u64::from(serial).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 40) as f64 / f64::from(1u32 << 24)
}

fn unexpected() -> Step {
    Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent))
}
