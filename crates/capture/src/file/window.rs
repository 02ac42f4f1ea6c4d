//! A window that slides over octets as they are read: all that is ever held of a capture.

use std::io::{ErrorKind, Read};

/// Octets in the window: one record of the largest kind and what comes before and behind it.
const WINDOW_OCTETS: usize = 1 << 20;

/// What of a stream lies in memory.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    octets: Box<[u8]>,
    begin: usize,
    end: usize,
    /// Octets of the stream before `begin`.
    at: u64,
    ended: bool,
    fault: Option<String>,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            octets: vec![0; WINDOW_OCTETS].into_boxed_slice(),
            begin: 0,
            end: 0,
            at: 0,
            ended: false,
            fault: None,
        }
    }

    /// Where in the stream the window begins.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Why reading ended, if not at the stream's end.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// What is in it now.
    #[inline]
    pub(super) fn seen(&self) -> &[u8] {
        &self.octets[self.begin..self.end]
    }

    /// A part of what is in it, counted from its beginning.
    #[inline]
    pub(super) fn part(&self, from: usize, to: usize) -> &[u8] {
        self.seen().get(from..to).unwrap_or_default()
    }

    /// Makes at least `need` octets visible, if the stream has as many; whether it does.
    #[inline]
    pub(super) fn fill(&mut self, need: usize) -> bool {
        self.end - self.begin >= need || self.read_on(need)
    }

    /// Slides it by `octets` that are in it.
    #[inline]
    pub(super) fn pass(&mut self, octets: usize) {
        let octets = octets.min(self.end - self.begin);
        self.begin += octets;
        self.at += octets as u64;
    }

    #[cold]
    fn read_on(&mut self, need: usize) -> bool {
        debug_assert!(need <= WINDOW_OCTETS, "records are bounded before they are asked for");
        if self.ended {
            return false;
        }
        if self.begin + need > self.octets.len() || self.begin == self.end {
            self.octets.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        while self.end - self.begin < need && !self.ended {
            match self.input.read(&mut self.octets[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(octets) => self.end += octets,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.fault = Some(error.to_string());
                }
            }
        }
        self.end - self.begin >= need
    }
}
