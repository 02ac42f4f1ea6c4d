//! Burst: estimates the maximum burst size from back-to-back trains.
//!
//! # Model
//! One tight queue of `Q` octets, served at `C`, shared with other traffic at `X`. A burst at rate `R` fills it:
//! ```text
//!   sender --R-->  [ q0 |=== Q ===| ] --C-->  receiver
//!                        ^ X
//! ```
//! The queue overflows once `(Q - q0) 8 / (R + X - C)` have passed, so that the largest burst without loss is
//! `MBS(R) = (Q - q0) R / (R + X - C)`. It is a property of path *and* sender: the rate `R` belongs to every answer.
//!
//! # Assumptions
//! - A1 One element drops first, and drops what arrives last.
//! - A2 The sender can overrun it: `R > C - X`.
//! - A3 The queue is empty again when the next burst comes.
//! - A4 Packets that the receiving host dropped are counted by it and not taken for the path's.
//!
//! # Formula
//! - Search: sizes double from 8 packets until one loses; the bracket is then narrowed to 5 %, first at the size that the last
//!   cut burst let through. Code: `search.rs`.
//! - Sample: bursts of the bracket's upper size plus 5 %; `f_i` octets (whole packets) ahead of the first loss, all octets if
//!   nothing was lost. Value: the median of `f_i`; low: its 10th percentile; high: its maximum plus one packet. Code: `together`.
//! - No loss in `n` bursts of the smallest `f_i`: loss probability at most `1 - 0.05^(1/n)` (95 %, exact binomial).
//! - Pause between bursts of `B` octets: `max(16 B / A + RTT, min(4 RTT, 200 ms), 50 ms)`, varied by a quarter either way so that no periodic
//!   traffic keeps step (`A` as given, else the slowest rate at which a burst arrived).
//! - Policer or queue: delay of the packet ahead of the first loss over `8 m / r - m`'s time to leave, `r` the rate at which
//!   packets behind the loss arrived; 1 for a queue, 0 for a policer, below 0.3 reported as a policer. Ours. Code: `queueing`.
//! - With `rates`: least squares of `1 / MBS = (1 / Q') (1 - A / R)` over the rates, weights `MBS^4`. Code: `effective`.
//!
//! # Parameters
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `ip_octets` | octets | path MTU | 64 to path MTU | ours |
//! | `available_bps` | bit/s | none | above 0 | for the pauses |
//! | `bursts` | count | 20 | 1 to 1000 | 20 bound the loss probability to 14 % |
//! | `confirm` | count | 1 | 1 to 10 | loss-free bursts that make a size survive; the sample corrects a lucky one |
//! | `max_octets` | octets | 2 MB | 8 packets to 64 MB | largest burst |
//! | `total_octets` | octets | 8 MB | above 0 | end of the search |
//! | `max_time` | time | 3 s, at least 20 RTT | 10 ms to 10 min | end of the search |
//! | `rates` | bit/s, comma between | none | up to 8 | `[Netest03]` varies the rate; the line is ours |
//!
//! # Cost
//! About `2 MBS` for the search, `3 MBS` for the bracket, 21 `MBS` for the sample: 2 MB and 1.5 s for a queue of 64 kB at
//! 100 Mbit/s. Each burst fills the queue for the time that it takes to drain.
//!
//! # Fails when
//! - A1 (random loss, active queue management): `f_i` scatter; low and high show it.
//! - A2: no loss up to the cap: a lower bound, limited by the sender if bursts arrive as fast as they leave.
//! - A3 (`A` overrated, or slow shapers with a bucket): later bursts are cut earlier than the first; low shows it.
//! - A4 (receiver that does not count): its socket buffer is taken for the path's queue.
//! - Too few bursts before time or octets ran out: `few_samples`; policer instead of a queue: `policed`.
//!
//! # References
//! - `[Netest03]` Jin, Tierney: Netest: a tool to measure the maximum burst size, available bandwidth and achievable throughput, 2003.
//! - [RFC 5136] Chimento, Ishac: Defining network capacity, 2008.

mod analyse;
mod result;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{BitRate, Metric, Octets, Sender, Stamp};

