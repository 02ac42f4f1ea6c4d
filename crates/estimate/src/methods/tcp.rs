//! TCP: estimates the bulk transfer capacity of one connection from a transfer, in quick or in full length.
//!
//! # Model
//! A connection climbs to what it can get, and then stays about there. The first part says little, the second repeats itself:
//! ```text
//!   rate |          .--./--./--./--./--.
//!        |        .'
//!        |    . '
//!        +---ramp----|--- window ---|.......... what a test of 20 s would add
//! ```
//! Quick mode finds the end of the ramp, measures for a second, and goes on only while the rate does not stand.
//!
//! # Assumptions
//! - A1 After slow start the window moves slowly (Reno, CUBIC) or the rate is flat (BBR).
//! - A2 The path is stationary over the test.
//! - A3 Hosts offer as much as the connection takes; where they do not, the kernel's counters say so.
//! - A4 No token bucket lets the first seconds through faster than the rest.
//!
//! # Formula
//! - Ramp, rule `seed003`: poll every 2 RTT (at least 2 ms; 20 ms without an RTT); end if the window was at least 4 segments and moved
//!   by fewer than 3, or was smaller and did not move; no comparison if the RTT changed by 30 % (`[QuickMode03]`). Code: `ramp.rs`.
//! - Ramp, rule `composite` (ours): poll every 2 RTT (at least 50 ms); end if the window moved by less than max(3 segments, 10 %) on two
//!   successive polls without retransmission, or the last three polls brought no rate 1.25 times the best before, or BBR's
//!   pacing gain has left start-up and drain; and 6 RTT and 10 segments have passed, no recovery is under way, and the peer's
//!   window, if it is the limit, stands still.
//! - Window: max(1 s, 5 RTT, 8 RTT under BBR) in ten slots of acknowledged octets over time. Stands if its halves agree within 10 %
//!   and the 95 % interval of the slots' mean (neighbours' likeness allowed for) is within 5 %, and the path is filled: slow start ended with a
//!   loss, or something was lost since, or round trips exceed the shortest by 5 %, or the peer's window or BBR is in charge.
//!   Else doubled until `duration`. Code: `is_stable`, `is_unfilled`.
//! - Full length: `omit`, then `duration`; the receiver's octets over its own time are the value if it reports them.
//! - Worst case of a short window `T`: Reno `2/3 (1 + T / (RTT W))`, CUBIC by integration. Code: `theory.rs`.
//! - Limit: sending host, receiving host, peer's window, send buffer, pacing, interface, policer, queue, random loss, window still
//!   growing; the first that holds. Code: `limit.rs`, thresholds there.
//!
//! # Parameters
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `mode` | word | `quick` | `quick`, `full` | `[QuickMode03]` |
//! | `rule` | word | `composite` | `composite`, `seed003` | see above |
//! | `duration` | time | quick 6 s, full 10 s | 500 ms to 1 h | end of quick mode; length of full; `[QuickMode03]` has 10 s for both |
//! | `omit` | time | max(1 s, 20 RTT) | 0 to 10 min | full length: left out at its begin |
//! | `interval` | time | 100 ms | 10 ms to 10 s | full length: slots |
//! | `congestion` | word | host's default | a kernel's name | |
//! | `window_octets` | octets | autotuned | 1 kB to 1 GB | |
//! | `pacing_bps` | bit/s, IP | none | above 0 | |
//!
//! # Cost
//! Quick: ramp plus 1 s at full rate, 1.5 s and 20 MB on 100 Mbit/s over 20 ms. Full: `omit + duration`. Fills the tight link.
//!
//! # Fails when
//! - A1 (HyStart leaves slow start far below the path's rate; a window far from its mean): caught while no queue shows
//!   (`test_too_short` when time runs out); `worst_case_share` says how far the value may be off.
//! - A2: `variable_rate`, `not_converged`; the value is the mean over everything.
//! - A3: `limited_by` sender, receiver or window.
//! - A4: the quick value is too high; compare with full length.
//! - The window never stands still: the mean over all, `not_converged`; still in slow start: a lower bound, `test_too_short`.
//!
//! # References
//! - `[QuickMode03]` Tirumala, Cottrell, Dunigan: Measuring end-to-end bandwidth with Iperf using Web100, 2003.
//! - [RFC 3148] Mathis, Allman: A framework for defining empirical bulk transfer capacity metrics, 2001.
//! - [RFC 6349] Constantine and others: Framework for TCP throughput testing, 2011.
//! - [RFC 9438] Xu and others: CUBIC, 2023.
//! - `[BBR16]` Cardwell and others: BBR: congestion-based congestion control, 2016.

