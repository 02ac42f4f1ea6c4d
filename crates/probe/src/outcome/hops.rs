//! The path hop by hop, as one [`Outcome`] carries it: what commands and pictures read, and what
//! methods per hop write.
//!
//! An outcome holds a number for the path (the narrow link's) and, in [`Estimate::also`], one
//! estimate per hop limit that was asked, each with [`Estimate::at_hop`]. What else is known of a
//! hop is the [`HopFinding`] of its estimate, what is known of the path the [`PathFinding`] of the
//! main one; their `tell` writes the same into the diagnostics. [`PathHops::of`] puts the parts
//! together, from whichever method: what a method does not tell is `None` or empty.

use std::net::IpAddr;
use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric, nanos};
use serde::{Deserialize, Serialize};

use super::{BoundKind, Caveat, Diagnostics, Estimate, Finding, Outcome, Ranged};

/// A path, hop by hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathHops {
    /// By hop limit, ascending. Hop limits nobody answered at are there too, if a hop behind them
    /// answered.
    pub hops: Vec<HopFinding>,
    /// The hop with the least capacity.
    pub narrow_hop: Option<u16>,
    /// The hop with the least available capacity.
    pub tight_hop: Option<u16>,
    /// What was predicted before the measurement proper, from a first look.
    pub forecast: Option<Forecast>,
    /// What a server's stamps at the peer told, where there is one.
    pub remote: Option<RemoteStamped>,
}

/// What is known of a whole path beside its hops.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathFinding {
    /// The hop with the least capacity.
    pub narrow_hop: Option<u16>,
    /// The hop with the least available capacity.
    pub tight_hop: Option<u16>,
    /// What was predicted before the measurement proper, from a first look.
    pub forecast: Option<Forecast>,
    /// What a server's stamps at the peer told, where there is one.
    pub remote: Option<RemoteStamped>,
}

/// What a server at the peer told of the forward direction by its own stamps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RemoteStamped {
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HopFinding {
    /// Its hop limit, from 1.
    pub ttl: u16,
    /// Who answered, the most frequent first.
    pub routers: Vec<Responder>,
    /// It is the peer.
    pub is_destination: bool,
    /// Its capacity; `None` where nothing is claimed.
    pub capacity: Option<HopCapacity>,
    /// The hop after which what is said of this one begins, if that is not the one before it; zero:
    /// the sender.
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
    /// The rate that all links inside the hop look like together.
    pub apparent_rate: Option<BitRate>,
    /// What was predicted of it.
    pub predicted: Option<Predicted>,
    /// Probes sent, and answers.
    pub probes: u64,
    /// Answers to them.
    pub answers: u64,
    /// Why it might mislead.
    pub caveats: Vec<Caveat>,
}

/// Who answers at a hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Responder {
    /// Its address.
    pub address: IpAddr,
    /// How often.
    pub answers: u64,
}

/// The capacity of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopCapacity {
    /// Its rate.
    #[serde(flatten)]
    pub rate: Ranged<BitRate>,
    /// What it counts.
    pub layer: Layer,
}

/// A device inside a hop that no hop limit counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenDevice {
    /// What it is: `switch`, for anything that takes in whole packets before it sends them.
    pub kind: String,
    /// Its rate at the IP layer, as the hop's.
    pub capacity: BitRate,
    /// Its nominal rate.
    pub nominal: BitRate,
}

/// A router's limit on its answers, as learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerPace {
    /// Answers at once.
    pub burst: u64,
    /// Time after which there is one more.
    pub every: Duration,
}

/// What is predicted of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Predicted {
    /// It will get a value.
    Resolved,
    /// It will get a bound.
    Bounded,
    /// It does not answer.
    Silent,
}

/// What is predicted of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// The whole of it, from its begin, at most.
    pub time: Duration,
    /// IP octets sent, at most.
    pub octets: u64,
    /// The highest rate that one hop can be told at here, by stamps and sizes alone.
    pub ceiling: Option<BitRate>,
}

impl Predicted {
    /// As diagnostics and reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Bounded => "bounded",
            Self::Silent => "silent",
        }
    }
}

