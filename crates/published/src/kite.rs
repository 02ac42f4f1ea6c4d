#![doc = include_str!("kite.md")]

#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use crate::turning::{Ending, Length, MethodRun, Resolution, RoundAccount, Rule, Settings, Turn, settings};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope, params,
};
use narrows_train::train_method::Machine;

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
            range: AtLeast("1 bit/s"), source: "[Kachan17]: automatic; \"1\" at 10 Gbit/s, unit not given",
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
            unit: "deviations", range: Between("0", "3"), source: "ours: what a turning point that packets round off adds",
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
        let length = Length::Doubling { first: typed.packets, error: share / 2.0 };
        Ok(Self {
            search: settings!(typed, length: length, floor: Duration::ZERO, compression: false),
            factor: typed.factor,
        })
    }
}

/// Share of the rate that bounds the error of trains where steps end at a rate (derived: 0.1 to 1
/// %).
const RESOLUTION: f64 = 0.005;

/// The rule of the step decreasing factor.
#[derive(Debug, Clone)]
struct Decreasing {
    factor: f64,
    /// The last round was too fast.
    fell: Option<bool>,
}

impl Decreasing {
    fn session(params: Params) -> MethodRun<Self> {
        let rule = Self { factor: params.factor, fell: None };
        MethodRun::new(rule, params.search)
    }

    /// The next rate, bit/s.
    fn next_rate(&self, settings: &Settings, seen: &RoundAccount) -> Option<f64> {
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
        let least = RoundAccount::resolution_ns(settings, round)
            / (round.gap_in() + RoundAccount::resolution_ns(settings, round));
        Some(rate - self.factor * (rate - came).max(least * rate))
    }
}

impl Rule for Decreasing {
    const READS: (&'static str, &'static str) =
        ("kite", "trains of 16 packets or more to the receiver, at the rates of its search");

    fn turn(&mut self, settings: &Settings, seen: &RoundAccount) -> Turn {
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
        let share = RoundAccount::resolution_ns(settings, round).max(seen.error_ns(round)) / round.gap_in();
        // From above each step is `1 - u` of what is left; from below it is all of it.
        let share = if falls { share } else { share / (1.0 - seen.utilisation()) };
        let settled = rate.is_finite() && (next - rate).abs() <= share * rate;
        if settled && seen.judged().count() >= LEAST_ROUNDS {
            return Turn::Stop(Ending::Settled);
        }
        Turn::Gap(f64::from(round.ip_octets) * 8e9 / next)
    }

    fn value(&self, _: &Settings, seen: &RoundAccount) -> Option<f64> {
        let last = seen.judged().next_back()?;
        let rate = if last.is_congested() { last.rate_out() } else { last.rate_in() };
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
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 4_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Typed::PARAMETERS,
    manual: include_str!("kite.md"),
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
        observations::replay(Machine::new(Decreasing::session(Params::try_from(raw)?)), observations)
    }
}
