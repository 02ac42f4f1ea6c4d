//! What can be set.

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::probes::PeerKind;
use narrows_probe::registry::{Imposes, ParamError, Range, params};
use narrows_train::train_method::{VIA, parse_via, within};

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Trains.
        pub trains: u32 = "10" { range: Between("2", "200"), source: "ours; original: 4, recalled" },
        /// Packets of a train.
        pub packets: usize = "10" { range: Between("4", "100"), source: "original, recalled" },
        /// Largest and smallest spacings of a train that are dropped at either end; two must be
        /// left.
        pub dropped: usize = "1" { range: Between("0", "5"), source: "original, recalled" },
        /// IP octets of a packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "ours",
        },
        /// From train to train, varied by half.
        pub spacing: Duration = "100 ms" { range: Between("0 s", "10 s"), source: "ours" },
        /// The narrow link's IP-layer capacity, if known: an estimate instead of a bound.
        pub capacity: Option<BitRate> = "none" { range: AtLeast("1 bit/s"), source: "ours" },
        /// The caller knows that both ways are alike, so that full echoes count.
        pub symmetric: bool = "false" { range: Range::SWITCH, source: "ours" },
        /// Whom to ask; auto: echoes, then the others.
        pub via: Vec<PeerKind> = "auto" with (|text| parse_via(text, &AUTO, REPLY)) { range: VIA, source: "ours" },
    }
    check Params::check;
}

/// An echo as the original's, small replies where there is none, or where it does not tell the ways
/// apart.
const AUTO: [PeerKind; 4] = [PeerKind::Echo, PeerKind::EchoSized(REPLY), PeerKind::ClosedPort, PeerKind::TcpSyn];
const REPLY: u16 = 60;

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let left = self.packets >= 2 * self.dropped + 3;
        within(left, "dropped", self.dropped, "0 to 5, and two spacings must be left")
    }

    /// What a run imposes with these; peers that do not answer cost two trains each.
    pub(super) fn imposes(&self, usual: &Imposes) -> Imposes {
        let trains = self.trains + 10;
        let octets = u64::from(self.ip_octets.unwrap_or(9000)).max(1500);
        let packets = u64::from(trains) * self.packets as u64;
        Imposes {
            max_octets: usual.max_octets.max(packets * octets),
            max_time: usual.max_time.max((self.spacing + Duration::from_secs(1)) * (2 * trains)),
            ..usual.clone()
        }
    }
}
