//! What can be set.

use std::time::Duration;

use narrows_units::Framing;

use narrows_probe::probes::PeerKind;
use narrows_probe::registry::{Imposes, Range, params};
use narrows_train::train_method::{VIA, parse_via};

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// IP octets of the first phase's packets.
        pub first_octets: u16 = "124" {
            name: "first", unit: "IP octets", range: Between("64", "1500"), source: "[Carter96], recalled",
        },
        /// Phases at most; each is half as large again as the last, or two and a half times, in
        /// turn.
        pub phases: u32 = "7" {
            range: Between("2", "20"), source: "[Carter96], recalled: up to 8000 octets; here the path MTU ends them",
        },
        /// Packets of a train.
        pub packets: usize = "10" { range: Between("3", "100"), source: "[Carter96], recalled" },
        /// Trains of each phase.
        pub rounds: u32 = "2" { range: Between("1", "50"), source: "ours" },
        /// Least half-width of an estimate's interval, relative.
        pub tolerance: f64 = "0.05" {
            unit: "of the rate", range: Between("0.001", "0.3"), source: "ours: of an estimate that has no other error",
        },
        /// From the begin of one train to the begin of the next.
        pub spacing: Duration = "50 ms" { range: Between("0 s", "10 s"), source: "ours, varied by half either way" },
        /// Whether round trips alone count, even where a reflector sends its stamps along.
        pub returned_only: bool = "auto" is { "auto" => false, "returned" => true } {
            name: "stamps", unset: Some(""), source: "ours",
        },
        /// Whom to ask, the best first.
        pub via: Vec<PeerKind> = "auto" with (|text| parse_via(text, &AUTO, REPLY)) {
            range: VIA, source: "ours; auto: echo, then the others",
        },
        /// How the narrow link wraps packets.
        pub framing: Framing = "ethernet" {
            range: Range::FRAMING, unset: Some(""),
            source: "ours: the original's IP octets make small packets disagree with large ones by up to a quarter",
        },
    }
}

/// An echo as the original's, small replies where there is none.
const AUTO: [PeerKind; 4] = [PeerKind::Echo, PeerKind::EchoSized(REPLY), PeerKind::ClosedPort, PeerKind::TcpSyn];
const REPLY: u16 = 60;

impl Params {
    /// Sizes of the phases on a path of this MTU: each half as large again as the last, or two and
    /// a half times, in turn. The last is the MTU itself.
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
