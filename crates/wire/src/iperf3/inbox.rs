//! Octets of the control connection that wait to be understood.

/// Longest parameters that are taken (stock servers from 3.18 on take as much).
pub const MOST_PARAMETER_OCTETS: usize = 8_192;
/// Longest results that are taken: 128 streams take 40 KiB, and a server's own output may come with
/// them (ours).
pub const MOST_RESULT_OCTETS: usize = 4 << 20;

/// A JSON text behind its length, as it goes over the control connection.
pub fn frame(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut octets = Vec::with_capacity(4 + text.len());
    octets.extend_from_slice(&length.to_be_bytes());
    octets.extend_from_slice(text.as_bytes());
    octets
}

/// A length that a peer announces, and that is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong(pub(super) u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Inbox {
    octets: Vec<u8>,
    at: usize,
}

impl Inbox {
    pub(super) fn push(&mut self, octets: &[u8]) {
        if self.at == self.octets.len() {
            self.octets.clear();
            self.at = 0;
        }
        self.octets.extend_from_slice(octets);
    }

    pub(super) fn waiting(&self) -> usize {
        self.octets.len() - self.at
    }

    pub(super) fn octet(&mut self) -> Option<u8> {
        let octet = self.octets.get(self.at).copied()?;
        self.at += 1;
        Some(octet)
    }

    pub(super) fn word(&mut self) -> Option<u32> {
        let word = self.octets.get(self.at..self.at + 4)?;
        let word = u32::from_be_bytes(word.try_into().ok()?);
        self.at += 4;
        Some(word)
    }

    /// A whole JSON text; `None` until all of it is there.
    pub(super) fn frame(&mut self, most: usize) -> Result<Option<Vec<u8>>, TooLong> {
        let begun = self.at;
        let Some(length) = self.word() else { return Ok(None) };
        let octets = usize::try_from(length).unwrap_or(usize::MAX);
        if octets > most {
            return Err(TooLong(length));
        }
        let Some(body) = self.octets.get(self.at..self.at + octets) else {
            self.at = begun;
            return Ok(None);
        };
        let body = body.to_vec();
        self.at += octets;
        Ok(Some(body))
    }
}
