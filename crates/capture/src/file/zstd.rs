//! Captures packed with zstd: frame behind frame, as several runs of the packer, or one on several
//! processors, leave them.

use std::io::{Cursor, Error, ErrorKind, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// What unpacking gives. A frame's window is held in memory: at most 128 MiB (`--long=27`), and 8
/// MiB up to level 19.
pub(super) struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    within: bool,
}

/// The first octets of a frame (RFC 8878 §3.1.1).
pub(super) const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

impl<R: Read> Zstd<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, decoder: FrameDecoder::new(), within: false }
    }

    /// Begins the next frame; whether there is one.
    fn begin(&mut self) -> Result<bool, Error> {
        loop {
            let mut magic = Vec::with_capacity(MAGIC.len());
            self.input.by_ref().take(4).read_to_end(&mut magic)?;
            if magic.is_empty() {
                return Ok(false);
            }
            // RFC 8878 §3.1.2: frames that hold something else, with their length.
            if magic.len() == 4 && magic[0] & 0xF0 == 0x50 && magic[1..] == [0x2A, 0x4D, 0x18] {
                self.skip()?;
                continue;
            }
            if magic != MAGIC {
                return Err(Error::new(ErrorKind::InvalidData, "no zstd frame where one should begin"));
            }
            let source = Cursor::new(magic).chain(self.input.by_ref());
            self.decoder.init(source).map_err(Error::other)?;
            self.within = true;
            return Ok(true);
        }
    }

    fn skip(&mut self) -> Result<(), Error> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let passed = std::io::copy(&mut self.input.by_ref().take(length), &mut std::io::sink())?;
        if passed < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// The frame's checksum, if it has one.
    fn end(&mut self) -> Result<(), Error> {
        self.within = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(reported), Some(found)) if reported != found => {
                Err(Error::new(ErrorKind::InvalidData, "a zstd frame's checksum is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if self.within && self.decoder.can_collect() > 0 {
                return self.decoder.read(into);
            }
            if self.within && self.decoder.is_finished() {
                self.end()?;
            }
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            if !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(Error::other)?;
            }
        }
    }
}
