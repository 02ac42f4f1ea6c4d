//! The path hop by hop, as one [`Outcome`] carries it: what commands and pictures read, and what methods per hop write.
//!
//! An outcome holds a number for the path (the narrow link's) and, in [`Estimate::also`], one estimate per hop limit that was asked, each
//! with [`Estimate::at_hop`]. What else is known of a hop is evidence of its estimate, under the names in [`key`]; what is known of the
//! path is evidence of the main one. [`PathHops::of`] reads all of it back, from whichever method: what a method does not tell is `None`
//! or empty. Recordings, JSON and tests see the same evidence, so nothing is said twice.

use std::net::IpAddr;
use std::time::Duration;

use units::{BitRate, Layer, Metric};

use crate::outcome::{Caveat, Estimate, Evidence, EvidenceValue, Outcome, Verdict};

/// Names of evidence. Those of hops stand in the estimates of hops, those of the path in the main one.
pub mod key {
    /// Hop: who answered and how often, as `address=answers` with blanks between, the most frequent first.
    pub const ROUTERS: &str = "routers";
    /// Hop: it is the far end.
    pub const FAR_END: &str = "far_end";
    /// Hop: one way, half of what the least round trip grows by from the hop before it, ns; its size taken out. May be negative.
    pub const LATENCY: &str = "latency_ns";
    /// Hop: what probes waited in queues on average, both ways, beyond what they had waited up to the hop before, ns.
    pub const QUEUEING: &str = "queueing_ns";
    /// Hop: least round trip of the smallest probe, ns.
    pub const ROUND_TRIP: &str = "least_round_trip_ns";
    /// Hop: share of probes that the path lost, 0..1; what a router did not answer for its limit is not in it.
    pub const LOSS: &str = "loss_ratio";
    /// Hop: probes sent.
    pub const PROBES: &str = "probes";
    /// Hop: answers.
    pub const ANSWERS: &str = "answers";
    /// Hop: answers that the router gives at once, where it limits them.
    pub const LIMIT_BURST: &str = "limit_burst";
    /// Hop: time after which it gives one more, ns.
    pub const LIMIT_EVERY: &str = "limit_every_ns";
    /// Hop: what stands inside it unseen, as `kind=nominal rate in bit/s=rate at the IP layer in bit/s` with blanks between.
    pub const HIDDEN: &str = "hidden_devices";
    /// Hop: what all its stages together look like, as one link's rate at the IP layer, bit/s.
    pub const SEEN: &str = "seen_bps";
    /// Hop: share of time for which other traffic keeps it busy, 0..1, whichever way.
    pub const BUSY: &str = "busy_ratio";
    /// Hop: the hop after which its share begins, where hops between did not answer or could not be used; zero: the sender.
    pub const AFTER: &str = "after_hop";
    /// Hop: what was foretold: `resolved`, `bounded` or `silent`.
    pub const FORETOLD: &str = "foretold";
    /// Path: the hop with the least capacity.
    pub const NARROW: &str = "narrow_hop";
    /// Path: the hop with the least left over.
    pub const TIGHT: &str = "tight_hop";
    /// Path: how long the whole measurement was to take, from its begin, ns.
    pub const FORETOLD_TIME: &str = "foretold_time_ns";
    /// Path: how many IP octets it was to send.
    pub const FORETOLD_OCTETS: &str = "foretold_octets";
    /// Path: the highest rate that one hop can be told at here, by stamps and sizes alone, bit/s at the IP layer.
    pub const CEILING: &str = "ceiling_bps";
    /// Path: packets that a server at the far end was to stamp.
    pub const STAMPED: &str = "stamped_packets";
    /// Path: how many of them did not come.
    pub const STAMPED_LOST: &str = "stamped_lost";
    /// Path, a flag: they went another way than the probes of hops.
    pub const STAMPED_OTHER: &str = "stamped_other_way";
    /// Path, a flag: the last hop is told by these stamps.
    pub const STAMPED_LAST: &str = "stamped_last_hop";
    /// Path: what all links there take for a full packet by these stamps, ns.
    pub const STAMPED_LINKS: &str = "stamped_all_links_ns";
    /// Path: how long these packets waited in queues there, on average, ns.
    pub const STAMPED_QUEUEING: &str = "stamped_queueing_ns";
}

