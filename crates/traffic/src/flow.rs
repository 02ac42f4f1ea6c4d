//! What is to be sent.

use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, Elastic, ElasticControl, Source, Workload};
use narrows_units::BitRate;

use crate::replay::Replay;

/// One kind of traffic between two hosts.
#[derive(Debug, Clone)]
pub struct Flow {
    /// For people; rows of the result carry it.
    pub name: String,
    /// When it begins, after the start.
    pub from: Duration,
    /// When it ends; `None`: with the run (a capture: with its last packet).
    pub until: Option<Duration>,
    /// What it is made of.
    pub kind: FlowKind,
}

/// What a flow is made of.
#[derive(Debug, Clone)]
pub enum FlowKind {
    /// UDP packets by one of the scenario's models: the very packets that the simulator draws for
    /// this seed and index.
    Model {
        /// The traffic; its way and hops mean nothing here, its times are those of the flow.
        cross: Cross,
        /// Seed of everything random.
        seed: u64,
        /// Position among the traffic of a scenario.
        index: usize,
    },
    /// UDP packets with the sizes and gaps of a capture.
    Replay(Replay),
    /// TCP connections that take what they get.
    Elastic(ElasticFlow),
}

/// TCP connections.
#[derive(Debug, Clone, PartialEq)]
pub struct ElasticFlow {
    /// How many.
    pub connections: u16,
    /// Congestion control by its kernel name.
    pub control: String,
    /// Most payload octets in flight per connection; `None`: as the kernels agree.
    pub window_octets: Option<u32>,
    /// Rate to which the kernel paces each connection; `None`: the congestion control's own.
    pub pacing: Option<BitRate>,
    /// What they carry.
    pub carries: Carries,
}

/// What TCP connections carry.
#[derive(Debug, Clone, PartialEq)]
pub enum Carries {
    /// Data without end.
    Endless,
    /// Each so many octets of payload, and then it ends.
    Once(u64),
    /// Each what this payload rate makes of every `chunk`, at once.
    Chunks {
        /// Mean rate.
        rate: BitRate,
        /// From chunk to chunk.
        chunk: Duration,
    },
    /// Short transfers, each over a connection of its own: those that the simulator draws for this
    /// traffic, seed and index.
    Transfers {
        /// The traffic; its way and hops mean nothing here, its times are those of the flow.
        cross: Box<Cross>,
        /// Seed of everything random.
        seed: u64,
        /// Position among the traffic of a scenario.
        index: usize,
    },
}

impl Flow {
    /// A scenario's cross traffic. `index` is its position there; with the scenario's seed the
    /// packets are the simulator's. The round-trip time that elastic traffic has outside the path
    /// is the business of whoever lays the path.
    pub fn from_cross(cross: &Cross, seed: u64, index: usize) -> Self {
        let kind = match &cross.source {
            Source::Open { .. } => FlowKind::Model { cross: cross.clone(), seed, index },
            Source::Elastic(elastic) => {
                let carries = match elastic.workload {
                    Workload::Greedy => Carries::Endless,
                    Workload::Backup { payload } => Carries::Once(payload.count()),
                    Workload::Video { rate, chunk } => Carries::Chunks { rate, chunk },
                    Workload::Web { .. } => Carries::Transfers { cross: Box::new(cross.clone()), seed, index },
                };
                FlowKind::Elastic(ElasticFlow { carries, ..ElasticFlow::from(elastic) })
            }
        };
        Self { name: name(cross), from: cross.from, until: cross.until, kind }
    }

    /// A capture's packets.
    pub fn replay(replay: Replay) -> Self {
        Self {
            name: format!("replay {}", replay.path().display()),
            from: Duration::ZERO,
            until: None,
            kind: FlowKind::Replay(replay),
        }
    }

    /// TCP connections from the beginning to the end.
    pub fn elastic(elastic: ElasticFlow) -> Self {
        Self { name: elastic.control.clone(), from: Duration::ZERO, until: None, kind: FlowKind::Elastic(elastic) }
    }

    /// IP-layer rate asked for; `None` for what is not asked by rate.
    pub fn asked(&self) -> Option<BitRate> {
        match &self.kind {
            FlowKind::Model { cross, .. } => match &cross.source {
                Source::Open { rate, .. } => Some(*rate),
                Source::Elastic(_) => None,
            },
            FlowKind::Replay(_) | FlowKind::Elastic(_) => None,
        }
    }

    /// One of `count` equal flows with together this one's rate; each draws from its own random
    /// stream.
    pub fn split(&self, count: u16) -> Vec<Self> {
        let FlowKind::Model { cross, seed, index } = &self.kind else {
            return vec![self.clone()];
        };
        let Source::Open { arrivals, rate, sizes } = &cross.source else {
            return vec![self.clone()];
        };
        let share = |whole: BitRate, k: u16| {
            let count = u64::from(count.max(1));
            BitRate::from_bps(whole.bps() / count + u64::from(u64::from(k) < whole.bps() % count))
        };
        (0..count.max(1))
            .map(|k| {
                let arrivals = match *arrivals {
                    Arrivals::ParetoOnOff { shape, mean_on, peak } => {
                        Arrivals::ParetoOnOff { shape, mean_on, peak: share(peak, k) }
                    }
                    other => other,
                };
                let source = Source::Open { arrivals, rate: share(*rate, k), sizes: sizes.clone() };
                Self {
                    kind: FlowKind::Model {
                        cross: Cross { source, ..cross.clone() },
                        seed: *seed,
                        index: index + usize::from(k),
                    },
                    ..self.clone()
                }
            })
            .collect()
    }
}

/// Seed 1, first of its scenario.
impl From<&Cross> for Flow {
    fn from(cross: &Cross) -> Self {
        Self::from_cross(cross, 1, 0)
    }
}

impl ElasticFlow {
    /// Connections that send without end, as fast as the path takes it.
    pub fn greedy(connections: u16, control: impl Into<String>) -> Self {
        let control = control.into();
        Self { connections, control, window_octets: None, pacing: None, carries: Carries::Endless }
    }
}

/// The same connections, greedy.
impl From<&Elastic> for ElasticFlow {
    fn from(elastic: &Elastic) -> Self {
        let control = match elastic.control {
            ElasticControl::Reno => "reno",
            ElasticControl::Cubic => "cubic",
            ElasticControl::Bbr => "bbr",
        };
        Self { window_octets: elastic.window_octets, pacing: elastic.pacing, ..Self::greedy(elastic.flows, control) }
    }
}

fn name(cross: &Cross) -> String {
    match &cross.source {
        Source::Elastic(elastic) => {
            let control = ElasticFlow::from(elastic).control;
            match elastic.workload {
                Workload::Greedy => control,
                Workload::Backup { .. } => format!("backup ({control})"),
                Workload::Video { .. } => format!("video ({control})"),
                Workload::Web { .. } => format!("web ({control})"),
            }
        }
        Source::Open { arrivals, .. } => match arrivals {
            Arrivals::Cbr => "cbr".to_owned(),
            Arrivals::Poisson => "poisson".to_owned(),
            Arrivals::ParetoOnOff { .. } => "pareto".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use narrows_scenario::SizeMix;

    use super::*;

    #[test]
    fn equal_parts_sum_to_the_whole() {
        let cross = Cross::on_hop(0, Arrivals::Cbr, BitRate::from_bps(1_000_003), SizeMix::imix());
        let parts = Flow::from(&cross).split(4);
        let rates: Vec<u64> = parts.iter().filter_map(|flow| Some(flow.asked()?.bps())).collect();
        assert_eq!(rates, [250_001, 250_001, 250_001, 250_000]);
    }
}
