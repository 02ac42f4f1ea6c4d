//! The octets of a train, prepared before it starts.

/// The payloads of a train's packets, one behind the other in one buffer, so that a run of equal
/// packets is one span that kernel or card can cut. Filled with pseudo-random octets: a link that
/// compresses must find nothing to compress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payloads {
    octets: Vec<u8>,
    /// Where each begins, and where the last ends.
    bounds: Vec<usize>,
}

impl Payloads {
    /// Payloads of these lengths.
    pub fn new(lengths: impl IntoIterator<Item = usize>, seed: u64) -> Self {
        let mut bounds = vec![0];
        let mut end = 0;
        for length in lengths {
            end += length;
            bounds.push(end);
        }
        let mut octets = vec![0; end];
        fill(&mut octets, seed);
        Self { octets, bounds }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One payload. Panics if there are not so many.
    pub fn get(&self, index: usize) -> &[u8] {
        self.span(index, index + 1)
    }

    /// One payload, to write its header. Panics if there are not so many.
    pub fn get_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.octets[self.bounds[index]..self.bounds[index + 1]]
    }

    /// The payloads `start..end` as one span.
    pub(crate) fn span(&self, start: usize, end: usize) -> &[u8] {
        &self.octets[self.bounds[start]..self.bounds[end]]
    }
}

/// Fills with the output of xorshift64* (`[Vigna16]`); any seed but zero has the full period, and
/// zero is replaced.
pub(crate) fn fill(octets: &mut [u8], seed: u64) {
    let mut state = if seed == 0 { 0x9e37_79b9_7f4a_7c15 } else { seed };
    for chunk in octets.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let word = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_join_their_payloads() {
        let mut payloads = Payloads::new([3, 5, 0, 2], 1);
        assert_eq!(payloads.len(), 4);
        payloads.get_mut(1).copy_from_slice(b"abcde");
        assert_eq!(payloads.get(1), b"abcde");
        assert_eq!(payloads.get(2), b"");
        assert_eq!(payloads.span(1, 4).len(), 7);
        assert_eq!(&payloads.span(1, 4)[..5], b"abcde");
    }

    #[test]
    fn filling_does_not_repeat() {
        let payloads = Payloads::new([8; 100], 7);
        let mut words: Vec<_> = (0..100).map(|k| payloads.get(k)).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 100);
    }
}
