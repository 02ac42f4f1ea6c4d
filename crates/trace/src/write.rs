//! The writer: frames into blocks, blocks into a file.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use narrows_units::{Sender, Stamp};

use crate::error::WriteError;
use crate::frame;
use crate::header::Header;
use crate::run::{End, Exchange};

/// The first octets of every recording.
pub const MAGIC: [u8; 8] = *b"NARROWSR";
/// The format that this program writes and reads.
pub const VERSION: u16 = 1;

/// A block is written once it holds this much: what deflate needs to compress well (its window).
const BLOCK: usize = 32 << 10;
/// A block is written once it spans this much of the world's time, so that a kill loses little.
const HELD_NANOS: i64 = 1_000_000_000;

/// Writes a recording. What has been written stays readable when the writer is killed: blocks stand
/// alone.
///
/// [`Writer::finish`] writes the last block; dropping the writer tries to.
#[derive(Debug)]
pub struct Writer<S: Write> {
    sink: Option<S>,
    block: Vec<u8>,
    since: Option<Stamp<Sender>>,
    runs: u64,
}

impl<S: Write> Writer<S> {
    /// Begins a recording.
    pub fn new(mut sink: S) -> Result<Self, WriteError> {
        sink.write_all(&MAGIC)?;
        sink.write_all(&VERSION.to_le_bytes())?;
        sink.flush()?;
        Ok(Self { sink: Some(sink), block: Vec::new(), since: None, runs: 0 })
    }

    /// Runs begun so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// A run begins; the one before is over, whether its end was written or not.
    pub fn header(&mut self, header: &Header) -> Result<(), WriteError> {
        self.runs += 1;
        self.block.extend(frame::header(header)?);
        self.since = None;
        self.flush()
    }

    /// One exchange of the run that was begun last.
    pub fn exchange(&mut self, exchange: &Exchange) -> Result<(), WriteError> {
        self.block.extend(frame::exchange(exchange)?);
        let now = exchange.read.1;
        let since = *self.since.get_or_insert(now);
        if self.block.len() >= BLOCK || (now - since).nanos() >= HELD_NANOS {
            self.flush()?;
        }
        Ok(())
    }

    /// The end of the run that was begun last.
    pub fn end(&mut self, end: &End) -> Result<(), WriteError> {
        self.block.extend(frame::end(end)?);
        self.flush()
    }

    /// Writes what is held back.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.since = None;
        if self.block.is_empty() {
            return Ok(());
        }
        let plain = std::mem::take(&mut self.block);
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&plain)?;
        let packed = encoder.finish()?;
        let mut crc = Crc::new();
        crc.update(&packed);
        let too_large = |_| WriteError::TooLarge { octets: plain.len(), most: frame::MAX_FRAME };
        let stored = u32::try_from(packed.len()).map_err(too_large)?;
        let length = u32::try_from(plain.len()).map_err(too_large)?;
        let mut block = Vec::with_capacity(12 + packed.len());
        for word in [stored, length, crc.sum()] {
            block.extend_from_slice(&word.to_le_bytes());
        }
        block.extend_from_slice(&packed);
        sink.write_all(&block)?;
        sink.flush()?;
        Ok(())
    }

    /// Ends the recording and gives back what it was written to.
    pub fn finish(mut self) -> Result<S, WriteError> {
        self.flush()?;
        let gone = || WriteError::Host(std::io::Error::from(std::io::ErrorKind::NotConnected));
        self.sink.take().ok_or_else(gone)
    }
}

impl<S: Write> Drop for Writer<S> {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.flush();
    }
}
