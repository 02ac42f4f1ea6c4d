//! What can be set.

use std::time::Duration;

use units::Framing;

use crate::methods::campaign::{read_framing, read_returned_only, read_via, unreadable, within};
use crate::pairs::Filter;
use crate::probe::FarEnd;
use crate::registry::{Imposes, ParamError, RawParams};

/// How long, how large and how counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// As many pairs as it takes, of full size, counted on the wire (ours).
    Adaptive,
    /// Eight small pairs, counted as they are.
    Tool,
}

/// Whose stamps count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The sender's, of whatever comes back; a reflector's where it sends them along.
    Sender,
    /// A cooperating receiver's.
    Receiver,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// It also sets the defaults of the others.
    pub preset: Preset,
    /// Whose stamps count.
    pub end: End,
    /// Whom the sender asks, the best first.
    pub via: Vec<FarEnd>,
    /// Round trips alone count, even where a reflector sends its stamps along.
    pub returned_only: bool,
    /// Pairs at most; the tool sends exactly so many.
    pub pairs: u32,
    /// IP octets of a probe; `None`: what the path takes.
    pub ip_octets: Option<u16>,
    /// IP octets of a reply, where the far end can choose.
    pub reply_octets: u16,
    /// From the begin of one pair to the begin of the next.
    pub spacing: Duration,
    /// Filter and score.
    pub filter: Filter,
    /// How the narrow link wraps packets.
    pub framing: Framing,
}

impl Params {
    fn of(preset: Preset) -> Self {
        let tool = preset == Preset::Tool;
        Self {
            preset,
            end: End::Sender,
            via: auto(REPLY),
            returned_only: tool,
            pairs: if tool { 8 } else { 64 },
            ip_octets: tool.then_some(565),
            reply_octets: REPLY,
            spacing: Duration::from_millis(if tool { 125 } else { 20 }),
            filter: if tool { Filter::NETTIMER } else { Filter::DENSITY },
            framing: if tool { Framing::BARE } else { Framing::ETHERNET },
        }
    }

    /// Eight pairs, as published.
    pub fn tool() -> Self {
        Self::of(Preset::Tool)
    }

    /// What the longest run imposes: every pair sent, and round trips of up to half a second (ours).
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let each = self.spacing.max(Duration::from_millis(400));
        let octets = u64::from(self.ip_octets.unwrap_or(1500)) + u64::from(self.reply_octets);
        Imposes {
            max_octets: usual.max_octets.max(2 * octets * u64::from(self.pairs)),
            max_time: usual.max_time.max(each.saturating_mul(self.pairs)),
            ..usual.clone()
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::of(Preset::Adaptive)
    }
}

/// Small replies before whole ones, and what hosts do unasked only where nobody echoes.
fn auto(reply: u16) -> Vec<FarEnd> {
    vec![
        FarEnd::EchoSized(reply),
        FarEnd::Echo,
        FarEnd::ClosedPort,
        FarEnd::TcpSyn,
    ]
}

/// IP octets of a reply.
const REPLY: u16 = 60;

/// Names and descriptions, for the registry.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    (
        "preset",
        "adaptive (up to 64 full-size pairs, wire rates) or tool (8 pairs of 565 octets, as published); adaptive",
    ),
    ("end", "whose stamps count: sender (round trips) or receiver; sender"),
    (
        "via",
        "whom the sender asks: auto, sized_echo, echo, closed_port, tcp_syn; auto: each in turn until one is offered",
    ),
    (
        "stamps",
        "auto (a reflector's, where it sends them along) or returned (round trips alone); auto, tool: returned",
    ),
    ("pairs", "pairs at most (tool: exactly), 2..1000; 64, tool: 8"),
    ("octets", "IP octets of a probe, 64..65535; path MTU, tool: 565"),
    (
        "reply",
        "IP octets of a reply, where the far end can choose, 28..1500; 60",
    ),
    ("spacing", "from pair to pair, 0..10 s; 20 ms, tool: 125 ms"),
    ("width", "half-width of the kernel over the rate, 0.01..0.5; 0.10"),
    (
        "framing",
        "of the narrow link: ethernet, vlan, bare, or octets per packet; ethernet, tool: bare",
    ),
];

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let word: String = raw.get("preset", "adaptive".to_owned())?;
        let base = match word.as_str() {
            "adaptive" => Self::default(),
            "tool" => Self::tool(),
            _ => return Err(unreadable("preset", &word, "write adaptive or tool")),
        };
        let word: String = raw.get("end", "sender".to_owned())?;
        let end = match word.as_str() {
            "sender" => End::Sender,
            "receiver" => End::Receiver,
            _ => return Err(unreadable("end", &word, "write sender or receiver")),
        };
        let octets = raw.get("octets", base.ip_octets.unwrap_or(0))?;
        let half_width = raw.get("width", base.filter.half_width)?;
        let reply_octets = raw.get("reply", base.reply_octets)?;
        let params = Self {
            end,
            via: read_via(raw, &auto(reply_octets), reply_octets)?,
            returned_only: read_returned_only(raw, base.returned_only)?,
            pairs: raw.get("pairs", base.pairs)?,
            ip_octets: Some(octets).filter(|octets| *octets > 0),
            reply_octets,
            spacing: raw.get_duration("spacing", base.spacing)?,
            filter: Filter {
                half_width,
                ..base.filter
            },
            framing: read_framing(raw, base.framing)?,
            preset: base.preset,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        within((2..=1000).contains(&self.pairs), "pairs", self.pairs, "2 to 1000")?;
        let octets = self.ip_octets.unwrap_or(1500);
        within(octets >= 64, "octets", octets, "64 to 65535")?;
        let reply = self.reply_octets;
        within((28..=1500).contains(&reply), "reply", reply, "28 to 1500")?;
        let spacing = self.spacing <= Duration::from_secs(10);
        within(
            spacing,
            "spacing",
            units::format_duration(self.spacing).as_str(),
            "0 to 10 s",
        )?;
        let width = self.filter.half_width;
        within((0.01..=0.5).contains(&width), "width", width, "0.01 to 0.5")
    }
}