/// A path, hop by hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathHops {
    /// By hop limit, ascending. Hop limits nobody answered at are there too, if a hop behind them answered.
    pub hops: Vec<HopFinding>,
    /// The hop with the least capacity.
    pub narrow_hop: Option<u16>,
    /// The hop with the least available capacity.
    pub tight_hop: Option<u16>,
    /// What was foretold before the measurement proper, from a first look.
    pub forecast: Option<Forecast>,
    /// What a server's stamps at the far end told, where there is one.
    pub far: Option<FarStamped>,
}

/// What a server at the far end told of the way there by its own stamps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FarStamped {
    /// Packets sent to it.
    pub packets: u32,
    /// How many of them did not come.
    pub lost: u32,
    /// They met another router than the probes of hops did: they tell nothing of that path.
    pub other_way: bool,
    /// The last hop is told by them.
    pub last_hop: bool,
    /// What all links there take for a full packet, ns.
    pub all_links_ns: Option<f64>,
    /// Mean wait in queues there, ns.
    pub queueing_ns: Option<f64>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq)]
pub struct HopFinding {
    /// Its hop limit, from 1.
    pub ttl: u16,
    /// Who answered, the most frequent first.
    pub routers: Vec<Responder>,
    /// It is the far end.
    pub far_end: bool,
    /// Its capacity; `None` where nothing is claimed.
    pub capacity: Option<HopCapacity>,
    /// The hop after which what is said of this one begins, if that is not the one before it; zero: the sender.
    pub after: Option<u16>,
    /// One way, ns.
    pub latency_ns: Option<f64>,
    /// Mean wait in queues, both ways, ns.
    pub queueing_ns: Option<f64>,
    /// Least round trip of the smallest probe, ns.
    pub round_trip_ns: Option<f64>,
    /// Share of probes lost on the path.
    pub loss_ratio: Option<f64>,
    /// Share of time for which other traffic keeps the hop busy.
    pub busy_ratio: Option<f64>,
    /// How the router limits its answers.
    pub limited: Option<AnswerPace>,
    /// What stands inside the hop unseen.
    pub hidden_devices: Vec<HiddenDevice>,
    /// What all its stages look like together.
    pub seen: Option<BitRate>,
    /// What was foretold of it.
    pub foretold: Option<Foretold>,
    /// Probes sent, and answers.
    pub probes: u64,
    /// Answers to them.
    pub answers: u64,
    /// Why it might mislead.
    pub caveats: Vec<Caveat>,
}

/// Who answers at a hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Responder {
    /// Its address.
    pub address: IpAddr,
    /// How often.
    pub answers: u64,
}

/// The capacity of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopCapacity {
    /// The value; of a bound, the bound.
    pub value: BitRate,
    /// Lower end.
    pub low: BitRate,
    /// Upper end; of a lower bound, the value again.
    pub high: BitRate,
    /// What it claims.
    pub verdict: Verdict,
    /// What it counts.
    pub layer: Layer,
}

/// A device inside a hop that no hop limit counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenDevice {
    /// What it is: `switch`, for anything that takes in whole packets before it sends them.
    pub kind: String,
    /// Its rate at the IP layer, as the hop's.
    pub capacity: BitRate,
    /// Its nominal rate.
    pub nominal: BitRate,
}

/// A router's limit on its answers, as learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerPace {
    /// Answers at once.
    pub burst: u64,
    /// Time after which there is one more.
    pub every: Duration,
}

/// What is foretold of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foretold {
    /// It will get a value.
    Resolved,
    /// It will get a bound.
    Bounded,
    /// It does not answer.
    Silent,
}

