use proptest::prelude::*;

use super::testing::{frame, pcap, written};
use super::*;

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 12).unwrap();
    let mut block = kind.to_le_bytes().to_vec();
    block.extend(length.to_le_bytes());
    block.extend(body);
    block.extend(length.to_le_bytes());
    block
}

/// One interface, times in nanoseconds.
fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut section = 0x1a2b_3c4du32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut file = block(0x0a0d_0d0a, &section);
    let mut interface = vec![1, 0, 0, 0, 0, 0, 0, 0];
    interface.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(block(1, &interface));
    for (at, data) in packets {
        let mut body = vec![0; 4];
        body.extend(u32::try_from(at >> 32).unwrap().to_le_bytes());
        body.extend(u32::try_from(at & 0xffff_ffff).unwrap().to_le_bytes());
        body.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
        body.extend(1514u32.to_le_bytes());
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, &body));
    }
    file
}

fn arrivals(replay: &Replay) -> Vec<(u64, u16)> {
    replay.packets().unwrap().map(|p| (p.at_ns, p.ip_octets)).collect()
}

#[test]
fn both_formats_give_lengths_and_gaps() {
    let old = pcap(&[(7, 999_999, frame(1500, 1)), (8, 1, frame(40, 2)), (8, 5, frame(576, 1))], false);
    let file = written(&old);
    let replay = Replay::open(file.path(), Filter::default(), 1.0).unwrap();
    assert_eq!(arrivals(&replay), [(0, 1500), (2_000, 40), (6_000, 576)]);
    let contents = replay.contents();
    assert_eq!((contents.packets, contents.ip_octets, contents.sizes), (3, 2116, (40, 1500)));
    assert_eq!((contents.span, &contents.damage), (Duration::from_micros(6), &None));
    let new = written(&pcapng(&[(1 << 33, frame(1500, 1)), ((1 << 33) + 77, frame(100, 1))]));
    let replay = Replay::open(new.path(), Filter::default(), 0.5).unwrap();
    assert_eq!(arrivals(&replay), [(0, 1500), (154, 100)]);
    let nanos = written(&pcap(&[(7, 1, frame(50, 1)), (7, 8, frame(50, 1))], true));
    let replay = Replay::open(nanos.path(), Filter::default(), 1.0).unwrap();
    assert_eq!(arrivals(&replay), [(0, 50), (7, 50)]);
}

#[test]
fn filters_and_times_that_go_back() {
    let file = written(&pcap(
        &[
            (5, 0, frame(100, 1)),
            (5, 10, frame(200, 2)),
            (5, 20, frame(300, 1)),
            (4, 0, frame(400, 1)),
            (5, 30, vec![0; 20]),
        ],
        false,
    ));
    let filter = Filter { from: Some([10, 0, 0, 1].into()), to: None };
    let replay = Replay::open(file.path(), filter, 1.0).unwrap();
    assert_eq!(arrivals(&replay), [(0, 100), (20_000, 300), (20_000, 400)]);
    let contents = replay.contents();
    assert_eq!((contents.filtered, contents.passed_over, contents.out_of_time), (1, 1, 1));
    let nobody = Filter { from: None, to: Some([10, 0, 0, 1].into()) };
    let error = Replay::open(file.path(), nobody, 1.0).unwrap_err().to_string();
    assert!(error.contains("4 are left out by the filter"), "{error}");
}

#[test]
fn a_cut_capture_is_kept_as_remote_as_it_goes() {
    let whole = pcap(&[(5, 0, frame(100, 1)), (5, 10, frame(200, 1)), (5, 20, frame(300, 1))], false);
    let file = written(&whole[..whole.len() - 5]);
    let replay = Replay::open(file.path(), Filter::default(), 1.0).unwrap();
    assert_eq!(arrivals(&replay), [(0, 100), (10_000, 200)]);
    let damage = replay.contents().damage.clone().unwrap();
    assert!(damage.contains("middle of a block") && damage.contains("2 packets"), "{damage}");
}

#[test]
fn what_is_no_capture_is_refused() {
    for (content, word) in
        [(&b""[..], "neither"), (b"hello, this is a text", "neither"), (&pcap(&[], false), "no packet")]
    {
        let file = written(content);
        let error = Replay::open(file.path(), Filter::default(), 1.0).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let nowhere = Path::new("/nowhere/at/all.pcap");
    assert!(Replay::open(nowhere, Filter::default(), 1.0).is_err());
    assert!(matches!(Replay::open(nowhere, Filter::default(), 0.0), Err(CaptureError::Factor(_))));
}

proptest! {
    /// Any damage is an error or a shorter replay, never a panic, and never endless.
    #[test]
    fn damage_never_panics(at in 0usize..400, with in any::<u8>(), cut in any::<bool>(), new in any::<bool>()) {
        let packets: Vec<_> = (0..5u32).map(|k| (5, k, frame(100, 1))).collect();
        let mut content = if new {
            pcapng(&packets.iter().map(|(_, k, data)| (u64::from(*k), data.clone())).collect::<Vec<_>>())
        } else {
            pcap(&packets, false)
        };
        let at = at % content.len();
        if cut { content.truncate(at) } else { content[at] = with }
        let file = written(&content);
        if let Ok(replay) = Replay::open(file.path(), Filter::default(), 1.0) {
            prop_assert_eq!(replay.packets().unwrap().count() as u64, replay.contents().packets);
            prop_assert!(replay.contents().packets <= 10);
        }
    }
}
