//! Frames on the control connection: u32 body length, u8 kind, body.

use thiserror::Error;

/// Octets in front of each body.
pub const FRAME_HEADER_OCTETS: usize = 5;

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A message.
    Json,
    /// A table of fixed-size rows.
    Rows,
}

/// The longest body that is accepted of each kind. Checked on the header, before anything is
/// stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCaps {
    /// Octets of a message.
    pub json: u32,
    /// Octets of a table.
    pub rows: u32,
}

impl FrameCaps {
    /// Before the peer has been let in: short messages, no tables.
    pub const HANDSHAKE: Self = Self { json: 4096, rows: 0 };
    /// In a session.
    pub const SESSION: Self = Self { json: 64 << 10, rows: 4 << 20 };
}

/// A whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the body is.
    pub kind: FrameKind,
    /// The body.
    pub body: Vec<u8>,
}

/// Octets that can be no frame; the connection is beyond repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A kind that this version does not know.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// Announced longer than allowed at this point.
    #[error("frame of {octets} octets where at most {cap} are allowed")]
    TooLong {
        /// Announced.
        octets: u32,
        /// Allowed.
        cap: u32,
    },
}

/// Cuts a stream of octets into frames. Holds at most one read beyond one frame.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    caps: FrameCaps,
}

impl FrameReader {
    /// An empty reader.
    pub fn new(caps: FrameCaps) -> Self {
        Self { buffer: Vec::new(), caps }
    }

    /// Other caps from the next frame on.
    pub fn set_caps(&mut self, caps: FrameCaps) {
        self.caps = caps;
    }

    /// Takes in octets as they came. Call [`FrameReader::next_frame`] until it returns `None`
    /// before the next call.
    pub fn push(&mut self, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
    }

    /// The next whole frame; `None` if more octets are needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((header, rest)) = self.buffer.split_first_chunk::<FRAME_HEADER_OCTETS>() else {
            return Ok(None);
        };
        let [a, b, c, d, kind] = *header;
        let octets = u32::from_be_bytes([a, b, c, d]);
        let (kind, cap) = match kind {
            0 => (FrameKind::Json, self.caps.json),
            1 => (FrameKind::Rows, self.caps.rows),
            other => return Err(FrameError::Kind(other)),
        };
        if octets > cap {
            return Err(FrameError::TooLong { octets, cap });
        }
        let length = octets as usize;
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let body = body.to_vec();
        self.buffer.drain(..FRAME_HEADER_OCTETS + length);
        Ok(Some(Frame { kind, body }))
    }

    /// A frame has begun and is not complete.
    pub fn mid_frame(&self) -> bool {
        !self.buffer.is_empty()
    }
}

/// A frame's octets. `None` if the body is longer than a session allows.
pub fn encode_frame(kind: FrameKind, body: &[u8]) -> Option<Vec<u8>> {
    let (code, cap) = match kind {
        FrameKind::Json => (0, FrameCaps::SESSION.json),
        FrameKind::Rows => (1, FrameCaps::SESSION.rows),
    };
    let octets = u32::try_from(body.len()).ok().filter(|octets| *octets <= cap)?;
    let mut frame = Vec::with_capacity(FRAME_HEADER_OCTETS + body.len());
    frame.extend(octets.to_be_bytes());
    frame.push(code);
    frame.extend_from_slice(body);
    Some(frame)
}

#[cfg(test)]
mod tests;
