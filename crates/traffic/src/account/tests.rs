use proptest::prelude::*;

use narrows_units::BitRate;

use super::*;

const INTERVAL: u64 = 100_000_000;

/// Each packet `(number, sent, arrived)`.
fn account(packets: &[(u64, i64, i64)]) -> UdpAccount {
    let mut account = UdpAccount::new(INTERVAL, 100);
    let first = packets.first().map_or(0, |(_, _, at)| *at);
    for &(number, sent, at) in packets {
        let since = u64::try_from(at - first).unwrap_or(0);
        account.packet(Header::new(1, number, sent), at, since, 100, true);
    }
    account
}

#[test]
fn losses_late_arrivals_and_duplicates() {
    let packets: Vec<(u64, i64, i64)> =
        [0u64, 1, 4, 3, 4, 7, 3].iter().zip(0i64..).map(|(&number, k)| (number, 0, k * 1_000_000)).collect();
    let reported = account(&packets).reported(Some(10), false);
    // 2, 5, 6 are missing between; 8 and 9 never came.
    assert_eq!((reported.packets, reported.octets, reported.lost, reported.duplicates), (5, 500, 5, 2));
    assert_eq!(reported.reordering, Reordering { packets: 1, distance_max: 1 });
    assert_eq!(account(&packets).reported(None, false).lost, 3);
    assert_eq!((reported.intervals.len(), reported.intervals[0].lost), (1, 3));
    assert_eq!(reported.one_way_delay_ns, None);
    assert_eq!(reported.loss_ratio(), Some(0.5));
}

#[test]
fn delays_and_jitter_by_hand() {
    // Delays of 160, 480, 160, 160 ns: differences 320, 320, 0.
    let packets = [(0, 0, 160), (1, 1600, 2080), (2, 3200, 3360), (3, 4800, 4960)];
    let reported = account(&packets).reported(None, true);
    let delay = reported.one_way_delay_ns.unwrap();
    assert_eq!((delay.min, delay.p50, delay.count), (160, 160, 4));
    assert_eq!(delay.max, 480);
    assert!((delay.mean - 240.0).abs() < 1e-9, "{delay:?}");
    let variation = reported.delay_variation_ns.unwrap();
    assert_eq!((variation.min, variation.max), (0, 320));
    let jitter = reported.jitter_ns.unwrap();
    let after_two: f64 = 20.0 + (320.0 - 20.0) / 16.0;
    assert!((jitter.max - after_two).abs() < 1e-9, "{jitter:?}");
    assert!((jitter.last - after_two * 15.0 / 16.0).abs() < 1e-9, "{jitter:?}");
}

#[test]
fn an_unknown_offset_changes_no_variation() {
    let shift = 7_777_777_777_776;
    let plain: Vec<(u64, i64, i64)> = (0..300)
        .map(|k| (k, i64::try_from(k).unwrap() * 1_600_000, i64::try_from(k * 1_600_000 + k % 7 * 1600).unwrap()))
        .collect();
    let shifted: Vec<_> = plain.iter().map(|&(n, sent, at)| (n, sent, at + shift)).collect();
    let (one, other) = (account(&plain).reported(None, false), account(&shifted).reported(None, false));
    assert_eq!(one.delay_variation_ns, other.delay_variation_ns);
    let reported = one.delay_variation_ns.unwrap();
    assert_eq!((reported.min, reported.max), (0, 9600));
    assert!((one.jitter_ns.unwrap().last - other.jitter_ns.unwrap().last).abs() < 1e-6);
}

/// 1500 packets of 100 octets, one per millisecond: 0.8 Mbit/s whatever the clocks.
#[test]
fn rate_and_intervals() {
    let packets: Vec<(u64, i64, i64)> =
        (0..1500).map(|k: i64| (k.unsigned_abs(), k * 1_000_000, k * 1_000_000 + 5)).collect();
    let reported = account(&packets).reported(Some(1500), true);
    assert_eq!(reported.rate(), Some(BitRate::from_bps(800_000)));
    assert_eq!(reported.intervals.len(), 15);
    assert!(reported.intervals.iter().all(|interval| interval.packets == 100 && interval.lost == 0));
    assert_eq!(reported.windows.len(), 3);
    assert!(
        reported.windows.iter().all(|moments| moments.index_of_dispersion.unwrap() < 0.01),
        "{:?}",
        reported.windows
    );
}

proptest! {
    #[test]
    fn distinct_and_lost_are_all(order in Just((0u64..300).collect::<Vec<_>>()).prop_shuffle(), keep in 1usize..300) {
        let packets: Vec<_> = order[..keep].iter().zip(0i64..).map(|(&n, k)| (n, 0, k * 1000)).collect();
        let reported = account(&packets).reported(Some(300), false);
        prop_assert_eq!((reported.packets, reported.lost, reported.duplicates), (keep as u64, 300 - keep as u64, 0));
    }

    #[test]
    fn any_header_is_taken(packets in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<i64>(), any::<u64>()), 0..50)) {
        let mut account = UdpAccount::new(1, 10);
        for (number, stamp, at, since) in packets {
            account.packet(Header { cookie: 0, number, stamp }, at, since, 1500, false);
        }
        let reported = account.reported(Some(3), true);
        prop_assert!(reported.intervals.len() <= 10);
    }
}
