//! What theory says of slow start and of short windows of measurement (`[QuickMode03]`, RFC 9438).
//! Pure.

use std::time::Duration;

use narrows_probe::probes::Congestion;

/// A path's window in segments: rate times round-trip time.
pub fn window_segments(bps: f64, rtt: Duration, mss_octets: f64) -> f64 {
    bps * rtt.as_secs_f64() / 8.0 / mss_octets
}

/// Time that slow start takes to reach a window of `segments`: `ceil(log2(W / 10))` round trips
/// from an initial window of ten segments (RFC 6928). `[QuickMode03]` reckons with delayed
/// acknowledgements and one segment: `2 ceil(log2(W))`.
pub fn slow_start(segments: f64, rtt: Duration) -> Duration {
    rtt.mul_f64((segments / 10.0).log2().ceil().clamp(0.0, 64.0))
}

/// Time in which congestion avoidance climbs back to the window from which it was cut: `W RTT / 2`
/// for Reno, `K = cbrt(0.3 W / 0.4)` seconds for CUBIC (RFC 9438 with beta 0.7, C 0.4). `None` for
/// others, whose window is not cut by a constant factor.
pub fn recovery_time(congestion: &Congestion, segments: f64, rtt: Duration) -> Option<f64> {
    match congestion {
        Congestion::Reno => Some(segments * rtt.as_secs_f64() / 2.0),
        Congestion::Cubic => Some((0.3 * segments / 0.4).cbrt()),
        Congestion::Bbr | Congestion::Other(_) => None,
    }
}

/// The share of the long-term mean that `seconds` of measurement show at worst, if they begin right
/// after a cut, and no queue hides it.
///
/// Reno, window of W segments: `2/3 (1 + T / (RTT W))`, as `[QuickMode03]` has it. CUBIC, with
/// `x = T / K`: the mean of `W - 0.4 (K - t)^3` over the window over its mean over K,
/// `(1 - 0.3 (1 - (1 - x)^4) / (4 x)) / 0.925`; ours, by integration. Both reach 1 when the window
/// has recovered.
pub fn worst_case(congestion: &Congestion, segments: f64, rtt: Duration, seconds: f64) -> f64 {
    let Some(recovery) = recovery_time(congestion, segments, rtt) else {
        return 1.0;
    };
    if !(seconds < recovery && seconds > 0.0) {
        return 1.0;
    }
    match congestion {
        Congestion::Cubic => {
            let x = seconds / recovery;
            (1.0 - 0.3 * (1.0 - (1.0 - x).powi(4)) / (4.0 * x)) / 0.925
        }
        _ => 2.0 / 3.0 * (1.0 + seconds / (rtt.as_secs_f64() * segments)),
    }
}

/// The share of `horizon` seconds' octets that one cut of the window costs, from a window that
/// fills the path of `segments` and leaves a backlog of `backlog` of them queued; zero where the
/// queue does not run empty. Ours, by the growth laws of Reno (a segment per round trip) and CUBIC
/// (RFC 9438 §4.2 with its Reno-friendly region, §4.3); others are taken for Reno, BBR is not cut.
pub fn one_cut(congestion: &Congestion, segments: f64, rtt: Duration, backlog: f64, horizon: f64) -> f64 {
    const STEPS: u32 = 64;
    let rtt = rtt.as_secs_f64();
    if *congestion == Congestion::Bbr || segments <= 0.0 || rtt <= 0.0 || !segments.is_finite() {
        return 0.0;
    }
    let top = segments * (1.0 + backlog);
    let window = |seconds: f64| match congestion {
        Congestion::Cubic => {
            let k = (0.3 * top / 0.4).cbrt();
            let cubic = top + 0.4 * (seconds - k).min(0.0).powi(3);
            cubic.max((0.7 * top + 0.53 * seconds / rtt).min(top))
        }
        _ => (0.5 * top + seconds / rtt).min(top),
    };
    let used = (0..STEPS).map(|step| {
        let seconds = horizon * (f64::from(step) + 0.5) / f64::from(STEPS);
        (window(seconds) / segments).min(1.0)
    });
    (1.0 - used.sum::<f64>() / f64::from(STEPS)).max(0.0)
}

