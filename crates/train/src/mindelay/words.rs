//! Parameters that the minimum-delay methods have in common.

use std::time::Duration;

use super::Reads;
use narrows_probe::facts::{Answering, PathFacts};
use narrows_probe::outcome::Reason;
use narrows_probe::probes::{Fate, PeerKind, Train, TrainReport};
use narrows_probe::registry::{Range, Value};

/// Who answers, as the user says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A receiver that stamps, or an echo where there is none.
    Auto,
    /// A receiver that stamps.
    Receiver,
    /// Echoes, of which nothing but their return is used.
    Echo,
    /// Echoes that bring the peer's own receive stamps.
    Reflector,
    /// ICMP errors for UDP to a port on which nothing listens.
    ClosedPort,
    /// TCP's answers to SYN segments.
    Syn,
}

impl Value for Via {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Self::Auto,
            "receiver" => Self::Receiver,
            "echo" => Self::Echo,
            "reflector" => Self::Reflector,
            "closed_port" => Self::ClosedPort,
            "syn" => Self::Syn,
            _ => return Err(format!("write {}", Self::RANGE)),
        })
    }
}

impl Via {
    /// The words for it.
    pub const RANGE: Range = Range::Words(&["auto", "receiver", "echo", "reflector", "closed_port", "syn"]);

    /// The same for a peer that is known: `auto` asks what answers there.
    #[must_use]
    pub fn met_by(self, answering: Answering) -> Self {
        match (self, answering) {
            (Self::Auto, Answering::Echo) => Self::Echo,
            (Self::Auto, Answering::Reflector) => Self::Reflector,
            (Self::Auto, Answering::ClosedPort) => Self::ClosedPort,
            (Self::Auto, Answering::TcpSyn) => Self::Syn,
            (Self::Auto, Answering::Server) => Self::Auto,
            (named, _) => named,
        }
    }

    /// The train, as this peer is asked.
    pub fn ask(self, mut train: Train) -> Train {
        train.peer_kind = match self {
            Self::Auto | Self::Receiver => PeerKind::Receiver,
            Self::Echo | Self::Reflector => PeerKind::Echo,
            Self::ClosedPort => PeerKind::ClosedPort,
            Self::Syn => PeerKind::TcpSyn,
        };
        train
    }

    /// Whose stamps are read.
    pub fn reads(self) -> Reads {
        match self {
            Self::Auto | Self::Receiver => Reads::Arrivals,
            Self::Reflector => Reads::Turns,
            Self::Echo | Self::ClosedPort | Self::Syn => Reads::Returns,
        }
    }

    /// The next to try where the world does not offer this one. Of an echo, the peer's stamps
    /// are used if they come.
    pub fn instead(self) -> Option<Self> {
        (self == Self::Auto).then_some(Self::Reflector)
    }

    /// The same without the peer's stamps, once an echo came without any.
    pub fn without_stamps(self, report: &TrainReport) -> Option<Self> {
        let bare = |fate: Fate| matches!(fate, Fate::Echoed { turned: None, .. });
        let any = report.arrivals.iter().any(|row| bare(row.fate));
        (self == Self::Reflector && any).then_some(Self::Echo)
    }
}

/// Why a run that needs so many answers at least is not begun: the remote host limits them, and
/// would take longer than that.
pub fn answers_take_too_long(facts: &PathFacts, answers: u64, longest: Duration) -> Option<Reason> {
    let limit = facts.answer_limit?;
    let awaited = u32::try_from(answers).unwrap_or(u32::MAX).saturating_sub(limit.burst());
    let takes = limit.every().saturating_mul(awaited);
    (takes > longest).then(|| Reason::NotOffered {
        what: format!(
            "{answers} answers in time: it gives {} at once and then one per {}",
            limit.burst(),
            narrows_units::format_duration(limit.every())
        ),
    })
}
