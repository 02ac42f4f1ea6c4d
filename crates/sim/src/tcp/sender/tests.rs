use super::*;
use crate::tcp::segment::SACK_BLOCKS;

const MS: u64 = 1_000_000;

/// After its first ten segments, sent at 0.
fn begun() -> TcpSender {
    let mut sender = TcpSender::new(config(), 0);
    assert_eq!(all(&mut sender, 0), (0..10).collect::<Vec<_>>());
    sender
}

fn config() -> SenderConfig {
    SenderConfig {
        mss: 1448,
        control: Control::Reno,
        buffer_segments: None,
        buffer_cap: None,
        writes: None,
        total: None,
        pacing: None,
        handshake: 10 * MS,
        edge: 1000,
        window_octets: 1_448_000,
    }
}

fn all(sender: &mut TcpSender, now: u64) -> Vec<u64> {
    std::iter::from_fn(|| sender.transmit(now)).map(|data| data.seq).collect()
}

fn ack(next: u64, echo: u64, block: Option<(u64, u64)>) -> Ack {
    let mut blocks = [(0, 0); SACK_BLOCKS];
    blocks[0] = block.unwrap_or_default();
    Ack { next, edge: 1000, window_octets: 1_448_000, sent: 0, echo, blocks, block_count: u8::from(block.is_some()) }
}

/// Segment 0 is lost, or only late: then the reduction is undone.
#[test]
fn recovery_and_its_undoing() {
    for (echo, late) in [(11 * MS, false), (0, true)] {
        let mut sender = begun();
        for last in 2..4 {
            sender.on_ack(10 * MS, &ack(0, 0, Some((1, last))));
        }
        assert_eq!((sender.state, sender.window.segments), (TcpState::Disorder, 10));
        assert_eq!(all(&mut sender, 10 * MS), [10, 11], "limited transmit");
        sender.on_ack(11 * MS, &ack(0, 0, Some((1, 4))));
        assert_eq!((sender.state, sender.window.threshold), (TcpState::Recovery, Some(5)));
        assert_eq!(all(&mut sender, 11 * MS), [0]);
        assert_eq!(sender.timer(), 11 * MS + sender.rtt.timeout(), "the first segment left anew");
        sender.on_ack(20 * MS, &ack(10, echo, None));
        if late {
            assert_eq!((sender.state, sender.window.threshold), (TcpState::Open, None));
            assert!(sender.window.segments >= 10, "{:?}", sender.window);
        } else {
            assert_eq!((sender.state, sender.window.threshold), (TcpState::Recovery, Some(5)));
            sender.on_ack(21 * MS, &ack(12, echo, None));
            assert_eq!((sender.state, sender.window.segments), (TcpState::Open, 5));
        }
    }
}

/// 210 ms after the handshake of 10 ms, then twice and four times as long; the threshold falls
/// once.
#[test]
fn timeouts() {
    let mut sender = begun();
    assert_eq!(sender.timer(), 210 * MS);
    sender.on_timer(210 * MS - 1);
    assert_eq!(sender.counters.timeouts, 0);
    for (now, next) in [(210 * MS, 630 * MS), (630 * MS, 1470 * MS)] {
        sender.on_timer(now);
        assert_eq!((sender.state, sender.window.segments), (TcpState::Loss, 1));
        assert_eq!(sender.window.threshold, Some(5));
        assert_eq!(all(&mut sender, now), [0]);
        assert_eq!(sender.timer(), next);
    }
    sender.on_ack(640 * MS, &ack(1, 630 * MS, None));
    assert_eq!((sender.state, sender.window.segments), (TcpState::Loss, 2));
    assert_eq!(all(&mut sender, 640 * MS), [1, 2]);
    assert_eq!(sender.timer(), 850 * MS, "no back-off any more");
    sender.on_ack(650 * MS, &ack(10, 640 * MS, None));
    assert_eq!(sender.state, TcpState::Open);
    assert_eq!((sender.counters.timeouts, sender.counters.resent), (2, 4));
}

/// What is written when the application finishes still leaves: twice the window, of which ten
/// segments have left.
#[test]
fn the_send_buffer_is_emptied() {
    let mut sender = begun();
    sender.finish();
    assert_eq!((sender.unsent(), sender.is_done()), (10, false));
    sender.on_ack(10 * MS, &ack(10, 0, None));
    assert_eq!(all(&mut sender, 10 * MS), (10..20).collect::<Vec<_>>());
    sender.on_ack(20 * MS, &ack(20, 10 * MS, None));
    assert!(sender.is_done() && all(&mut sender, 20 * MS).is_empty());
    assert_eq!(sender.timer(), NEVER);
    sender.count_time(90 * MS);
    assert_eq!((sender.counters.busy, sender.counters.stalled), (20 * MS, 0));
}

/// A program writes twenty segments every second. Ten leave at once and ten more with the
/// acknowledgements, which double the window; 980 ms later, four timeouts of 200 to 210 ms, it is
/// the initial one again.
#[test]
fn chunks_begin_with_a_small_window() {
    let writes = Some(Writes { lot: 20, every: 1000 * MS });
    let mut sender = TcpSender::new(SenderConfig { writes, total: Some(45), ..config() }, 0);
    assert_eq!(all(&mut sender, 0).len(), 10);
    sender.on_ack(10 * MS, &ack(10, 0, None));
    assert_eq!(all(&mut sender, 10 * MS).len(), 10);
    sender.on_ack(20 * MS, &ack(20, 10 * MS, None));
    assert_eq!((all(&mut sender, 20 * MS).len(), sender.window.segments), (0, 20));
    assert_eq!(sender.timer(), 1000 * MS);
    assert_eq!(all(&mut sender, 1000 * MS).len(), 10);
    assert_eq!(sender.window.segments, 10);
    sender.on_ack(1010 * MS, &ack(30, 1000 * MS, None));
    assert_eq!(all(&mut sender, 1010 * MS).len(), 10);
    sender.on_ack(1020 * MS, &ack(40, 1010 * MS, None));
    assert_eq!(all(&mut sender, 2000 * MS), [40, 41, 42, 43, 44], "all that there is");
    assert!(!sender.is_done());
    sender.on_ack(2010 * MS, &ack(45, 2000 * MS, None));
    assert!(sender.is_done());
}
