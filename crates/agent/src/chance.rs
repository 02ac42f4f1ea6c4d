//! Chance that differs between agents and starts.

use narrows_stat::SplitMix64;

/// A seed. Without random octets all agents would spread their tries alike, which costs time alone.
pub(crate) fn seed() -> u64 {
    let mut octets = [0; 8];
    // Such a system has worse problems.
    let _ = getrandom::fill(&mut octets);
    u64::from_le_bytes(octets)
}

/// From 0 to below `most`.
pub(crate) fn below_ms(random: &mut SplitMix64, most: i64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "below the number that it is a share of")]
    let drawn = (most as f64 * random.next_unit()) as i64;
    drawn
}