use super::bulk;
use crate::contract::{Estimator, Event, Refusal, Step};
use crate::facts::PathFacts;
use crate::observations::{self, AnalyseError, Follower, Observations};
use crate::outcome::{Outcome, Reason};
use crate::probe::{Probe, Train, TrainId, TrainReport};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use analyse::Seen;
use search::{Next, Search};

/// The method.
pub(super) struct Burst;

/// What the last probe may take beyond the end of the search.
const LAST_PROBE: Duration = Duration::from_secs(2);

static INFO: MethodInfo = MethodInfo {
    name: "burst",
    summary: "maximum burst size from back-to-back trains",
    metric: Metric::MaximumBurstOctets,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::BurstLoss,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(units::Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 2_000_000,
        max_octets: 10_000_000,
        typical_time: Duration::from_millis(1500),
        max_time: Duration::from_secs(10),
        fills_path: false,
    },
    parameters: &[
        ("ip_octets", "length of each packet, octets; default: the path MTU"),
        (
            "available_bps",
            "available rate, for the pauses; default: from the bursts",
        ),
        ("bursts", "bursts in the sample; default 20"),
        ("confirm", "loss-free bursts that make a size survive; default 1"),
        ("max_octets", "largest burst; default 2 MB"),
        ("total_octets", "end of the search; default 8 MB"),
        ("max_time", "end of the search; default 3 s"),
        ("rates", "rates for the line in 1/R, comma between; default: none"),
    ],
    source: include_str!("burst.rs"),
};

impl Method for Burst {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => usual.lasting(params.max_time.unwrap_or_default() + LAST_PROBE),
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
    ip_octets: Option<u16>,
    available: Option<BitRate>,
    bursts: usize,
    confirm: u32,
    max_octets: u64,
    total_octets: u64,
    max_time: Option<Duration>,
    rates: Vec<BitRate>,
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let rates: String = raw.get("rates", String::new())?;
        let rates = rates
            .split(',')
            .filter(|text| !text.trim().is_empty())
            .map(|text| {
                text.parse()
                    .map_err(|error: units::ParseQuantityError| ParamError::Unreadable {
                        name: "rates".to_owned(),
                        value: text.to_owned(),
                        why: error.to_string(),
                    })
            })
            .collect::<Result<Vec<BitRate>, _>>()?;
        bulk::check("rates", rates.len() <= 8, rates.len(), "at most 8 of them")?;
        bulk::check("rates", !rates.contains(&BitRate::ZERO), 0, "rates above zero")?;
        let params = Self {
            ip_octets: bulk::optional(raw, "ip_octets", 0)?,
            available: bulk::optional_rate(raw, "available_bps")?,
            bursts: raw.get("bursts", 20)?,
            confirm: raw.get("confirm", 1)?,
            max_octets: raw.get("max_octets", Octets::new(2_000_000))?.count(),
            total_octets: raw.get("total_octets", Octets::new(8_000_000))?.count(),
            max_time: bulk::optional_duration(raw, "max_time", Duration::from_millis(10), Duration::from_secs(600))?,
            rates,
        };
        let octets = params.ip_octets.unwrap_or(1500);
        bulk::check("ip_octets", octets >= 64, octets, "64 to the path MTU")?;
        bulk::check(
            "bursts",
            (1..=1000).contains(&params.bursts),
            params.bursts,
            "1 to 1000",
        )?;
        bulk::check("confirm", (1..=10).contains(&params.confirm), params.confirm, "1 to 10")?;
        let largest = params.max_octets;
        bulk::check(
            "max_octets",
            (512..=64_000_000).contains(&largest),
            largest,
            "8 packets to 64 MB",
        )?;
        bulk::check("total_octets", params.total_octets > 0, 0, "above zero")?;
        Ok(params)
    }
}

/// Where the method stands.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// Looking for the bracket.
    Search,
    /// Bursts of one size, for the statistics.
    Sample,
    /// Bursts at the rate of that index in `Params::rates`, for the line.
    Line(usize),
}

/// Bursts that found nobody home before the method gives up (ours).
const SILENT_BURSTS: u32 = 3;
/// Cut bursts per rate of the line, and bursts that may be spent on one rate.
const CUTS_PER_RATE: usize = 3;
const TRIES_PER_RATE: usize = 8;
/// Times that a sample may turn out too small and start again.
const MAX_RESTARTS: u32 = 4;