/// What is foretold of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The whole of it, from its begin, at most.
    pub time: Duration,
    /// IP octets sent, at most.
    pub octets: u64,
    /// The highest rate that one hop can be told at here, by stamps and sizes alone.
    pub ceiling: Option<BitRate>,
}

impl Foretold {
    /// As evidence writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Bounded => "bounded",
            Self::Silent => "silent",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Resolved, Self::Bounded, Self::Silent]
            .into_iter()
            .find(|foretold| foretold.name() == name)
    }
}

impl PathHops {
    /// What an outcome says of hops; `None` if it says nothing of any.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        Self::of_estimate(outcome.estimate()?)
    }

    /// The same of an estimate: an outcome's, or what a method has by now ([`Latest`](crate::Latest)).
    pub fn of_estimate(main: &Estimate) -> Option<Self> {
        let mut hops: Vec<HopFinding> = main
            .also
            .iter()
            .filter(|estimate| estimate.metric == Metric::IpCapacity)
            .filter_map(HopFinding::of)
            .collect();
        hops.sort_by_key(|hop| hop.ttl);
        let hop = |name| whole(&main.evidence, name).and_then(|hop| u16::try_from(hop).ok());
        let forecast = whole(&main.evidence, key::FORETOLD_TIME).map(|time| Forecast {
            time: Duration::from_nanos(time),
            octets: whole(&main.evidence, key::FORETOLD_OCTETS).unwrap_or(0),
            ceiling: whole(&main.evidence, key::CEILING).map(BitRate::from_bps),
        });
        (!hops.is_empty()).then(|| Self {
            hops,
            narrow_hop: hop(key::NARROW).filter(|&hop| hop > 0),
            tight_hop: hop(key::TIGHT).filter(|&hop| hop > 0),
            forecast,
            far: FarStamped::of(&main.evidence),
        })
    }
}

impl HopFinding {
    /// What an estimate says of its hop; `None` if it is about the path.
    pub fn of(estimate: &Estimate) -> Option<Self> {
        let evidence = &estimate.evidence;
        let ttl = estimate.hop()?;
        let claims = estimate.verdict != Verdict::Inconclusive;
        let capacity = claims.then(|| HopCapacity {
            value: BitRate::from_bps(estimate.value),
            low: BitRate::from_bps(estimate.low),
            high: BitRate::from_bps(estimate.high),
            verdict: estimate.verdict,
            layer: estimate.layer.unwrap_or(Layer::Ip),
        });
        let limited = whole(evidence, key::LIMIT_EVERY).map(|every| AnswerPace {
            burst: whole(evidence, key::LIMIT_BURST).unwrap_or(1),
            every: Duration::from_nanos(every),
        });
        let after = whole(evidence, key::AFTER).and_then(|hop| u16::try_from(hop).ok());
        Some(Self {
            ttl,
            routers: words(evidence, key::ROUTERS).filter_map(responder).collect(),
            far_end: matches!(evidence.get(key::FAR_END), Some(EvidenceValue::Flag(true))),
            capacity,
            after: after.filter(|&hop| hop + 1 < ttl),
            latency_ns: number(evidence, key::LATENCY),
            queueing_ns: number(evidence, key::QUEUEING),
            round_trip_ns: number(evidence, key::ROUND_TRIP),
            loss_ratio: number(evidence, key::LOSS),
            busy_ratio: number(evidence, key::BUSY),
            limited,
            hidden_devices: words(evidence, key::HIDDEN).filter_map(device).collect(),
            seen: whole(evidence, key::SEEN).map(BitRate::from_bps),
            foretold: words(evidence, key::FORETOLD).find_map(Foretold::named),
            probes: whole(evidence, key::PROBES).unwrap_or(0),
            answers: whole(evidence, key::ANSWERS).unwrap_or(0),
            caveats: estimate.caveats.clone(),
        })
    }

