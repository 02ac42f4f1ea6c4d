//! The equations of `[Jin03a]` as they are printed. What they became on the hosts of today is in
//! the modules beside this one.

use std::time::Duration;

use narrows_units::BitRate;

/// §3.1: the longest time for which interrupts may be held back before `descriptors` buffers are
/// full: `N · packet / line rate`.
pub fn max_moderation(descriptors: u32, ip_octets: u32, line: BitRate) -> Option<Duration> {
    line.time_for(u64::from(descriptors) * u64::from(ip_octets))
}

/// §3.2: the cost of one reading of a clock that sits behind an I/O bus: so many cycles of a bus of
/// so many hertz.
pub fn bus_clock_read(cycles: u32, bus_hz: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(f64::from(cycles) / bus_hz).ok()
}

/// §4.2, §6: the relative error of a spacing of `ip_octets` at `rate`, from an error of this length
/// in one stamp.
pub fn spacing_error(stamp: Duration, ip_octets: u32, rate: BitRate) -> Option<f64> {
    let packet = rate.time_for(u64::from(ip_octets))?;
    (!packet.is_zero()).then(|| stamp.as_secs_f64() / packet.as_secs_f64())
}

/// §5: the highest rate at which a packet lasts `steps` steps of the clock (the paper asks for 4 of
/// 1 µs: 3 Gbit/s).
pub fn single_packet_limit(ip_octets: u32, clock_step: Duration, steps: u32) -> Option<BitRate> {
    BitRate::over(u64::from(ip_octets), clock_step.checked_mul(steps)?)
}

/// §4.1: by how much the largest packet takes longer than the smallest on a link of this rate.
pub fn size_difference_time(octets: u32, rate: BitRate) -> Option<Duration> {
    rate.time_for(u64::from(octets))
}

/// §4.1: the rate at which that difference drowns in delay noise of this length.
pub fn size_difference_limit(octets: u32, noise: Duration) -> Option<BitRate> {
    BitRate::over(u64::from(octets), noise)
}

/// §4.2: how many different packet spacings a clock of this step can set between two rates:
/// `(8L/R1 - 8L/R2) / δ`, without the first.
pub fn spacings_between(ip_octets: u32, low: BitRate, high: BitRate, clock_step: Duration) -> Option<u64> {
    let octets = u64::from(ip_octets);
    let between = low.time_for(octets)?.checked_sub(high.time_for(octets)?)?;
    let steps = between.as_nanos().checked_div(clock_step.as_nanos())?;
    u64::try_from(steps).ok()?.checked_sub(1)
}

/// §4.1: what two links in a row carry packet by packet, where the device between is hidden:
/// `1/BW = 1/A + 1/B`.
pub fn serial(a: BitRate, b: BitRate) -> Option<BitRate> {
    BitRate::from_bps_f64(1.0 / (1.0 / a.as_f64() + 1.0 / b.as_f64()))
}

/// Equation 2: octets per second from user memory to the card:
/// `memory / (memory clock / bus clock + 2)`, memory bandwidth in octets per second; 2 cycles are
/// the copy into the kernel (read, write), the rest is what one DMA cycle costs in memory cycles.
pub fn io_octets_per_second(memory_octets_per_second: f64, memory_hz: f64, bus_hz: f64) -> f64 {
    memory_octets_per_second / (memory_hz / bus_hz + 2.0)
}

/// Equation 2's cycles: memory cycles for each word from user memory to the card.
pub fn io_cycles(memory_hz: f64, bus_hz: f64) -> f64 {
    memory_hz / bus_hz + 2.0
}

/// Equation 3: the share of that time that is saved without the copy: `2·io / (mem + 2·io)`.
pub fn zero_copy_saves(memory_hz: f64, bus_hz: f64) -> f64 {
    2.0 * bus_hz / (memory_hz + 2.0 * bus_hz)
}

/// What the rate grows by without the copy: `(mem + 2·io) / mem`.
pub fn zero_copy_gains(memory_hz: f64, bus_hz: f64) -> f64 {
    (memory_hz + 2.0 * bus_hz) / memory_hz
}

