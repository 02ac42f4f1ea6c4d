//! Every UDP datagram of the protocol: address validation, and probes.
//!
//! All begin with magic `NW`, a version octet and a kind octet; integers are big-endian. Whatever
//! follows the fields of a probe is padding.

use thiserror::Error;

use crate::bytes::Reader;
use crate::secret::{Cookie, Nonce, Tag, Token};

const MAGIC: u16 = 0x4E57;
const VERSION: u8 = 1;

/// Octets of a `Hello` and of a `Start`: at least as long as any answer to them (protocol rule:
/// never answer with more octets than were received, before the address is validated).
pub const HELLO_OCTETS: usize = 64;

/// Octets of a probe's header; the smallest train or load datagram.
pub const PROBE_OCTETS: usize = 28;

/// Octets of an echo's header; the smallest echo datagram, so that the answer is never longer than
/// the request.
pub const ECHO_OCTETS: usize = 36;

/// Why octets are no datagram of ours. The right answer to all of these is silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DatagramError {
    /// Shorter than its kind demands.
    #[error("truncated")]
    Truncated,
    /// Not ours.
    #[error("wrong magic")]
    Magic,
    /// Another version's.
    #[error("unknown version")]
    Version,
    /// A kind that this version does not know.
    #[error("unknown kind")]
    Kind,
}

/// Any datagram of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram {
    /// Part of the address validation.
    Handshake(Handshake),
    /// A probe; padding not included.
    Probe(Probe),
}

/// Address validation (the pattern of QUIC's Retry, RFC 9000 §8.1, and of DTLS cookies, RFC 9147
/// §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Client: I would like to prove my address. Padded to [`HELLO_OCTETS`].
    Hello {
        /// The control session's public number.
        session: u64,
        /// Chosen by the client for this flow.
        nonce: Nonce,
    },
    /// Server: echo this. Shorter than the hello; the server keeps nothing.
    Cookie {
        /// As in the hello.
        session: u64,
        /// As in the hello.
        nonce: Nonce,
        /// Bound to address, port, nonce and time.
        cookie: Cookie,
    },
    /// Client: begin. Padded to [`HELLO_OCTETS`].
    Start {
        /// As in the hello.
        session: u64,
        /// As in the hello.
        nonce: Nonce,
        /// As received.
        cookie: Cookie,
        /// From the control connection.
        token: Token,
        /// Number of this flow in the session, from 0.
        flow: u16,
    },
    /// Server: this flow has a socket of its own now; sent from that socket.
    Started {
        /// As in the hello.
        session: u64,
        /// As in the hello.
        nonce: Nonce,
        /// As in the start.
        flow: u16,
    },
}

const HELLO: u8 = 0x10;
const COOKIE: u8 = 0x11;
const START: u8 = 0x12;
const STARTED: u8 = 0x13;

impl Handshake {
    /// The datagram's octets.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, session, nonce) = match *self {
            Self::Hello { session, nonce } => (HELLO, session, nonce),
            Self::Cookie { session, nonce, .. } => (COOKIE, session, nonce),
            Self::Start { session, nonce, .. } => (START, session, nonce),
            Self::Started { session, nonce, .. } => (STARTED, session, nonce),
        };
        let mut octets = Vec::with_capacity(HELLO_OCTETS);
        octets.extend(MAGIC.to_be_bytes());
        octets.extend([VERSION, kind]);
        octets.extend(session.to_be_bytes());
        octets.extend(nonce.octets());
        match self {
            Self::Hello { .. } => octets.resize(HELLO_OCTETS, 0),
            Self::Cookie { cookie, .. } => octets.extend(cookie.octets()),
            Self::Start { cookie, token, flow, .. } => {
                octets.extend(cookie.octets());
                octets.extend(token.octets());
                octets.extend(flow.to_be_bytes());
                octets.resize(HELLO_OCTETS, 0);
            }
            Self::Started { flow, .. } => {
                octets.extend(flow.to_be_bytes());
                octets.extend([0, 0]);
            }
        }
        octets
    }

    fn parse(kind: u8, length: usize, rest: &mut Reader<'_>) -> Option<Self> {
        let session = rest.u64()?;
        let nonce = Nonce::new(rest.take()?);
        match kind {
            HELLO | START if length < HELLO_OCTETS => None,
            HELLO => Some(Self::Hello { session, nonce }),
            COOKIE => Some(Self::Cookie { session, nonce, cookie: Cookie::new(rest.take()?) }),
            START => Some(Self::Start {
                session,
                nonce,
                cookie: Cookie::new(rest.take()?),
                token: Token::new(rest.take()?),
                flow: rest.u16()?,
            }),
            _ => {
                let flow = rest.u16()?;
                rest.u16()?;
                Some(Self::Started { session, nonce, flow })
            }
        }
    }
}

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// A packet of a train; the receiver stamps it.
    Train,
    /// To be sent back at once.
    EchoRequest {
        /// UDP payload octets that the answer shall have; `None`: as many as the request. More than
        /// the request is not answered.
        reply_octets: Option<u16>,
    },
    /// Sent back; id, sequence and stamp are the request's.
    EchoReply {
        /// When the peer had received the request, on its clock.
        turned_ns: i64,
    },
    /// A packet of a load.
    Load,
    /// Wakes caches, neighbour entries and address translators; counts for nothing.
    Wake,
}

