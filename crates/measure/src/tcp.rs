#![doc = include_str!("tcp.md")]

mod quick;
mod ramp;
mod result;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, Octets, Sender, Stamp};

use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Congestion, Probe, Then, Transfer, TransferReport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope, Value,
    params,
};
use narrows_train::bulk;
pub use quick::{Held, Quick, QuickVerdict, Stop};
pub use ramp::Rule;
use result::Known;
pub use result::over_20_s;

/// The method.
pub struct Tcp;

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
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 20_000_000,
        max_octets: 100_000_000_000,
        typical_time: Duration::from_millis(1500),
        max_time: Duration::from_secs(12),
        fills_path: true,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("tcp.md"),
};

bulk::method!(Tcp, |params| params.omit.unwrap_or(LEAST_OMIT) + params.duration);

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    struct Params {
        /// The end of the ramp and what follows, or the full length.
        full: bool = "quick" is { "quick" => false, "full" => true } { name: "mode", source: "[QuickMode03]" },
        /// End of the ramp.
        rule: Rule = "composite" is { "composite" => Rule::Composite, "seed003" => Rule::Seed003 } {
            source: "see Formula",
        },
        /// End of quick mode, or length of full.
        duration: Duration = "6 s" {
            range: Between("500 ms", "1 h"), presets: &[("full", "10 s")], source: "[QuickMode03] has 10 s for both",
        },
        /// Full length: left out at its begin.
        omit: Option<Duration> = "1 s, at least 20 RTT" { range: Between("0 s", "10 min"), source: "ours" },
        /// Slots of full length.
        interval: Duration = "100 ms" { range: Between("10 ms", "10 s"), source: "ours" },
        /// Congestion control, by its kernel name.
        congestion: Option<Congestion> = "the host's" from Option<KernelName> => (|name: Option<KernelName>| {
            name.map(|name| name.0)
        }) { range: Described("1 to 15 letters"), source: "the host" },
        /// Window to ask for.
        window_octets: Option<u32> = "autotuned" from Option<Octets> => (|octets: Option<Octets>| {
            octets.and_then(|octets| u32::try_from(octets.count()).ok())
        }) { range: Between("1 kB", "1 GB"), source: "the host" },
        /// Pacing rate at the IP layer.
        pacing: Option<BitRate> = "none" { name: "pacing_bps", range: AtLeast("1 bit/s"), source: "the host" },
    }
}

/// A congestion control, by a name that the kernel can have.
#[derive(PartialEq)]
struct KernelName(Congestion);

impl Value for KernelName {
    fn parse(text: &str) -> Result<Self, String> {
        if (1..16).contains(&text.len()) {
            Ok(Self(Congestion::from_name(text)))
        } else {
            Err("write 1 to 15 letters".to_owned())
        }
    }
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

/// Quick: how often the window is looked at, and how often sampled.
const SHORTEST_POLL: Duration = Duration::from_millis(100);
const SAMPLES_PER_POLL: u32 = 4;
/// The rule of `[QuickMode03]` measures for a second, whatever it shows.
const SEED_WINDOW: Duration = Duration::from_secs(1);
const SLOTS: u32 = 10;
/// Less time than this tells nothing new.
const TOO_SHORT: Duration = Duration::from_millis(20);
const LEAST_OMIT: Duration = Duration::from_secs(1);
const OMIT_RTTS: u32 = 20;

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    phase: Phase,
    quick: Quick,
    measuring_since: Stamp<Sender>,
    known: Known,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            phase: Phase::Ramp,
            quick: Quick::new(params.rule, false),
            measuring_since: Stamp::from_nanos(0),
            known: Known::default(),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.facts = facts;
        self.quick = Quick::new(self.params.rule, self.pacing().is_some());
        if !self.params.full {
            let every = self.quick.poll_every(self.facts.rtt);
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
            Phase::Ramp | Phase::Window => self.take_quick(now, report),
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

    fn take_quick(&mut self, now: Stamp<Sender>, report: TransferReport) -> Step {
        let verdict = self.quick.take(&report.streams);
        let segments = if self.phase == Phase::Ramp { &mut self.known.ramp } else { &mut self.known.window };
        segments.push(report);
        if let Some(ramp) = self.quick.first_ramp() {
            self.known.cached_threshold = ramp.threshold_at_start().is_some();
            self.known.growing = ramp.still_growing();
        }
        self.known.ramp_end = self.quick.ended();
        match verdict {
            QuickVerdict::Stop(stop) => {
                self.known.stop = Some(stop);
                Step::Done(self.conclude(None))
            }
            QuickVerdict::Ramping => {
                let every = self.quick.poll_every(self.facts.rtt);
                self.search(now, Phase::Ramp, every, 1)
            }
            QuickVerdict::Measuring => {
                if self.phase == Phase::Ramp {
                    self.measuring_since = now;
                }
                if self.params.rule == Rule::Seed003 {
                    return self.search(now, Phase::Window, SEED_WINDOW, SLOTS);
                }
                let every = SHORTEST_POLL.max(now.since(self.measuring_since) / 10);
                self.search(now, Phase::Window, every, SAMPLES_PER_POLL)
            }
        }
    }

    /// Goes on for `wanted`, or what is left.
    fn search(&mut self, now: Stamp<Sender>, phase: Phase, wanted: Duration, slots: u32) -> Step {
        let left = self.left(now);
        // Polls of short round trips are shorter than that, and wanted.
        if left < TOO_SHORT.min(wanted) {
            return Step::Done(self.conclude(None));
        }
        self.segment(phase, wanted.min(left), slots, Then::Continue)
    }

    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        result::outcome(&self.known, &self.facts, self.pacing(), reason)
    }

    /// What was asked for, or the user's cap.
    fn pacing(&self) -> Option<BitRate> {
        [self.params.pacing, self.facts.rate_cap].into_iter().flatten().min()
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("tcp", "transfers over one connection");

    /// Full length ends its transfer with what it measures, quick mode never ends one.
    fn replay_step(&mut self, asked: &Probe) -> bool {
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
