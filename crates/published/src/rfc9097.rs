#![doc = include_str!("rfc9097.md")]

mod intervals;
mod result;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, Sender, Stamp};

use intervals::Intervals;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Load, LoadReport, LoadStatus, Probe, Then};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope, params,
};
use narrows_train::bulk;
use search::{Algorithm, Search, Trial, TrialVerdict, Tuning};

/// The method.
pub struct Rfc9097;

/// What the last status may take beyond the end of the test.
const LAST_PROBE: Duration = Duration::from_secs(5);

static INFO: MethodInfo = MethodInfo {
    name: "rfc9097",
    summary: "maximum IP-layer capacity from a UDP load steered by loss and delay (RFC 9097)",
    metric: Metric::UdpAchievable,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::Flooding,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 100_000_000,
        max_octets: 15_000_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(15),
        fills_path: true,
    },
    parameters: Typed::PARAMETERS,
    manual: include_str!("rfc9097.md"),
};

bulk::method!(Rfc9097, |params| params.duration);

params! {
    /// What can be set, as it is typed.
    #[derive(Debug)]
    struct Typed {
        /// Load adjustment.
        algorithm: Algorithm = "B" with (algorithm) {
            range: Described("B or C"), source: "RFC 9097 §8.1; C as the reference program has it",
        },
        /// Length of the test.
        duration: Duration = "10 s" {
            range: Between("1 s", "1 h"), source: "RFC 9097 §8.1 `I`; the reference program: 5 s to 1 h",
        },
        /// Time over which a rate is taken, no longer than the test.
        sub_interval: Duration = "1 s" { range: Between("100 ms", "1 min"), source: "RFC 9097 §8.1 `dt`" },
        /// Length of a trial, no longer than that.
        interval: Duration = "50 ms" { range: Between("5 ms", "250 ms"), source: "RFC 9097 §8.1" },
        /// Delay below which a trial is clear.
        low: Duration = "30 ms" {
            range: Between("1 ms", "10 s"), source: "RFC 9097 §8.1; range of the reference program",
        },
        /// Delay above which a trial is congested, at least low.
        upper: Duration = "90 ms" {
            range: Between("1 ms", "10 s"), source: "RFC 9097 §8.1; range of the reference program",
        },
        /// Losses that a trial may have.
        sequence_errors: u64 = "10" {
            range: Between("0", "65535"), source: "RFC 9097 §8.1; range of the reference program",
        },
        /// With 1, reordered and doubled packets count as lost.
        count_reordering: u8 = "0" { range: Between("0", "1"), source: "the reference program ignores it by default" },
        /// Rows per clear trial while the search is fast.
        fast_increase: usize = "10" {
            unit: "rows", range: Between("2", "30"), source: "RFC 9097 §8.1; three times as many down",
        },
        /// Congested trials that make it slow.
        slow_adjust_threshold: u32 = "3" { unit: "trials", range: Between("1", "100"), source: "RFC 9097 §8.1" },
        /// IP-layer rate of the first trial.
        start: Option<BitRate> = "500 kbit/s" {
            name: "start_bps", range: AtLeast("1 bit/s"), source: "RFC 9097 §8.1: the first row",
        },
        /// Highest IP-layer rate to try.
        max: BitRate = "10 Gbit/s" { name: "max_bps", range: AtLeast("1 bit/s"), source: "ours" },
        /// Share that a sub-interval may lose to count.
        max_loss: f64 = "1" { unit: "share", range: Between("0", "1"), source: "PM; ours: none" },
        /// Sub-intervals at the begin to set apart.
        initial: usize = "0" { range: Between("0", "60"), source: "RFC 9097 §6.6" },
        /// Length of each packet, no more than the path MTU.
        ip_octets: u16 = "1250" {
            unit: "IP octets", range: AtLeast("64"), source: "the reference program's: rows are whole Mbit/s",
        },
    }
    check Typed::check;
}

impl Typed {
    fn check(&self) -> Result<(), ParamError> {
        bulk::check("upper", self.low <= self.upper, narrows_units::format_duration(self.upper), "at least low")?;
        let fits = self.sub_interval <= self.duration && self.interval <= self.sub_interval;
        let sub_interval = narrows_units::format_duration(self.sub_interval);
        bulk::check("sub_interval", fits, sub_interval, "between a trial and the test")
    }
}

fn algorithm(text: &str) -> Result<Algorithm, String> {
    match text {
        "B" | "b" => Ok(Algorithm::B),
        "C" | "c" => Ok(Algorithm::C),
        _ => Err("write B or C".to_owned()),
    }
}