mod limit;
mod ramp;
mod result;
#[cfg(test)]
mod tests;
mod theory;

use std::time::Duration;

use units::{BitRate, Layer, Metric, Octets, Sender, Stamp};

use super::bulk;
use crate::contract::{Estimator, Event, Step};
use crate::facts::PathFacts;
use crate::observations::{self, AnalyseError, Follower, Observations};
use crate::outcome::{Outcome, Reason};
use crate::probe::{Congestion, Probe, Then, Transfer, TransferReport};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
pub use limit::{Limits, limits};
use ramp::{Ramp, Rule};
use result::{Known, Standing};

/// The method.
pub(super) struct Tcp;

/// What connecting and closing may take (ours).
const LAST_PROBE: Duration = Duration::from_secs(2);

static INFO: MethodInfo = MethodInfo {
    name: "tcp",
    summary: "bulk transfer capacity of one TCP connection, quick or in full length",
    metric: Metric::TcpAchievableSingle,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::BulkTransfer,
        activity: Activity::Active,
        protocol: Protocol::Tcp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::TcpPayload),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 20_000_000,
        max_octets: 100_000_000_000,
        typical_time: Duration::from_millis(1500),
        max_time: Duration::from_secs(12),
        fills_path: true,
    },
    parameters: &[
        ("mode", "quick or full; default quick"),
        ("rule", "end of the ramp: composite or seed003; default composite"),
        (
            "duration",
            "end of quick mode, or length of full; default 6 s, full 10 s",
        ),
        (
            "omit",
            "left out at the begin of full length; default 1 s, at least 20 RTT",
        ),
        ("interval", "slots of full length; default 100 ms"),
        (
            "congestion",
            "congestion control by its kernel name; default: the host's",
        ),
        ("window_octets", "window to ask for; default: autotuned"),
        ("pacing_bps", "pacing rate; default: none"),
    ],
    source: include_str!("tcp.rs"),
};

impl Method for Tcp {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => usual.lasting(params.omit.unwrap_or(LEAST_OMIT) + params.duration + LAST_PROBE),
            Err(_) => usual,
        }
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        params.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(params)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::lead(Run::new(Params::try_from(params)?), observations)
    }
}

