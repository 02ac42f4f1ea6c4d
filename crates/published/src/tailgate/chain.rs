//! From least delays to the time that each hop takes for a large packet.

use crate::tailgating::HopTime;

/// A least delay, ns, and what it may be wrong by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Least {
    pub(super) delay_ns: f64,
    /// One standard error, as far as the samples tell.
    pub(super) error_ns: f64,
}

/// The chain over all hops, and what a large packet alone should take according to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chain {
    pub(super) hops: Vec<HopTime>,
    /// The small packet by itself.
    pub(super) alone_ns: f64,
    /// The largest error of any delay.
    pub(super) worst_ns: f64,
    pub(super) whole: Least,
}

/// What hosts and packets have to do with the delays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    /// The small packet's octets on the wire over the large one's.
    pub(super) ratio: f64,
    /// By how much the small packet leaves behind the large one.
    pub(super) sent_ns: f64,
    /// By how much the peer may be late with the small packet when it has taken in the large one
    /// before.
    pub(super) late_ns: f64,
}

/// `alone`: the small packet by itself; `behind[h - 1]`: behind a large one that dies after hop
/// `h`.
pub(super) fn chain(alone: Least, behind: &[Least], setting: Setting) -> Chain {
    let ratio = setting.ratio;
    let mut base = alone;
    // What is not known rather than blurred: times of hops that were refused.
    let mut slack = 0.0;
    // By how much the small packet trails the large one at the end of the last hop, at most.
    let mut trail = setting.sent_ns;
    let mut hops = Vec::with_capacity(behind.len());
    for (index, least) in behind.iter().enumerate() {
        let time = least.delay_ns - base.delay_ns;
        let late = if index + 1 == behind.len() { setting.late_ns } else { 0.0 };
        let error = ERRORS * least.error_ns.hypot(base.error_ns) + slack + late;
        let hop = if time - trail < error || time <= 0.0 {
            HopTime::AtMost(time.max(0.0) + error)
        } else {
            HopTime::known(time, error)
        };
        let step = match hop {
            HopTime::Measured { time, .. } => {
                slack *= ratio;
                time
            }
            HopTime::AtMost(most) => {
                slack += (1.0 - ratio) * most / 2.0;
                most / 2.0
            }
        };
        base = Least {
            delay_ns: base.delay_ns + (1.0 - ratio) * step,
            error_ns: match hop {
                HopTime::Measured { .. } => (ratio * base.error_ns).hypot((1.0 - ratio) * least.error_ns),
                HopTime::AtMost(_) => base.error_ns,
            },
        };
        trail = match hop {
            HopTime::Measured { high, .. } => ratio * high,
            HopTime::AtMost(most) => trail + ratio * most,
        };
        hops.push(hop);
    }
    let error_ns = base.error_ns + slack / ERRORS;
    Chain {
        hops,
        alone_ns: alone.delay_ns,
        worst_ns: behind.iter().map(|least| least.error_ns).fold(alone.error_ns, f64::max),
        whole: Least { error_ns, ..base },
    }
}

/// The least of delays, and half the distance to the fifth as its error, `floor_ns` at least;
/// `None` without five.
pub(super) fn least(delays_ns: &[f64], floor_ns: f64) -> Option<Least> {
    let mut sorted = delays_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (first, fifth) = (*sorted.first()?, *sorted.get(4)?);
    let near = fifth - first;
    let thin = sorted.get(19).map_or(1.0, |twentieth| thinning(near, twentieth - fifth));
    Some(Least { delay_ns: first, error_ns: (near / 2.0 * thin).max(floor_ns) })
}

