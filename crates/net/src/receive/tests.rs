use super::*;
use crate::socket::SocketOptions;
use crate::sys::send::{self, Message};

fn pair(options: &SocketOptions) -> (ProbeSocket, ProbeSocket) {
    let remote = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), options).unwrap();
    let near = ProbeSocket::connected(remote.local().unwrap(), options).unwrap();
    (near, remote)
}

fn soon() -> i64 {
    clock::now_ns() + 500_000_000
}

#[test]
fn kernel_stamps_lie_on_the_monotonic_scale() {
    let (near, remote) = pair(&SocketOptions::default());
    let mut receiver = Receiver::new(&remote, 2048);
    let mut stamps = Vec::new();
    let give_up = clock::now_ns() + 2_000_000_000;
    while stamps.len() < 50 && clock::now_ns() < give_up {
        let before = clock::now_ns();
        near.send(&[7; 100]).unwrap();
        assert_eq!(receiver.receive(&remote, soon()).unwrap(), 1);
        let datagram = receiver.iter().next().unwrap();
        assert_eq!(datagram.payload, [7; 100]);
        assert_eq!(datagram.hop_limit, Some(64));
        // The kernel's switch for stamps takes effect a while after the first socket asks.
        if let Some(kernel) = datagram.seen.kernel_ns {
            assert!(before - 2_000 <= kernel && kernel <= datagram.seen.user_ns + 2_000, "{before} {datagram:?}");
            stamps.push(kernel);
        }
    }
    assert_eq!(stamps.len(), 50);
    assert!(stamps.is_sorted());
    assert_eq!(receiver.steps(), 0);
}

#[test]
fn overflow_is_counted_as_local_drops() {
    let options = SocketOptions { receive_buffer_octets: 4_096, ..SocketOptions::default() };
    let (near, remote) = pair(&options);
    let mut receiver = Receiver::new(&remote, 2048);
    for _ in 0..100 {
        near.send(&[0; 1000]).unwrap();
    }
    let mut got = 0;
    loop {
        let count = receiver.receive(&remote, clock::now_ns()).unwrap();
        if count == 0 {
            break;
        }
        got += count;
    }
    assert!(got < 100);
    assert_eq!(receiver.take_drops(&remote), 100 - u32::try_from(got).unwrap());
    assert_eq!(receiver.take_drops(&remote), 0);
}

#[test]
fn an_empty_socket_ends_at_the_deadline_and_a_flag_ends_the_loop() {
    let (_near, remote) = pair(&SocketOptions::default());
    let mut receiver = Receiver::new(&remote, 100);
    let deadline = clock::now_ns() + 5_000_000;
    assert_eq!(receiver.receive(&remote, deadline).unwrap(), 0);
    assert!(clock::now_ns() >= deadline);
    receiver.receive_until(&remote, i64::MAX, &AtomicBool::new(true), |_| true).unwrap();
}

#[test]
fn a_long_datagram_is_cut_but_its_length_known() {
    let (near, remote) = pair(&SocketOptions::default());
    near.send(&[5; 300]).unwrap();
    let mut receiver = Receiver::new(&remote, 64);
    assert_eq!(receiver.receive(&remote, soon()).unwrap(), 1);
    let datagram = receiver.iter().next().unwrap();
    assert_eq!((datagram.payload.len(), datagram.payload_octets), (64, 300));
}

#[test]
fn sources_of_stamps_are_not_mixed() {
    let seen = |user_ns, kernel_ns, hardware_ns| ArrivalTimes { user_ns, kernel_ns, hardware_ns };
    let all = [seen(110, Some(100), Some(7)), seen(210, Some(205), Some(107))];
    let alignment = Alignment::choose(&all);
    assert_eq!(alignment.source(), StampSource::Hardware);
    assert_eq!([alignment.stamp_ns(&all[0]), alignment.stamp_ns(&all[1])], [100, 200]);
    let holed = [all[0], seen(210, Some(205), None)];
    let alignment = Alignment::choose(&holed);
    assert_eq!(alignment.source(), StampSource::Kernel);
    assert_eq!(alignment.stamp_ns(&holed[1]), 205);
    let bare = [all[0], seen(210, None, None)];
    let alignment = Alignment::choose(&bare);
    assert_eq!(alignment.source(), StampSource::User);
    assert_eq!(alignment.stamp_ns(&bare[0]), 110);
}

/// What the kernel cut out of one buffer on the way in comes as one message, of which datagrams are
/// made again.
#[test]
fn datagrams_that_came_together_are_reported_apart() {
    let (near, remote) = pair(&SocketOptions::default());
    let mut receiver = Receiver::new(&remote, 64);
    receiver.gather(&remote, true);
    // Three whole ones and a shorter one.
    let payload: Vec<u8> = (0..4u8).flat_map(|k| vec![k; if k < 3 { 500 } else { 200 }]).collect();
    let message = Message { payload: &payload, hop_limit: None, segment_octets: Some(500) };
    assert_eq!(send::send(near.as_fd(), &[message], false).unwrap(), 1);
    near.send(&[9; 300]).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let deadline = clock::now_ns() + 1_000_000_000;
        assert!(receiver.receive(&remote, deadline).unwrap() > 0, "{seen:?}");
        for datagram in receiver.iter() {
            assert!(datagram.payload.iter().all(|octet| *octet == datagram.payload[0]));
            assert_eq!(datagram.payload.len(), datagram.payload_octets);
            seen.push((datagram.payload[0], datagram.payload_octets, datagram.gathered));
        }
    }
    let octets: Vec<_> = seen.iter().map(|&(mark, octets, _)| (mark, octets)).collect();
    assert_eq!(octets, [(0, 500), (1, 500), (2, 500), (3, 200), (9, 300)]);
    // A kernel that does not gather (before Linux 5.0) hands them over one by one.
    assert!(seen[..4].iter().all(|&(.., gathered)| gathered == 4 || gathered == 1), "{seen:?}");
    assert_eq!(seen[4].2, 1);
    // And no more, once it is not wanted.
    receiver.gather(&remote, false);
    assert_eq!(send::send(near.as_fd(), &[message], false).unwrap(), 1);
    let mut octets = 0;
    while octets < payload.len() {
        assert!(receiver.receive(&remote, clock::now_ns() + 30_000_000_000).unwrap() > 0);
        octets += receiver.iter().map(|datagram| datagram.payload_octets).sum::<usize>();
        assert!(receiver.iter().all(|datagram| datagram.gathered == 1 && datagram.payload.len() <= 64));
    }
    assert_eq!(octets, payload.len());
}

#[test]
fn messages_are_cut_into_whole_datagrams() {
    assert_eq!(segments(0, None), (0, 1));
    assert_eq!(segments(0, Some(5)), (0, 1));
    assert_eq!(segments(5, Some(5)), (5, 1));
    assert_eq!(segments(11, Some(5)), (5, 3));
    assert_eq!(segments(11, Some(0)), (11, 1));
    assert_eq!(segments(11, Some(usize::MAX)), (11, 1));
}
