//! UDP streams: how they begin, and what stands at the head of each datagram.

use std::time::Duration;

/// What a client sends first on each of its UDP sockets.
pub const GREETING: [u8; 4] = *b"9876";
/// What a server answers.
pub const GREETING_REPLY: [u8; 4] = *b"6789";
/// What servers before 3.13 or so answered.
const OLD_REPLY: [u8; 4] = 987_654_321u32.to_le_bytes();

/// Whether a datagram is a server's answer to a greeting; the first datagrams of data may overtake
/// it.
pub fn is_greeting_reply(octets: &[u8]) -> bool {
    octets == GREETING_REPLY || octets == OLD_REPLY || octets == GREETING
}

/// Width of the counter in each datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// 32 bit; wraps, and is unwrapped by its receiver.
    Bits32,
    /// 64 bit.
    Bits64,
}

/// The head of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramHead {
    /// When it was sent, by the sender's clock, whole microseconds.
    pub sent: Duration,
    /// Its number within the stream, from 1.
    pub number: u64,
}

impl Counters {
    /// Octets of the head.
    pub const fn head_octets(self) -> usize {
        match self {
            Self::Bits32 => 12,
            Self::Bits64 => 16,
        }
    }
}

impl DatagramHead {
    /// Reads a head; `None` if the datagram is shorter than one, or its microseconds are
    /// impossible.
    pub fn parse(octets: &[u8], counters: Counters) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(octets.get(at..at + 4)?.try_into().ok()?));
        let (seconds, micros) = (word(0)?, word(4)?);
        let number = match counters {
            Counters::Bits32 => word(8)?.into(),
            Counters::Bits64 => u64::from_be_bytes(octets.get(8..16)?.try_into().ok()?),
        };
        (micros < 1_000_000).then(|| Self { sent: Duration::new(seconds.into(), micros * 1_000), number })
    }

    /// Writes a head; `None` if it does not fit.
    pub fn write(&self, octets: &mut [u8], counters: Counters) -> Option<()> {
        let head = octets.get_mut(..counters.head_octets())?;
        // The clock's high bits are of no use: only differences are.
        let seconds = u32::try_from(self.sent.as_secs() & u64::from(u32::MAX)).unwrap_or(0);
        head[..4].copy_from_slice(&seconds.to_be_bytes());
        head[4..8].copy_from_slice(&self.sent.subsec_micros().to_be_bytes());
        match counters {
            Counters::Bits32 => {
                let number = u32::try_from(self.number & u64::from(u32::MAX)).unwrap_or(0);
                head[8..].copy_from_slice(&number.to_be_bytes());
            }
            Counters::Bits64 => head[8..].copy_from_slice(&self.number.to_be_bytes()),
        }
        Some(())
    }
}
