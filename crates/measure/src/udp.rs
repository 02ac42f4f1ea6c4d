#![doc = include_str!("udp.md")]

mod bracket;
mod result;
#[cfg(test)]
mod tests;
mod trial;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, Sender, Stamp};

use bracket::{Bracket, Next};
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Load, LoadReport, Probe, Then};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope, params,
};
use narrows_train::bulk;
use trial::Trial;

/// The method.
pub struct Udp;

/// What the last probe may take beyond the end of the search.
const LAST_PROBE: Duration = Duration::from_secs(2);

static INFO: MethodInfo = MethodInfo {
    name: "udp",
    summary: "highest UDP rate with loss under 1 %, from loads of constant rate",
    metric: Metric::UdpAchievable,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::Flooding,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::UdpPayload),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 32_000_000,
        max_octets: 6_000_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(8),
        fills_path: true,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("udp.md"),
};

bulk::method!(Udp, |params| params.max_time());

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    struct Params {
        /// IP-layer rate of the first trial; without it the search begins by steps of 4.
        start: Option<BitRate> = "none" {
            name: "start_bps", range: AtLeast("1 bit/s"), source: "the available rate, if measured",
        },
        /// Highest IP-layer rate to try.
        max: Option<BitRate> = "none" { name: "max_bps", range: AtLeast("1 bit/s"), source: "ours" },
        /// Share that may be lost.
        max_loss: f64 = "0.01" { unit: "share", range: Between("0.0001", "0.99"), source: "[Netest03]" },
        /// Width of the final bracket.
        resolution: f64 = "0.02" { unit: "share", range: Between("0.002", "0.5"), source: "ours" },
        /// Length of a trial.
        segment: Duration = "500 ms" {
            range: Between("50 ms", "60 s"), source: "ours: 5 % of a 10 ms queue, growing, are seen",
        },
        /// Length of the confirmation.
        confirm: Duration = "1 s" { range: Between("50 ms", "60 s"), source: "ours" },
        /// End of the search.
        max_time: Option<Duration> = "4 s, without a start 6 s" { range: Between("100 ms", "10 min"), source: "ours" },
        /// Length of each packet, no more than the path MTU.
        ip_octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: AtLeast("64"), source: "largest is cheapest for the hosts",
        },
        /// Packets that leave together at the interface's own rate, pauses between them.
        burst: Option<u16> = "as few as the host can pace" {
            unit: "packets", range: Between("1", "4096"), source: "[Netest03] §III.A",
        },
        /// Sockets: two are compared with one.
        streams: u16 = "1" { range: Between("1", "2"), source: "[Netest03]: one against two sockets" },
    }
}

impl Params {
    /// End of the search, which takes longer where nothing is known.
    fn max_time(&self) -> Duration {
        let usual = Duration::from_secs(if self.start.is_some() { 4 } else { 6 });
        self.max_time.unwrap_or(usual)
    }
}

/// Where the method stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Looking for the order of magnitude.
    Ramp,
    /// Narrowing the bracket.
    Bracket,
    /// The best rate once more, for longer.
    Confirm,
    /// Two sockets; the number of trials so far.
    Two(u32),
}

