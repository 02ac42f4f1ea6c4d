//! What can be set.

use std::time::Duration;

use units::BitRate;

use crate::methods::campaign::{read_via, within};
use crate::probe::FarEnd;
use crate::registry::{Imposes, ParamError, RawParams};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Trains.
    pub trains: u32,
    /// Packets of a train.
    pub packets: usize,
    /// Spacings dropped at either end.
    pub dropped: usize,
    /// IP octets of a packet; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// From train to train.
    pub spacing: Duration,
    /// The narrow link's, if known.
    pub capacity: Option<BitRate>,
    /// The caller knows that both ways are alike.
    pub symmetric: bool,
    /// Whom to ask, the best first.
    pub via: Vec<FarEnd>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            trains: 10,
            packets: 10,
            dropped: 1,
            ip_octets: None,
            spacing: Duration::from_millis(100),
            capacity: None,
            symmetric: false,
            via: AUTO.to_vec(),
        }
    }
}

/// An echo as the original's, small replies where there is none, or where it does not tell the ways apart.
const AUTO: [FarEnd; 4] = [
    FarEnd::Echo,
    FarEnd::EchoSized(REPLY),
    FarEnd::ClosedPort,
    FarEnd::TcpSyn,
];
const REPLY: u16 = 60;

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let params = Self {
            trains: raw.get("trains", base.trains)?,
            packets: raw.get("packets", base.packets)?,
            dropped: raw.get("dropped", base.dropped)?,
            ip_octets: given("size").then(|| raw.get("size", 1500)).transpose()?,
            spacing: raw.get_duration("spacing", base.spacing)?,
            capacity: given("capacity")
                .then(|| raw.get("capacity", BitRate::ZERO))
                .transpose()?,
            symmetric: raw.get("symmetric", base.symmetric)?,
            via: read_via(raw, &AUTO, REPLY)?,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        within((2..=200).contains(&self.trains), "trains", self.trains, "2 to 200")?;
        within((4..=100).contains(&self.packets), "packets", self.packets, "4 to 100")?;
        // Two spacings at least must be left.
        let left = self.dropped <= 5 && self.packets >= 2 * self.dropped + 3;
        within(left, "dropped", self.dropped, "0 to 5, and two spacings must be left")?;
        let octets = self.ip_octets.unwrap_or(1500);
        within(octets >= 68, "size", octets, "at least 68, the smallest MTU (RFC 791)")?;
        let spacing = self.spacing <= Duration::from_secs(10);
        within(spacing, "spacing", self.spacing.as_secs_f64(), "0 to 10 s")?;
        let capacity = self.capacity.map_or(1, BitRate::bps);
        within(capacity > 0, "capacity", capacity, "above 0")
    }

    /// What a run imposes with these; unanswered far ends cost two trains each.
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let trains = self.trains + 10;
        let octets = u64::from(self.ip_octets.unwrap_or(9000)).max(1500);
        let packets = u64::from(trains) * self.packets as u64;
        Imposes {
            max_octets: usual.max_octets.max(packets * octets),
            max_time: usual
                .max_time
                .max((self.spacing + Duration::from_secs(1)) * (2 * trains)),
            ..usual.clone()
        }
    }
}

/// Name and meaning of each.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("trains", "trains, 2..200; 10"),
    ("packets", "packets of a train, 4..100; 10"),
    (
        "dropped",
        "largest and smallest spacings of a train left out at either end, 0..5; 1",
    ),
    ("size", "IP octets of a packet (default: path MTU)"),
    ("spacing", "from train to train, varied by half, 0..10 s; 100 ms"),
    (
        "capacity",
        "IP-layer capacity of the narrow link, if known: an estimate instead of a bound",
    ),
    (
        "symmetric",
        "the two ways are known to be alike, so that full echoes count; false",
    ),
    (
        "via",
        "whom to ask: auto, sized_echo, echo, closed_port, tcp_syn; auto: echo, then the others",
    ),
];
