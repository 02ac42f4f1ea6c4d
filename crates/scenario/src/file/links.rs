//! Hops in a file.

use narrows_units::Framing;
use serde::Deserialize;

use super::service::{AggregationFile, ChannelsFile, SlotsFile};
use super::traffic::CrossFile;
use super::{duration, octets, optional, rate};
use crate::cross::Cross;
use crate::error::ScenarioError;
use crate::hop::{
    Burst, EarlyDrop, Hop, Jitter, Layer2, Link, Loss, Oddities, Queue, RateChange, Reorder, Router, TokenBucket,
};
use crate::service::Service;
use crate::way::PathDirection;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HopFile {
    #[serde(default)]
    name: String,
    rate: String,
    framing: Option<FramingFile>,
    channels: Option<ChannelsFile>,
    aggregation: Option<AggregationFile>,
    slots: Option<SlotsFile>,
    delay: Option<String>,
    queue: Option<String>,
    mtu: Option<u16>,
    #[serde(default)]
    layer2: Vec<Layer2File>,
    shaper: Option<BucketFile>,
    policer: Option<BucketFile>,
    early_drop: Option<EarlyDropFile>,
    loss: Option<LossFile>,
    jitter: Option<JitterFile>,
    reorder: Option<ReorderFile>,
    #[serde(default)]
    schedule: Vec<ChangeFile>,
    #[serde(default)]
    router: RouterFile,
    #[serde(default)]
    link: LinkName,
    burst: Option<String>,
    #[serde(default)]
    cross: Vec<CrossFile>,
}

/// What a lab plays the hop with.
#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum LinkName {
    #[default]
    RealTime,
    Tbf,
    Htb,
    Veth,
}

