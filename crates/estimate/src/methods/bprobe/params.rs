//! What can be set.

use std::time::Duration;

use units::Framing;

use crate::methods::campaign::{read_framing, read_returned_only, read_via, within};
use crate::probe::FarEnd;
use crate::registry::{Imposes, ParamError, RawParams};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// IP octets of the first phase's packets.
    pub first_octets: u16,
    /// Phases at most; the path MTU may end them.
    pub phases: u32,
    /// Packets of a train.
    pub packets: usize,
    /// Trains of each phase.
    pub rounds: u32,
    /// Least half-width of an estimate's interval, relative.
    pub tolerance: f64,
    /// From the begin of one train to the begin of the next.
    pub spacing: Duration,
    /// Round trips alone count.
    pub returned_only: bool,
    /// Whom to ask, the best first.
    pub via: Vec<FarEnd>,
    /// How the narrow link wraps packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            first_octets: 124,
            phases: 7,
            packets: 10,
            rounds: 2,
            tolerance: 0.05,
            spacing: Duration::from_millis(50),
            returned_only: false,
            via: AUTO.to_vec(),
            framing: Framing::ETHERNET,
        }
    }
}

/// An echo as the original's, small replies where there is none.
const AUTO: [FarEnd; 4] = [
    FarEnd::Echo,
    FarEnd::EchoSized(REPLY),
    FarEnd::ClosedPort,
    FarEnd::TcpSyn,
];
const REPLY: u16 = 60;

/// Names and descriptions, for the registry.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("first", "IP octets of the first phase's packets, 64..1500; 124"),
    ("phases", "phases at most, each of larger packets, 2..20; 7"),
    ("packets", "packets of a train, 3..100; 10"),
    ("rounds", "trains of each phase, 1..50; 2"),
    (
        "tolerance",
        "least half-width of an estimate over its rate, 0.001..0.3; 0.05",
    ),
    ("spacing", "from train to train, 0..10 s; 50 ms"),
    (
        "stamps",
        "auto (a reflector's, where it sends them along) or returned (round trips alone); auto",
    ),
    (
        "via",
        "whom to ask: auto, sized_echo, echo, closed_port, tcp_syn; auto: echo, then the others",
    ),
    (
        "framing",
        "of the narrow link: ethernet, vlan, bare, or octets per packet; ethernet",
    ),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let params = Self {
            first_octets: raw.get("first", base.first_octets)?,
            phases: raw.get("phases", base.phases)?,
            packets: raw.get("packets", base.packets)?,
            rounds: raw.get("rounds", base.rounds)?,
            tolerance: raw.get("tolerance", base.tolerance)?,
            spacing: raw.get_duration("spacing", base.spacing)?,
            returned_only: read_returned_only(raw, base.returned_only)?,
            via: read_via(raw, &AUTO, REPLY)?,
            framing: read_framing(raw, base.framing)?,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let first = (64..=1500).contains(&self.first_octets);
        within(first, "first", self.first_octets, "64 to 1500")?;
        within((2..=20).contains(&self.phases), "phases", self.phases, "2 to 20")?;
        within((3..=100).contains(&self.packets), "packets", self.packets, "3 to 100")?;
        within((1..=50).contains(&self.rounds), "rounds", self.rounds, "1 to 50")?;
        let tolerance = (0.001..=0.3).contains(&self.tolerance);
        within(tolerance, "tolerance", self.tolerance, "0.001 to 0.3")?;
        let spacing = self.spacing <= Duration::from_secs(10);
        within(
            spacing,
            "spacing",
            units::format_duration(self.spacing).as_str(),
            "0 to 10 s",
        )
    }

    /// Sizes of the phases on a path of this MTU: each half as large again as the last, or two and a half times, in turn. The last is
    /// the MTU itself.
    pub(super) fn sizes(&self, mtu: u16) -> Vec<u16> {
        let mut sizes = Vec::new();
        let mut octets = self.first_octets;
        for phase in 0..self.phases {
            if octets >= mtu || phase + 1 == self.phases {
                break;
            }
            sizes.push(octets);
            let half = octets / 2;
            octets = octets.saturating_add(half);
            if phase % 2 == 1 {
                octets = octets.saturating_add(half).saturating_add(half);
            }
        }
        sizes.push(mtu);
        sizes
    }

    /// What the longest run imposes: round trips of up to half a second (ours).
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let packets = u64::try_from(self.packets).unwrap_or(u64::MAX);
        let trains = self.phases.saturating_mul(self.rounds);
        let each = self.spacing.max(Duration::from_millis(500));
        Imposes {
            max_octets: usual.max_octets.max(u64::from(trains) * packets * 1500),
            max_time: usual.max_time.max(each.saturating_mul(trains)),
            ..usual.clone()
        }
    }
}