/// Parameters, as in the table above.
#[derive(Debug, Clone, PartialEq)]
struct Params {
    full: bool,
    rule: Rule,
    duration: Duration,
    omit: Option<Duration>,
    interval: Duration,
    congestion: Option<Congestion>,
    window_octets: Option<u32>,
    pacing: Option<BitRate>,
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let ms = Duration::from_millis;
        let mode: String = raw.get("mode", "quick".to_owned())?;
        bulk::check(
            "mode",
            ["quick", "full"].contains(&mode.as_str()),
            &mode,
            "quick or full",
        )?;
        let rule: String = raw.get("rule", "composite".to_owned())?;
        bulk::check(
            "rule",
            ["composite", "seed003"].contains(&rule.as_str()),
            &rule,
            "composite or seed003",
        )?;
        let name = bulk::optional(raw, "congestion", String::new())?;
        let short = name.as_ref().is_none_or(|name| (1..16).contains(&name.len()));
        bulk::check("congestion", short, name.as_deref().unwrap_or(""), "1 to 15 letters")?;
        let duration = Duration::from_secs(if mode == "full" { 10 } else { 6 });
        Ok(Self {
            full: mode == "full",
            rule: if rule == "seed003" {
                Rule::Seed003
            } else {
                Rule::Composite
            },
            duration: bulk::duration_within(raw, "duration", duration, ms(500), Duration::from_secs(3600))?,
            omit: bulk::optional_duration(raw, "omit", Duration::ZERO, Duration::from_secs(600))?,
            interval: bulk::duration_within(raw, "interval", ms(100), ms(10), Duration::from_secs(10))?,
            congestion: name.map(|name| Congestion::from_name(&name)),
            window_octets: window(raw)?,
            pacing: bulk::optional_rate(raw, "pacing_bps")?,
        })
    }
}

fn window(raw: &RawParams) -> Result<Option<u32>, ParamError> {
    let Some(octets) = bulk::optional(raw, "window_octets", Octets::new(0))? else {
        return Ok(None);
    };
    let octets = octets.count();
    bulk::check(
        "window_octets",
        (1000..=1_000_000_000).contains(&octets),
        octets,
        "1 kB to 1 GB",
    )?;
    Ok(u32::try_from(octets).ok())
}

/// Where the method stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Quick: waiting for the end of the ramp.
    Ramp,
    /// Quick: measuring.
    Window,
    /// Full: leaving out the begin.
    Omit,
    /// Full: measuring.
    Full,
}

