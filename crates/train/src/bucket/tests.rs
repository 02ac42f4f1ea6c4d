//! Trains whose bucket is known.

use std::time::Duration;

use narrows_units::{BitRate, Stamp};

use super::*;
use narrows_probe::StampSource;
use narrows_probe::contract::Event;
use narrows_probe::probes::{Arrival, Fate, PacingCheck, Probe, Train, TrainId};
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Cross, Hop};
use narrows_probe::world::World;

fn host_pair(link: u64, bucket: Option<(u64, u32)>, cross: Option<Cross>, seed: u64) -> ClosedFormWorld {
    let mut narrow = Hop::ethernet(BitRate::from_mbps(link));
    narrow.bucket =
        bucket.map(|(mbps, packets)| Bucket { rate: BitRate::from_mbps(mbps), depth_octets: packets * 1538 });
    narrow.cross = cross;
    ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), narrow], seed)
}

fn trains(host_pair: &mut ClosedFormWorld, packets: usize, count: u32, pause: Duration) -> Vec<TrainReport> {
    let mut reports = Vec::new();
    for id in 0..count {
        let train = Train::uniform(TrainId(id), packets, 1500, Duration::ZERO);
        let Ok(Event::Train(report)) = host_pair.send(Probe::Train(train)) else {
            panic!("no report");
        };
        reports.push(report);
        let until = host_pair.now() + pause;
        let Ok(()) = host_pair.wait(until);
    }
    reports
}

#[test]
fn two_trains_tell_peak_rate_and_depth() {
    let mut host_pair = host_pair(100, Some((20, 40)), None, 1);
    let search = search(&trains(&mut host_pair, 120, 2, Duration::from_secs(1)));
    let turning_point = search.turning_point.unwrap();
    // Wire octets as the bed counts them: 40 x 1538 of them are 40 packets.
    assert!(turning_point.depth_octets.abs_diff(60_000) <= 1500, "{turning_point:?}");
    assert!(turning_point.sustained.bps().abs_diff(19_505_852) < 20_000, "{turning_point:?}");
    assert!(turning_point.peak.bps().abs_diff(97_529_259) < 1_000_000, "{turning_point:?}");
    assert!(!turning_point.is_policer() && !turning_point.sender_limited, "{turning_point:?}");
}

