//! Order of 32-bit numbers that wrap (RFC 1982, RFC 7323 §5.2).

/// `a` comes before `b`.
#[inline]
pub(super) fn before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).wrapping_sub(1) < 0x7FFF_FFFF
}

/// `a` is `b` or comes after it.
#[inline]
pub(super) fn at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 0x8000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_wraps() {
        assert!(before(1, 2) && !before(2, 1) && !before(1, 1));
        assert!(before(u32::MAX, 3) && !before(3, u32::MAX));
        assert!(at_or_after(3, u32::MAX) && at_or_after(7, 7) && !at_or_after(6, 7));
    }
}