const LEAST_WINDOW: Duration = Duration::from_secs(1);
const WINDOW_RTTS: u32 = 5;
const WINDOW_RTTS_BBR: u32 = 8;
const SLOTS: u32 = 10;
/// A longer window than this is worth no more slots than so many (ours).
const MOST_SLOTS: u32 = 100;
const LEAST_OMIT: Duration = Duration::from_secs(1);
const OMIT_RTTS: u32 = 20;

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    phase: Phase,
    ramp: Ramp,
    known: Known,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            phase: Phase::Ramp,
            ramp: Ramp::new(params.rule),
            known: Known::default(),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.facts = facts;
        if !self.params.full {
            let every = self.ramp.poll_every(self.facts.rtt);
            return self.segment(Phase::Ramp, every.min(self.params.duration), 1, Then::Continue);
        }
        self.known.full = true;
        let omit = self.params.omit.unwrap_or(LEAST_OMIT.max(OMIT_RTTS * self.facts.rtt));
        if omit.is_zero() {
            return self.full();
        }
        self.segment(Phase::Omit, omit, SLOTS, Then::Continue)
    }

    fn full(&mut self) -> Step {
        let slots = self.params.duration.as_nanos() / self.params.interval.as_nanos().max(1);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX).max(1);
        self.segment(Phase::Full, self.params.duration, slots, Then::Finish)
    }

    fn segment(&mut self, phase: Phase, duration: Duration, slots: u32, then: Then) -> Step {
        self.phase = phase;
        Step::Send(Probe::Transfer(Transfer {
            streams: 1,
            congestion: self.params.congestion.clone(),
            window_octets: self.params.window_octets,
            pacing: self.params.pacing,
            duration,
            sample_every: duration / slots,
            then,
        }))
    }

    fn take(&mut self, now: Stamp<Sender>, report: TransferReport) -> Step {
        if report.streams.iter().all(|stream| stream.samples.is_empty()) {
            return Step::Done(self.conclude(Some(Reason::NoAnswer)));
        }
        match self.phase {
            Phase::Ramp => self.take_ramp(now, report),
            Phase::Window => self.take_window(now, report),
            Phase::Omit => {
                self.known.ramp.push(report);
                self.full()
            }
            Phase::Full => {
                self.known.standing = result::standing(&report, self.pacing().is_some());
                self.known.window.push(report);
                Step::Done(self.conclude(None))
            }
        }
    }

    fn left(&self, now: Stamp<Sender>) -> Duration {
        self.params.duration.saturating_sub(now.since(self.began))
    }

    fn take_ramp(&mut self, now: Stamp<Sender>, report: TransferReport) -> Step {
        let mut rtt = self.facts.rtt;
        if let Some(stream) = report.streams.first() {
            if let Some(first) = stream.samples.first() {
                self.ramp.begin(first);
            }
            if let Some(last) = stream.samples.last() {
                self.known.ramp_end = self.ramp.poll(last, &stream.congestion);
                rtt = last.rtt;
            }
        }
        self.known.cached_threshold = self.ramp.threshold_at_start().is_some();
        self.known.growing = self.ramp.still_growing();
        let bbr = report.streams.iter().any(|stream| stream.congestion == Congestion::Bbr);
        self.known.ramp.push(report);
        if self.known.ramp_end.is_some() {
            let rtts = if bbr { WINDOW_RTTS_BBR } else { WINDOW_RTTS };
            return self.window(now, LEAST_WINDOW.max(rtts * rtt));
        }
        let every = self.ramp.poll_every(self.facts.rtt);
        if every > self.left(now) {
            return Step::Done(self.conclude(None));
        }
        self.segment(Phase::Ramp, every, 1, Then::Continue)
    }

    /// Measures for `wanted`, or what is left; ends if that is too little to tell anything new.
    fn window(&mut self, now: Stamp<Sender>, wanted: Duration) -> Step {
        let duration = wanted.min(self.left(now));
        if duration * 2 < LEAST_WINDOW {
            return Step::Done(self.conclude(None));
        }
        let slots = duration.as_millis() / (LEAST_WINDOW / SLOTS).as_millis();
        let slots = u32::try_from(slots).unwrap_or(MOST_SLOTS).clamp(SLOTS, MOST_SLOTS);
        self.segment(Phase::Window, duration, slots, Then::Continue)
    }

    fn take_window(&mut self, now: Stamp<Sender>, report: TransferReport) -> Step {
        self.known.standing = result::standing(&report, self.pacing().is_some());
        self.known.window.push(report);
        if self.known.standing == Standing::Stable {
            return Step::Done(self.conclude(None));
        }
        // As long again as all so far: the whole doubles.
        let so_far = self
            .known
            .window
            .iter()
            .map(|report| report.ended.since(report.began))
            .sum();
        self.window(now, so_far)
    }

    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        result::outcome(&self.known, &self.facts, self.pacing(), reason)
    }

    /// What was asked for, or the user's cap.
    fn pacing(&self) -> Option<BitRate> {
        [self.params.pacing, self.facts.rate_cap].into_iter().flatten().min()
    }
}

impl Follower for Run {
    const READS: (&'static str, &'static str) = ("tcp", "transfers over one connection");

    /// Full length ends its transfer with what it measures, quick mode never ends one.
    fn follow(&mut self, asked: &Probe) -> bool {
        let Probe::Transfer(transfer) = asked else {
            return false;
        };
        let alike = transfer.streams == 1 && transfer.window_octets == self.params.window_octets;
        let finishes = transfer.then == Then::Finish;
        if self.params.full {
            self.phase = if finishes { Phase::Full } else { Phase::Omit };
            return alike;
        }
        alike && !finishes
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::Transfer(report) => self.take(now, report),
            Event::Refused(refusal) => Step::Done(self.conclude(Some(bulk::reason_of(refusal, "TCP transfers")))),
            Event::Stop(reason) => Step::Done(self.conclude(Some(reason))),
            Event::Train(_) | Event::Load(_) | Event::Capture(_) | Event::TimerFired => {
                Step::Done(self.conclude(Some(Reason::UnexpectedEvent)))
            }
        }
    }
}
