//! Times and rates: judged only if the path had valid timing.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use narrows_lab::{RealTimePath, Side};
use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Scenario, SizeMix};
use narrows_units::BitRate;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::bench::{MS, PORT, alone, bound_in, ip_of, measured, round_trips, three_hops};

/// The least is judged: the path keeps time or says that it does not, but nobody says when the
/// hosts' programs had to wait.
fn check_round_trips(trips: &[Duration], truth: Duration) {
    let least = *trips.iter().min().unwrap();
    eprintln!("least {least:?}, truth {truth:?}");
    assert!(least >= truth, "no packet is faster than the path");
    let with_kernels = truth + Duration::from_micros(300);
    assert!(least <= with_kernels, "two kernels and two programs take some 50 µs");
}

#[test]
#[ignore = "judge: needs namespaces"]
fn round_trip_is_the_truth() {
    let _alone = alone();
    let scenario = three_hops();
    for (v6, headers) in [(false, 28), (true, 48)] {
        let payload = 1_500 - headers;
        let Some((trips, timing_report)) =
            measured(&format!("round trips, IPv6 {v6}"), &scenario, |path| round_trips(path, v6, payload, 100))
        else {
            continue;
        };
        check_round_trips(&trips, scenario.truth(PathDirection::Forward).base_rtt(1500, 1500));
        assert_eq!(timing_report.packets_dropped(), 0);
        assert!(timing_report.releases >= 200);
    }
}

/// Cross traffic that is not served while the path is idle would make the first packet wait for all
/// of it to be caught up.
#[test]
#[ignore = "judge: needs namespaces"]
fn an_idle_path_serves_its_cross_traffic() {
    let _alone = alone();
    let cross = Cross::on_hop(0, Arrivals::Cbr, BitRate::from_mbps(4_000), SizeMix::constant(1500));
    let scenario =
        Scenario::new("idle").hop(Hop::rate(BitRate::from_gbps(5)).delay(MS)).cross(cross).validate().unwrap();
    let measure = |path: &RealTimePath| {
        (0..6)
            .map(|_| {
                thread::sleep(300 * MS);
                round_trips(path, false, 1_472, 1)[0]
            })
            .collect::<Vec<_>>()
    };
    let Some((trips, _)) = measured("first packets after idleness", &scenario, measure) else {
        return;
    };
    // A hop at 81 % load has a queue of a few packets of 2.5 µs.
    check_round_trips(&trips, scenario.truth(PathDirection::Forward).base_rtt(1500, 1500));
}

/// Kernel stamps, in seconds, of what arrives while the sender offers half as much again as the
/// path carries.
fn blast(path: &RealTimePath) -> Vec<f64> {
    let target = SocketAddr::new(ip_of(path, Side::Receiver, false), PORT);
    let server = bound_in(path.host(Side::Receiver), target.ip(), PORT);
    // Only a real root may; the default holds some 10 ms.
    let _ = setsockopt(&server, sockopt::RcvBufForce, &8_000_000);
    setsockopt(&server, sockopt::ReceiveTimestampns, &true).unwrap();
    server.set_read_timeout(Some(200 * MS)).unwrap();
    let client = bound_in(path.host(Side::Sender), ip_of(path, Side::Sender, false), 0);
    let sending = thread::spawn(move || {
        let begin = Instant::now();
        let data = [0; 1_472];
        for tick in 0..1_500 {
            for _ in 0..12 {
                client.send_to(&data, target).unwrap();
            }
            thread::sleep((tick * MS).saturating_sub(begin.elapsed()));
        }
    });
    let stamps = std::iter::from_fn(|| next_stamp(&server)).collect();
    sending.join().unwrap();
    stamps
}

fn next_stamp(socket: &UdpSocket) -> Option<f64> {
    let mut data = [0; 2_000];
    let mut into = [IoSliceMut::new(&mut data)];
    let mut control = nix::cmsg_space!(TimeSpec);
    let received = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut into, Some(&mut control), MsgFlags::empty());
    let message = match received {
        Ok(message) => message,
        Err(Errno::EAGAIN) => return None,
        Err(error) => panic!("{error}"),
    };
    let stamp = message.cmsgs().unwrap().find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp).as_secs_f64()),
        _ => None,
    });
    Some(stamp.unwrap())
}

#[test]
#[ignore = "judge: needs namespaces"]
fn a_blast_gets_the_capacity() {
    let _alone = alone();
    let scenario = three_hops();
    let Some((stamps, timing_report)) = measured("blast", &scenario, blast) else {
        return;
    };
    let truth = scenario.truth(PathDirection::Forward).capacity(1500).as_f64();
    let rate = |packets: usize, from: f64, to: f64| packets as f64 * 12_000.0 / (to - from) / truth;
    // The median of blocks of 200 packets (25 ms): a sender that has to wait leaves a hole in some
    // of them.
    let mut blocks: Vec<f64> = stamps.chunks_exact(201).map(|block| rate(200, block[0], block[200])).collect();
    blocks.sort_by(f64::total_cmp);
    let median = blocks[blocks.len() / 2];
    let whole = rate(stamps.len() - 1, stamps[0], stamps[stamps.len() - 1]);
    eprintln!("rate over truth: blocks {median:.4}, whole {whole:.4}");
    assert!((0.99..=1.01).contains(&median), "{median}");
    assert!((0.9..=1.01).contains(&whole), "{whole}");
    assert!(timing_report.packets_dropped() > 1_000, "the queue overflows");
    assert!(timing_report.dropped.iter().all(|dropped| dropped.hop == 1));
}