/// A probe's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// What it is for.
    pub kind: ProbeKind,
    /// The session's mark, [`Token::tag`].
    pub tag: Tag,
    /// Which train or load.
    pub id: u32,
    /// Position in the train, or in this flow's part of the load; from 0.
    pub seq: u32,
    /// When its sender sent it, on the sender's clock, in nanoseconds.
    pub stamp_ns: i64,
}

const TRAIN: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const LOAD: u8 = 4;
const WAKE: u8 = 5;

impl Probe {
    /// Offset of `seq` (u32, big-endian) in the datagram.
    pub const SEQ_OFFSET: usize = 16;
    /// Offset of `stamp_ns` (i64, big-endian) in the datagram.
    pub const STAMP_OFFSET: usize = 20;

    /// Octets of this probe's header, the least that its datagram can have.
    pub const fn header_octets(&self) -> usize {
        match self.kind {
            ProbeKind::EchoRequest { .. } | ProbeKind::EchoReply { .. } => ECHO_OCTETS,
            ProbeKind::Train | ProbeKind::Load | ProbeKind::Wake => PROBE_OCTETS,
        }
    }

    /// Writes the header at the front of `datagram` and leaves the padding alone; `None`, and
    /// nothing written, if it does not fit.
    pub fn write(&self, datagram: &mut [u8]) -> Option<()> {
        let octets = datagram.get_mut(..self.header_octets())?;
        let (kind, extra) = match self.kind {
            ProbeKind::Train => (TRAIN, None),
            ProbeKind::Load => (LOAD, None),
            ProbeKind::Wake => (WAKE, None),
            ProbeKind::EchoRequest { reply_octets } => (ECHO_REQUEST, Some(i64::from(reply_octets.unwrap_or(0)) << 48)),
            ProbeKind::EchoReply { turned_ns } => (ECHO_REPLY, Some(turned_ns)),
        };
        octets[0..2].copy_from_slice(&MAGIC.to_be_bytes());
        octets[2] = VERSION;
        octets[3] = kind;
        octets[4..12].copy_from_slice(self.tag.octets());
        octets[12..16].copy_from_slice(&self.id.to_be_bytes());
        octets[16..20].copy_from_slice(&self.seq.to_be_bytes());
        octets[20..28].copy_from_slice(&self.stamp_ns.to_be_bytes());
        if let Some(extra) = extra {
            octets[28..36].copy_from_slice(&extra.to_be_bytes());
        }
        Some(())
    }

    fn parse(kind: u8, rest: &mut Reader<'_>) -> Option<Self> {
        let tag = Tag::new(rest.take()?);
        let (id, seq, stamp_ns) = (rest.u32()?, rest.u32()?, rest.i64()?);
        let kind = match kind {
            TRAIN => ProbeKind::Train,
            LOAD => ProbeKind::Load,
            WAKE => ProbeKind::Wake,
            ECHO_REQUEST => {
                let reply_octets = rest.u16()?;
                rest.take::<6>()?;
                ProbeKind::EchoRequest { reply_octets: (reply_octets > 0).then_some(reply_octets) }
            }
            _ => ProbeKind::EchoReply { turned_ns: rest.i64()? },
        };
        Some(Self { kind, tag, id, seq, stamp_ns })
    }

    /// Length of the answer to an echo request that came in a datagram of `received` octets; `None`
    /// if no answer is due: not a request, or one that asks for more than it brought, or for less
    /// than an answer's header.
    pub fn echo_octets(&self, received: usize) -> Option<usize> {
        let ProbeKind::EchoRequest { reply_octets } = self.kind else {
            return None;
        };
        let wanted = reply_octets.map_or(received, usize::from);
        (ECHO_OCTETS..=received).contains(&wanted).then_some(wanted)
    }
}

impl Datagram {
    /// Reads a datagram's UDP payload.
    pub fn parse(octets: &[u8]) -> Result<Self, DatagramError> {
        let mut rest = Reader::new(octets);
        let magic = rest.u16().ok_or(DatagramError::Truncated)?;
        if magic != MAGIC {
            return Err(DatagramError::Magic);
        }
        let version = rest.u8().ok_or(DatagramError::Truncated)?;
        if version != VERSION {
            return Err(DatagramError::Version);
        }
        let kind = rest.u8().ok_or(DatagramError::Truncated)?;
        match kind {
            TRAIN..=WAKE => Probe::parse(kind, &mut rest).map(Self::Probe),
            HELLO..=STARTED => Handshake::parse(kind, octets.len(), &mut rest).map(Self::Handshake),
            _ => return Err(DatagramError::Kind),
        }
        .ok_or(DatagramError::Truncated)
    }
}

#[cfg(test)]
mod tests;
