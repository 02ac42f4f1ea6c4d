//! Available capacity: what several windows of ten minutes agree on.

use crate::topology::LinkIndex;

/// The link that at least three of the last four windows located; newest last, `None` where a
/// window located nothing. Cross traffic moves the tight link about, and one window may err.
pub fn agreed(windows: &[Option<LinkIndex>]) -> Option<LinkIndex> {
    let last = &windows[windows.len().saturating_sub(WINDOWS)..];
    let named = |link: &LinkIndex| last.iter().filter(|one| **one == Some(*link)).count() >= AGREE;
    last.iter().flatten().copied().find(named)
}

const WINDOWS: usize = 4;
const AGREE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_the_last_four_agree() {
        let windows =
            |list: &[u32]| -> Vec<_> { list.iter().map(|one| (*one > 0).then_some(LinkIndex(*one))).collect() };
        assert_eq!(agreed(&windows(&[7, 0, 7, 7])), Some(LinkIndex(7)));
        assert_eq!(agreed(&windows(&[7, 7, 9, 9])), None);
        assert_eq!(agreed(&windows(&[7, 7])), None);
        // Only the last four count.
        assert_eq!(agreed(&windows(&[7, 7, 0, 9, 7])), None);
        assert_eq!(agreed(&windows(&[9, 7, 7, 0, 7])), Some(LinkIndex(7)));
    }
}