impl PathHops {
    /// What an outcome says of hops; `None` if it says nothing of any.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        Self::of_estimate(outcome.estimate()?)
    }

    /// The same of an estimate: an outcome's, or what a method has by now
    /// ([`Latest`](crate::Latest)).
    pub fn of_estimate(main: &Estimate) -> Option<Self> {
        let mut hops: Vec<HopFinding> = main
            .also
            .iter()
            .filter(|estimate| estimate.metric == Metric::IpCapacity)
            .filter_map(HopFinding::of)
            .collect();
        hops.sort_by_key(|hop| hop.ttl);
        let path = match &main.details.finding {
            Finding::Path(path) => path.as_ref().clone(),
            _ => PathFinding::default(),
        };
        (!hops.is_empty()).then_some(Self {
            hops,
            narrow_hop: path.narrow_hop,
            tight_hop: path.tight_hop,
            forecast: path.forecast,
            remote: path.remote,
        })
    }
}

impl PathFinding {
    /// The path's estimate with it.
    #[must_use]
    pub fn put(self, mut estimate: Estimate) -> Estimate {
        let diagnostics = &mut estimate.diagnostics;
        for (name, hop) in [("narrow_hop", self.narrow_hop), ("tight_hop", self.tight_hop)] {
            if let Some(hop) = hop {
                diagnostics.insert(name, u32::from(hop));
            }
        }
        if let Some(forecast) = self.forecast {
            diagnostics.insert("predicted_time_ns", nanos(forecast.time));
            diagnostics.insert("predicted_octets", forecast.octets);
            if let Some(ceiling) = forecast.ceiling {
                diagnostics.insert("ceiling_bps", ceiling);
            }
        }
        if let Some(remote) = self.remote {
            remote.tell(diagnostics);
        }
        estimate.found(Finding::Path(Box::new(self)))
    }
}

impl HopFinding {
    /// What an estimate says of its hop; `None` if it is about the path.
    pub fn of(estimate: &Estimate) -> Option<Self> {
        let ttl = estimate.hop()?;
        let reported = match &estimate.details.finding {
            Finding::Hop(hop) => hop.as_ref().clone(),
            _ => Self::default(),
        };
        let claimed = estimate.rate().filter(|rate| rate.verdict != BoundKind::Inconclusive);
        let capacity = claimed.map(|rate| HopCapacity { rate, layer: estimate.layer.unwrap_or(Layer::Ip) });
        Some(Self {
            ttl,
            capacity,
            after: reported.after.filter(|&hop| hop + 1 < ttl),
            caveats: estimate.caveats.clone(),
            ..reported
        })
    }

    /// The same as an estimate.
    pub fn estimate(&self) -> Estimate {
        let nothing = Ranged { verdict: BoundKind::Inconclusive, ..Ranged::exactly(BitRate::ZERO) };
        let (rate, layer) = self.capacity.map_or((nothing, Layer::Ip), |capacity| (capacity.rate, capacity.layer));
        let in_order = Ranged { verdict: rate.verdict, ..Ranged::new(rate.value, rate.low, rate.high) };
        let mut estimate = Estimate::new(Metric::IpCapacity, Some(layer), in_order);
        estimate.confidence = crate::Confidence::Low;
        estimate.caveats.clone_from(&self.caveats);
        self.clone().put(estimate)
    }

    /// The hop's estimate with it.
    #[must_use]
    pub fn put(self, mut estimate: Estimate) -> Estimate {
        self.tell(&mut estimate.diagnostics);
        let ttl = self.ttl;
        estimate.found(Finding::Hop(Box::new(self))).at_hop(ttl)
    }

