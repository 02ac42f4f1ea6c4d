//! The reader: keeps what is readable, and says where it stopped.

use std::io::{ErrorKind, Read};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::error::{Damage, ReadError};
use crate::frame::{self, Frame, MAX_FRAME};
use crate::run::Run;
use crate::write::{MAGIC, VERSION};

/// What a reader accepts of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Octets after decompression.
    pub octets: u64,
    /// Runs.
    pub runs: usize,
    /// Exchanges of all runs together.
    pub exchanges: usize,
}

impl Default for Limits {
    /// Ours: a gigabyte, a million runs, ten million exchanges.
    fn default() -> Self {
        Self { octets: 1 << 30, runs: 1_000_000, exchanges: 10_000_000 }
    }
}

/// A file, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// Where and why reading stopped early; the runs hold what came before.
    pub damage: Option<Damage>,
}

impl Recording {
    /// Reads a recording within the usual limits.
    pub fn read(source: impl Read) -> Result<Self, ReadError> {
        Self::read_within(source, Limits::default())
    }

    /// Reads a recording. Fails only if the file is none; damage further on is noted, and what came
    /// before it is kept.
    pub fn read_within(mut source: impl Read, limits: Limits) -> Result<Self, ReadError> {
        let mut head = [0u8; 10];
        if fill(&mut source, &mut head)? < head.len() || head[..8] != MAGIC {
            return Err(ReadError::NoRecording);
        }
        let found = u16::from_le_bytes([head[8], head[9]]);
        if found != VERSION {
            return Err(ReadError::Version { found, known: VERSION });
        }
        let mut recording = Self { runs: Vec::new(), damage: None };
        let mut reader = Reader { source, at: 0, next: 10, left: limits.octets, exchanges: 0, limits };
        loop {
            match reader.block() {
                Ok(Some(plain)) => {
                    if let Err(damage) = reader.frames(&plain, &mut recording.runs) {
                        recording.damage = Some(damage);
                        return Ok(recording);
                    }
                }
                Ok(None) => return Ok(recording),
                Err(Stopped::Damaged(damage)) => {
                    recording.damage = Some(damage);
                    return Ok(recording);
                }
                Err(Stopped::Host(error)) => return Err(ReadError::Host(error)),
            }
        }
    }
}

enum Stopped {
    Host(std::io::Error),
    Damaged(Damage),
}

struct Reader<R> {
    source: R,
    /// Where the block under way begins, and where it ends.
    at: u64,
    next: u64,
    left: u64,
    exchanges: usize,
    limits: Limits,
}

impl<R: Read> Reader<R> {
    /// The next block's content; `None` at the end of the file.
    fn block(&mut self) -> Result<Option<Vec<u8>>, Stopped> {
        self.at = self.next;
        let mut head = [0u8; 12];
        let got = fill(&mut self.source, &mut head).map_err(Stopped::Host)?;
        if got == 0 {
            return Ok(None);
        }
        let truncated = Stopped::Damaged(Damage::Truncated { at: self.at });
        if got < head.len() {
            return Err(truncated);
        }
        let word = |k: usize| u32::from_le_bytes([head[k], head[k + 1], head[k + 2], head[k + 3]]);
        let (stored, length, sum) = (word(0), word(4), word(8));
        // A block holds one frame beyond its usual size at most; deflate never adds more than a
        // thousandth.
        let most = u64::try_from(MAX_FRAME).unwrap_or(u64::MAX) + (1 << 20);
        if u64::from(length) > most || u64::from(stored) > most {
            return Err(self.nonsense("its length is more than any writer's"));
        }
        self.left =
            self.left.checked_sub(u64::from(length)).ok_or(Stopped::Damaged(Damage::Limit { what: "octets" }))?;
        self.next = self.at + 12 + u64::from(stored);
        // Grows as octets really come: a length alone reserves no memory.
        let mut packed = Vec::new();
        let mut source = self.source.by_ref().take(u64::from(stored));
        source.read_to_end(&mut packed).map_err(Stopped::Host)?;
        if packed.len() as u64 != u64::from(stored) {
            return Err(truncated);
        }
        let mut crc = Crc::new();
        crc.update(&packed);
        if crc.sum() != sum {
            return Err(Stopped::Damaged(Damage::Checksum { at: self.at }));
        }
        let mut plain = Vec::new();
        let inflated = DeflateDecoder::new(packed.as_slice()).take(u64::from(length) + 1).read_to_end(&mut plain);
        if inflated.is_err() || plain.len() as u64 != u64::from(length) {
            return Err(self.nonsense("it does not inflate to its length"));
        }
        Ok(Some(plain))
    }

    fn nonsense(&self, why: &'static str) -> Stopped {
        Stopped::Damaged(Damage::Nonsense { at: self.at, why })
    }

    /// Adds a block's frames to the runs.
    fn frames(&mut self, plain: &[u8], runs: &mut Vec<Run>) -> Result<(), Damage> {
        let at = self.at;
        let nonsense = |why| Damage::Nonsense { at, why };
        let mut rest = plain;
        while !rest.is_empty() {
            let (frame, after) = frame::split(rest).map_err(nonsense)?;
            rest = after;
            match frame {
                Frame::Header(_) if runs.len() >= self.limits.runs => return Err(Damage::Limit { what: "runs" }),
                Frame::Header(header) => runs.push(Run { header: *header, exchanges: Vec::new(), end: None }),
                Frame::Exchange(_) if self.exchanges >= self.limits.exchanges => {
                    return Err(Damage::Limit { what: "exchanges" });
                }
                Frame::Exchange(exchange) => {
                    let run = open(runs).ok_or(nonsense("an exchange belongs to no run"))?;
                    run.exchanges.push(exchange);
                    self.exchanges += 1;
                }
                Frame::End(end) => open(runs).ok_or(nonsense("an end belongs to no run"))?.end = Some(*end),
                Frame::Unknown => {}
            }
        }
        Ok(())
    }
}

/// The run under way.
fn open(runs: &mut [Run]) -> Option<&mut Run> {
    runs.last_mut().filter(|run| run.end.is_none())
}

/// As much as there is, up to the length of `into`.
fn fill(source: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match source.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
