//! RFC 9097: estimates the maximum IP-layer capacity from a UDP load that a search steers by loss and delay.
//!
//! # Model
//! A load goes towards the receiver, which reports every 50 ms; the rate walks over the rows of a table until the path shows loss or
//! delay, and stays about there:
//! ```text
//!   rate |            ___/\_/\__/\_/\_/\_      what arrives in each second of the test counts; the highest second is the answer
//!        |        ___/
//!        |    ___/      ten rows a trial (B), or doubling (C)
//!        |___/__________________________ time
//! ```
//! What is found is what the path delivers to a load that does not yield: on an idle path its capacity, beside traffic that does
//! not yield what that leaves, beside traffic that does more than was available.
//!
//! # Assumptions
//! - A1 Loss and delay above the thresholds come of congestion.
//! - A2 The test is long enough for the search: 5 s to 1 Gbit/s by algorithm B, 1 s by C.
//! - A3 Both hosts keep up.
//! - A4 The path's rate is the same at the begin and at the end of the test.
//!
//! # Formula
//! - Trial: `interval` of load. Sequence errors: packets lost, and with `count_reordering` those out of order or doubled too. Delay:
//!   the mean one-way delay above the smallest of the test, which no traffic on the way back disturbs. Clear: at most
//!   `sequence_errors` and less delay than `low`; congested: more errors or more delay than `upper`; else, or without news, hold.
//! - Algorithm B (RFC 9097 §8.1, Appendix A): clear: 10 rows up, if fast, else one; congested: a row down, the third time in a row
//!   30. Fast is below 1 Gbit/s and while fewer than three trials were congested since the last fast step; slow is for good.
//! - Algorithm C (multiply and retry): doubles every second clear trial, if fast; after five linear steps, later ten, fast again.
//! - Value: highest rate of arrival over any sub-interval of `sub_interval`, `Maximum_C(T, I, PM)` of RFC 9097 §5.3, IP headers
//!   counted; of those whose loss is within `max_loss` (PM). Low: the median of those since the first congestion, or the value less its losses. High: the next
//!   row. Code: `search.rs`, `intervals.rs`.
//! - With `initial` N the first N sub-intervals are set apart (bimodal, RFC 9097 §6.6); without, a begin that was faster by a tenth
//!   than everything in the second half is told.
//!
//! # Parameters
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `algorithm` | word | `B` | `B`, `C` | RFC 9097 §8.1; C as the reference program has it |
//! | `duration` | time | 10 s | 1 s to 1 h | RFC 9097 §8.1 `I`; the reference program: 5 s to 1 h |
//! | `sub_interval` | time | 1 s | 100 ms to 1 min | RFC 9097 §8.1 `dt` |
//! | `interval` | time | 50 ms | 5 ms to 250 ms | RFC 9097 §8.1 |
//! | `low`, `upper` | time | 30 ms, 90 ms | 1 ms to 10 s | RFC 9097 §8.1; range of the reference program |
//! | `sequence_errors` | count | 10 | 0 to 65535 | RFC 9097 §8.1; range of the reference program |
//! | `count_reordering` | 0, 1 | 0 | | the reference program ignores it by default |
//! | `fast_increase` | rows | 10 | 2 to 30 | RFC 9097 §8.1; three times as many down |
//! | `slow_after` | trials | 3 | 1 to 100 | RFC 9097 §8.1 |
//! | `start_bps` | bit/s, IP | 500 kbit/s | above 0 | RFC 9097 §8.1: the first row |
//! | `max_bps` | bit/s, IP | 10 Gbit/s | above 0 | ours |
//! | `max_loss` | share | 1 | 0 to 1 | PM; ours: none |
//! | `initial` | count | 0 | 0 to 60 | RFC 9097 §6.6 |
//! | `ip_octets` | octets | 1250 | 64 to path MTU | the reference program's: rows are whole Mbit/s |
//!
//! Both algorithms were compared with the reference program's (OB-UDPST, `adjust_sending_rate`) branch by branch: the same, its quirks
//! included (the count of congested trials is taken back only by a fast step; C counts retries down as well as up, and waits longer only after
//! those up); so are the ends of sub-intervals, half a trial early at most, and the answer, the highest of them. The text of RFC 9097 itself
//! was not at hand; its constants come from notes.
//! What C oversteps by is thus the algorithm's: it is fast again after five linear steps, later ten, and doubles past the path each time. On an idle
//! path that costs losses, not accuracy, for no more arrives than the path carries. Beside `X` of traffic that does not yield, a load of `R` gets
//! `C R / (R + X)` of a full queue, so that R of 128 Mbit/s into 100 beside 40 gets 76 where 60 were available; B gets 71 for some tenths
//! of a second. The low end leaves out what was lost, `loss` tells of it.
//! Departs from the reference program: packets leave evenly, or in groups of what a host's timer allows, where it has two timers of
//! 100 us and 1 ms; delay is one-way where it takes round trips by default.
//!
//! # Cost
//! `duration` at about the answer's rate: 10 s, 100 MB on 100 Mbit/s. Fills the tight link and its queue up to `upper`.
//!
//! # Fails when
//! - A1: random loss pins the rate at `sequence_errors / interval / p` packets per second (`loss`); jitter above `low` holds it.
//! - A2: still rising at the end: a lower bound, `test_too_short`.
//! - A3: `sender_limited`, `receiver_limited`, lower bounds. Below 1 Mbit/s a trial holds less than a packet and little is learnt.
//! - A4: `variable_rate`: a token bucket let the first seconds through, or the path changed.
//!
//! # References
//! - [RFC 9097] Morton, Geib, Ciavattone: Metrics and methods for one-way IP capacity, 2021.
//! - [RFC 5136] Chimento, Ishac: Defining network capacity, 2008.

