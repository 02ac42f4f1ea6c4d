//! Trains whose bucket is known.

use std::time::Duration;

use units::BitRate;

use super::*;
use crate::contract::{Event, World};
use crate::probe::{Probe, Train, TrainId};
use crate::testbed::{Bucket, Cross, Hop, Testbed};

fn bed(link: u64, bucket: Option<(u64, u32)>, cross: Option<Cross>, seed: u64) -> Testbed {
    let mut narrow = Hop::ethernet(BitRate::from_mbps(link));
    narrow.bucket = bucket.map(|(mbps, packets)| Bucket {
        rate: BitRate::from_mbps(mbps),
        depth_octets: packets * 1538,
    });
    narrow.cross = cross;
    Testbed::new(vec![Hop::ethernet(BitRate::from_gbps(1)), narrow], seed)
}

fn trains(bed: &mut Testbed, packets: usize, count: u32, pause: Duration) -> Vec<TrainReport> {
    let mut reports = Vec::new();
    for id in 0..count {
        let train = Train::uniform(TrainId(id), packets, 1500, Duration::ZERO);
        let Ok(Event::Train(report)) = bed.send(Probe::Train(train)) else {
            panic!("no report");
        };
        reports.push(report);
        let until = bed.now() + pause;
        let Ok(()) = bed.wait(until);
    }
    reports
}

#[test]
fn two_trains_tell_peak_rate_and_depth() {
    let mut bed = bed(100, Some((20, 40)), None, 1);
    let look = look(&trains(&mut bed, 120, 2, Duration::from_secs(1)));
    let knee = look.knee.unwrap();
    // Wire octets as the bed counts them: 40 x 1538 of them are 40 packets.
    assert!(knee.depth_octets.abs_diff(60_000) <= 1500, "{knee:?}");
    assert!(knee.sustained.bps().abs_diff(19_505_852) < 20_000, "{knee:?}");
    assert!(knee.peak.bps().abs_diff(97_529_259) < 1_000_000, "{knee:?}");
    assert!(!knee.is_policer() && !knee.sender_limited, "{knee:?}");
}
