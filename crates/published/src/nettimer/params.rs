//! What can be set.

use std::time::Duration;

use narrows_units::Framing;

use narrows_probe::probes::PeerKind;
use narrows_probe::registry::{Imposes, ParamError, Range, RawParams, params};
use narrows_train::pairs::Filter;
use narrows_train::train_method::{VIA, parse_via, unreadable};

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

params! {
    /// What can be set, as it is typed.
    #[derive(Debug)]
    pub(super) struct Typed {
        /// As many full-size pairs as it takes, counted on the wire, or eight small ones, counted
        /// as they are.
        preset: Preset = "adaptive" is { "adaptive" => Preset::Adaptive, "tool" => Preset::Tool } {
            source: "ours; [Abut18] table 5",
        },
        /// Whose stamps count.
        end: End = "sender" is { "sender" => End::Sender, "receiver" => End::Receiver } {
            source: "[Abut18] §IV.A: who stamps",
        },
        /// Whom the sender asks.
        via: String = "auto" { range: VIA, source: "ours; auto tries sized_echo, echo, closed_port, tcp_syn in turn" },
        /// Whether round trips alone count, even where a reflector sends its stamps along.
        returned_only: bool = "auto" is { "auto" => false, "returned" => true } {
            name: "stamps", unset: Some(""), presets: &[("tool", "returned")], source: "ours",
        },
        /// Pairs at most; the tool sends exactly as many.
        pairs: u32 = "64" {
            range: Between("2", "1000"), presets: &[("tool", "8")], source: "ours; [Abut18] §IV.B: always 8",
        },
        /// IP octets of a probe.
        octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("64", "65535"), unset: Some("0"), presets: &[("tool", "565")],
            source: "ours: large pairs give large spacings; 10 KB over 32 packets with replies of 60",
        },
        /// IP octets of a reply, where the peer can choose.
        reply: u16 = "60" { unit: "IP octets", range: Between("28", "1500"), source: "derived likewise" },
        /// From the begin of one pair to the begin of the next.
        spacing: Duration = "20 ms" {
            range: Between("0 s", "10 s"), presets: &[("tool", "125 ms")],
            source: "ours, varied by half either way; a second for eight pairs",
        },
        /// Half-width of the kernel.
        width: f64 = "0.1" { unit: "of the rate", range: Between("0.01", "0.5"), source: "[Nettimer01], recalled" },
        /// How the narrow link wraps packets.
        framing: Framing = "ethernet" {
            range: Range::FRAMING, unset: Some(""), presets: &[("tool", "bare")],
            source: "ours; `bare` counts IP octets of the probes alone",
        },
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let typed = Typed::try_from(raw)?;
        let via = parse_via(&typed.via, &auto(typed.reply), typed.reply);
        let filter = match typed.preset {
            Preset::Adaptive => Filter::DENSITY,
            Preset::Tool => Filter::NETTIMER,
        };
        Ok(Self {
            preset: typed.preset,
            end: typed.end,
            via: via.map_err(|why| unreadable("via", &typed.via, &why))?,
            returned_only: typed.returned_only,
            pairs: typed.pairs,
            ip_octets: typed.octets,
            reply_octets: typed.reply,
            spacing: typed.spacing,
            filter: Filter { half_width: typed.width, ..filter },
            framing: typed.framing,
        })
    }
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// It also sets the defaults of the others.
    pub preset: Preset,
    /// Whose stamps count.
    pub end: End,
    /// Whom the sender asks, the best first.
    pub via: Vec<PeerKind>,
    /// Round trips alone count, even where a reflector sends its stamps along.
    pub returned_only: bool,
    /// Pairs at most; the tool sends exactly so many.
    pub pairs: u32,
    /// IP octets of a probe; `None`: what the path takes.
    pub ip_octets: Option<u16>,
    /// IP octets of a reply, where the peer can choose.
    pub reply_octets: u16,
    /// From the begin of one pair to the begin of the next.
    pub spacing: Duration,
    /// Filter and score.
    pub filter: Filter,
    /// How the narrow link wraps packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self::try_from(&RawParams::new()).expect("a test reads the defaults of every declaration")
    }
}

impl Params {
    /// What the longest run imposes: every pair sent, and round trips of up to half a second
    /// (ours).
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

/// Small replies before whole ones, and what hosts do unasked only where nobody echoes.
fn auto(reply: u16) -> Vec<PeerKind> {
    vec![PeerKind::EchoSized(reply), PeerKind::Echo, PeerKind::ClosedPort, PeerKind::TcpSyn]
}