const RAMP_FROM: BitRate = BitRate::from_mbps(1);
const RAMP_STEP: f64 = 4.0;
const RAMP_SEGMENT: Duration = Duration::from_millis(100);
/// Loss at which the ramp ends: a tenth of a second is too short to tell less from jitter.
const RAMP_LOSS: f64 = 0.05;
/// Status intervals per segment.
const STATUSES: u32 = 10;
/// Trials of which nothing arrives before the method gives up.
const SILENT_TRIALS: u32 = 3;
/// Failed confirmations before the method settles for what it has.
const MAX_RETRACTIONS: u32 = 2;
/// Two sockets are tried at this multiple of what one got.
const TWO_STREAMS_STEP: f64 = 1.2;

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    phase: Phase,
    bracket: Bracket,
    asked: BitRate,
    ip_octets: u16,
    silent: u32,
    retractions: u32,
    known: result::Known,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            phase: Phase::Bracket,
            bracket: Bracket::new(params.max_loss, params.resolution, BitRate::from_bps(u64::MAX)),
            asked: BitRate::ZERO,
            ip_octets: 0,
            silent: 0,
            retractions: 0,
            known: result::Known::default(),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.ip_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu).max(1);
        self.facts = facts;
        let host = &self.facts.receiver;
        let receiver = host.max_stamped_rate(self.ip_octets, host.stamp_source);
        self.bracket = Bracket::new(self.params.max_loss, self.params.resolution, self.cap()).with_receiver(receiver);
        let (phase, rate) = match self.params.start {
            Some(rate) => (Phase::Bracket, rate),
            None => (Phase::Ramp, RAMP_FROM),
        };
        self.try_rate(now, phase, rate)
    }

    /// Highest rate that may be asked for.
    fn cap(&self) -> BitRate {
        [self.params.max, self.facts.rate_cap].into_iter().flatten().min().unwrap_or(BitRate::from_bps(u64::MAX))
    }

    /// Sends a trial, or ends if there is no time for it.
    fn try_rate(&mut self, now: Stamp<Sender>, phase: Phase, rate: BitRate) -> Step {
        let duration = match phase {
            Phase::Ramp => RAMP_SEGMENT,
            // Short of time, a shorter confirmation is better than none.
            Phase::Confirm => {
                let left = self.params.max_time().saturating_sub(now.since(self.began));
                self.params.confirm.min(left.max(self.params.segment))
            }
            Phase::Bracket | Phase::Two(_) => self.params.segment,
        };
        if now.since(self.began) + duration > self.params.max_time() {
            self.known.out_of_time = true;
            return Step::Done(self.conclude(None));
        }
        self.phase = phase;
        self.asked = rate.min(self.cap());
        // Packets leave in groups where the host cannot pace them one by one.
        let in_gap = self.asked.octets_in(self.facts.sender.min_gap);
        let paced = in_gap.div_ceil(u64::from(self.ip_octets)).clamp(1, 64);
        Step::Send(Probe::Load(Load {
            rate: self.asked,
            ip_octets: self.ip_octets,
            burst: self.params.burst.unwrap_or(u16::try_from(paced).unwrap_or(1)),
            streams: if matches!(phase, Phase::Two(_)) { 2 } else { 1 },
            duration,
            status_every: duration / STATUSES,
            then: Then::Finish,
        }))
    }

    fn take(&mut self, now: Stamp<Sender>, report: &LoadReport) -> Step {
        let trial = Trial::read(self.asked, report);
        self.known.note(&trial);
        if trial.arrived == 0 {
            self.silent += 1;
            if self.silent >= SILENT_TRIALS {
                return Step::Done(self.conclude(Some(Reason::NoAnswer)));
            }
        } else {
            self.silent = 0;
        }
        match self.phase {
            Phase::Ramp => self.take_ramp(now, &trial),
            Phase::Bracket => {
                if !self.bracket.passes(&trial) && trial.arrived > 0 {
                    let least = self.known.best_failure.filter(|old| old.delivered <= trial.delivered);
                    self.known.best_failure = least.or(Some(trial));
                }
                let next = self.bracket.note(&trial);
                self.replay_step(now, next)
            }
            Phase::Confirm => self.take_confirm(now, &trial),
            Phase::Two(tries) => self.take_two(now, tries, &trial),
        }
    }

    fn take_ramp(&mut self, now: Stamp<Sender>, trial: &Trial) -> Step {
        if trial.arrived == 0 {
            let lower = BitRate::from_bps((self.asked.bps() / 8).max(8));
            return self.try_rate(now, Phase::Ramp, lower);
        }
        let over = trial.sustained_loss() + trial.local > RAMP_LOSS;
        if over || trial.sender_limited || self.asked >= self.cap() {
            let rate = trial.delivered.max(BitRate::from_bps(1));
            return self.try_rate(now, Phase::Bracket, if over { rate } else { self.asked });
        }
        let rate = self.asked.scaled(RAMP_STEP).unwrap_or(self.asked);
        self.try_rate(now, Phase::Ramp, rate)
    }

    fn replay_step(&mut self, now: Stamp<Sender>, next: Next) -> Step {
        match (next, self.bracket.passed) {
            (Next::Try(rate), _) => self.try_rate(now, Phase::Bracket, rate),
            (Next::Capped | Next::Narrow, Some(best)) => self.try_rate(now, Phase::Confirm, best.asked),
            (Next::Capped | Next::Narrow, None) => Step::Done(self.conclude(None)),
        }
    }

    fn take_confirm(&mut self, now: Stamp<Sender>, trial: &Trial) -> Step {
        if self.bracket.passes(trial) {
            self.known.confirmed = Some(*trial);
            return self.second_stream(now);
        }
        self.retractions += 1;
        if self.retractions > MAX_RETRACTIONS {
            return Step::Done(self.conclude(None));
        }
        self.known.narrow = false;
        let next = self.bracket.retract(trial);
        self.replay_step(now, next)
    }

    fn second_stream(&mut self, now: Stamp<Sender>) -> Step {
        let one = self.known.confirmed.filter(|_| self.params.streams == 2);
        let Some(one) = one else {
            return Step::Done(self.conclude(None));
        };
        let step = if one.sender_limited { 2.0 } else { TWO_STREAMS_STEP };
        let rate = one.sent.scaled(step).unwrap_or(one.sent);
        self.try_rate(now, Phase::Two(0), rate)
    }

    fn take_two(&mut self, now: Stamp<Sender>, tries: u32, trial: &Trial) -> Step {
        self.known.two = Some(*trial);
        if !self.bracket.passes(trial) && trial.arrived > 0 && tries == 0 {
            return self.try_rate(now, Phase::Two(1), trial.delivered);
        }
        Step::Done(self.conclude(None))
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Refusal::TooLarge { max_ip_octets } = refusal
            && max_ip_octets < self.ip_octets
            && max_ip_octets >= 64
        {
            self.ip_octets = max_ip_octets;
            return self.try_rate(now, self.phase, self.asked);
        }
        Step::Done(self.conclude(Some(bulk::reason_of(refusal, "UDP loads"))))
    }

    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        result::outcome(&self.known, &self.bracket, &self.facts, self.ip_octets, reason)
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("udp", "load segments");

    /// Short segments are steps of the ramp, two sockets are the comparison, and only the rate to
    /// be confirmed confirms.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Load(load) = asked else { return false };
        self.phase = match self.phase {
            _ if load.streams > 1 => Phase::Two(1),
            _ if load.duration <= RAMP_SEGMENT => Phase::Ramp,
            Phase::Confirm if load.rate == self.asked => Phase::Confirm,
            Phase::Ramp | Phase::Bracket | Phase::Confirm | Phase::Two(_) => Phase::Bracket,
        };
        self.asked = load.rate;
        self.ip_octets = load.ip_octets;
        true
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::Load(report) => self.take(now, &report),
            Event::Refused(refusal) => self.refused(now, refusal),
            Event::Stop(reason) => Step::Done(self.conclude(Some(reason))),
            Event::Train(_) | Event::Transfer(_) | Event::Capture(_) | Event::TimerFired => {
                Step::Done(self.conclude(Some(Reason::UnexpectedEvent)))
            }
        }
    }
}
