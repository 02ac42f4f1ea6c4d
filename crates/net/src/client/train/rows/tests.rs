use std::time::Duration;

use narrows_probe::probes::{HopReplyKind, PacingCheck, TrainId};
use narrows_units::Receiver;
use narrows_wire::{DepartureRow, Pacing};

use super::super::super::gather::Arrived;
use super::*;
use crate::receive::ArrivalTimes;

fn train() -> Train {
    Train::uniform(TrainId(6), 3, 1500, Duration::from_micros(10))
}

fn departures() -> Departures {
    Departures {
        stamps_ns: vec![100, 200, 300],
        source: StampSource::Kernel,
        refused: Vec::new(),
        interrupted: false,
        pacing: PacingCheck::Kept,
    }
}

fn at(ns: i64) -> Stamp<Receiver> {
    Stamp::from_nanos(ns)
}

#[test]
fn arrivals_find_their_packets_and_answers_fill_the_holes() {
    let reply = HopReply {
        from: [192, 0, 2, 1].into(),
        returned: Stamp::from_nanos(900),
        reply_ip_octets: 56,
        kind: HopReplyKind::TimeExceeded,
    };
    let row = |seq, stamp_ns| ArrivalRow { seq, ip_octets: 1500, hop_limit: 60, stamp_ns };
    let result =
        TrainResult { id: 1, reordered: 1, duplicates: 0, local_drops: 0, stamps: narrows_wire::StampSource::Kernel };
    // A row for a packet that there is not is passed over.
    let report = forward(
        &train(),
        &departures(),
        &result,
        &[row(2, 30), row(0, 40), row(8, 50)],
        &[Some(reply), Some(reply), None],
    );
    let fates: Vec<Fate> = report.arrivals.iter().map(|row| row.fate).collect();
    assert_eq!(fates, [Fate::Received(at(40)), Fate::Answered(reply), Fate::Received(at(30))]);
    assert_eq!(report.arrivals[2].departed, Stamp::from_nanos(300));
    assert_eq!((report.reordered, report.id), (1, TrainId(6)));
    let report = forward(&train(), &departures(), &result, &[], &[None; 3]);
    assert_eq!(report.lost(), 3);
}

fn came(stamps: [Option<i64>; 3]) -> Gathered {
    let packets = stamps
        .iter()
        .map(|stamp| {
            stamp.map(|user_ns| Arrived {
                seen: ArrivalTimes { user_ns: user_ns + 3, kernel_ns: Some(user_ns), hardware_ns: None },
                turned_ns: Some(77),
            })
        })
        .collect();
    let mut gathered = Gathered::default();
    gathered.packets = packets;
    gathered
}

#[test]
fn echoes_carry_both_stamps() {
    let report = echoed(&train(), &departures(), &came([Some(500), None, Some(700)]), &[None; 3]);
    assert_eq!(report.arrivals[0].fate, Fate::Echoed { returned: Stamp::from_nanos(500), turned: Some(at(77)) });
    assert_eq!(report.arrivals[1].fate, Fate::Lost);
    assert_eq!(report.arrived_by, StampSource::Kernel);
    assert_eq!(report.round_trips().map(|(_, time)| time.as_nanos()).collect::<Vec<_>>(), [400, 400]);
}

#[test]
fn in_reverse_the_departures_are_the_remote_hosts() {
    let row = |seq, stamp_ns| DepartureRow { seq, ip_octets: 1500, stamp_ns };
    let left = Left {
        stamps: narrows_wire::StampSource::User,
        pacing: Pacing::Unknown,
        send_failures: 1,
        rows: vec![row(0, 10), row(2, 30), row(9, 90)],
    };
    let report = reverse(&train(), &left, &came([Some(500), None, Some(700)]));
    let departed: Vec<i64> = report.arrivals.iter().map(|row| row.departed.nanos()).collect();
    assert_eq!(departed, [10, 10, 30]);
    assert_eq!(report.arrivals[2].fate, Fate::Received(at(700)));
    assert_eq!((report.lost(), report.departed_by), (1, StampSource::User));
}
