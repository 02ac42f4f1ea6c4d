//! TCP connections as cross traffic: how many, under which congestion control, and what they carry.

use std::time::Duration;

use narrows_units::{BitRate, Octets};

use crate::error::ScenarioError;

/// TCP connections as cross traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elastic {
    /// How many.
    pub flows: u16,
    /// Their congestion control.
    pub control: ElasticControl,
    /// Round-trip time outside the hops they share with the probes.
    pub extra_rtt: Duration,
    /// Most payload octets in flight per flow; `None`: no limit.
    pub window_octets: Option<u32>,
    /// IP-layer rate to which each connection paces its departures; `None`: the congestion
    /// control's own.
    pub pacing: Option<BitRate>,
    /// What their programs send.
    pub workload: Workload,
}

/// Congestion control of elastic cross traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElasticControl {
    /// RFC 5681 and RFC 6582.
    Reno,
    /// RFC 9438.
    Cubic,
    /// `[BBR16]`.
    Bbr,
}

/// What the programs behind elastic connections send. Rates and sizes count payload.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Workload {
    /// Data without end, as fast as the path takes them.
    #[default]
    Greedy,
    /// Each connection carries this much once, and ends: a backup.
    Backup {
        /// Payload of each connection.
        payload: Octets,
    },
    /// Each connection carries a film: every `chunk` the program hands over at once what the rate
    /// makes of that time. A chunk that is not handed over when the next is due delays the next.
    Video {
        /// Mean rate of each connection.
        rate: BitRate,
        /// Time between two chunks.
        chunk: Duration,
    },
    /// Short transfers, each over a connection of its own, that begin independently (exponential
    /// gaps). Their sizes are log-normal.
    Web {
        /// What they offer together in the long run.
        rate: BitRate,
        /// Mean size of a transfer.
        mean: Octets,
        /// Standard deviation of the natural logarithm of the sizes.
        sigma: f64,
    },
}

/// A web page is some tens of kilobytes and now and then some megabytes (ours; measured values lie
/// between 1 and 2).
pub(crate) const WEB_SIGMA: f64 = 1.5;
/// With a larger deviation nearly all of the load is in transfers that never begin.
const WIDEST_SIGMA: f64 = 3.0;

impl Elastic {
    /// Connections that send without end and without limit.
    pub const fn greedy(flows: u16, control: ElasticControl) -> Self {
        Self {
            flows,
            control,
            extra_rtt: Duration::ZERO,
            window_octets: None,
            pacing: None,
            workload: Workload::Greedy,
        }
    }

    /// Refuses what no connections can be; `place` names them in the complaint.
    pub(crate) fn validate(&self, place: &str) -> Result<(), ScenarioError> {
        let invalid = |why: &str| Err(ScenarioError::invalid(place, why));
        if self.flows == 0 {
            return invalid("needs at least one flow");
        }
        if self.pacing == Some(BitRate::ZERO) {
            return invalid("pacing needs a rate above zero");
        }
        match self.workload {
            Workload::Backup { payload } if payload.count() == 0 => invalid("a backup of nothing is no traffic"),
            Workload::Video { rate, chunk } if rate == BitRate::ZERO || chunk.is_zero() => {
                invalid("video needs a rate and a chunk above zero")
            }
            Workload::Web { .. } if self.flows > 1 => {
                invalid("web opens connections as its rate says; leave flows out")
            }
            Workload::Web { rate, mean, .. } if rate == BitRate::ZERO || mean.count() == 0 => {
                invalid("web needs a rate and a mean above zero")
            }
            Workload::Web { sigma, .. } if !(0.0..=WIDEST_SIGMA).contains(&sigma) => {
                invalid("sigma of web must be between 0 and 3")
            }
            Workload::Greedy | Workload::Backup { .. } | Workload::Video { .. } | Workload::Web { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_are_none_are_refused() {
        let with = |workload| Elastic { workload, ..Elastic::greedy(1, ElasticControl::Cubic) };
        let (rate, mean, chunk) = (BitRate::from_mbps(5), Octets::new(60_000), Duration::from_secs(4));
        let web = |sigma| with(Workload::Web { rate, mean, sigma });
        for (wrong, said) in [
            (Elastic::greedy(0, ElasticControl::Bbr), "at least one flow"),
            (Elastic { pacing: Some(BitRate::ZERO), ..web(1.0) }, "pacing"),
            (Elastic { flows: 2, ..web(1.0) }, "leave flows out"),
            (web(f64::NAN), "sigma"),
            (web(3.1), "sigma"),
            (with(Workload::Web { rate, mean: Octets::new(0), sigma: 1.0 }), "mean"),
            (with(Workload::Backup { payload: Octets::new(0) }), "nothing"),
            (with(Workload::Video { rate, chunk: Duration::ZERO }), "chunk"),
            (with(Workload::Video { rate: BitRate::ZERO, chunk }), "rate"),
        ] {
            let error = wrong.validate("cross 3").unwrap_err().to_string();
            assert!(error.contains("cross 3") && error.contains(said), "{wrong:?}: {error}");
        }
        for right in [web(0.0), with(Workload::Video { rate, chunk }), Elastic { pacing: Some(rate), ..web(3.0) }] {
            assert_eq!(right.validate("cross"), Ok(()));
        }
    }
}