/// The method at work.
#[derive(Debug)]
struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    phase: Phase,
    search: Search,
    /// Packets of the burst that is out, or was last.
    packets: usize,
    ip_octets: u16,
    sent: u64,
    bursts: u32,
    sent_at: Stamp<Sender>,
    silent: u32,
    answered: bool,
    restarts: u32,
    ledger: result::Ledger,
    /// Rate-line bursts: of the current rate, and the points gathered.
    tries: usize,
    cuts: Vec<(f64, f64)>,
}

impl Run {
    fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            phase: Phase::Search,
            search: Search::new(1, 1),
            packets: 0,
            ip_octets: 0,
            sent: 0,
            bursts: 0,
            sent_at: Stamp::from_nanos(0),
            silent: 0,
            answered: false,
            restarts: 0,
            ledger: result::Ledger::default(),
            tries: 0,
            cuts: Vec::new(),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.ip_octets = self
            .params
            .ip_octets
            .unwrap_or(facts.path_mtu)
            .min(facts.path_mtu)
            .max(1);
        self.facts = facts;
        self.search = Search::new(self.cap(), self.params.confirm);
        self.packets = self.search.size();
        self.fire(now)
    }

    /// Packets of the largest burst that is allowed: by the parameter, and by a user's peak rate over 100 ms.
    fn cap(&self) -> usize {
        let peak = self
            .facts
            .rate_cap
            .map(|rate| rate.octets_in(Duration::from_millis(100)));
        let octets = self.params.max_octets.min(peak.unwrap_or(u64::MAX));
        bulk::size(octets / u64::from(self.ip_octets)).max(1)
    }

    /// Sends the burst that is due, or ends if it does not fit any more.
    fn fire(&mut self, now: Stamp<Sender>) -> Step {
        let octets = self.packets as u64 * u64::from(self.ip_octets);
        let patience = Duration::from_secs(3).max(20 * self.facts.rtt);
        let late = now.since(self.began) >= self.params.max_time.unwrap_or(patience);
        if late || self.sent.saturating_add(octets) > self.params.total_octets {
            return Step::Done(self.conclude((!self.answered).then_some(Reason::OctetsSpent)));
        }
        self.sent += octets;
        self.bursts += 1;
        self.sent_at = now;
        let id = TrainId(self.bursts);
        let train = match self.phase {
            Phase::Line(index) => Train::at_rate(id, self.packets, self.ip_octets, self.params.rates[index]),
            Phase::Search | Phase::Sample => Train::uniform(id, self.packets, self.ip_octets, Duration::ZERO),
        };
        Step::Send(Probe::Train(train))
    }

    /// Lets the queue drain before the next burst.
    fn pause(&mut self, now: Stamp<Sender>) -> Step {
        let drain = self.params.available.or(self.ledger.slowest_arrival).and_then(|rate| {
            let octets = 2 * self.packets as u64 * u64::from(self.ip_octets);
            rate.time_for(octets)
        });
        let pause = [
            drain.unwrap_or_default() + self.facts.rtt,
            (4 * self.facts.rtt).min(Duration::from_millis(200)),
            Duration::from_millis(50),
        ]
        .into_iter()
        .max()
        .unwrap_or_default();
        // Multiples of the golden ratio fall evenly over 0..1 and never in step with anything.
        let spread = 0.75 + 0.5 * (f64::from(self.bursts) * 0.618_033_988_749_895).fract();
        let until = self.sent_at + pause.mul_f64(spread);
        if until > now {
            return Step::Wait { until };
        }
        self.fire(now)
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        let seen = analyse::seen(report);
        self.ledger.note(&seen);
        if seen.arrived == 0 {
            self.silent += 1;
            if self.silent >= SILENT_BURSTS {
                return Step::Done(self.conclude(Some(Reason::NoAnswer)));
            }
            return self.pause(now);
        }
        self.silent = 0;
        self.answered = true;
        let done = match self.phase {
            Phase::Search => self.take_search(&seen),
            Phase::Sample => self.take_sample(&seen),
            Phase::Line(index) => self.take_line(index, &seen),
        };
        if done {
            return Step::Done(self.conclude(None));
        }
        self.pause(now)
    }

    /// Whether the method is at its end.
    fn take_search(&mut self, seen: &Seen) -> bool {
        if seen.spoilt_by_receiver {
            return self.ledger.receiver_spoils();
        }
        if let Some(through) = seen.first_loss {
            self.ledger.last_cut = Some(through);
        }
        match self.search.note(seen.first_loss) {
            Next::Try(size) => self.packets = size,
            Next::Capped(_) => return true,
            Next::Bracketed(_, upper) => {
                self.phase = Phase::Sample;
                self.packets = (upper + upper.div_ceil(20)).min(self.cap());
            }
        }
        false
    }

    fn take_sample(&mut self, seen: &Seen) -> bool {
        if seen.spoilt_by_receiver {
            return self.ledger.receiver_spoils();
        }
        self.ledger.sample(self.packets, seen.first_loss);
        let whole = self.ledger.first_losses.iter().filter(|cut| cut.is_none()).count();
        let taken = self.ledger.first_losses.len();
        if taken >= 4 && whole * 2 > taken && self.packets < self.cap() && self.restarts < MAX_RESTARTS {
            self.restarts += 1;
            self.ledger.first_losses.clear();
            self.packets = (self.packets * 3 / 2 + 1).min(self.cap());
            return false;
        }
        if taken < self.params.bursts {
            return false;
        }
        self.next_rate(0)
    }

    /// Turns to a rate of the line; true if there is none.
    fn next_rate(&mut self, index: usize) -> bool {
        self.phase = Phase::Line(index);
        self.tries = 0;
        index >= self.params.rates.len()
    }

    fn take_line(&mut self, index: usize, seen: &Seen) -> bool {
        self.tries += 1;
        match (seen.first_loss.filter(|_| !seen.spoilt_by_receiver), seen.departure) {
            (Some(through), Some(rate)) if through > 0 => {
                let octets = through as f64 * f64::from(self.ip_octets);
                self.cuts.push((rate.as_f64(), octets));
            }
            // The slower the burst, the more of it survives.
            (None, _) => self.packets = (self.packets * 2).min(self.cap()),
            _ => {}
        }
        let uncut = seen.first_loss.is_none() && seen.packets >= self.cap();
        if uncut || self.tries >= TRIES_PER_RATE || self.cuts.len() >= CUTS_PER_RATE * (index + 1) {
            return self.next_rate(index + 1);
        }
        false
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Refusal::TooLarge { max_ip_octets } = refusal
            && max_ip_octets < self.ip_octets
            && max_ip_octets >= 64
        {
            self.ip_octets = max_ip_octets;
            return self.fire(now);
        }
        Step::Done(self.conclude(Some(bulk::reason_of(refusal, "trains of UDP packets"))))
    }

    /// The answer from what is known; `reason` if something other than the method ended it.
    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        result::outcome(&result::Known {
            ledger: &self.ledger,
            ip_octets: self.ip_octets,
            survived: self.search.survived(),
            cap: self.cap(),
            wanted: self.params.bursts,
            sampled: self.phase != Phase::Search,
            answered: self.answered,
            line: &self.cuts,
            rates: self.params.rates.len(),
            reason,
        })
    }
}

impl Follower for Run {
    const READS: (&'static str, &'static str) = ("burst", "back-to-back trains to the receiver");

    /// Any back-to-back train is a burst of the search; in the sample only bursts of one size go together.
    fn follow(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        let (Some(first), packets) = (train.packets.first(), train.packets.len()) else {
            return false;
        };
        let paced = !train.duration().is_zero();
        let fits = match self.phase {
            Phase::Search => !paced,
            Phase::Sample => !paced && (packets == self.packets || self.ledger.first_losses.is_empty()),
            Phase::Line(_) => paced,
        };
        if fits {
            self.packets = packets;
            self.ip_octets = first.ip_octets;
            self.search.at(packets);
        }
        fits
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::TimerFired => self.fire(now),
            Event::Train(report) => self.take(now, &report),
            Event::Refused(refusal) => self.refused(now, refusal),
            Event::Stop(reason) => Step::Done(self.conclude(Some(reason))),
            Event::Load(_) | Event::Transfer(_) | Event::Capture(_) => {
                Step::Done(self.conclude(Some(Reason::UnexpectedEvent)))
            }
        }
    }
}
