//! What passive methods share: they watch one direction of one TCP connection at one place, packet
//! by packet, in bounded memory.
//!
//! Shapes: whoever reads packets (a file, an interface, a recording) sorts them into flows and
//! keeps one [`FlowLog`] per flow and direction; each packet of the connection is shown to both
//! directions' logs ([`FlowLog::see`]), once for all methods. At the end every method of
//! [`PASSIVE`] reads the same log ([`PassiveMethod::conclude`]), with what is known of the place of
//! the capture ([`Sight`]).
//!
//! Stamps are nanoseconds of the capturing clock; only differences count. Logs of a direction come
//! to life with its eighth packet that carries data, and are then shown what was kept of the
//! connection before: up to 32 packets of both directions, its handshake among them where it is
//! that young.

mod answer;
mod batches;
mod density;
mod judge;
mod listen;
mod log;
mod math;
mod multiq;
mod nettimer;
mod pprate;
mod series;
#[cfg(test)]
mod tests;

pub use answer::Passive;
pub use log::FlowLog;
pub use multiq::Multiq;
pub use nettimer::NettimerPassive;
pub use pprate::Pprate;

use narrows_probe::outcome::Outcome;
use narrows_probe::probes::TcpFields;
use narrows_probe::registry::{MethodInfo, ParamError, RawParams};

/// One TCP packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenPacket {
    /// When it passed, in nanoseconds of the capturing clock. May step back where the capture says
    /// so.
    pub at_ns: i64,
    /// When the same packet passed a second capture nearer to its sender, in nanoseconds of *that*
    /// capture's clock. Only where two captures of one flow were given, and this packet was found
    /// in both.
    pub departed_ns: Option<i64>,
    /// Length of the IP packet, header included, as its header says.
    pub ip_octets: u32,
    /// Octets of link-layer framing that the capture shows around it (VLAN tags count), without
    /// preamble, FCS and gap.
    pub link_octets: u16,
    /// The IPv4 identification, where there is one.
    pub ip_id: Option<u16>,
    /// What the transport header says.
    pub tcp: TcpFields,
}

/// Which way a packet goes, seen from the direction whose capacity is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Course {
    /// With the data.
    Along,
    /// Back: acknowledgements of them.
    Back,
}

/// Where along a flow's way a capture sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vantage {
    /// At the host that sends the data, or so near that it sees them leave.
    Sender,
    /// At the host that receives them.
    Receiver,
    /// In between.
    Middle,
    /// The trace does not say.
    Unknown,
}

/// What the reader of packets knows of a flow, all told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// Where the capture sits on this direction's way.
    pub vantage: Vantage,
    /// Smallest round trip from the capture to the data's receiver and back, in nanoseconds.
    pub ahead_ns: Option<i64>,
    /// Smallest round trip from the capture to the data's sender and back.
    pub behind_ns: Option<i64>,
    /// Finest step between stamps of the whole capture, in nanoseconds.
    pub resolution_ns: i64,
    /// Packets that the capture is known to have missed: dropped by whatever took it, or
    /// acknowledged and never seen.
    pub missed: u64,
    /// The connection's beginning was seen.
    pub began: bool,
    /// Binary places by which [`Course::Back`]'s windows are to be shifted to the left (RFC 7323
    /// §2), but for those of a SYN. `None`: the capture does not hold the SYN and SYN/ACK, and the
    /// windows' size is not known. Zero: neither or only one end scales.
    pub window_shift: Option<u8>,
    /// Most TCP payload octets per packet that the data's receiver asked for in its SYN.
    pub announced_mss: Option<u16>,
}

/// What a method makes of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// An estimate of [`Metric::IpCapacity`](narrows_units::Metric), or inconclusive and why.
    pub outcome: Outcome,
    /// Samples that it rests on.
    pub samples: u64,
}

/// A method that works on flows of a capture. Pure: no clock, no random source.
pub trait PassiveMethod: Sync {
    /// Its description.
    fn info(&self) -> &'static MethodInfo;

    /// What it makes of one direction of a flow.
    fn conclude(&self, log: &FlowLog, sight: &Sight, params: &RawParams) -> Result<Conclusion, ParamError>;

    /// Whether it can read these parameters.
    fn check(&self, params: &RawParams) -> Result<(), ParamError> {
        let nothing = Sight {
            vantage: Vantage::Unknown,
            ahead_ns: None,
            behind_ns: None,
            resolution_ns: 1,
            missed: 0,
            began: false,
            window_shift: None,
            announced_mss: None,
        };
        self.conclude(&FlowLog::new(), &nothing, params).map(drop)
    }
}

/// Every passive method, in the order in which results are shown; the first is the answer, the
/// others are its witnesses.
pub const PASSIVE: &[&dyn PassiveMethod] = &[&Passive, &NettimerPassive, &Pprate, &Multiq];
