//! Kite (also "Estimator"): estimates available IP-layer path capacity from trains whose rate falls and rises in shrinking steps.
//!
//! # Model
//!
//! FIFO links; on the tight one the traffic of others, `X`, takes a share `u = X/C` of the capacity `C` and leaves `A = C - X`.
//!
//! ```text
//!  rate in    R0 |
//!             R1 |--.      too fast: R - s (R - R_out)
//!             R3 |   \  .-.
//!          A ....|....\/..\:::: the answer
//!             R2 |     through: R + s (least rate that was too fast - R); every change of direction halves s
//! ```
//!
//! The published texts name the parts (packet trains, a step decreasing factor `s`, samples whose number adjusts itself) but give
//! no rule: update, flip and stop below are derived, with the factor 1 the feedback map of `fac2`.
//!
//! # Assumptions
//!
//! - A1 FIFO queues, and traffic of others that does not yield within a train.
//! - A2 That traffic is a fluid over the length of a train.
//! - A3 The sender can go faster than what is available.
//! - A4 Departure stamps are true; planned gaps are never used.
//! - A5 What is available stays while the steps shrink.
//!
//! # Formula
//!
//! Rates in bit/s at the IP layer over the trains of one rate.
//!
//! - Too fast: as `yaz` judges it, with the resolution `w` as a share of the rate (`turning.rs`, `limit_ns`).
//! - Too fast (`next_rate`): `R := R - s (R - R_out)`, `R_out` at most `(1 - w) R`; where the sender's clock saw no time pass, `R_out`.
//! - Through: `R := R + s (R_up - R)`, `R_up` the least of the rates that were too fast and of those at which they came; twice the
//!   rate while none was. `s` is halved whenever one follows the other.
//! - Stop: after three rounds, once the step is less than `w R`, or than what the round's own error makes of the rate (ours: steps below
//!   it follow noise); `1/(1 - u)` times that for a step up.
//! - Fluid law with `s` = 1 and `R_0 = C`: `R_k = A (1 + u^(k+1)/(1 - u^(k+1)))`, within 1 % after 3 rounds at u = 0.3, 6 at 0.5.
//! - Value: the last round's rate if it went through, else the rate at which it came.
//! - Samples: trains begin at `packets`, and have twice as many while ten sub-trains leave the mean spacing a standard error above
//!   `w/2`.
//! - Interval: the errors of the stretch over `1 - u`, as for `yaz`.
//!
//! # Parameters
//!
//! Declared below; `narrows methods kite` prints the table.
//!
//! # Cost
//!
//! On a 100 Mbit/s path 1 to 15 MB in 1 to 6 s: its trains grow where traffic comes in bursts. `[Kachan17]` saw 300 Mbit/s on a 10 Gbit/s path.
//!
//! # Fails when
//!
//! - A2: at 10 Mbit/s and high load trains spread; the interval says so.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict), [`Caveat::SenderLimited`](narrows_probe::Caveat); never a point.
//! - A5: steps shrink to where the path was.
//! - Loss, batching, slow receivers, buckets: as `yaz`.
//!
//! # References
//!
//! - `[Kachan17]` D. Kachan, V. Kirova, M. Korniichuk, Performance evaluation of PRM-based available bandwidth using estimation tools
//!   in a high-speed network environment, 2017: parts and settings. The rules are derived; no source of the tool was found.
//! - `[Netest03]` G. Jin, B. Tierney, Netest: A Tool to Measure the Maximum Burst Size, Available Bandwidth and Achievable
//!   Throughput, 2003: the feedback that factor 1 comes to.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.

#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use crate::turning::{Ending, Length, Resolution, Rule, Seen, Session, Settings, Turn, settings};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope, params,
};
use narrows_train::campaign::Machine;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Kite;

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// What all such searches share.
    pub search: Settings,
    /// The first step decreasing factor.
    pub factor: f64,
}