/// A train of `count` packets of 1500 octets, one every `gap_ns`, through a policer and nothing
/// else.
fn policed(count: u32, gap_ns: i64, rate_bps: f64, depth: f64) -> TrainReport {
    let (mut tokens, mut last) = (depth, 0i64);
    let arrivals = (0..count).map(|seq| {
        let at = i64::from(seq) * gap_ns;
        tokens = (tokens + rate_bps / 8e9 * (at - last) as f64).min(depth);
        last = at;
        let passes = tokens >= 1500.0;
        if passes {
            tokens -= 1500.0;
        }
        Arrival {
            seq,
            departed: Stamp::from_nanos(at),
            ip_octets: 1500,
            fate: if passes { Fate::Received(Stamp::from_nanos(at + 5_000_000)) } else { Fate::Lost },
        }
    });
    TrainReport {
        id: TrainId(1),
        arrivals: arrivals.collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

#[test]
fn a_policer_bends_by_its_losses() {
    let trains: Vec<TrainReport> = (0..2).map(|_| policed(400, 123_040, 20e6, 90_000.0)).collect();
    let first = course(&trains[0], 1.1, Duration::ZERO).unwrap();
    let bend = first.bend.unwrap();
    assert!((bend.sustained_bps / 20e6 - 1.0).abs() < 0.02, "{bend:?}");
    assert!((bend.depth_octets / 90_000.0 - 1.0).abs() < 0.03, "{bend:?}");
    assert!(bend.lost_share > 0.9 && bend.queued_octets < 1500.0, "{bend:?}");
}

/// A train of packets of 123 us until `bends`, and of 615 us from then on.
fn bent(bends: u32, count: u32) -> TrainReport {
    let mut report = policed(0, 0, 1e9, 0.0);
    let came = |seq: u32| 123_000 * i64::from(seq.min(bends)) + 615_000 * i64::from(seq.saturating_sub(bends));
    let arrival = |seq: u32| Arrival {
        seq,
        departed: Stamp::from_nanos(1_230 * i64::from(seq)),
        ip_octets: 1500,
        fate: Fate::Received(Stamp::from_nanos(5_000_000 + came(seq))),
    };
    report.arrivals = (0..count).map(arrival).collect();
    report
}

#[test]
fn trains_that_others_left_few_tokens_agree_on_the_rate() {
    let depths = [10, 18, 27, 33, 40];
    let trains: Vec<TrainReport> = depths.iter().map(|bends| bent(*bends, 120)).collect();
    let found = search(&trains).turning_point.unwrap();
    assert!((found.sustained.as_f64() / 19.51e6 - 1.0).abs() < 0.01, "{found:?}");
    assert!(found.uneven && found.trains == 5, "{found:?}");
    // The deepest: 41 packets, less those that the bucket took in meanwhile.
    assert!(found.depth_octets.abs_diff(48_000) <= 3_000, "{found:?}");
    assert_eq!(search(&trains[..3]).turning_point, None, "three may do so by chance");
    let straight = (0..2).map(|_| bent(400, 400));
    let with_straight: Vec<TrainReport> = trains.iter().cloned().chain(straight).collect();
    assert_eq!(search(&with_straight).turning_point, None, "no bucket bends those that passed straight");
}

/// Packets of 2.4 us behind a bend, read by a clock of 1 us, mostly read 2 us; nobody else took a
/// sixth of the tokens.
#[test]
fn a_coarse_clock_is_nobody_s_traffic() {
    let mut report = policed(0, 0, 1e9, 0.0);
    let came = |seq: u32| 1_230 * i64::from(seq.min(40)) + 2_400 * i64::from(seq.saturating_sub(40));
    let arrival = |seq: u32| Arrival {
        seq,
        departed: Stamp::from_nanos(1_230 * i64::from(seq)),
        ip_octets: 1500,
        fate: Fate::Received(Stamp::from_nanos(5_000_000 + came(seq) / 1_000 * 1_000)),
    };
    report.arrivals = (0..400).map(arrival).collect();
    let reported = course(&report, 1.1, Duration::from_micros(1)).and_then(|course| course.bend);
    let reported = reported.unwrap();
    assert!((reported.sustained_bps / 5e9 - 1.0).abs() < 0.02, "{reported:?}");
    assert!((reported.ours - 1.0).abs() < 1e-9, "{reported:?}");
    // Stamps that are taken for exact say that others came between.
    let fine = course(&report, 1.1, Duration::ZERO).and_then(|course| course.bend);
    assert!(fine.is_none_or(|bend| bend.ours < 0.9), "{fine:?}");
}

/// 97 packets that left at 24 Gbit/s and came in one batch, then others' traffic: the batch is no
/// bucket. The same head, seen one by one, is.
#[test]
fn a_batch_is_no_bucket() {
    let bend = |head_gap_ns: i64| {
        let mut report = policed(0, 0, 1e9, 0.0);
        let came = |seq: u32| head_gap_ns * i64::from(seq.min(96)) + 9_000 * i64::from(seq.saturating_sub(96));
        let arrival = |seq: u32| Arrival {
            seq,
            departed: Stamp::from_nanos(500 * i64::from(seq)),
            ip_octets: 1500,
            fate: Fate::Received(Stamp::from_nanos(5_000_000 + came(seq))),
        };
        report.arrivals = (0..110).map(arrival).collect();
        course(&report, 1.1, Duration::from_micros(1)).and_then(|course| course.bend)
    };
    assert_eq!(bend(0), None);
    assert!(bend(500).is_some());
}

#[test]
fn the_case_behind_a_sender_limited_path() {
    // 500 Mbit/s and 50 kB behind a gigabit, from a sender of 731 Mbit/s: 158 kB pass before it
    // shows.
    let mut host_pair = host_pair(1000, Some((500, 33)), None, 1);
    host_pair.hops[0].rate = BitRate::from_gbps(10);
    host_pair.facts.sender.send_cost = Duration::from_nanos(16_416);
    let short = search(&trains(&mut host_pair, 40, 3, Duration::from_millis(100)));
    assert_eq!((short.turning_point, short.bent), (None, 0));
    // 40 packets at 731 Mbit/s exclude a fifth of what they hold beyond the nine that a bend needs:
    // far less than is there.
    assert!(short.excluded_octets < 50_000, "{short:?}");
    let turning_point = search(&trains(&mut host_pair, 300, 3, Duration::from_millis(100))).turning_point.unwrap();
    assert!(turning_point.sender_limited, "{turning_point:?}");
    assert!(turning_point.sustained.bps().abs_diff(487_646_294) < 2_000_000, "{turning_point:?}");
    assert!(turning_point.depth_octets.abs_diff(49_500) <= 1500, "{turning_point:?}");
}

#[test]
fn what_is_excluded_follows_from_octets_and_rate() {
    let mut host_pair = host_pair(100, None, None, 1);
    let search = search(&trains(&mut host_pair, 509, 2, Duration::from_secs(1)));
    assert_eq!((search.turning_point, search.bent, search.dry), (None, 0, 0));
    // 500 packets of 1500 octets at the highest rate seen, a fifth of them.
    assert!(search.excluded_octets.abs_diff(150_000) <= 100, "{search:?}");
}

#[test]
fn a_bucket_that_was_not_full_again_is_left_out() {
    let mut host_pair = host_pair(100, Some((10, 100)), None, 1);
    let mut reports = trains(&mut host_pair, 300, 2, Duration::from_secs(2));
    // At once after the second: half a second is a third of what fills it.
    let Ok(()) = host_pair.wait(host_pair.now());
    reports.extend(trains(&mut host_pair, 300, 1, Duration::ZERO).into_iter().map(|mut report| {
        report.id = TrainId(9);
        report
    }));
    let turning_point = search(&reports).turning_point.unwrap();
    assert_eq!(turning_point.trains, 3);
    let again = trains(&mut host_pair, 300, 1, Duration::ZERO);
    reports.extend(again);
    let turning_point = search(&reports).turning_point.unwrap();
    assert_eq!(turning_point.trains, 3, "{turning_point:?}");
    assert!(turning_point.depth_octets.abs_diff(150_000) <= 1500, "{turning_point:?}");
}

#[test]
fn a_policer_that_others_use_too_is_uneven() {
    // Every seventh token is gone before our packets come: as if the tokens came in two rates by
    // turns.
    let single_ended =
        course(&policed(400, 123_040, 20e6, 90_000.0), 1.1, Duration::ZERO).and_then(|course| course.bend);
    assert!(!single_ended.unwrap().uneven);
    let mut shared = policed(400, 123_040, 20e6, 90_000.0);
    let mut passed = 0;
    for row in &mut shared.arrivals {
        if matches!(row.fate, Fate::Received(_)) {
            passed += 1;
            if passed > 90 && passed % 7 == 0 {
                row.fate = Fate::Lost;
            }
        }
    }
    let shared = course(&shared, 1.1, Duration::ZERO).and_then(|course| course.bend);
    assert!(shared.unwrap().uneven, "{shared:?}");
}

fn passages(trains: &[TrainReport]) -> Vec<Passage> {
    trains.iter().filter_map(|train| Passage::of(train, Duration::ZERO)).collect()
}

/// No train but one is long enough to empty the bucket alone: only all of them together do.
#[test]
fn all_arrivals_together_show_a_bucket_that_no_train_bends_at() {
    let mut host_pair = host_pair(1_000, Some((20, 200)), None, 1);
    let trains = trains(&mut host_pair, 60, 9, Duration::from_millis(2));
    let found = envelope(&passages(&trains)).unwrap();
    assert!((found.sustained.as_f64() / 19.506e6 - 1.0).abs() < 0.01, "{found:?}");
    assert!(found.depth_octets.abs_diff(300_000) <= 9_000, "{found:?}");
    assert!(found.trains >= 4 && found.uneven, "{found:?}");
    assert_eq!(envelope(&passages(&trains[..5])), None, "too few of them were held back");
}

/// A link that others load holds trains back as well, and lets none through much faster.
#[test]
fn a_loaded_link_is_no_bucket() {
    let cross = Cross::poisson(BitRate::from_mbps(60));
    let mut host_pair = host_pair(100, None, Some(cross), 1);
    assert_eq!(envelope(&passages(&trains(&mut host_pair, 60, 9, Duration::from_millis(2)))), None);
}

/// A receiver that slept stamps what waited in one moment: the link is no faster for that.
#[test]
fn a_host_that_slept_is_no_bucket() {
    let asleep = |until: u32| {
        let mut report = bent(0, 60);
        for row in &mut report.arrivals {
            let woke = 5_000_000 + 615_000 * i64::from(until) + 2_000 * i64::from(row.seq);
            if let Fate::Received(at) = row.fate {
                row.fate = Fate::Received(Stamp::from_nanos(at.nanos().max(woke)));
            }
        }
        report
    };
    let trains: Vec<TrainReport> = [0, 20, 30, 25, 0, 15].into_iter().map(asleep).collect();
    assert_eq!(envelope(&passages(&trains)), None);
}

/// A train of packets of 1500 octets that left one every 125 µs (96 Mbit/s) and arrived in four
/// quarters of 40 packets, each at one rate.
fn in_quarters(id: u32, mbps: [f64; 4]) -> Course {
    in_parts(id, 125_000, &mbps.map(|rate| (40, rate)))
}

/// A train of packets of 1500 octets that left one every `gap_ns` and arrived in parts, each of so
/// many packets at a rate in Mbit/s.
fn in_parts(id: u32, gap_ns: i64, parts: &[(usize, f64)]) -> Course {
    let mut at = 5e6;
    let rates = parts.iter().flat_map(|&(packets, mbps)| std::iter::repeat_n(mbps, packets));
    let arrivals = (0u32..).zip(rates).map(|(seq, mbps)| {
        at += 12e6 / mbps;
        Arrival {
            seq,
            departed: Stamp::from_nanos(i64::from(seq) * gap_ns),
            ip_octets: 1500,
            fate: Fate::Received(Stamp::from_nanos(
                i64::from(id) * 1_000_000_000 + i64::try_from(rounded(at)).unwrap(),
            )),
        }
    });
    let report = TrainReport {
        id: TrainId(id),
        arrivals: arrivals.collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    };
    course(&report, 1.1, Duration::ZERO).unwrap()
}

fn went_on(trains: &[[f64; 4]]) -> Option<TurningPoint> {
    let courses: Vec<Course> = (0..).zip(trains).map(|(id, mbps)| in_quarters(id, *mbps)).collect();
    later::agree(&courses)
}

/// Bursts of others bend each train elsewhere, and one found the bucket empty.
#[test]
fn long_trains_that_go_on_at_one_rate_show_a_bucket() {
    let trains = [[93.0, 21.0, 40.0, 50.0], [94.0, 60.0, 50.0, 50.0], [93.0, 50.0, 50.0, 50.0], [50.0; 4]];
    let found = went_on(&trains).unwrap();
    assert!(found.sustained.bps().abs_diff(50_000_000) < 500_000, "{found:?}");
    assert!(found.peak.bps().abs_diff(93_000_000) < 1_000_000 && found.trains == 4, "{found:?}");
    assert!((found.ours - 1.0).abs() < f64::EPSILON && found.pace == Pace::Even, "{found:?}");
}

/// A train that is too short for the bucket ends as fast as it began, and is not against it.
#[test]
fn two_trains_show_a_bucket_of_less_than_half_the_rate_and_three_one_of_more() {
    let (deep, shallow, short) = ([93.0, 60.0, 40.0, 40.0], [93.0, 60.0, 50.0, 50.0], [93.0; 4]);
    assert!(went_on(&[deep, deep, short, short]).is_some());
    assert_eq!(went_on(&[deep, short, short]), None);
    assert_eq!(went_on(&[shallow, shallow, short]), None);
    assert!(went_on(&[shallow, shallow, shallow, short]).is_some());
}

/// Others, and trains one behind the other, leave long trains nothing of the bucket; short ones
/// still come at the rate of the links in front.
#[test]
fn short_trains_show_that_a_bucket_was_full_at_times() {
    let emptied = [in_quarters(0, [40.0; 4]), in_quarters(1, [40.0; 4]), in_quarters(2, [40.0; 4])];
    let short = [3, 4].map(|id| in_parts(id, 125_000, &[(13, 93.0)]));
    assert_eq!(later::agree(&emptied), None);
    let found = later::agree(&[emptied.as_slice(), &short].concat()).unwrap();
    assert!(found.sustained.bps().abs_diff(40_000_000) < 400_000 && found.trains == 3, "{found:?}");
    assert!(found.peak.bps().abs_diff(93_000_000) < 1_000_000, "{found:?}");
}

/// Packets of 1500 octets. Behind the first 60 the sender pauses for 72 µs after every fourth, and
/// the shaper holds that packet as long, or does not.
fn held_now_and_then(id: u32, by_shaper: bool) -> TrainReport {
    let mut at = 0i64;
    let arrivals = (0..400u32).map(|seq| {
        let departed = at;
        let pause = if seq >= 60 && seq.is_multiple_of(4) { 72_000 } else { 0 };
        at += 6_000 + pause;
        let held = if by_shaper { pause } else { 0 };
        let received = i64::from(id) * 1_000_000_000 + departed + 50_000 + held;
        Arrival {
            seq,
            departed: Stamp::from_nanos(departed),
            ip_octets: 1500,
            fate: Fate::Received(Stamp::from_nanos(received)),
        }
    });
    TrainReport { arrivals: arrivals.collect(), id: TrainId(id), ..policed(1, 1, 1e9, 1e6) }
}

/// A shaper that holds the processor of the sender keeps no queue, and yet it is what slows the
/// train. A sender that pauses by itself is no bucket.
#[test]
fn a_sender_that_the_shaper_holds_up_shows_the_bucket() {
    let found = search(&[0, 1, 2].map(|id| held_now_and_then(id, true))).turning_point.unwrap();
    // Four packets in 96 µs.
    assert!(found.sustained.bps().abs_diff(500_000_000) < 10_000_000, "{found:?}");
    assert!(found.peak.bps() > 1_500_000_000, "{found:?}");
    assert_eq!(search(&[0, 1, 2].map(|id| held_now_and_then(id, false))).turning_point, None);
}

/// Packets that a timer lets go three at a time follow one another at the link's rate, which is
/// above the one at which they left: nobody's packets are between the threes.
#[test]
fn batches_of_a_timer_are_nobody_s_traffic() {
    let parts: Vec<(usize, f64)> = [(1, 250.0), (2, 2000.0)].into_iter().cycle().take(160).collect();
    let later = in_parts(0, 20_000, &parts).later.unwrap();
    assert!((later.ours - 1.0).abs() < f64::EPSILON && later.pace == Pace::Uneven, "{later:?}");
}

/// Steady traffic slows trains from their first packet on, what begins on the way slows some and
/// lets others speed up, and a link whose rate varies ends them in between.
#[test]
fn loaded_and_varying_links_show_no_bucket() {
    assert_eq!(went_on(&[[68.0; 4]; 6]), None);
    let (slowed, sped_up) = ([93.0, 60.0, 50.0, 50.0], [50.0, 60.0, 93.0, 93.0]);
    assert!(went_on(&[slowed; 3]).is_some());
    assert_eq!(went_on(&[slowed, slowed, slowed, sped_up, sped_up]), None);
    let ends = [30.0, 30.2, 30.3, 38.0, 45.0, 60.0, 61.0].map(|end| [61.0, 55.0, end, end]);
    assert_eq!(went_on(&ends), None);
}

/// Packets of 1500 octets that follow one another at these gaps in turn, µs.
fn at_gaps(gaps_us: &[f64]) -> Later {
    let parts: Vec<(usize, f64)> = gaps_us.iter().cycle().take(240).map(|gap| (1, 12e3 / gap)).collect();
    in_parts(0, 20_000, &parts).later.unwrap()
}

/// By hand: of four packets one has a packet of others in front of it, so that trains get four
/// fifths of what passes.
#[test]
fn the_end_of_a_train_tells_the_rate_without_others() {
    let even = at_gaps(&[240.0, 240.0, 240.0, 480.0]);
    assert!((even.rate_bps - 50e6).abs() < 0.5e6 && even.pace == Pace::Even, "{even:?}");
    assert!((even.ours - 0.8).abs() < 0.02, "{even:?}");
    // A timer is late by up to a fifth, and what waited comes the sooner.
    let late = at_gaps(&[240.0, 290.0, 190.0, 260.0, 220.0, 480.0]);
    assert!((late.rate_bps - 50e6).abs() < 1e6 && late.pace == Pace::Late, "{late:?}");
    // Others come between two in three: the distance that most keep is not the link's.
    let others = at_gaps(&[480.0, 480.0, 240.0]);
    assert_eq!(others.pace, Pace::Uneven, "{others:?}");
}

/// Six trains of 33 packets empty the first bucket alone, of five packets.
#[test]
fn of_two_buckets_in_a_row_long_trains_show_the_slower() {
    let short = |id| in_parts(id, 1_000, &[(5, 280.0), (28, 198.0)]);
    let long = |id| in_parts(id, 1_000, &[(5, 280.0), (260, 198.0), (55, 49.5)]);
    let found = |courses: &[Course]| of_courses(courses, &BucketSearchParams::default()).turning_point.unwrap();
    let shallow = found(&(0..6).map(short).collect::<Vec<_>>());
    assert!(shallow.sustained.bps().abs_diff(198_000_000) < 2_000_000, "{shallow:?}");
    let deep = found(&(0..6).map(short).chain((6..8).map(long)).collect::<Vec<_>>());
    assert!(deep.sustained.bps().abs_diff(49_500_000) < 500_000, "{deep:?}");
    assert!(deep.depth_octets.abs_diff(300_000) < 10_000 && deep.trains == 2, "{deep:?}");
    // Trains that are long and straight show that there is no other.
    let straight = |id| in_parts(id, 1_000, &[(5, 280.0), (315, 198.0)]);
    let alone = found(&(0..6).map(short).chain((6..8).map(straight)).collect::<Vec<_>>());
    assert!(alone.sustained.bps().abs_diff(198_000_000) < 2_000_000, "{alone:?}");
}

/// A receiver that stood still for 2.5 ms stamps the 20 packets that came meanwhile together.
#[test]
fn a_train_that_waited_for_its_receiver_does_not_bend() {
    let mut host_pair = host_pair(100, None, None, 1);
    let mut report = trains(&mut host_pair, 200, 1, Duration::ZERO).remove(0);
    let base = report.received().map(|(row, at)| at.nanos() - row.departed.nanos()).min().unwrap();
    let began = report.arrivals[0].departed.nanos() + base;
    for row in &mut report.arrivals {
        if let Fate::Received(at) = &mut row.fate {
            let read = began + 2_500_000 + i64::from(row.seq) * 2_000;
            *at = Stamp::from_nanos(at.nanos().max(read));
        }
    }
    let course = course(&report, 1.1, Duration::ZERO).unwrap();
    let bend = course.bend.expect("two lines");
    assert!((bend.sustained_bps / 97.5e6 - 1.0).abs() < 0.02, "{bend:?}");
    let base_s = base as f64 * 1e-9;
    assert_eq!(course.unless_held_up(base_s).bend, None);
    // All trains waited as long: nothing tells it from a bucket.
    assert_eq!(course.unless_held_up(bend.least_delay_s).bend, Some(bend));
}
