use super::*;
use crate::socket::SocketOptions;

fn pair(options: &SocketOptions) -> (ProbeSocket, ProbeSocket) {
    let far = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), options).unwrap();
    let near = ProbeSocket::connected(far.local().unwrap(), options).unwrap();
    (near, far)
}

fn soon() -> i64 {
    clock::now_ns() + 500_000_000
}

#[test]
fn kernel_stamps_lie_on_the_monotonic_scale() {
    let (near, far) = pair(&SocketOptions::default());
    let mut receiver = Receiver::new(&far, 2048);
    let mut stamps = Vec::new();
    let give_up = clock::now_ns() + 2_000_000_000;
    while stamps.len() < 50 && clock::now_ns() < give_up {
        let before = clock::now_ns();
        near.send(&[7; 100]).unwrap();
        assert_eq!(receiver.receive(&far, soon()).unwrap(), 1);
        let datagram = receiver.iter().next().unwrap();
        assert_eq!(datagram.payload, [7; 100]);
        assert_eq!(datagram.hop_limit, Some(64));
        // The kernel's switch for stamps takes effect a while after the first socket asks.
        if let Some(kernel) = datagram.seen.kernel_ns {
            assert!(
                before - 2_000 <= kernel && kernel <= datagram.seen.user_ns + 2_000,
                "{before} {datagram:?}"
            );
            stamps.push(kernel);
        }
    }
    assert_eq!(stamps.len(), 50);
    assert!(stamps.is_sorted());
    assert_eq!(receiver.steps(), 0);
}

#[test]
fn overflow_is_counted_as_local_drops() {
    let options = SocketOptions {
        receive_buffer_octets: 4_096,
        ..SocketOptions::default()
    };
    let (near, far) = pair(&options);
    let mut receiver = Receiver::new(&far, 2048);
    for _ in 0..100 {
        near.send(&[0; 1000]).unwrap();
    }
    let mut got = 0;
    loop {
        let count = receiver.receive(&far, clock::now_ns()).unwrap();
        if count == 0 {
            break;
        }
        got += count;
    }
    assert!(got < 100);
    assert_eq!(receiver.take_drops(&far), 100 - u32::try_from(got).unwrap());
    assert_eq!(receiver.take_drops(&far), 0);
}

#[test]
fn an_empty_socket_ends_at_the_deadline_and_a_flag_ends_the_loop() {
    let (_near, far) = pair(&SocketOptions::default());
    let mut receiver = Receiver::new(&far, 100);
    let deadline = clock::now_ns() + 5_000_000;
    assert_eq!(receiver.receive(&far, deadline).unwrap(), 0);
    assert!(clock::now_ns() >= deadline);
    receiver
        .receive_until(&far, i64::MAX, &AtomicBool::new(true), |_| true)
        .unwrap();
}

#[test]
fn a_long_datagram_is_cut_but_its_length_known() {
    let (near, far) = pair(&SocketOptions::default());
    near.send(&[5; 300]).unwrap();
    let mut receiver = Receiver::new(&far, 64);
    assert_eq!(receiver.receive(&far, soon()).unwrap(), 1);
    let datagram = receiver.iter().next().unwrap();
    assert_eq!((datagram.payload.len(), datagram.payload_octets), (64, 300));
}

#[test]
fn sources_of_stamps_are_not_mixed() {
    let seen = |user_ns, kernel_ns, hardware_ns| Seen {
        user_ns,
        kernel_ns,
        hardware_ns,
    };
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