params! {
    /// What can be set.
    #[derive(Debug)]
    struct Typed {
        /// IP octets of a packet.
        ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"),
            source: "[Kachan17] table 2: 1472 octets of payload, 8972 at 10 Gbit/s",
        },
        /// Rate of the first train.
        start: Option<BitRate> = "the sender's highest" {
            range: AtLeast("1 bit/s"), source: "[Kachan17]: automatic; \"1\" at 10 Gbit/s, unit untold",
        },
        /// Packets of a train at most, whatever stamps and batches ask for.
        max_packets: usize = "4000" {
            name: "max-packets", range: Between("50", "20000"), source: "ours",
        },
        /// Trains of one rate, at least.
        streams: usize = "2" { range: Between("1", "100"), source: "ours: two tell what trains differ by" },
        /// Trains of one rate, at most; never below streams.
        most_streams: usize = "4" {
            name: "max-streams", range: Between("0", "100"), source: "ours",
        },
        /// The least difference of rates that counts.
        resolution: Resolution = "0.005" { range: Resolution::RANGE, source: "derived: 0.1 to 1 %" },
        /// Deviations of a full queue's train that the limit allows for.
        allowance: f64 = "0.8" {
            unit: "deviations", range: Between("0", "3"), source: "ours: what a knee that packets round off adds",
        },
        /// Rates tried at most.
        max_rounds: usize = "40" {
            name: "max-rounds", range: Between("3", "200"), source: "ours: the end of any search",
        },
        /// Packets lost on the path from which a rate is too high.
        loss: f64 = "0.03" { unit: "share", range: Between("0", "0.5"), source: "ours" },
        /// Octets of queue that a train may build, until losses say less.
        burst_octets: u32 = "150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// Mean load that the trains impose, of the path's rate.
        load: f64 = "0.2" { unit: "share", range: Between("0.001", "1"), source: "ours" },
        /// Packets of the first train.
        packets: Option<usize> = "20, 100 where the sender reaches 10 Gbit/s" {
            range: Between("16", "20000"), source: "[Kachan17] table 2: samples of the initial measurement",
        },
        /// First step decreasing factor.
        factor: f64 = "1" { range: Between("0.1", "1"), source: "derived: the first step decreasing factor" },
    }
    names INFO;
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        let share = match typed.resolution {
            Resolution::Share(share) => share,
            Resolution::Rate(_) => RESOLUTION,
        };
        let length = Length::Doubling {
            first: typed.packets,
            error: share / 2.0,
        };
        Ok(Self {
            search: settings!(typed, length: length, floor: Duration::ZERO, compression: false),
            factor: typed.factor,
        })
    }
}

/// Share of the rate that bounds the error of trains where steps end at a rate (derived: 0.1 to 1 %).
const RESOLUTION: f64 = 0.005;

/// The rule of the step decreasing factor.
#[derive(Debug, Clone)]
struct Decreasing {
    factor: f64,
    /// The last round was too fast.
    fell: Option<bool>,
}

impl Decreasing {
    fn session(params: Params) -> Session<Self> {
        let rule = Self {
            factor: params.factor,
            fell: None,
        };
        Session::new(rule, params.search)
    }

    /// The next rate, bit/s.
    fn next_rate(&self, settings: &Settings, seen: &Seen) -> Option<f64> {
        let round = seen.judged().next_back()?;
        let (rate, came) = (round.rate_in(), round.rate_out());
        if !round.is_congested() {
            let over = seen.judged().filter(|round| round.is_congested());
            let least = over.map(|round| round.rate_in().min(round.rate_out())).reduce(f64::min);
            return Some(match least {
                Some(least) => rate + self.factor * (least - rate).max(0.0),
                None => 2.0 * rate,
            });
        }
        if rate.is_infinite() {
            return Some(came);
        }
        let least = Seen::resolution_ns(settings, round) / (round.gap_in() + Seen::resolution_ns(settings, round));
        Some(rate - self.factor * (rate - came).max(least * rate))
    }
}

impl Rule for Decreasing {
    const READS: (&'static str, &'static str) = (
        "kite",
        "trains of 16 packets or more to the receiver, at the rates of its search",
    );

    fn turn(&mut self, settings: &Settings, seen: &Seen) -> Turn {
        let Some(round) = seen.judged().next_back() else {
            return Turn::Stop(Ending::Exhausted);
        };
        let falls = round.is_congested();
        if self.fell.is_some_and(|fell| fell != falls) {
            self.factor /= 2.0;
        }
        self.fell = Some(falls);
        let Some(next) = self.next_rate(settings, seen).filter(|next| *next >= LEAST_RATE) else {
            return Turn::Stop(Ending::TooLow);
        };
        let rate = round.rate_in();
        let share = Seen::resolution_ns(settings, round).max(seen.error_ns(round)) / round.gap_in();
        // From above each step is `1 - u` of what is left; from below it is all of it.
        let share = if falls {
            share
        } else {
            share / (1.0 - seen.utilisation())
        };
        let settled = rate.is_finite() && (next - rate).abs() <= share * rate;
        if settled && seen.judged().count() >= LEAST_ROUNDS {
            return Turn::Stop(Ending::Settled);
        }
        Turn::Gap(f64::from(round.ip_octets) * 8e9 / next)
    }

    fn value(&self, _: &Settings, seen: &Seen) -> Option<f64> {
        let last = seen.judged().next_back()?;
        let rate = if last.is_congested() {
            last.rate_out()
        } else {
            last.rate_in()
        };
        Some(rate).filter(|rate| rate.is_finite())
    }
}

/// Rounds at least, as for Kite 2 (`[Kachan17]`).
const LEAST_ROUNDS: usize = 3;
/// Rates below this are not tried, bit/s: a packet in a tenth of a second.
const LEAST_RATE: f64 = 100e3;

static INFO: MethodInfo = MethodInfo {
    name: "kite",
    summary: "available bandwidth from trains whose rate falls and rises in shrinking steps",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeRate,
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
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 4_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Typed::PARAMETERS,
    source: include_str!("kite.rs"),
};

impl Method for Kite {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        Params::try_from(raw).map_or(usual.clone(), |params| params.search.imposes(&usual))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(Machine::new(Decreasing::session(Params::try_from(raw)?))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::lead(Machine::new(Decreasing::session(Params::try_from(raw)?)), observations)
    }
}