    fn tell(&self, diagnostics: &mut Diagnostics) {
        diagnostics.insert("probes", self.probes);
        diagnostics.insert("answers", self.answers);
        let numbers = [
            ("latency_ns", self.latency_ns),
            ("queueing_ns", self.queueing_ns),
            ("least_round_trip_ns", self.round_trip_ns),
            ("loss_ratio", self.loss_ratio),
            ("busy_ratio", self.busy_ratio),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                diagnostics.insert(name, value);
            }
        }
        if self.is_destination {
            diagnostics.insert("is_destination", true);
        }
        if let Some(after) = self.after {
            diagnostics.insert("after_hop", u32::from(after));
        }
        if let Some(rate) = self.apparent_rate {
            diagnostics.insert("apparent_bps", rate);
        }
        if let Some(limited) = self.limited {
            diagnostics.insert("limit_burst", limited.burst);
            diagnostics.insert("limit_every_ns", nanos(limited.every));
        }
        if let Some(predicted) = self.predicted {
            diagnostics.insert("predicted", predicted.name());
        }
        let routers = self.routers.iter().map(|router| format!("{}={}", router.address, router.answers));
        let devices = self
            .hidden_devices
            .iter()
            .map(|device| format!("{}={}={}", device.kind, device.nominal.bps(), device.capacity.bps()));
        for (name, list) in [("routers", routers.collect::<Vec<_>>()), ("hidden_devices", devices.collect())] {
            if !list.is_empty() {
                diagnostics.insert(name, list.join(" ").as_str());
            }
        }
    }
}

impl RemoteStamped {
    fn tell(self, diagnostics: &mut Diagnostics) {
        diagnostics.insert("stamped_packets", self.packets);
        diagnostics.insert("stamped_lost", self.lost);
        diagnostics.insert("stamped_other_way", self.other_way);
        diagnostics.insert("stamped_last_hop", self.last_hop);
        let times = [("stamped_all_links_ns", self.all_links_ns), ("stamped_queueing_ns", self.queueing_ns)];
        for (name, time) in times {
            if let Some(time) = time {
                diagnostics.insert(name, time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> HopFinding {
        HopFinding {
            ttl: 3,
            routers: vec![
                Responder { address: "198.18.0.3".parse().unwrap(), answers: 60 },
                Responder { address: "2001:db8::3".parse().unwrap(), answers: 4 },
            ],
            is_destination: true,
            capacity: Some(HopCapacity {
                rate: Ranged::new(BitRate::from_bps(97_529_259), BitRate::from_mbps(97), BitRate::from_mbps(98)),
                layer: Layer::Ip,
            }),
            after: Some(1),
            latency_ns: Some(-12.5),
            queueing_ns: Some(200.0),
            round_trip_ns: Some(4e6),
            loss_ratio: Some(0.01),
            busy_ratio: Some(0.3),
            limited: Some(AnswerPace { burst: 6, every: Duration::from_secs(1) }),
            hidden_devices: vec![HiddenDevice {
                kind: "switch".to_owned(),
                capacity: BitRate::from_mbps(975),
                nominal: BitRate::from_gbps(1),
            }],
            apparent_rate: Some(BitRate::from_mbps(89)),
            predicted: Some(Predicted::Resolved),
            probes: 70,
            answers: 64,
            caveats: vec![Caveat::NotConverged],
        }
    }

    #[test]
    fn what_is_put_into_an_outcome_comes_out_of_it_and_of_json() {
        let silent = HopFinding {
            ttl: 2,
            capacity: None,
            routers: Vec::new(),
            hidden_devices: Vec::new(),
            after: None,
            predicted: Some(Predicted::Silent),
            ..finding()
        };
        let rate = BitRate::from_mbps(97);
        let mut main = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate);
        let forecast = Forecast { time: Duration::from_secs(9), octets: 400_000, ceiling: Some(BitRate::from_gbps(2)) };
        let remote = RemoteStamped {
            packets: 64,
            lost: 2,
            other_way: false,
            last_hop: true,
            all_links_ns: Some(1.5e6),
            queueing_ns: None,
        };
        main = PathFinding { narrow_hop: Some(3), tight_hop: None, forecast: Some(forecast), remote: Some(remote) }
            .put(main);
        main.also = vec![finding().estimate(), silent.estimate()];
        let json = serde_json::to_string(&Outcome::from(main)).unwrap();
        let read = PathHops::of(&serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(read.hops, [silent, finding()]);
        assert_eq!((read.narrow_hop, read.tight_hop), (Some(3), None));
        assert_eq!(read.forecast, Some(forecast));
        assert_eq!(read.remote, Some(remote));
    }

    #[test]
    fn an_outcome_without_hops_has_none() {
        let rate = BitRate::from_mbps(97);
        let main = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate);
        assert_eq!(PathHops::of(&main.into()), None);
        assert_eq!(PathHops::of(&Outcome::inconclusive(crate::Reason::NoAnswer)), None);
    }
}