/// Share of the time that BBR spends with four segments in flight: 200 ms and a round trip in ten
/// seconds (`[BBR16]`).
pub fn looks(congestion: &Congestion, floor: f64) -> f64 {
    if *congestion == Congestion::Bbr { ((0.2 + floor) / 10.0).min(1.0) } else { 0.0 }
}

/// Rate that a loss ratio `p` allows, bit/s: Reno's `1.2247 / sqrt(p)` segments per round trip, or
/// CUBIC's `1.054 RTT^(3/4) / p^(3/4)` where that is more (RFC 9438 §5.1 with its constants).
pub fn loss_model_bps(congestion: &Congestion, p: f64, rtt: Duration, mss_octets: f64) -> Option<f64> {
    let seconds = rtt.as_secs_f64();
    if p <= 0.0 || seconds <= 0.0 {
        return None;
    }
    let reno = 1.2247 / p.sqrt();
    let segments = match congestion {
        Congestion::Reno => reno,
        Congestion::Cubic => reno.max(1.054 * (seconds / p).powf(0.75)),
        Congestion::Bbr | Congestion::Other(_) => return None,
    };
    Some(segments * mss_octets * 8.0 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn reno(mbps: f64, rtt: u64, seconds: f64) -> f64 {
        let window = window_segments(mbps * 1e6, ms(rtt), 1460.0);
        100.0 * worst_case(&Congestion::Reno, window, ms(rtt), seconds)
    }

    /// Figures 5 and 6 of `[QuickMode03]`: per cent of the mean that 1 s and 10 s show at worst.
    #[test]
    fn worst_case_tables() {
        for (mbps, one, ten) in [
            (1.0, [100.0, 100.0, 100.0, 100.0, 100.0, 86.1], [100.0; 6]),
            (10.0, [100.0, 100.0, 100.0, 97.8, 74.5, 68.6], [100.0, 100.0, 100.0, 100.0, 100.0, 86.1]),
            (45.0, [100.0, 100.0, 100.0, 73.6, 68.4, 67.1], [100.0, 100.0, 100.0, 100.0, 84.0, 71.0]),
            (100.0, [100.0, 100.0, 86.1, 69.8, 67.4, 66.9], [100.0, 100.0, 100.0, 97.8, 74.5, 68.6]),
            (491.0, [100.0, 82.5, 70.6, 67.3, 66.8, 66.7], [100.0, 100.0, 100.0, 73.0, 68.3, 67.1]),
            (1000.0, [97.8, 74.5, 68.6, 67.0, 66.7, 66.7], [100.0, 100.0, 86.1, 69.8, 67.4, 66.9]),
            (10_000.0, [69.8, 67.4, 66.9, 66.7, 66.7, 66.7], [97.8, 74.5, 68.6, 67.0, 66.7, 66.7]),
        ] {
            for (column, rtt) in [5, 10, 20, 50, 100, 200].into_iter().enumerate() {
                assert!((reno(mbps, rtt, 1.0) - one[column]).abs() < 0.06, "{mbps} {rtt} {}", reno(mbps, rtt, 1.0));
                assert!((reno(mbps, rtt, 10.0) - ten[column]).abs() < 0.06, "{mbps} {rtt} {}", reno(mbps, rtt, 10.0));
            }
        }
    }

    /// From ten segments and without delayed acknowledgements: 1 Gbit/s over 200 ms 2.2 s, 10 G /
    /// 100 ms 1.4 s, 100 G / 50 ms 0.8 s, 100 M / 20 ms 0.1 s.
    #[test]
    fn slow_start_times() {
        for (bps, rtt, expected) in [(1e9, 200, 2200), (1e10, 100, 1400), (1e11, 50, 800), (1e8, 20, 100)] {
            let window = window_segments(bps, ms(rtt), 1500.0);
            assert_eq!(slow_start(window, ms(rtt)), ms(expected));
        }
        assert_eq!(slow_start(0.01, ms(10)), Duration::ZERO);
    }

    /// Time to recover, Reno: 100 Mbit/s over 20 ms 1.71 s, 1 Gbit/s over 100 ms 428 s. K of CUBIC:
    /// 100 M / 50 ms 6.87 s, 1 G / 20 ms 10.9 s, 10 G / 100 ms 40.2 s.
    #[test]
    fn recovery_times() {
        for (congestion, mss, bps, rtt, seconds) in [
            (Congestion::Reno, 1460.0, 1e8, 20, 1.71),
            (Congestion::Reno, 1460.0, 1e9, 100, 428.1),
            (Congestion::Cubic, 1448.0, 1e8, 50, 6.87),
            (Congestion::Cubic, 1448.0, 1e9, 20, 10.9),
            (Congestion::Cubic, 1448.0, 1e10, 100, 40.2),
        ] {
            let window = window_segments(bps, ms(rtt), mss);
            let time = recovery_time(&congestion, window, ms(rtt)).unwrap();
            assert!((time / seconds - 1.0).abs() < 0.005, "{time} {seconds}");
        }
        assert_eq!(recovery_time(&Congestion::Bbr, 100.0, ms(10)), None);
    }

    /// CUBIC at worst shows 0.7 / 0.925 = 75.7 %, half a period 0.5 / 0.925 x (2 - 0.3 (1 - 1/16))
    /// ... = 93 %, a whole one all.
    #[test]
    fn worst_case_of_cubic() {
        let share = |x: f64| worst_case(&Congestion::Cubic, 720.0, ms(10), x * (0.75f64 * 720.0).cbrt());
        assert!((share(1e-6) - 0.757).abs() < 1e-3, "{}", share(1e-6));
        let half = (1.0 - 0.3 * (1.0 - 1.0 / 16.0) / 2.0) / 0.925;
        assert!((share(0.5) - half).abs() < 1e-9);
        assert!((share(0.999_999) - 1.0).abs() < 1e-3);
        assert!((share(2.0) - 1.0).abs() < 1e-12);
    }

    /// Reno, 100 Mbit/s over 100 ms (863 segments, 43 s to recover): after 20 s the window is at
    /// 0.5 + 200/863, so the mean lacks 1 - (0.5 + 0.732) / 2 = 0.384. A backlog as long as the
    /// path hides every cut of Reno, of 0.43 every cut of CUBIC.
    #[test]
    fn what_one_cut_costs() {
        let cut = |congestion: &Congestion, backlog| one_cut(congestion, 863.0, ms(100), backlog, 20.0);
        assert!((cut(&Congestion::Reno, 0.0) - 0.384).abs() < 2e-3, "{}", cut(&Congestion::Reno, 0.0));
        assert!(cut(&Congestion::Reno, 1.0) < 1e-12);
        assert!(cut(&Congestion::Cubic, 0.43) < 1e-3);
        // K = 8.65 s: 7.5 % of it are lost, of 20 s so 3.2 %.
        assert!((cut(&Congestion::Cubic, 0.0) - 0.0324).abs() < 3e-3, "{}", cut(&Congestion::Cubic, 0.0));
        assert!(cut(&Congestion::Bbr, 0.0).abs() < 1e-12);
    }

    /// Reno, p = 1e-4, 100 ms, 1448 octets: 122.47 segments, 14.19 Mbit/s. CUBIC, p = 1e-5, 100 ms:
    /// 1054 segments.
    #[test]
    fn loss_models() {
        let reno = loss_model_bps(&Congestion::Reno, 1e-4, ms(100), 1448.0).unwrap();
        assert!((reno - 14.187e6).abs() < 5e3, "{reno}");
        let cubic = loss_model_bps(&Congestion::Cubic, 1e-5, ms(100), 1448.0).unwrap();
        assert!((cubic / (1054.0 * 1448.0 * 80.0) - 1.0).abs() < 1e-3, "{cubic}");
        assert_eq!(loss_model_bps(&Congestion::Reno, 0.0, ms(100), 1448.0), None);
    }
}
