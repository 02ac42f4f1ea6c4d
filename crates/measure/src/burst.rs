#![doc = include_str!("burst.md")]

mod analyse;
mod ledger;
mod machine;
mod policy;
mod queue;
mod result;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Metric, Octets};

use machine::Run;
use narrows_probe::contract::Estimator;
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, Range, RawParams, Scope, joined, params,
};
use narrows_train::echoed::{Echoed, PEER_KIND};

/// The method.
pub struct Burst;

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
        layer: Some(narrows_units::Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 2_000_000,
        max_octets: 10_000_000,
        typical_time: Duration::from_millis(1500),
        max_time: Duration::from_secs(10),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    manual: include_str!("burst.md"),
};

impl Method for Burst {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => {
                let lasting = usual.lasting(params.max_time.unwrap_or(params.timeout()) + LAST_PROBE);
                Imposes { max_octets: lasting.max_octets.max(params.total_octets), ..lasting }
            }
            Err(_) => usual,
        }
    }

    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::Reflector, Answering::Echo]
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        params.check_names(&INFO)?;
        Ok(Box::new(Echoed::begin(params, machine)?))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::replay(Echoed::begin(params, machine)?, observations)
    }
}

fn machine(params: &RawParams) -> Result<Run, ParamError> {
    Ok(Run::new(Params::try_from(params)?))
}

impl Params {
    /// How long the method may take where the caller does not say.
    fn timeout(&self) -> Duration {
        Duration::from_secs(if self.detail { 30 } else { 3 })
    }
}

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    struct Params {
        /// What drops, what it counts, and the curve.
        detail: bool = "false" { range: Range::SWITCH, source: "ours" },
        /// Length of each packet, no more than the path MTU.
        ip_octets: Option<u16> = "path MTU" { unit: "IP octets", range: AtLeast("64"), source: "ours" },
        /// Available rate, for the pauses.
        available: Option<BitRate> = "from the bursts" {
            name: "available_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// Bursts in the sample.
        bursts: usize = "20" { range: Between("1", "1000"), source: "20 bound the loss probability to 14 %" },
        /// Loss-free bursts that make a size survive.
        confirm: u32 = "1" { range: Between("1", "10"), source: "ours; the sample corrects a lucky one" },
        /// Largest burst; the least is 8 packets of 64.
        max_octets: u64 = "2 MB" from Octets => (Octets::count) {
            range: Between("512 B", "64 MB"), presets: &[("true", "16 MB")], source: "ours",
        },
        /// Octets that end the search.
        total_octets: u64 = "8 MB" from Octets => (Octets::count) {
            range: AtLeast("1 B"), presets: &[("true", "200 MB")], source: "ours",
        },
        /// End of the search.
        max_time: Option<Duration> = "3 s, at least 20 RTT; true: 30 s" {
            range: Between("10 ms", "10 min"), source: "ours",
        },
        /// Rates of the curve, comma between.
        rates: Vec<BitRate> = "" with (rates) {
            range: Described("up to 8, each above 0"), source: "[Netest03] varies the rate; the line is ours",
        },
        /// Rates of the curve where `rates` gives none, evenly in `1 / R` down to 1.5 times what
        /// comes through.
        curve: u32 = "0" { range: Between("0", "8"), presets: &[("true", "4")], source: "ours" },
        /// Cut bursts per rate of the curve.
        rate_bursts: usize = "4" { range: Between("1", "100"), source: "ours" },
        /// Length of the small packets of detail.
        small_octets: u16 = "300" { unit: "IP octets", range: Between("64", "9000"), source: "ours: a fifth of 1500" },
        /// What of the available rate bursts may average.
        load: Option<f64> = "no bound" {
            unit: "share", range: Between("0.001", "1"), source: "the procedure derived from [Netest03] has 0.05",
        },
    }
}

/// Rates with commas between them.
fn rates(text: &str) -> Result<Vec<BitRate>, String> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let rates: Vec<BitRate> = parts
        .map(|part| part.parse().map_err(|error: narrows_units::ParseQuantityError| error.to_string()))
        .collect::<Result<_, _>>()?;
    if rates.len() > 8 || rates.contains(&BitRate::ZERO) {
        return Err("write at most 8 rates above zero".to_owned());
    }
    Ok(rates)
}

/// With the peer, which `echoed` reads.
const PARAMETERS: [Parameter; 14] = joined(Params::PARAMETERS, &[PEER_KIND]);
