//! What travels: segments, numbered one by one because all of them are full.

/// A segment of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The connection.
    pub(crate) flow: u32,
    /// What it is.
    pub(crate) kind: Kind,
}

/// Data one way, acknowledgements the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One full segment.
    Data(Data),
    /// No payload. Boxed: packets of loads and trains, of which there are more, share their type
    /// with segments.
    Ack(Box<Ack>),
}

/// A data segment. Times are those of the timestamps option (RFC 7323), here in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Data {
    /// Its number; the first is 0.
    pub(crate) seq: u64,
    /// When it left.
    pub(crate) sent: u64,
    /// When the acknowledgement left that the sender has seen last; `None` before the first.
    pub(crate) echo: Option<u64>,
}

/// Most SACK blocks beside a timestamps option (RFC 2018 §3).
pub(crate) const SACK_BLOCKS: usize = 3;

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ack {
    /// The segment expected next.
    pub(crate) next: u64,
    /// The first segment beyond the window.
    pub(crate) edge: u64,
    /// The window in octets.
    pub(crate) window_octets: u64,
    /// When it left.
    pub(crate) sent: u64,
    /// When the segment left that moved `next` last (of those since the acknowledgement before, the
    /// first).
    pub(crate) echo: u64,
    /// What has arrived beyond `next`: first segment and the one after the last; the block of the
    /// latest arrival first.
    pub(crate) blocks: [(u64, u64); SACK_BLOCKS],
    /// How many of the blocks mean something.
    pub(crate) block_count: u8,
}

/// IP and TCP header with the timestamps option.
pub(crate) const HEADER_OCTETS: u16 = 52;

impl Ack {
    /// The blocks that mean something.
    pub(crate) fn sacked(&self) -> &[(u64, u64)] {
        &self.blocks[..usize::from(self.block_count).min(SACK_BLOCKS)]
    }

    /// Length of its IP packet: a SACK option takes 2 octets, 8 per block, and padding of 2.
    pub(crate) fn ip_octets(&self) -> u16 {
        match self.block_count {
            0 => HEADER_OCTETS,
            count => HEADER_OCTETS + 4 + 8 * u16::from(count),
        }
    }
}
