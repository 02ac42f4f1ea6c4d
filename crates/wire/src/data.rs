//! The first octets of a TCP data connection.

use thiserror::Error;

use crate::bytes::Reader;
use crate::secret::Token;

/// Octets of a [`DataHello`].
pub const DATA_HELLO_OCTETS: usize = 28;

/// First octets of every data connection. As a frame length they exceed every cap, so that a server
/// tells a data connection from a control connection by its first four octets.
const MAGIC: u32 = 0x4E57_4454;

/// Names the session, the transfer and the stream that a data connection belongs to. Nothing comes
/// back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHello {
    /// From the control connection.
    pub token: Token,
    /// Which transfer.
    pub transfer: u32,
    /// Which of its streams, from 0.
    pub stream: u16,
}

/// Why octets are no data hello. The right answer is to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DataHelloError {
    /// Not a data connection.
    #[error("wrong magic")]
    Magic,
    /// Too short.
    #[error("truncated")]
    Truncated,
}

impl DataHello {
    /// These first octets of a connection announce data, not control.
    pub fn announces(first: [u8; 4]) -> bool {
        u32::from_be_bytes(first) == MAGIC
    }

    /// The hello's octets.
    pub fn encode(&self) -> [u8; DATA_HELLO_OCTETS] {
        let mut octets = [0; DATA_HELLO_OCTETS];
        octets[0..4].copy_from_slice(&MAGIC.to_be_bytes());
        octets[4..20].copy_from_slice(self.token.octets());
        octets[20..24].copy_from_slice(&self.transfer.to_be_bytes());
        octets[24..26].copy_from_slice(&self.stream.to_be_bytes());
        octets
    }

    /// Reads the first [`DATA_HELLO_OCTETS`] of a connection.
    pub fn parse(octets: &[u8]) -> Result<Self, DataHelloError> {
        let mut reader = Reader::new(octets);
        if reader.u32().ok_or(DataHelloError::Truncated)? != MAGIC {
            return Err(DataHelloError::Magic);
        }
        Self::fields(&mut reader).ok_or(DataHelloError::Truncated)
    }

    fn fields(reader: &mut Reader<'_>) -> Option<Self> {
        let hello = Self { token: Token::new(reader.take()?), transfer: reader.u32()?, stream: reader.u16()? };
        reader.u16()?;
        Some(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_no_frame() {
        let hello = DataHello { token: Token::new([7; 16]), transfer: 9, stream: 3 };
        let octets = hello.encode();
        assert_eq!(DataHello::parse(&octets), Ok(hello));
        for cut in 0..DATA_HELLO_OCTETS {
            assert_eq!(DataHello::parse(&octets[..cut]), Err(DataHelloError::Truncated));
        }
        assert_eq!(DataHello::parse(&[0; DATA_HELLO_OCTETS]), Err(DataHelloError::Magic));
        const { assert!(MAGIC > crate::FrameCaps::SESSION.rows && MAGIC > crate::FrameCaps::SESSION.json) };
    }
}
