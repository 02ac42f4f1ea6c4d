#![doc = include_str!("streams.md")]

mod analyse;
mod result;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, Sender, Stamp, rounded};

use analyse::{Available, Level};
use narrows_probe::contract::{Estimator, Event, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Congestion, Probe, Then, Transfer, TransferReport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Range, Scope,
    params,
};
use narrows_train::bulk;
use narrows_train::bulk::series;

/// The method.
pub struct Streams;

/// What the last probe may take beyond the end of the search.
const LAST_PROBE: Duration = Duration::from_secs(2);

static INFO: MethodInfo = MethodInfo {
    name: "streams",
    summary: "fewest TCP streams that fill what is available",
    metric: Metric::TcpStreamsToFill,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::BulkTransfer,
        activity: Activity::Active,
        protocol: Protocol::Tcp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: None,
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 35_000_000,
        max_octets: 100_000_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(8),
        fills_path: true,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("streams.md"),
};

bulk::method!(Streams, |params| params.max_time);

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    struct Params {
        /// Separate runs, up to intrusion and harm.
        thorough: bool = "false" { range: Range::SWITCH, source: "ours" },
        /// Available IP-layer rate.
        available: Option<BitRate> = "not known" {
            name: "available_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// Upper end of its interval.
        available_high: Option<BitRate> = "available_bps" {
            name: "available_high_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// TCP payload rate of one stream; thorough measures it anyway.
        single: Option<BitRate> = "not known" {
            name: "single_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// Most streams to try; a peer's cap may be lower.
        max_streams: u16 = "16" { range: Between("1", "256"), presets: &[("true", "64")], source: "ours" },
        /// End of the search.
        max_time: Duration = "6 s" { range: Between("100 ms", "1 h"), presets: &[("true", "10 min")], source: "ours" },
        /// Length of one measurement.
        run: Option<Duration> = "1 s; true: 5 s, at least 20 RTT" { range: Between("100 ms", "60 s"), source: "ours" },
        /// Measurements per number of streams; in thorough, in another order each time.
        runs: usize = "1" { range: Between("1", "20"), presets: &[("true", "3")], source: "ours" },
        /// Congestion control, by its kernel name.
        congestion: Option<Congestion> = "the host's" from Option<String> => (|name: Option<String>| {
            name.map(|name| Congestion::from_name(&name))
        }) { source: "the host" },
        /// Thorough: steps beyond the filling number, unless harm ends it.
        beyond: usize = "2" { range: Between("1", "20"), source: "ours" },
        /// One more run with explicit buffers at both sides of this host.
        buffers: bool = "false" { range: Range::SWITCH, source: "netest's `-FullD`" },
    }
}

/// Numbers tried while nothing says how many are needed.
const LADDER: [u16; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256];
/// Time for new streams to find their share before they are measured (ours: slow start to 1000
/// segments takes 7 round trips).
const SETTLE: Duration = Duration::from_millis(300);
const SETTLE_RTTS: u32 = 10;
const SLOTS: u32 = 10;
const THOROUGH_RUN: Duration = Duration::from_secs(5);
const THOROUGH_RTTS: u32 = 20;
const QUICK_RUN: Duration = Duration::from_secs(1);
const QUICK_RTTS: u32 = 5;

/// Windows that are worth asking for: from what any kernel gives to what TCP can announce, doubled
/// by the kernel.
const LEAST_WINDOW: f64 = 65_536.0;
const MOST_WINDOW: f64 = 268_435_456.0;

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    streams: u16,
    settled: bool,
    /// Numbers still to be run in later passes.
    queue: Vec<u16>,
    pass: usize,
    known: result::Known,
    /// Octets of the window of the run with explicit buffers, once that is on.
    window: Option<u32>,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            streams: 1,
            settled: false,
            queue: Vec::new(),
            pass: 1,
            window: None,
            known: result::Known::default(),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        let payload = |rate: BitRate| bulk::from_ip(rate, Layer::TcpPayload, &facts).as_f64();
        self.known.available = self.params.available.map(|rate| Available {
            bps: payload(rate),
            high_bps: payload(self.params.available_high.unwrap_or(rate).max(rate)),
        });
        self.facts = facts;
        let Some(single) = self.params.single.filter(|_| !self.params.thorough) else {
            return self.settle(now, 1);
        };
        self.known.given(single);
        match self.first_pass() {
            Some(streams) => self.settle(now, streams),
            None => Step::Done(self.conclude(None)),
        }
    }

    fn run_time(&self) -> Duration {
        let (least, rtts) = if self.params.thorough { (THOROUGH_RUN, THOROUGH_RTTS) } else { (QUICK_RUN, QUICK_RTTS) };
        self.params.run.unwrap_or(least.max(rtts * self.facts.rtt))
    }

    /// Begins with that many streams, if there is time for it.
    fn settle(&mut self, now: Stamp<Sender>, streams: u16) -> Step {
        let settle = SETTLE.max(SETTLE_RTTS * self.facts.rtt);
        let first = self.known.levels.is_empty();
        if !first && now.since(self.began) + settle + self.run_time() > self.params.max_time {
            return Step::Done(self.conclude(None));
        }
        self.streams = streams;
        self.settled = false;
        self.segment(settle, 1, Then::Continue)
    }

    fn segment(&self, duration: Duration, slots: u32, then: Then) -> Step {
        Step::Send(Probe::Transfer(Transfer {
            streams: self.streams,
            congestion: self.params.congestion.clone(),
            window_octets: self.window,
            pacing: None,
            duration,
            sample_every: duration / slots,
            then,
        }))
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TransferReport) -> Step {
        let slots = series::slots(report);
        let Some(mean) = series::mean_bps(&slots).filter(|_| usize::from(self.streams) == report.streams.len()) else {
            return Step::Done(self.conclude(Some(Reason::NoAnswer)));
        };
        if !self.settled {
            self.settled = true;
            // Thorough runs are each their own; quick ones add streams to those that run.
            let then = if self.params.thorough { Then::Finish } else { Then::Continue };
            return self.segment(self.run_time(), SLOTS, then);
        }
        let rates: Vec<f64> =
            if self.params.thorough { vec![mean] } else { slots.iter().map(|slot| slot.bps).collect() };
        if let Some(window) = self.window {
            self.known.note_buffers(window, report, mean);
            return Step::Done(self.conclude(None));
        }
        let rtt = series::median_rtt(&slots).unwrap_or_default().as_secs_f64();
        self.known.note(self.streams, rates, rtt, report);
        let next = if self.pass == 1 { self.first_pass() } else { self.queue.pop() };
        match next.or_else(|| self.next_pass()) {
            Some(streams) => self.settle(now, streams),
            None if self.params.buffers => self.try_buffers(now),
            None => Step::Done(self.conclude(None)),
        }
    }

    /// One stream again, with buffers that hold twice what is available over the loaded round trip,
    /// at both sides of this host.
    fn try_buffers(&mut self, now: Stamp<Sender>) -> Step {
        let best = self.known.levels.iter().map(Level::mean).fold(0.0, f64::max);
        let rate = self.known.available.map_or(best, |available| available.bps.max(best));
        let rtt = self.known.levels.first().map_or(0.0, |level| level.rtt).max(self.facts.rtt.as_secs_f64());
        let octets = rounded((2.0 * rate * rtt / 8.0).clamp(LEAST_WINDOW, MOST_WINDOW));
        self.window = u32::try_from(octets).ok();
        self.settle(now, 1)
    }

    /// The number to try next on the first way up; `None` at its end.
    fn first_pass(&self) -> Option<u16> {
        let levels = self.known.levels.as_slice();
        let last = levels.last()?;
        let most = self.params.max_streams;
        let filled = |level: &Level| self.known.available.is_some_and(|available| analyse::fills(level, available));
        // Steps behind the number from which on nothing is gained.
        let flat = analyse::flat_from(levels).map_or(0, |index| levels.len() - 1 - index);
        let done = if self.params.thorough {
            let beyond = levels.iter().filter(|level| filled(level)).count().saturating_sub(1);
            flat.max(beyond) >= self.params.beyond || analyse::harmful(levels).is_some()
        } else {
            filled(last) || flat > 0
        };
        if done || last.streams >= most {
            return None;
        }
        let rung = LADDER.into_iter().find(|rung| *rung > last.streams)?;
        let needed = self.known.available.filter(|_| !self.params.thorough);
        let next = needed.and_then(|available| analyse::needed(last, available));
        Some(next.unwrap_or(rung).max(last.streams + 1).min(most))
    }

    /// Further runs of the same numbers, in an order that is none: neither a drift of the path nor
    /// what one run leaves to the next falls on the same numbers each time.
    fn next_pass(&mut self) -> Option<u16> {
        if self.pass >= self.params.runs {
            return None;
        }
        self.pass += 1;
        let mut order: Vec<(f64, u16)> = (1u32..)
            .zip(&self.known.levels)
            .map(|(index, level)| (shuffled(index, self.pass), level.streams))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.queue = order.into_iter().map(|(_, streams)| streams).collect();
        self.queue.pop()
    }

    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        result::outcome(&self.known, reason)
    }
}

/// Where a number comes in a pass: multiples of an irrational number fall evenly over 0..1, in
/// another order for each pass.
fn shuffled(index: u32, pass: usize) -> f64 {
    (f64::from(index) * 0.618_033_988_749_895 * pass as f64 + 0.37 * pass as f64).fract()
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("streams", "transfers with autotuned windows");

    /// A segment with samples inside is a measurement, one without lets new streams settle.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Transfer(transfer) = asked else {
            return false;
        };
        self.streams = transfer.streams;
        self.settled = transfer.sample_every < transfer.duration;
        transfer.window_octets.is_some() == self.window.is_some() && transfer.streams <= self.params.max_streams
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
