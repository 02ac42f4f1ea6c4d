//! Samples of a row of any length: whole blocks of neighbours, spread evenly over it.

/// Rows of neighbours, at most `MOST` of [`BLOCK`], of which at least half are there once the row
/// was longer.
#[derive(Debug, Clone)]
pub(in crate::passive) struct Blocks<T, const MOST: usize> {
    kept: Vec<T>,
    /// One block in so many is kept.
    stride: u64,
    /// Which block is being filled, and how many it has.
    block: u64,
    filled: usize,
    /// The block that is being filled is kept.
    open: bool,
}

/// Items per block: long enough for the groups of up to 39 gaps that PPrate forms.
pub(super) const BLOCK: usize = 128;
impl<T, const MOST: usize> Default for Blocks<T, MOST> {
    fn default() -> Self {
        Self { kept: Vec::new(), stride: 1, block: 0, filled: 0, open: true }
    }
}

impl<T: Copy, const MOST: usize> Blocks<T, MOST> {
    /// One more.
    pub(super) fn push(&mut self, item: T) {
        if self.filled == BLOCK {
            self.block += 1;
            self.filled = 0;
            if self.kept.len() == BLOCK * MOST && self.block.is_multiple_of(self.stride) {
                self.halve();
            }
            self.open = self.block.is_multiple_of(self.stride);
        }
        self.filled += 1;
        if self.open {
            self.kept.push(item);
        }
    }

    /// What is kept, block by block.
    pub(in crate::passive) fn blocks(&self) -> impl Iterator<Item = &[T]> {
        self.kept.chunks(BLOCK)
    }

    pub(super) fn held_octets(&self) -> usize {
        self.kept.capacity() * size_of::<T>()
    }

    fn halve(&mut self) {
        let mut to = 0;
        for from in (0..self.kept.len()).step_by(2 * BLOCK) {
            let end = (from + BLOCK).min(self.kept.len());
            self.kept.copy_within(from..end, to);
            to += end - from;
        }
        self.kept.truncate(to);
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_row_is_kept_in_blocks_all_over_it() {
        let mut blocks = Blocks::<u32, 32>::default();
        for item in 0..1_000_000_u32 {
            blocks.push(item);
        }
        assert!(blocks.kept.len() <= BLOCK * 32 && blocks.kept.len() >= BLOCK * 32 / 2 - BLOCK);
        let mut begins = Vec::new();
        for block in blocks.blocks() {
            assert!(block.windows(2).all(|pair| pair[1] == pair[0] + 1), "neighbours");
            begins.push(block[0]);
        }
        assert_eq!(begins[0], 0, "the first block stays");
        let step = begins[1];
        assert!(begins.windows(2).all(|pair| pair[1] - pair[0] == step), "{begins:?}");
        assert!(*begins.last().unwrap() + 2 * step > 1_000_000 - 128, "{begins:?}");
    }

    #[test]
    fn a_short_row_is_kept_whole() {
        let mut blocks = Blocks::<u32, 32>::default();
        for item in 0..4096_u32 {
            blocks.push(item);
        }
        assert!(blocks.kept.iter().copied().eq(0..4096));
    }
}
