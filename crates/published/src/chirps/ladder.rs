//! The rates of a chirp, and the packets that make them. Rates in bit/s, gaps in ns.

use std::time::Duration;

use narrows_probe::probes::PacketPlan;

/// Most rates of one chirp (the tool's limit of packets).
pub(crate) const MOST_RATES: usize = 200;

/// `low`, `low spread`, .. below `high`: the least count of gaps that reaches it, as the tool
/// counts (its last rate is the one before).
pub(crate) fn geometric(low: f64, high: f64, spread: f64) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut rate = low;
    while rates.is_empty() || (rate < high * (1.0 - 1e-9) && rates.len() < MOST_RATES) {
        rates.push(rate);
        rate *= spread;
    }
    rates
}

/// From `low` to `high`, both ends included, in even steps of at most `spread`.
pub(crate) fn geometric_to(low: f64, high: f64, spread: f64) -> Vec<f64> {
    let steps = ((high / low).ln() / spread.ln()).ceil().clamp(1.0, MOST_RATES as f64 - 1.0);
    let factor = (high / low).powf(1.0 / steps);
    let mut rates = vec![low];
    while (rates.len() as f64) <= steps {
        rates.push(low * factor.powf(rates.len() as f64));
    }
    rates
}

/// The reflected exponential chirp: rates symmetric about the middle of the range, whose distances
/// grow by `spread` from the middle outwards; the first distance is `density` of half the range
/// (`[ASSOLO09]`; the tool's count: `k` is the largest for which
/// `density (spread^k - 1) / (spread - 1) < 1`).
pub(crate) fn reflected(low: f64, high: f64, spread: f64, density: f64) -> Vec<f64> {
    let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
    let mut offsets = Vec::new();
    let (mut offset, mut distance) = (0.0, density * half);
    while offset + distance < half && offsets.len() < MOST_RATES / 2 {
        offset += distance;
        distance *= spread;
        offsets.push(offset);
    }
    let below = offsets.iter().rev().map(|offset| middle - offset);
    let above = offsets.iter().map(|offset| middle + offset);
    below.chain([middle]).chain(above).collect()
}

/// The packets: one, then `group` of them at each rate. Gaps carry their remainders on, so that
/// only whole nanoseconds are lost; with a `tick` departures fall on whole ticks of it, and `each`
/// gap by itself is cut to ticks where nothing is carried on, as the tools do.
pub(crate) fn plan(rates: &[f64], group: u32, ip_octets: u16, tick_ns: f64, each: bool) -> Vec<PacketPlan> {
    let packet = |gap| PacketPlan { gap, ip_octets, hop_limit: None };
    let mut packets = vec![packet(Duration::ZERO)];
    let (mut due, mut sent) = (0.0, 0.0);
    for rate in rates {
        let exact = f64::from(ip_octets) * 8e9 / rate;
        for _ in 0..group {
            due += exact;
            let unit = if tick_ns > 0.0 { tick_ns } else { 1.0 };
            let gap = if each {
                (exact / unit + 1e-6).floor().max(1.0) * unit
            } else {
                ((due - sent) / unit).round().max(1.0) * unit
            };
            sent += gap;
            packets.push(packet(Duration::from_secs_f64((gap * 1e-9).clamp(0.0, LONGEST_GAP_S))));
        }
    }
    packets
}

/// No gap is longer than this: 1500 octets at 1.2 kbit/s.
const LONGEST_GAP_S: f64 = 10.0;

/// Time of sending of packets at these rates, ns.
pub(crate) fn duration_ns(rates: &[f64], group: u32, ip_octets: u16) -> f64 {
    let gaps = rates.iter().map(|rate| f64::from(ip_octets) * 8e9 / rate);
    gaps.sum::<f64>() * f64::from(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_defaults() {
        // 10 to 200 Mbit/s by 1.2: 17 gaps, the highest 10 * 1.2^16 = 184.9; the receiver's table,
        // anchored at 200, is 8.2 % higher.
        let rates = geometric(10e6, 200e6, 1.2);
        assert_eq!(rates.len(), 17);
        assert!((200e6 / rates[16] - 1.0817).abs() < 1e-3);
        // REACH: k = 8 and 17 gaps, whatever the range.
        for (low, high) in [(10e6, 200e6), (1e6, 9e9)] {
            let rates = reflected(low, high, 1.2, 0.05);
            assert_eq!(rates.len(), 17);
            let (middle, first) = (f64::midpoint(low, high), (high - low) / 2.0 * 0.05);
            assert!((rates[8] - middle).abs() < 1.0);
            assert!((rates[9] - middle - first).abs() < 1.0);
            assert!((rates[10] - middle - 2.2 * first).abs() < 1.0);
            assert!((rates[0] + rates[16] - 2.0 * middle).abs() < 1.0);
            assert!(rates.windows(2).all(|two| two[0] < two[1]));
        }
    }

    #[test]
    fn gaps_keep_the_rate_or_the_tick() {
        let rates = geometric_to(400e6, 1.0e9, 1.05);
        assert_eq!((rates.len(), rates[0]), (20, 400e6));
        assert!((rates[19] - 1e9).abs() < 1.0);
        let packets = plan(&rates, 3, 1500, 0.0, false);
        assert_eq!(packets.len(), 61);
        let total: f64 = packets.iter().map(|packet| packet.gap.as_secs_f64() * 1e9).sum();
        assert!((total - duration_ns(&rates, 3, 1500)).abs() < 1.0);
        // Between 500 Mbit/s and 1 Gbit/s (24 and 12 us) there are 13 gaps of whole microseconds,
        // ends included (`[Jin03a]` counts 11 in between).
        let fine = geometric_to(500e6, 1.0e9, 1.005);
        let mut gaps: Vec<u128> =
            plan(&fine, 1, 1500, 1000.0, true)[1..].iter().map(|packet| packet.gap.as_nanos()).collect();
        gaps.dedup();
        assert_eq!(gaps.len(), 13);
        assert!(gaps.iter().all(|gap| gap % 1000 == 0));
    }
}