    /// The same as an estimate.
    pub fn estimate(&self) -> Estimate {
        let zero = BitRate::from_bps(0);
        let mut estimate = match self.capacity {
            Some(capacity) => Estimate {
                layer: Some(capacity.layer),
                verdict: capacity.verdict,
                ..Estimate::ip_rate(Metric::IpCapacity, capacity.value, capacity.low, capacity.high)
            },
            None => Estimate {
                verdict: Verdict::Inconclusive,
                ..Estimate::ip_rate(Metric::IpCapacity, zero, zero, zero)
            },
        };
        estimate.confidence = crate::Confidence::Low;
        estimate.caveats.clone_from(&self.caveats);
        let evidence = &mut estimate.evidence;
        evidence.insert(key::PROBES, self.probes);
        evidence.insert(key::ANSWERS, self.answers);
        let numbers = [
            (key::LATENCY, self.latency_ns),
            (key::QUEUEING, self.queueing_ns),
            (key::ROUND_TRIP, self.round_trip_ns),
            (key::LOSS, self.loss_ratio),
            (key::BUSY, self.busy_ratio),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                evidence.insert(name, value);
            }
        }
        if self.far_end {
            evidence.insert(key::FAR_END, true);
        }
        if let Some(after) = self.after {
            evidence.insert(key::AFTER, u32::from(after));
        }
        if let Some(seen) = self.seen {
            evidence.insert(key::SEEN, seen);
        }
        if let Some(limited) = self.limited {
            evidence.insert(key::LIMIT_BURST, limited.burst);
            evidence.insert(key::LIMIT_EVERY, nanos(limited.every));
        }
        if let Some(foretold) = self.foretold {
            evidence.insert(key::FORETOLD, foretold.name());
        }
        let routers = self
            .routers
            .iter()
            .map(|router| format!("{}={}", router.address, router.answers));
        let devices = self
            .hidden_devices
            .iter()
            .map(|device| format!("{}={}={}", device.kind, device.nominal.bps(), device.capacity.bps()));
        for (name, list) in [
            (key::ROUTERS, routers.collect::<Vec<_>>()),
            (key::HIDDEN, devices.collect()),
        ] {
            if !list.is_empty() {
                evidence.insert(name, list.join(" ").as_str());
            }
        }
        estimate.at_hop(self.ttl)
    }
}

impl Forecast {
    /// Writes it down.
    pub(crate) fn into_evidence(self, evidence: &mut Evidence) {
        evidence.insert(key::FORETOLD_TIME, nanos(self.time));
        evidence.insert(key::FORETOLD_OCTETS, self.octets);
        if let Some(ceiling) = self.ceiling {
            evidence.insert(key::CEILING, ceiling);
        }
    }
}

impl FarStamped {
    fn of(evidence: &Evidence) -> Option<Self> {
        let count = |name| whole(evidence, name).and_then(|count| u32::try_from(count).ok());
        let flag = |name| matches!(evidence.get(name), Some(EvidenceValue::Flag(true)));
        Some(Self {
            packets: count(key::STAMPED)?,
            lost: count(key::STAMPED_LOST).unwrap_or(0),
            other_way: flag(key::STAMPED_OTHER),
            last_hop: flag(key::STAMPED_LAST),
            all_links_ns: number(evidence, key::STAMPED_LINKS),
            queueing_ns: number(evidence, key::STAMPED_QUEUEING),
        })
    }

