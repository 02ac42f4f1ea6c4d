//! How much a capture can take without loss: `[Jin03a]` §6.
//!
//! Memory is what the paper counts, in memory cycles per octet:
//!
//! ```text
//! without a filter   B = P·Rcp  + M·2·Rcp
//! with one           B = P·Rnic + M·2·Rcp + C·Rnic + L·Rnic
//! ```
//!
//! with `Rnic` what arrives at the card, `Rcp` what of it is kept, `P` the cost of DMA, `M` of
//! memory, `C` of the filter's look at what lies in the cache, `L` of the network layers. So a
//! promiscuous card pays DMA for what nobody wants, and the filter pays for every packet. Today's
//! costs are measured, not known: where a capture could be measured, the model is only printed
//! beside it.

use narrows_units::BitRate;
use serde::Serialize;

/// Costs in passes of each octet through memory ("cycles" in the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaptureModel {
    /// By DMA, per octet that arrives.
    pub dma: f64,
    /// Per octet that is kept and copied, once for reading, once for writing.
    pub memory: f64,
    /// By the filter, per octet that arrives (what lies in the cache counts little).
    pub cached: f64,
    /// By the network layers, per octet that arrives.
    pub layers: f64,
    /// There is a filter before the copy.
    pub filter: bool,
}

/// What the model gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CaptureRate {
    /// Highest rate of arriving packets.
    pub rate_bps: u64,
    /// The same in packets.
    pub packets_per_second: f64,
}

/// What a ring of frames on loopback took of full-size datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CaptureMeasured {
    /// The highest rate that was tried and taken without loss; `None` if something was lost at
    /// each.
    pub rate_bps: Option<u64>,
    /// The same in packets.
    pub packets_per_second: Option<f64>,
    /// Nothing was lost as fast as this host can send: it may take more.
    pub as_fast_as_sent: bool,
    /// Rates that were tried, falling.
    pub tries: u32,
    /// Packets lost at the last of them.
    pub last_lost: u64,
    /// Octets that the ring holds.
    pub ring_octets: u64,
}

impl CaptureModel {
    /// Today, for a ring of frames in shared memory (`PACKET_RX_RING`): one DMA pass, one copy into
    /// the ring, headers from the cache. The last two are ours: of a full-size packet, a filter and
    /// the layers read two cache lines of 24.
    pub const RING: Self = Self { dma: 1.0, memory: 1.0, cached: 0.04, layers: 0.04, filter: true };

    /// Octets that memory must move per second when `arriving` octets per second come and `kept` of
    /// them are kept.
    pub fn memory_needed(&self, arriving: f64, kept: f64) -> f64 {
        if self.filter {
            self.dma * arriving + 2.0 * self.memory * kept + (self.cached + self.layers) * arriving
        } else {
            self.dma * kept + 2.0 * self.memory * kept
        }
    }

    /// The highest rate at which memory of `octets_per_second` keeps up with packets of
    /// `ip_octets`, of which `share` are kept, and of each of those at most `snap_octets`. `None`
    /// for costs or shares that make no sense.
    pub fn highest(&self, octets_per_second: f64, ip_octets: u32, snap_octets: u32, share: f64) -> Option<CaptureRate> {
        if !(0.0..=1.0).contains(&share) || ip_octets == 0 {
            return None;
        }
        let kept = share * f64::from(snap_octets.min(ip_octets)) / f64::from(ip_octets);
        let per_octet = self.memory_needed(1.0, kept);
        if !(per_octet > 0.0 && octets_per_second > 0.0) {
            return None;
        }
        let rate = BitRate::from_bps_f64(octets_per_second * 8.0 / per_octet)?;
        Some(CaptureRate {
            rate_bps: rate.bps(),
            packets_per_second: octets_per_second / per_octet / f64::from(ip_octets),
        })
    }

    /// The buffer that the paper advises: half the cache, so that a header is read at the
    /// processor's clock and not memory's; less at high packet rates, more where the reader drains
    /// quickly.
    pub fn buffer_octets(cache_octets: u64) -> u64 {
        cache_octets / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's host: 1 Gbit/s of packets of 515 octets are 242 718 per second, with a buffer of
    /// 141 KB beside a cache of 256 KB.
    #[test]
    fn the_papers_numbers() {
        // Memory that just keeps up with the line keeps up with that many packets.
        let line = CaptureModel::RING.memory_needed(1e9 / 8.0, 1e9 / 8.0);
        let found = |memory: f64| CaptureModel::RING.highest(memory, 515, 515, 1.0).unwrap();
        assert!((found(line).packets_per_second - 242_718.0).abs() < 1.0, "{:?}", found(line));
        assert!(found(line).rate_bps.abs_diff(1_000_000_000) <= 1);
        let advised = CaptureModel::buffer_octets(256_000);
        assert_eq!(advised, 128_000);
        // 141 KB were best: within a seventh of half the cache. 32 KB and 512 MB are far from it,
        // and were worse.
        assert!((141_000.0 / advised as f64 - 1.0).abs() < 0.15);
        for (packets, lost) in [(226_222.0, 0.07), (45_244.0, 0.82)] {
            // What the other buffers took is what so much less memory would take.
            let missing = 1.0 - found(line * packets / 242_718.0).rate_bps as f64 / 1e9;
            assert!((missing - lost).abs() < 0.01, "{missing}");
        }
    }

    /// At full rate a filter only costs; for a host that wants a tenth, it still pays DMA and
    /// filter for all that arrives.
    #[test]
    fn what_a_filter_costs() {
        let with = CaptureModel { cached: 0.1, layers: 0.1, ..CaptureModel::RING };
        let without = CaptureModel { filter: false, ..with };
        assert!((with.memory_needed(1.0, 1.0) - 3.2).abs() < 1e-12);
        assert!((without.memory_needed(1.0, 1.0) - 3.0).abs() < 1e-12);
        assert!((with.memory_needed(1.0, 0.1) - 1.4).abs() < 1e-12);
        assert!((without.memory_needed(1.0, 0.1) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn the_highest_rate_needs_all_of_memory() {
        let model = CaptureModel::RING;
        for (ip_octets, snap, share) in [(1500, 65_000, 1.0), (1500, 96, 1.0), (64, 96, 0.5), (9000, 128, 0.0)] {
            let found = model.highest(20e9, ip_octets, snap, share).unwrap();
            let arriving = found.rate_bps as f64 / 8.0;
            let kept = arriving * share * f64::from(snap.min(ip_octets)) / f64::from(ip_octets);
            assert!((model.memory_needed(arriving, kept) / 20e9 - 1.0).abs() < 1e-6);
            assert!((found.packets_per_second * f64::from(ip_octets) / arriving - 1.0).abs() < 1e-6);
        }
        // Keeping headers alone lets nearly three times as much by.
        let whole = model.highest(20e9, 1500, 65_000, 1.0).unwrap().rate_bps as f64;
        let headers = model.highest(20e9, 1500, 96, 1.0).unwrap().rate_bps as f64;
        assert!(headers / whole > 2.4 && headers / whole < 3.0);
    }

    #[test]
    fn nonsense_has_no_rate() {
        let model = CaptureModel::RING;
        for (memory, octets, share) in
            [(0.0, 1500, 1.0), (-1.0, 1500, 1.0), (1e9, 0, 1.0), (1e9, 1500, 1.5), (1e9, 1500, f64::NAN)]
        {
            assert_eq!(model.highest(memory, octets, 96, share), None);
        }
        assert_eq!(model.highest(f64::INFINITY, 1500, 96, 1.0), None);
    }
}
