use super::*;

/// Left on time, 2 after its stamp, arrived at once, stamped 3 later, read 5 after that.
fn row(at: i64) -> PacketRow {
    PacketRow {
        planned_ns: Some(at),
        stamped_ns: at + 1,
        left_ns: at + 3,
        returned_ns: at + 8,
        arrived_ns: at + 3,
        seen_ns: at + 6,
        read_ns: at + 11,
    }
}

fn rows(packets: Vec<PacketRow>) -> Rows {
    Rows {
        packets,
        windows: vec![Span { from: 0, to: 1_000_000_000 }],
        clock_reads_ns: vec![20],
        receive_calls_ns: vec![300],
        ..Rows::default()
    }
}

pub(crate) fn about() -> About {
    About {
        name: "test".to_owned(),
        about: String::new(),
        recorded: Recorded {
            at: "2026-01-01T00:00:00Z".to_owned(),
            seconds: 1.0,
            over: "loopback".to_owned(),
            machine: "a test".to_owned(),
            busy_share: None,
        },
        virtual_interface: false,
    }
}

/// By hand: three packets, the third after a rest, and one back to back behind it that came before
/// the third was stamped.
#[test]
fn every_row_counts_once() {
    let behind = PacketRow {
        planned_ns: None,
        stamped_ns: 9_000_009,
        left_ns: 9_000_010,
        returned_ns: 9_000_019,
        arrived_ns: 9_000_005,
        seen_ns: 9_000_007,
        read_ns: 9_000_020,
    };
    let packets = vec![row(0), row(50_000), row(9_000_000), behind];
    let profile = HostProfile::of_rows(&rows(packets), about()).unwrap();
    let (send, receive) = (&profile.send, &profile.receive);
    let pair = |quantiles: &Quantiles| (quantiles.count, quantiles.median());
    assert_eq!(pair(&send.pacing_ns), (3, 1));
    assert_eq!((send.stamp_ns.count, send.stamp_ns.at[0], send.stamp_ns.at[15]), (2, 1, 2));
    assert_eq!(pair(&send.stamp_rested_ns), (2, 2));
    assert_eq!(pair(&send.call_ns), (1, 10));
    assert_eq!(pair(&receive.stamp_ns), (1, 3));
    assert_eq!(pair(&receive.stamp_rested_ns), (2, 3));
    assert_eq!(pair(&receive.inside_ns), (1, 1));
    assert_eq!((receive.batch_packets.count, receive.batch_packets.at[15]), (3, 2));
    assert_eq!(pair(&receive.wake_ns), (1, 5));
    assert_eq!(pair(&receive.wake_rested_ns), (2, 5));
    assert!(!receive.stamps_wait && profile.ends == Ends::One && profile.stalls.states.is_empty());
}

/// What a stall delayed is in the stalls, and in nothing else.
#[test]
fn stalls_are_left_out() {
    let late = PacketRow { stamped_ns: 180_000, left_ns: 180_002, returned_ns: 180_009, ..row(100_000) };
    let late = PacketRow { arrived_ns: 180_002, seen_ns: 280_000, read_ns: 280_001, ..late };
    let end = PacketRow { planned_ns: None, ..row(400_000) };
    let mut seen = rows(vec![row(0), row(50_000), late, end]);
    seen.sender_stalls = vec![Span { from: 90_000, to: 180_000 }];
    seen.receiver_stalls = Some(vec![Span { from: 170_000, to: 280_000 }]);
    let profile = HostProfile::of_rows(&seen, about()).unwrap();
    assert_eq!((profile.send.pacing_ns.count, profile.send.pacing_ns.at[15]), (2, 1));
    assert_eq!(profile.receive.stamp_ns.at[15], 3);
    assert_eq!((profile.ends, profile.receive.stamps_wait), (Ends::Both, true));
    let states: Vec<&str> = profile.stalls.states.keys().map(|state| state.key()).collect();
    assert_eq!(states, ["between", "sender", "receiver", "both"]);
}

#[test]
fn too_little_is_told() {
    let error = HostProfile::of_rows(&rows(vec![row(0)]), about()).unwrap_err().to_string();
    assert!(error.contains("record for longer"), "{error}");
}