    /// Writes it down.
    pub(crate) fn into_evidence(self, evidence: &mut Evidence) {
        evidence.insert(key::STAMPED, self.packets);
        evidence.insert(key::STAMPED_LOST, self.lost);
        for (name, flag) in [(key::STAMPED_OTHER, self.other_way), (key::STAMPED_LAST, self.last_hop)] {
            evidence.insert(name, flag);
        }
        let times = [
            (key::STAMPED_LINKS, self.all_links_ns),
            (key::STAMPED_QUEUEING, self.queueing_ns),
        ];
        for (name, time) in times {
            if let Some(time) = time {
                evidence.insert(name, time);
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn whole(evidence: &Evidence, name: &str) -> Option<u64> {
    match evidence.get(name)? {
        EvidenceValue::Integer(value) => u64::try_from(*value).ok(),
        _ => None,
    }
}

fn number(evidence: &Evidence, name: &str) -> Option<f64> {
    evidence.get(name)?.as_f64().filter(|value| value.is_finite())
}

fn words<'a>(evidence: &'a Evidence, name: &str) -> impl Iterator<Item = &'a str> {
    let text = match evidence.get(name) {
        Some(EvidenceValue::Text(text)) => text.as_str(),
        _ => "",
    };
    text.split_whitespace()
}

fn responder(word: &str) -> Option<Responder> {
    let (address, answers) = word.split_once('=')?;
    Some(Responder {
        address: address.parse().ok()?,
        answers: answers.parse().ok()?,
    })
}

fn device(word: &str) -> Option<HiddenDevice> {
    let mut parts = word.split('=');
    let kind = parts.next()?.to_owned();
    let mut rate = || parts.next()?.parse().ok().map(BitRate::from_bps);
    Some(HiddenDevice {
        kind,
        nominal: rate()?,
        capacity: rate()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> HopFinding {
        HopFinding {
            ttl: 3,
            routers: vec![
                Responder {
                    address: "198.18.0.3".parse().unwrap(),
                    answers: 60,
                },
                Responder {
                    address: "2001:db8::3".parse().unwrap(),
                    answers: 4,
                },
            ],
            far_end: true,
            capacity: Some(HopCapacity {
                value: BitRate::from_bps(97_529_259),
                low: BitRate::from_mbps(97),
                high: BitRate::from_mbps(98),
                verdict: Verdict::Estimated,
                layer: Layer::Ip,
            }),
            after: Some(1),
            latency_ns: Some(-12.5),
            queueing_ns: Some(200.0),
            round_trip_ns: Some(4e6),
            loss_ratio: Some(0.01),
            busy_ratio: Some(0.3),
            limited: Some(AnswerPace {
                burst: 6,
                every: Duration::from_secs(1),
            }),
            hidden_devices: vec![HiddenDevice {
                kind: "switch".to_owned(),
                capacity: BitRate::from_mbps(975),
                nominal: BitRate::from_gbps(1),
            }],
            seen: Some(BitRate::from_mbps(89)),
            foretold: Some(Foretold::Resolved),
            probes: 70,
            answers: 64,
            caveats: vec![Caveat::NotConverged],
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let silent = HopFinding {
            ttl: 2,
            capacity: None,
            routers: Vec::new(),
            hidden_devices: Vec::new(),
            after: None,
            foretold: Some(Foretold::Silent),
            ..finding()
        };
        let rate = BitRate::from_mbps(97);
        let mut main = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).with(key::NARROW, 3u32);
        let forecast = Forecast {
            time: Duration::from_secs(9),
            octets: 400_000,
            ceiling: Some(BitRate::from_gbps(2)),
        };
        forecast.into_evidence(&mut main.evidence);
        let far = FarStamped {
            packets: 64,
            lost: 2,
            other_way: false,
            last_hop: true,
            all_links_ns: Some(1.5e6),
            queueing_ns: None,
        };
        far.into_evidence(&mut main.evidence);
        main.also = vec![finding().estimate(), silent.estimate()];
        let read = PathHops::of(&main.into()).unwrap();
        assert_eq!(read.hops, [silent, finding()]);
        assert_eq!((read.narrow_hop, read.tight_hop), (Some(3), None));
        assert_eq!(read.forecast, Some(forecast));
        assert_eq!(read.far, Some(far));
    }

    #[test]
    fn an_outcome_without_hops_has_none() {
        let rate = BitRate::from_mbps(97);
        let main = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate);
        assert_eq!(PathHops::of(&main.into()), None);
        assert_eq!(PathHops::of(&Outcome::inconclusive(crate::Reason::NoAnswer)), None);
    }
}