/// Table 4: clocks of a burst of `n` transfers on a 32-bit PCI bus: `8 + (n - 1) + 1`.
pub fn pci_burst_clocks(transfers: u32) -> u32 {
    transfers.saturating_add(8)
}

/// Table 4's rate of such bursts, octets per second. The table's rates are at a clock of 33.3 ns.
pub fn pci_burst_rate(transfers: u32, clock: Duration) -> f64 {
    const WORD_OCTETS: f64 = 4.0;
    WORD_OCTETS * f64::from(transfers) / (f64::from(pci_burst_clocks(transfers)) * clock.as_secs_f64())
}

/// §5: time to send `octets` as `datagrams`, on a path of `octets_per_second` through memory and
/// bus, at one call each.
pub fn send_time(octets: u64, datagrams: u32, octets_per_second: f64, call: Duration) -> Option<Duration> {
    Duration::try_from_secs_f64(octets as f64 / octets_per_second).ok()?.checked_add(call.checked_mul(datagrams)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(value: f64, expected: f64, share: f64) {
        assert!((value - expected).abs() <= share * expected, "{value} is not {expected}");
    }

    fn us(time: Option<Duration>) -> f64 {
        time.unwrap().as_secs_f64() * 1e6
    }

    #[test]
    fn moderation_fills_the_ring() {
        is_near(us(max_moderation(256, 1500, BitRate::from_gbps(1))), 3_072.0, 1e-9);
        is_near(us(max_moderation(256, 1500, BitRate::from_gbps(10))), 307.2, 1e-9);
        is_near(us(max_moderation(1024, 1500, BitRate::from_gbps(100))), 122.88, 1e-9);
        assert_eq!(max_moderation(256, 1500, BitRate::from_bps(0)), None);
    }

    /// One interrupt per packet at 1 Gbit/s: every 12 µs. 1514 octets last 1.21 µs at 10 Gbit/s and
    /// 12.1 ns at 1 Tbit/s.
    #[test]
    fn packet_times() {
        is_near(us(size_difference_time(1500, BitRate::from_gbps(1))), 12.0, 1e-9);
        is_near(us(size_difference_time(1514, BitRate::from_gbps(10))), 1.2112, 1e-3);
        // A hundred of them: times are whole nanoseconds.
        is_near(us(size_difference_time(151_400, BitRate::from_gbps(1000))), 1.21, 1e-2);
    }

    #[test]
    fn a_clock_behind_a_bus() {
        // Whole nanoseconds: 272.7.
        is_near(us(bus_clock_read(9, 33e6)), 0.2727, 2e-3);
        is_near(us(bus_clock_read(16, 16.667e6)), 0.960, 1e-3);
    }

    /// §6: 959 ns are 8 % of a packet at 1 Gbit/s and 80 % at 10 Gbit/s.
    #[test]
    fn an_uncorrected_reading() {
        let stamp = Duration::from_nanos(959);
        is_near(spacing_error(stamp, 1500, BitRate::from_gbps(1)).unwrap(), 0.08, 2e-3);
        is_near(spacing_error(stamp, 1500, BitRate::from_gbps(10)).unwrap(), 0.80, 2e-3);
    }

    #[test]
    fn limits_of_the_families_of_2003() {
        let microsecond = Duration::from_micros(1);
        assert_eq!(single_packet_limit(1500, microsecond, 4), Some(BitRate::from_gbps(3)));
        // pathchar: 75.97 µs at OC-3 against 50 µs of noise.
        is_near(us(size_difference_time(1472, BitRate::from_mbps(155))), 75.974, 2e-5);
        let limit = size_difference_limit(1472, Duration::from_micros(50)).unwrap();
        assert!(limit > BitRate::from_mbps(155) && limit < BitRate::from_mbps(240), "{limit}");
        let jumbo = size_difference_limit(8972, Duration::from_micros(50)).unwrap();
        assert!(jumbo > BitRate::from_gbps(1) && jumbo < BitRate::from_mbps(1500), "{jumbo}");
        // pathChirp: 24 µs to 12 µs by steps of one leave 11 packets.
        let (low, high) = (BitRate::from_mbps(500), BitRate::from_gbps(1));
        assert_eq!(spacings_between(1500, low, high, microsecond), Some(11));
        assert_eq!(spacings_between(1500, high, low, microsecond), None);
        assert_eq!(spacings_between(1500, low, high, Duration::ZERO), None);
    }

    #[test]
    fn hidden_devices_add_up() {
        let both = serial(BitRate::from_gbps(1), BitRate::from_gbps(1)).unwrap();
        assert_eq!(both, BitRate::from_mbps(500));
        assert!(serial(BitRate::from_bps(0), BitRate::from_gbps(1)).is_none_or(|rate| rate == BitRate::from_bps(0)));
    }

    /// ASUS K7V (VIA 868) and VT400 boards: equation 2 against what was measured.
    #[test]
    fn equation_2() {
        is_near(io_cycles(266e6, 66e6), 6.0, 0.01);
        is_near(io_cycles(533e6, 66e6), 10.0, 0.01);
        let mbps = |memory: f64, clock: f64, bus: f64| io_octets_per_second(memory * 1e6, clock, bus) * 8.0 / 1e6;
        is_near(mbps(288.0, 4.0, 1.0), 384.0, 1e-9);
        is_near(mbps(652.0, 400e6, 33e6), 369.0, 2e-3);
        is_near(mbps(652.0, 12.0, 1.0), 372.6, 1e-3);
        // The measured 300 Mbit/s stay below it.
        assert!(mbps(652.0, 400e6, 33e6) > 300.0);
        // Faster memory behind the same bus does not help.
        assert!(mbps(652.0, 400e6, 33e6) < mbps(288.0, 133e6, 33e6));
    }

    #[test]
    fn equation_3() {
        is_near(zero_copy_saves(133e6, 66e6), 0.498, 2e-3);
        is_near(zero_copy_saves(400e6, 66e6), 0.248, 2e-3);
        is_near(zero_copy_gains(133e6, 66e6), 1.99, 2e-3);
        is_near(zero_copy_gains(400e6, 66e6), 1.33, 2e-3);
    }

    /// The table's rates are at 33.3 ns per clock, its latencies at 30 ns: each column with its
    /// own.
    #[test]
    fn table_4() {
        let (rates, latencies) = (Duration::from_nanos(33), Duration::from_nanos(30));
        let rows =
            [(8, 32, 16, 60.0, 480), (16, 64, 24, 80.0, 720), (32, 128, 40, 96.0, 1200), (64, 256, 72, 107.0, 2160)];
        for (transfers, octets, clocks, rate, latency) in rows {
            assert_eq!(transfers * 4, octets);
            assert_eq!(pci_burst_clocks(transfers), clocks);
            is_near(pci_burst_rate(transfers, rates) / 1e6, rate, 0.015);
            assert_eq!((latencies * pci_burst_clocks(transfers)).as_nanos(), latency);
        }
        // With 30 ns the rates would be 66.7, 88.9, 106.7 and 118.5.
        is_near(pci_burst_rate(8, latencies) / 1e6, 66.7, 1e-3);
        is_near(pci_burst_rate(64, latencies) / 1e6, 118.5, 1e-3);
    }

    /// 20 KB at 200 MB/s as one datagram: 100 + 1 µs; as twenty: 100 + 20 µs.
    #[test]
    fn calls_cost() {
        let call = Duration::from_micros(1);
        is_near(us(send_time(20_000, 1, 200e6, call)), 101.0, 1e-6);
        is_near(us(send_time(20_000, 20, 200e6, call)), 120.0, 1e-6);
        is_near(101.0 / 120.0, 0.84, 3e-3);
        assert_eq!(send_time(20_000, 1, 0.0, call), None);
    }
}