/// `"ethernet"`, `"bare"`, `{ vlan_tags = 1 }`, `{ overhead_octets = 24 }`, `{ atm_octets = 32 }`
/// (encapsulation in ATM cells).
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum FramingFile {
    Name(FramingName),
    Vlan { vlan_tags: u8 },
    Fixed { overhead_octets: u16 },
    Atm { atm_octets: u16 },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FramingName {
    Ethernet,
    Bare,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer2File {
    rate: String,
    framing: Option<FramingFile>,
    delay: Option<String>,
    queue: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BucketFile {
    rate: String,
    burst: String,
    queue: Option<String>,
    timer: Option<String>,
}

/// `early_drop = { from = "20 kB", to = "60 kB", ratio = 0.1 }`, with `weight` where it is not that
/// of `[RED93]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlyDropFile {
    from: String,
    to: String,
    ratio: f64,
    weight: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LossFile {
    ratio: f64,
    mean_burst: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JitterFile {
    uniform: Option<String>,
    exponential: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorderFile {
    ratio: f64,
    by: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeFile {
    at: String,
    rate: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RouterFile {
    answers: Option<bool>,
    icmp_delay: Option<String>,
    icmp_jitter: Option<String>,
    icmp_per_second: Option<f64>,
    icmp_burst: Option<u32>,
    icmp_max_octets: Option<u16>,
    icmp_per_octet: Option<String>,
    quotes_at_random: Option<bool>,
    forwards_expired: Option<bool>,
    answers_as: Option<u16>,
    siblings: Option<u8>,
    rerouted_at: Option<String>,
    rerouted_longer: Option<String>,
}

impl HopFile {
    /// The hop, and the cross traffic written inside it.
    pub(super) fn read(self, way: PathDirection, index: usize) -> Result<(Hop, Vec<Cross>), ScenarioError> {
        let place = match way {
            PathDirection::Forward => format!("hop {index}"),
            PathDirection::Reverse => format!("reverse hop {index}"),
        };
        let at = |field: &str| format!("{place}: {field}");
        let mut hop = Hop::rate(rate(&at("rate"), &self.rate)?).named(self.name);
        hop.framing = framing(self.framing.as_ref());
        hop.service = match (self.channels, self.aggregation, self.slots) {
            (None, None, None) => Service::Single,
            (Some(channels), None, None) => channels.read(),
            (None, Some(aggregation), None) => aggregation.read(&at("aggregation"))?,
            (None, None, Some(slots)) => slots.read(&at("slots"))?,
            _ => {
                let why = "has more than one of channels, aggregation and slots; write one";
                return Err(ScenarioError::invalid(place, why));
            }
        };
        if let Some(delay) = optional(&at("delay"), self.delay.as_ref(), duration)? {
            hop.delay = delay;
        }
        if let Some(queue) = optional(&at("queue"), self.queue.as_ref(), queue)? {
            hop.queue = queue;
        }
        hop.mtu = self.mtu.unwrap_or(hop.mtu);
        for (index, device) in self.layer2.into_iter().enumerate() {
            hop.layer2.push(device.read(&at(&format!("layer2 {index}")))?);
        }
        hop.bucket = match (self.shaper, self.policer) {
            (Some(_), Some(_)) => {
                return Err(ScenarioError::invalid(place, "has both a shaper and a policer; write one"));
            }
            (Some(bucket), None) => Some(bucket.read(&at("shaper"), true)?),
            (None, Some(bucket)) => Some(bucket.read(&at("policer"), false)?),
            (None, None) => None,
        };
        if let Some(early) = self.early_drop {
            hop.early_drop = Some(early.read(&at("early_drop"))?);
        }
        hop.loss = self.loss.map_or(Loss::None, |loss| match loss.mean_burst {
            Some(mean_burst) => Loss::Bursty { ratio: loss.ratio, mean_burst },
            None => Loss::Random { ratio: loss.ratio },
        });
        if let Some(jitter) = self.jitter {
            hop.jitter = jitter.read(&at("jitter"))?;
        }
        if let Some(reorder) = self.reorder {
            hop.reorder = Some(Reorder { ratio: reorder.ratio, by: duration(&at("reorder by"), &reorder.by)? });
        }
        for (index, change) in self.schedule.iter().enumerate() {
            let at = at(&format!("schedule {index}"));
            hop.schedule.push(RateChange { at: duration(&at, &change.at)?, rate: rate(&at, &change.rate)? });
        }
        hop.router = self.router.read(&at("router"))?;
        hop.link = link(&at("burst"), &self.link, self.burst.as_ref())?;
        let cross = self.cross.into_iter().enumerate();
        let cross = cross.map(|(k, cross)| cross.read(&at(&format!("cross {k}")), way, index, index));
        Ok((hop, cross.filter_map(Result::transpose).collect::<Result<_, _>>()?))
    }
}

fn link(place: &str, name: &LinkName, burst: Option<&String>) -> Result<Link, ScenarioError> {
    let octets = optional(place, burst, octets)?;
    let of = |octets: Option<_>| octets.map_or(Burst::OnePacket, Burst::Octets);
    match (name, octets) {
        (LinkName::Tbf, octets) => Ok(Link::Tbf(of(octets))),
        (LinkName::Htb, octets) => Ok(Link::Htb(of(octets))),
        (LinkName::RealTime | LinkName::Veth, Some(_)) => Err(ScenarioError::invalid(
            place,
            "belongs to links of the kinds tbf and htb; a token bucket on others is written as shaper",
        )),
        (LinkName::RealTime, None) => Ok(Link::RealTime),
        (LinkName::Veth, None) => Ok(Link::Veth),
    }
}

fn framing(file: Option<&FramingFile>) -> Framing {
    match file {
        None | Some(FramingFile::Name(FramingName::Ethernet)) => Framing::ETHERNET,
        Some(FramingFile::Name(FramingName::Bare)) => Framing::BARE,
        Some(FramingFile::Vlan { vlan_tags }) => Framing::ethernet(*vlan_tags),
        Some(FramingFile::Fixed { overhead_octets }) => Framing::fixed(*overhead_octets),
        Some(FramingFile::Atm { atm_octets }) => Framing::atm(*atm_octets),
    }
}

/// `"128 kB"`, `"100 packets"`, `"unlimited"`.
fn queue(place: &str, text: &str) -> Result<Queue, ScenarioError> {
    let text = text.trim();
    if text == "unlimited" {
        return Ok(Queue::Unlimited);
    }
    let Some(count) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) else {
        return octets(place, text).map(Queue::Octets);
    };
    let why = "must be a whole number of packets, such as \"100 packets\"";
    let count = count.trim().parse().map_err(|_| ScenarioError::invalid(place, why))?;
    Ok(Queue::Packets(count))
}

impl Layer2File {
    fn read(&self, place: &str) -> Result<Layer2, ScenarioError> {
        Ok(Layer2 {
            rate: rate(place, &self.rate)?,
            framing: framing(self.framing.as_ref()),
            delay: optional(place, self.delay.as_ref(), duration)?.unwrap_or_default(),
            queue: optional(place, self.queue.as_ref(), queue)?.unwrap_or(Queue::Packets(1000)),
        })
    }
}

impl BucketFile {
    fn read(&self, place: &str, shapes: bool) -> Result<TokenBucket, ScenarioError> {
        let waits = optional(place, self.queue.as_ref(), queue)?;
        if !shapes && waits.is_some() {
            return Err(ScenarioError::invalid(place, "a policer has no queue; write a shaper"));
        }
        Ok(TokenBucket {
            rate: rate(place, &self.rate)?,
            burst: octets(place, &self.burst)?,
            queue: shapes.then(|| waits.unwrap_or(Queue::Packets(1000))),
            timer: optional(place, self.timer.as_ref(), duration)?.unwrap_or_default(),
        })
    }
}

/// Weight of a packet in the average (`[RED93]` §6).
const EARLY_WEIGHT: f64 = 0.002;

impl EarlyDropFile {
    fn read(&self, place: &str) -> Result<EarlyDrop, ScenarioError> {
        Ok(EarlyDrop {
            from: octets(place, &self.from)?,
            to: octets(place, &self.to)?,
            ratio: self.ratio,
            weight: self.weight.unwrap_or(EARLY_WEIGHT),
        })
    }
}

impl JitterFile {
    fn read(&self, place: &str) -> Result<Jitter, ScenarioError> {
        match (&self.uniform, &self.exponential) {
            (Some(width), None) => duration(place, width).map(Jitter::Uniform),
            (None, Some(mean)) => duration(place, mean).map(Jitter::Exponential),
            _ => Err(ScenarioError::invalid(place, "needs either uniform or exponential")),
        }
    }
}

impl RouterFile {
    pub(super) fn read(&self, place: &str) -> Result<Router, ScenarioError> {
        let usual = Router::default();
        let icmp_limit = match (self.icmp_per_second, self.icmp_burst) {
            (Some(rate), burst) => Some((rate, burst.unwrap_or(6))),
            (None, Some(_)) => return Err(ScenarioError::invalid(place, "icmp_burst needs icmp_per_second")),
            (None, None) => None,
        };
        Ok(Router {
            answers: self.answers.unwrap_or(usual.answers),
            icmp_delay: optional(place, self.icmp_delay.as_ref(), duration)?.unwrap_or(usual.icmp_delay),
            icmp_jitter: optional(place, self.icmp_jitter.as_ref(), duration)?.unwrap_or_default(),
            icmp_limit,
            icmp_max_octets: self.icmp_max_octets.unwrap_or(usual.icmp_max_octets),
            oddities: self.oddities(place)?,
        })
    }

    fn oddities(&self, place: &str) -> Result<Oddities, ScenarioError> {
        let time = |text: &Option<String>| optional(place, text.as_ref(), duration);
        let rerouted = match (time(&self.rerouted_at)?, time(&self.rerouted_longer)?) {
            (Some(at), longer) => Some((at, longer.unwrap_or_default())),
            (None, Some(_)) => return Err(ScenarioError::invalid(place, "rerouted_longer needs rerouted_at")),
            (None, None) => None,
        };
        Ok(Oddities {
            icmp_per_octet: time(&self.icmp_per_octet)?.unwrap_or_default(),
            quotes_at_random: self.quotes_at_random.unwrap_or_default(),
            forwards_expired: self.forwards_expired.unwrap_or_default(),
            answers_as: self.answers_as,
            siblings: self.siblings.unwrap_or_default(),
            rerouted,
        })
    }
}
