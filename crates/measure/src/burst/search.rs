//! The search for the bracket: doubling, then bisection led by where the last burst was first cut.

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Send a burst of this many packets.
    Try(usize),
    /// A burst of the second size lost something, one of the first did not; no size between is
    /// worth a try.
    Bracketed(usize, usize),
    /// The largest size survived.
    Capped(usize),
}

/// State of the search, in packets.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// Largest size that survived.
    survived: usize,
    /// Smallest size that did not.
    cut: Option<usize>,
    /// Packets that got through before the first loss of the last burst that lost any.
    hint: Option<usize>,
    size: usize,
    cap: usize,
    /// Loss-free bursts that make a size count as survived, and those seen at this size.
    confirm: u32,
    clean: u32,
    bisections: u32,
}

/// Smallest burst that is tried first; `[Netest03]` starts small, the number is ours.
const FIRST_PACKETS: usize = 8;
/// The bracket is narrow enough at this share of its lower end (ours: below the variation that
/// cross traffic brings).
const RESOLUTION: usize = 20;
/// An end for the search, whatever random losses do to it: 12 halvings cut 4096 packets down to
/// one.
const MAX_BISECTIONS: u32 = 12;

impl Search {
    pub(super) fn new(cap: usize, confirm: u32) -> Self {
        Self {
            survived: 0,
            cut: None,
            hint: None,
            size: FIRST_PACKETS.min(cap.max(1)),
            cap: cap.max(1),
            confirm,
            clean: 0,
            bisections: 0,
        }
    }

    /// The size to try now.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// A burst of this many packets went out, not of [`Search::size`].
    pub(super) fn at(&mut self, size: usize) {
        if size != self.size {
            self.size = size;
            self.clean = 0;
        }
    }

    /// Largest size that survived so far.
    pub(super) fn survived(&self) -> usize {
        self.survived
    }

    /// Takes in what became of a burst of [`Search::size`]: how many packets got through before the
    /// first loss, if any.
    pub(super) fn note(&mut self, first_loss: Option<usize>) -> Next {
        if let Some(through) = first_loss {
            self.cut = Some(self.size);
            self.hint = Some(through);
        } else {
            self.clean += 1;
            if self.clean < self.confirm {
                return Next::Try(self.size);
            }
            self.survived = self.survived.max(self.size);
        }
        self.clean = 0;
        match self.cut {
            None if self.size >= self.cap => return Next::Capped(self.size),
            None => self.size = (self.size * 2).min(self.cap),
            Some(cut) => {
                let step = (self.survived / RESOLUTION).max(1);
                self.bisections += 1;
                if cut - self.survived <= step || self.bisections > MAX_BISECTIONS {
                    return Next::Bracketed(self.survived, cut);
                }
                self.size = self.between(cut, step);
            }
        }
        Next::Try(self.size)
    }

    /// The next size inside the bracket: what the last cut burst let through, then one step above
    /// it, else the middle.
    fn between(&self, cut: usize, step: usize) -> usize {
        match self.hint {
            Some(hint) if self.survived < hint && hint < cut => hint,
            Some(hint) if hint == self.survived && self.survived + step < cut => self.survived + step,
            _ => usize::midpoint(self.survived, cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a search against a queue that lets exactly `limit` packets through; returns its end and
    /// the packets it took.
    fn against(limit: usize, cap: usize, confirm: u32) -> (Next, usize) {
        let mut search = Search::new(cap, confirm);
        let mut sent = 0;
        loop {
            let size = search.size();
            sent += size;
            match search.note((size > limit).then_some(limit)) {
                Next::Try(next) => assert_eq!(next, search.size()),
                end => return (end, sent),
            }
        }
    }

    #[test]
    fn a_fixed_limit_is_bracketed_to_a_twentieth() {
        // 8, 16, 32, 64 survive, 128 is cut after 100; then 100 survives and 105 is cut.
        assert_eq!(against(100, 4096, 1), (Next::Bracketed(100, 105), 8 + 16 + 32 + 64 + 128 + 100 + 105));
        assert_eq!(against(3, 4096, 1).0, Next::Bracketed(3, 4));
        assert_eq!(against(0, 4096, 1).0, Next::Bracketed(0, 1));
        assert_eq!(against(5000, 4096, 1).0, Next::Capped(4096));
        assert_eq!(against(64, 64, 3).0, Next::Capped(64));
    }

    proptest! {
        #[test]
        fn the_bracket_holds_the_limit(limit in 0usize..5000, cap in 1usize..5000, confirm in 1u32..4) {
            match against(limit, cap, confirm).0 {
                Next::Bracketed(low, high) => {
                    prop_assert!(low <= limit && limit < high && high <= cap);
                    prop_assert!(high - low <= (low / RESOLUTION).max(1));
                }
                Next::Capped(size) => prop_assert!(size == cap && limit >= cap),
                Next::Try(_) => prop_assert!(false),
            }
        }
    }
}
