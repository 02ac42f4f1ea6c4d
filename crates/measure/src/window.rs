#![doc = include_str!("window.md")]

mod analyse;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, Octets, Sender, Stamp, rounded};

use analyse::{Bound, Chosen, Reckoned, Tried, choose, reckon, to_try};
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Finding, Limit, Outcome, Ranged, Reason, WindowFinding};
use narrows_probe::probes::{Congestion, Probe, Then, Transfer, TransferReport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Range, Scope,
    params,
};
use narrows_train::bulk;
use narrows_train::bulk::series;

/// The method.
pub struct Window;

/// What the last probe may take beyond the end of the search.
const LAST_PROBE: Duration = Duration::from_secs(2);

static INFO: MethodInfo = MethodInfo {
    name: "window",
    summary: "optimal TCP window, verified by short transfers",
    metric: Metric::TcpWindowOctets,
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
        typical_octets: 25_000_000,
        max_octets: 50_000_000_000,
        typical_time: Duration::from_millis(2500),
        max_time: Duration::from_secs(5),
        fills_path: true,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("window.md"),
};

bulk::method!(Window, |params| params.max_time.unwrap_or_default());

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    struct Params {
        /// Available IP-layer rate.
        available: Option<BitRate> = "required" {
            name: "available_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// Maximum burst size, its 10th percentile.
        burst: Option<u64> = "not known" from Option<Octets> => (|octets: Option<Octets>| octets.map(Octets::count)) {
            name: "burst_octets", range: AtLeast("1 B"), source: "measured beforehand",
        },
        /// The sender paces, which makes the burst limit nearly irrelevant.
        paced: bool = "false" { range: Range::SWITCH, source: "ours" },
        /// Round-trip time of the empty path.
        rtt: Option<Duration> = "the smallest seen" { range: Between("1 us", "100 s"), source: "measured beforehand" },
        /// Measures with the window, not only by the formula.
        verify: bool = "true" { range: Range::SWITCH, source: "ours" },
        /// Length of one measurement.
        run: Option<Duration> = "400 ms, at least 5 RTT" { range: Between("50 ms", "60 s"), source: "ours" },
        /// End of the verification.
        max_time: Option<Duration> = "3 s, at least 50 RTT" { range: Between("100 ms", "10 min"), source: "ours" },
        /// TCP payload rate with the default window, for the gain.
        default: Option<BitRate> = "not known" {
            name: "default_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// Congestion control, by its kernel name.
        congestion: Option<Congestion> = "the host's" from Option<String> => (|name: Option<String>| {
            name.map(|name| Congestion::from_name(&name))
        }) { source: "the host" },
    }
}

/// Time for slow start to reach the window, before it is measured (ours).
const SETTLE: Duration = Duration::from_millis(100);
const SETTLE_RTTS: u32 = 8;
const RUN: Duration = Duration::from_millis(400);
const RUN_RTTS: u32 = 5;
const SLOTS: u32 = 10;
/// A receiver's window below this share of the one that is tried holds it ("ours": it moves with
/// what is read).
const HELD: f64 = 0.9;
/// Time for all of it: five windows over short round trips, three over long ones.
const LEAST_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUT_RTTS: u32 = 50;

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    reckoned: Option<Reckoned>,
    /// Windows still to be tried, the next one last.
    queue: Vec<u64>,
    window: u64,
    settled: bool,
    tried: Vec<Tried>,
    clamped: bool,
    /// A window was tried that the receiver's own was smaller than.
    held: bool,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            reckoned: None,
            queue: Vec::new(),
            window: 0,
            settled: false,
            tried: Vec::new(),
            clamped: false,
            held: false,
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.facts = facts;
        let Some(available) = self.params.available else {
            let what = "the available rate (available_bps)".to_owned();
            return Step::Done(Outcome::inconclusive(Reason::MissingInput { what }));
        };
        if self.rtt().is_zero() {
            let what = "the round-trip time (rtt)".to_owned();
            return Step::Done(Outcome::inconclusive(Reason::MissingInput { what }));
        }
        let header = if self.facts.ipv6 { 72 } else { 52 };
        let mss = u64::from(self.facts.path_mtu).saturating_sub(header).max(1);
        let burst = self.params.burst.filter(|_| !self.params.paced);
        let reckoned = reckon(available, self.rtt(), burst, mss);
        self.reckoned = Some(reckoned);
        if !self.params.verify {
            return Step::Done(self.conclude(None));
        }
        self.queue = to_try(reckoned.window, mss);
        self.queue.reverse();
        self.next_window(now)
    }

    fn rtt(&self) -> Duration {
        self.params.rtt.unwrap_or(self.facts.rtt)
    }

    fn run_time(&self) -> Duration {
        self.params.run.unwrap_or(RUN.max(RUN_RTTS * self.rtt()))
    }

    fn next_window(&mut self, now: Stamp<Sender>) -> Step {
        let settle = SETTLE.max(SETTLE_RTTS * self.rtt());
        let timeout = LEAST_TIMEOUT.max(TIMEOUT_RTTS * self.rtt());
        let until = self.params.max_time.unwrap_or(timeout);
        let late = now.since(self.began) + settle + self.run_time() > until;
        let next = self.queue.pop().filter(|_| !late || (self.tried.is_empty() && !self.held));
        let Some(window) = next else {
            return Step::Done(self.conclude(None));
        };
        self.window = window;
        self.settled = false;
        self.segment(settle, 1, Then::Continue)
    }

    fn segment(&self, duration: Duration, slots: u32, then: Then) -> Step {
        Step::Send(Probe::Transfer(Transfer {
            streams: 1,
            congestion: self.params.congestion.clone(),
            window_octets: Some(u32::try_from(self.window).unwrap_or(u32::MAX)),
            pacing: None,
            duration,
            sample_every: duration / slots,
            then,
        }))
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TransferReport) -> Step {
        let Some(bps) = series::mean_bps(&series::slots(report)) else {
            return Step::Done(self.conclude(Some(Reason::NoAnswer)));
        };
        if !self.settled {
            self.settled = true;
            return self.segment(self.run_time(), SLOTS, Then::Finish);
        }
        let granted = report.streams.iter().filter_map(|stream| stream.granted_send_buffer_octets);
        self.clamped |= granted.min().is_some_and(|octets| u64::from(octets) < self.window);
        // What the receiver's window held says nothing of this one.
        let window = self.window as f64;
        let held = report.streams.iter().any(|stream| {
            let full = stream.samples.iter().filter(|sample| {
                let smaller = sample.peer_window_octets.is_some_and(|peer| f64::from(peer) < HELD * window);
                smaller && series::peer_window_used(sample).is_some_and(|used| used >= series::WINDOW_FULL)
            });
            2 * full.count() > stream.samples.len()
        });
        if held {
            self.held = true;
            return self.next_window(now);
        }
        self.tried.push(Tried { window: self.window, bps, loss: series::sums(report).loss() });
        self.next_window(now)
    }

    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        let Some(reckoned) = self.reckoned else {
            return Outcome::inconclusive(reason.unwrap_or(Reason::UnexpectedEvent));
        };
        let alive = self.tried.iter().any(|tried| tried.bps > 0.0);
        if reason == Some(Reason::NoAnswer) || (!self.tried.is_empty() && !alive) {
            return Outcome::inconclusive(Reason::NoAnswer);
        }
        let chosen = choose(&self.tried);
        let mut estimate = self.estimate(reckoned, chosen.as_ref());
        if reason.is_some() {
            estimate = estimate.caveat(Caveat::StoppedEarly);
        }
        self.diagnostics(estimate, reckoned, chosen.as_ref()).into()
    }

    fn estimate(&self, reckoned: Reckoned, chosen: Option<&Chosen>) -> Estimate {
        let of = |value, low, high| {
            let range = Ranged::new(value, low, high).map(Octets::new);
            Estimate::new(Metric::TcpWindowOctets, Some(Layer::TcpPayload), range)
        };
        let Some(chosen) = chosen else {
            // The formula alone.
            let mut estimate = of(reckoned.window, reckoned.window, reckoned.window);
            estimate.confidence = Confidence::Low;
            if self.held {
                estimate.limited_by = Limit::Window;
                estimate = estimate.caveat(Caveat::ReceiverLimited);
            }
            return estimate;
        };
        let window = chosen.best.window;
        let mut estimate = of(window, chosen.below.map_or(window, |below| below + 1), window);
        if self.clamped {
            estimate.limited_by = Limit::Window;
        }
        if self.held {
            estimate = estimate.caveat(Caveat::ReceiverLimited);
        }
        let largest = self.tried.iter().all(|tried| tried.window <= window);
        if chosen.rising || (self.held && largest) {
            let limit = if self.clamped || self.held { Limit::Window } else { Limit::Budget };
            estimate = estimate.at_least(limit).caveat(Caveat::NotConverged);
            return estimate;
        }
        if chosen.below.is_none() && self.tried.len() > 1 && reckoned.bound != Bound::Floor {
            // Smaller ones may do as well.
            estimate = estimate.at_most();
        }
        if self.tried.len() < 3 {
            let samples = u32::try_from(self.tried.len()).unwrap_or(u32::MAX);
            estimate.confidence = Confidence::Low;
            estimate = estimate.caveat(Caveat::FewSamples { samples });
        }
        estimate
    }

    fn diagnostics(&self, mut estimate: Estimate, reckoned: Reckoned, chosen: Option<&Chosen>) -> Estimate {
        let series = |of: fn(&Tried) -> f64| self.tried.iter().map(of).collect::<Vec<_>>();
        let bound = match reckoned.bound {
            Bound::DelayProduct => "bandwidth-delay product",
            Bound::Burst => "burst limit",
            Bound::Floor => "fewest segments",
        };
        let window = estimate.ranged().map_or(Octets::default(), |window| window.value);
        let buffer = Octets::new(window.count().saturating_mul(2));
        estimate = estimate
            .with("delay_product_octets", reckoned.product)
            .with("reckoned_window_octets", reckoned.window)
            .with("bound_by", bound)
            .with("buffer_to_ask_octets", buffer)
            .with("rtt_ns", narrows_units::Delta::from(self.rtt()))
            .with("verified", chosen.is_some());
        if let Some(burst) = self.params.burst {
            estimate = estimate.with("burst_octets", burst);
            if let Some(rate) = BitRate::over(burst, self.rtt()) {
                estimate = estimate.with("unpaced_burst_bps", rate);
            }
        }
        let mut found = WindowFinding { buffer_to_ask_octets: buffer, ..WindowFinding::default() };
        if let Some(chosen) = chosen {
            found.buffer_clamped = Some(self.clamped);
            found.tried_bps = series(|tried| tried.bps);
            estimate = estimate
                .with("tried_window_octets", series(|tried| tried.window as f64))
                .with("tried_bps", series(|tried| tried.bps))
                .with("tried_retransmitted_share", series(|tried| tried.loss))
                .with("window_bps", rounded(chosen.best.bps))
                .with("buffer_clamped", self.clamped);
            if let Some(default) = self.params.default {
                estimate = estimate.with("gain", chosen.best.bps / default.as_f64());
            }
        }
        estimate.found(Finding::Window(Box::new(found)))
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("window", "transfers over one connection with windows of their own");

    /// A segment with samples inside is a measurement, one without lets the window fill.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Transfer(transfer) = asked else {
            return false;
        };
        let Some(window) = transfer.window_octets.filter(|_| transfer.streams == 1) else {
            return false;
        };
        self.window = u64::from(window);
        self.settled = transfer.sample_every < transfer.duration;
        true
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::Transfer(report) => self.take(now, &report),
            Event::Refused(refusal) => Step::Done(self.conclude(Some(bulk::reason_of(refusal, "TCP transfers")))),
            Event::Stop(reason) => Step::Done(self.conclude(Some(reason))),
            Event::Train(_) | Event::Load(_) | Event::Capture(_) | Event::TimerFired => {
                Step::Done(self.conclude(Some(Reason::UnexpectedEvent)))
            }
        }
    }
}