/// By how much more than half of `near` (from the least to the fifth delay) the least may lie above
/// a delay without queues, from `remote` (from the fifth to the twentieth). Of delays that crowd as
/// `t^(k-1)` above that one, the r-th least lies about `(r/n)^(1/k)` above it: with few loaded hops
/// (`k` up to 2) half of `near` and less, with many, whose queues are hardly all empty at once, up
/// to three times `near`; and `remote / near` falls from 3.75 (`k` = 1) to 1.8, 1.4 (3) and 1.1
/// (6).
fn thinning(near: f64, remote: f64) -> f64 {
    if near <= 0.0 {
        return 1.0;
    }
    (THIN / (remote / near - 1.0).max(0.01)).clamp(1.0, THINNEST)
}

/// Ours: the bend of the above, with `near` taken for its error at `k` = 3.
const THIN: f64 = 0.6;
/// Ours: six loaded hops.
const THINNEST: f64 = 5.0;
/// Ranges and refusals, in errors.
const ERRORS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays by the formula: `D(h) = sum_{i<=h} P_i + Q_h + sum_{i>h} Q_i + d` with `P_i` and
    /// `Q_i` each link's time for the packets.
    fn delays(rates_mbps: &[f64], large: f64, small: f64) -> (f64, Vec<f64>) {
        let time = |octets: f64, rate: f64| octets * 8e3 / rate;
        let alone: f64 = rates_mbps.iter().map(|rate| time(small, *rate)).sum::<f64>() + 5e6;
        // Link by link: the small packet waits for the large one, while it lives.
        let behind = (1..=rates_mbps.len()).map(|dies| {
            let (mut front, mut at) = (0.0, 0.0);
            for (index, rate) in rates_mbps.iter().enumerate() {
                if index < dies {
                    front += time(large, *rate);
                    at = f64::max(at, front) + time(small, *rate);
                } else {
                    at += time(small, *rate);
                }
            }
            at + 5e6
        });
        (alone, behind.collect())
    }

    fn setting() -> Setting {
        Setting { ratio: 102.0 / 1538.0, sent_ns: 0.0, late_ns: 0.0 }
    }

    #[test]
    fn a_small_packet_that_leaves_late_is_not_held_back_by_a_fast_first_link() {
        // 1538 octets take 1.23 us at 10 Gbit/s and 123 us at 100 Mbit/s; the small one leaves 30
        // us behind.
        let (p, q) = ([1230.0, 123_040.0], [82.0, 8160.0]);
        let alone = q[0] + q[1];
        let behind = [30_000.0 + alone, p[0] + p[1] + q[1]].map(sure);
        let late = Setting { sent_ns: 30_000.0, ..setting() };
        let chain = chain(sure(alone), &behind, late);
        assert!(matches!(chain.hops[0], HopTime::AtMost(most) if (1230.0..40_000.0).contains(&most)));
        let HopTime::Measured { low, high, .. } = chain.hops[1] else { panic!("{:?}", chain.hops) };
        assert!(low <= p[1] && p[1] <= high, "{low} {high}");
    }

    fn sure(delay_ns: f64) -> Least {
        Least { delay_ns, error_ns: 1.0 }
    }

    fn rates(chain: &Chain, large: f64) -> Vec<f64> {
        let rate = |hop: &HopTime| match hop {
            HopTime::Measured { time, .. } => large * 8e3 / time,
            HopTime::AtMost(_) => f64::NAN,
        };
        chain.hops.iter().map(rate).collect()
    }

    #[test]
    fn the_spec_formula_gives_every_hop_back() {
        let (large, small) = (1538.0, 102.0);
        let truth = [100.0, 10.0, 100.0, 55.0, 1.5, 20.0];
        let (alone, behind) = delays(&truth, large, small);
        let behind: Vec<Least> = behind.into_iter().map(sure).collect();
        let chain = chain(sure(alone), &behind, setting());
        for (got, want) in rates(&chain, large).iter().zip(truth) {
            assert!((got / want - 1.0).abs() < 1e-9, "{got} {want}");
        }
        // C_2 = 8 Lp / (D(2) - D(1) + 8 Lq / C_1), as written.
        let delta = behind[1].delay_ns - behind[0].delay_ns + small * 8e3 / 100.0;
        assert!((large * 8e3 / delta - 10.0).abs() < 1e-9);
        // A large packet alone takes the sum of its times.
        let whole: f64 = truth.iter().map(|rate| large * 8e3 / rate).sum::<f64>() + 5e6;
        assert!((chain.whole.delay_ns - whole).abs() < 1e-3, "{} {whole}", chain.whole.delay_ns);
    }

    #[test]
    fn a_hop_much_faster_than_the_last_is_refused_with_a_bound_that_holds_and_the_next_is_measured() {
        let (large, small) = (1538.0, 102.0);
        // 1000 / 10 is above 1538 / 102.
        let truth = [100.0, 10.0, 1000.0, 20.0];
        let (alone, behind) = delays(&truth, large, small);
        let behind: Vec<Least> = behind.into_iter().map(sure).collect();
        let chain = chain(sure(alone), &behind, setting());
        let HopTime::AtMost(most) = chain.hops[2] else { panic!("{:?}", chain.hops) };
        assert!(most >= large * 8e3 / 1000.0, "{most}");
        let HopTime::Measured { low, high, .. } = chain.hops[3] else { panic!("{:?}", chain.hops) };
        let time = large * 8e3 / 20.0;
        assert!(low <= time && time <= high && high < 1.3 * time, "{low} {time} {high}");
    }

    #[test]
    fn errors_do_not_grow_along_the_chain() {
        let (alone, behind) = delays(&[50.0; 8], 1538.0, 102.0);
        let blurred = |delay_ns| Least { delay_ns, error_ns: 5000.0 };
        let behind: Vec<Least> = behind.into_iter().map(blurred).collect();
        let chain = chain(blurred(alone), &behind, setting());
        for hop in &chain.hops {
            let HopTime::Measured { low, time, high } = hop else { panic!("{hop:?}") };
            assert!(high - time < 15_000.0 && time - low < 15_000.0);
        }
        let (alone, behind) = delays(&[500.0; 3], 1538.0, 102.0);
        let behind: Vec<Least> = behind.into_iter().map(blurred).collect();
        let refused = super::chain(blurred(alone), &behind, setting());
        // 24.6 us beside an error of 2 x 7.07 us and the trail of the hop before.
        assert!(matches!(refused.hops[0], HopTime::Measured { .. }));
        let (alone, behind) = delays(&[1000.0; 3], 1538.0, 102.0);
        let behind: Vec<Least> = behind.into_iter().map(blurred).collect();
        let refused = super::chain(blurred(alone), &behind, setting());
        assert!(refused.hops.iter().all(|hop| matches!(hop, HopTime::AtMost(most) if *most >= 12_304.0)));
    }

    #[test]
    fn the_least_needs_four_more_to_be_believed() {
        assert_eq!(least(&[1.0, 2.0, 3.0, 4.0], 0.0), None);
        let one = least(&[30.0, 10.0, 14.0, 90.0, 12.0, 15.0], 1.0).unwrap();
        assert_eq!((one.delay_ns, one.error_ns), (10.0, 10.0));
        assert_eq!(least(&[10.0; 5], 7.0).map(|least| least.error_ns), Some(7.0));
        // Evenly spread above the least: half of the distance to the fifth. Crowding far above it:
        // more.
        let even: Vec<f64> = (1..=60).map(f64::from).collect();
        assert!((least(&even, 0.0).unwrap().error_ns - 2.0).abs() < 1e-9);
        let remote: Vec<f64> = (1..=60).map(|r| 1000.0 * (f64::from(r) / 60.0).powf(1.0 / 6.0)).collect();
        let one = least(&remote, 0.0).unwrap();
        assert!(one.delay_ns > 500.0 && 2.0 * one.error_ns > 500.0 && 2.0 * one.error_ns < 1000.0, "{one:?}");
    }
}