/// Parameters, as in the table above.
#[derive(Debug, Clone, PartialEq)]
struct Params {
    tuning: Tuning,
    duration: Duration,
    sub_interval: Duration,
    interval: Duration,
    count_reordering: bool,
    start: Option<BitRate>,
    max: BitRate,
    max_loss: f64,
    initial: usize,
    ip_octets: u16,
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        Ok(Self {
            tuning: Tuning {
                algorithm: typed.algorithm,
                low: typed.low,
                upper: typed.upper,
                sequence_errors: typed.sequence_errors,
                fast_increase: typed.fast_increase,
                slow_adjust_threshold: typed.slow_adjust_threshold,
                most: search::row_of(typed.max),
            },
            duration: typed.duration,
            sub_interval: typed.sub_interval,
            interval: typed.interval,
            count_reordering: typed.count_reordering == 1,
            start: typed.start,
            max: typed.max,
            max_loss: typed.max_loss,
            initial: typed.initial,
            ip_octets: typed.ip_octets,
        })
    }
}

/// Without a status for so long the test is over (the reference program's load-packet timeout).
const SILENCE: Duration = Duration::from_secs(3);

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    heard: Stamp<Sender>,
    search: Search,
    ip_octets: u16,
    /// The segment under way is the last.
    finishing: bool,
    asked: BitRate,
    known: result::Known,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            heard: Stamp::from_nanos(0),
            search: Search::new(params.tuning, 0),
            ip_octets: params.ip_octets,
            finishing: false,
            asked: BitRate::ZERO,
            known: result::Known::new(Intervals::new(params.sub_interval)),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        (self.began, self.heard) = (now, now);
        self.ip_octets = self.params.ip_octets.min(facts.path_mtu).max(1);
        let most = facts.rate_cap.map_or(self.params.max, |cap| cap.min(self.params.max));
        let tuning = Tuning { most: search::row_of(most), ..self.params.tuning };
        self.search = Search::new(tuning, self.params.start.map_or(0, search::row_of));
        self.facts = facts;
        self.trial(now)
    }

    /// The next 50 ms of load; the last of them ends it.
    fn trial(&mut self, now: Stamp<Sender>) -> Step {
        let every = self.params.interval;
        self.finishing = now.since(self.began) + every >= self.params.duration;
        self.asked = search::rate(self.search.row());
        // Packets leave in groups where the host cannot pace them one by one.
        let in_gap = self.asked.octets_in(self.facts.sender.min_gap);
        let burst = in_gap.div_ceil(u64::from(self.ip_octets)).clamp(1, 64);
        Step::Send(Probe::Load(Load {
            rate: self.asked,
            ip_octets: self.ip_octets,
            burst: u16::try_from(burst).unwrap_or(1),
            streams: 1,
            duration: every,
            status_every: every,
            then: if self.finishing { Then::Finish } else { Then::Continue },
        }))
    }

    fn take(&mut self, now: Stamp<Sender>, report: &LoadReport) -> Step {
        self.known.note_segment(self.asked, report);
        for status in &report.statuses {
            let verdict = self.search.note(self.trial_of(status));
            self.known.note(status, verdict, self.search.row());
            if verdict == TrialVerdict::Congested {
                self.known.congested_once();
            }
        }
        if report.statuses.iter().any(|status| status.packets > 0) {
            self.heard = now;
        }
        if self.finishing {
            return Step::Done(self.conclude(None));
        }
        if now.since(self.heard) > SILENCE {
            return Step::Done(self.conclude(Some(Reason::NoAnswer)));
        }
        self.trial(now)
    }

    fn trial_of(&self, status: &LoadStatus) -> Trial {
        let others = if self.params.count_reordering { status.reordered.saturating_add(status.duplicates) } else { 0 };
        Trial {
            sequence_errors: status.lost.saturating_add(others),
            delay: status.delay_above_min.map(|(_, mean, _)| mean),
        }
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Refusal::TooLarge { max_ip_octets } = refusal
            && max_ip_octets < self.ip_octets
            && max_ip_octets >= 64
        {
            self.ip_octets = max_ip_octets;
            return self.trial(now);
        }
        Step::Done(self.conclude(Some(bulk::reason_of(refusal, "UDP loads"))))
    }

    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        let settings = result::Settings {
            max_loss: self.params.max_loss,
            initial: self.params.initial,
            most: self.params.tuning.most,
            capped: self.facts.rate_cap.is_some_and(|cap| cap <= self.params.max),
            ip_octets: self.ip_octets,
        };
        result::outcome(&self.known, &settings, &self.facts, self.search.row(), reason)
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("rfc9097", "load segments");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Load(load) = asked else { return false };
        self.asked = load.rate;
        self.ip_octets = load.ip_octets;
        self.finishing = load.then == Then::Finish;
        load.streams == 1
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