mod intervals;
mod result;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{BitRate, Layer, Metric, Sender, Stamp};

use super::bulk;
use crate::contract::{Estimator, Event, Refusal, Step};
use crate::facts::PathFacts;
use crate::observations::Follower;
use crate::outcome::{Outcome, Reason};
use crate::probe::{Load, LoadReport, LoadStatus, Probe, Then};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope,
};
use intervals::Intervals;
use search::{Algorithm, Search, Trial, Tuning, Verdict};

/// The method.
pub(super) struct Rfc9097;

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
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 100_000_000,
        max_octets: 15_000_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(15),
        fills_path: true,
    },
    parameters: &[
        ("algorithm", "load adjustment: B or C; default B"),
        ("duration", "length of the test; default 10 s"),
        ("sub_interval", "time over which a rate is taken; default 1 s"),
        ("interval", "length of a trial; default 50 ms"),
        ("low", "delay below which a trial is clear; default 30 ms"),
        ("upper", "delay above which a trial is congested; default 90 ms"),
        ("sequence_errors", "losses that a trial may have; default 10"),
        (
            "count_reordering",
            "1: reordered and doubled packets count as lost; default 0",
        ),
        (
            "fast_increase",
            "rows per clear trial while the search is fast; default 10",
        ),
        ("slow_after", "congested trials that make it slow; default 3"),
        ("start_bps", "IP-layer rate of the first trial; default 500 kbit/s"),
        ("max_bps", "highest IP-layer rate to try; default 10 Gbit/s"),
        ("max_loss", "share that a sub-interval may lose to count; default 1"),
        ("initial", "sub-intervals at the begin to set apart; default 0"),
        ("ip_octets", "length of each packet, octets; default 1250"),
    ],
    source: include_str!("rfc9097.rs"),
};

bulk::method!(Rfc9097, |params| params.duration);

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

const DEFAULT_MAX: BitRate = BitRate::from_gbps(10);

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let ms = Duration::from_millis;
        let algorithm: String = raw.get("algorithm", "B".to_owned())?;
        let algorithm = algorithm.to_ascii_uppercase();
        bulk::check(
            "algorithm",
            ["B", "C"].contains(&algorithm.as_str()),
            &algorithm,
            "B or C",
        )?;
        let delay = |name, default| bulk::duration_within(raw, name, default, ms(1), Duration::from_secs(10));
        let (low, upper) = (delay("low", ms(30))?, delay("upper", ms(90))?);
        bulk::check("upper", low <= upper, units::format_duration(upper), "at least low")?;
        let whole = |name, default: usize, least: usize, most: usize| -> Result<usize, ParamError> {
            let value: usize = raw.get(name, default)?;
            bulk::check(
                name,
                (least..=most).contains(&value),
                value,
                &format!("{least} to {most}"),
            )?;
            Ok(value)
        };
        let max = bulk::optional_rate(raw, "max_bps")?.unwrap_or(DEFAULT_MAX);
        let params = Self {
            tuning: Tuning {
                algorithm: if algorithm == "C" { Algorithm::C } else { Algorithm::B },
                low,
                upper,
                sequence_errors: u64::try_from(whole("sequence_errors", 10, 0, 65_535)?).unwrap_or(u64::MAX),
                fast_increase: whole("fast_increase", 10, 2, 30)?,
                slow_after: u32::try_from(whole("slow_after", 3, 1, 100)?).unwrap_or(u32::MAX),
                most: search::row_of(max),
            },
            duration: bulk::duration_within(raw, "duration", ms(10_000), ms(1000), ms(3_600_000))?,
            sub_interval: bulk::duration_within(raw, "sub_interval", ms(1000), ms(100), ms(60_000))?,
            interval: bulk::duration_within(raw, "interval", ms(50), ms(5), ms(250))?,
            count_reordering: whole("count_reordering", 0, 0, 1)? == 1,
            start: bulk::optional_rate(raw, "start_bps")?,
            max,
            max_loss: raw.get("max_loss", 1.0)?,
            initial: whole("initial", 0, 0, 60)?,
            ip_octets: raw.get("ip_octets", 1250)?,
        };
        let (loss, octets) = (params.max_loss, params.ip_octets);
        bulk::check("max_loss", (0.0..=1.0).contains(&loss), loss, "0 to 1")?;
        bulk::check("ip_octets", octets >= 64, octets, "64 to the path MTU")?;
        let fits = params.sub_interval <= params.duration && params.interval <= params.sub_interval;
        bulk::check(
            "sub_interval",
            fits,
            units::format_duration(params.sub_interval),
            "between a trial and the test",
        )?;
        Ok(params)
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
        let tuning = Tuning {
            most: search::row_of(most),
            ..self.params.tuning
        };
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
            if verdict == Verdict::Congested {
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
        let others = if self.params.count_reordering {
            status.reordered.saturating_add(status.duplicates)
        } else {
            0
        };
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

impl Follower for Run {
    const READS: (&'static str, &'static str) = ("rfc9097", "load segments");

    fn follow(&mut self, asked: &Probe) -> bool {
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
