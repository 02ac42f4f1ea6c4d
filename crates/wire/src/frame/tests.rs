use proptest::prelude::*;

use super::*;

fn session() -> FrameReader {
    FrameReader::new(FrameCaps::SESSION)
}

#[test]
fn a_long_announcement_is_refused_on_its_header() {
    let mut reader = session();
    reader.push(&[0xFF, 0xFF, 0xFF, 0xFF, 0]);
    let refused = FrameError::TooLong { octets: u32::MAX, cap: 65_536 };
    assert_eq!(reader.next_frame(), Err(refused));
}

#[test]
fn caps_depend_on_the_stage() {
    let table = encode_frame(FrameKind::Rows, &[0; 12]).unwrap();
    let mut reader = FrameReader::new(FrameCaps::HANDSHAKE);
    reader.push(&table);
    assert_eq!(reader.next_frame(), Err(FrameError::TooLong { octets: 12, cap: 0 }));
    reader.set_caps(FrameCaps::SESSION);
    assert!(reader.next_frame().unwrap().is_some());
}

#[test]
fn unknown_kinds_and_too_long_bodies() {
    let mut reader = session();
    reader.push(&[0, 0, 0, 0, 9]);
    assert_eq!(reader.next_frame(), Err(FrameError::Kind(9)));
    assert_eq!(encode_frame(FrameKind::Json, &vec![0; 65_537]), None);
    assert!(encode_frame(FrameKind::Json, &vec![0; 65_536]).is_some());
}

proptest! {
    #[test]
    fn any_cut_of_the_stream_gives_the_same_frames(
        bodies in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..6),
        cuts in proptest::collection::vec(1usize..9, 1..20),
    ) {
        let kind = |rows| if rows { FrameKind::Rows } else { FrameKind::Json };
        let stream: Vec<u8> = bodies.iter().flat_map(|(rows, body)| encode_frame(kind(*rows), body).unwrap()).collect();
        let mut reader = session();
        let (mut rest, mut cuts, mut got) = (stream.as_slice(), cuts.iter().cycle(), Vec::new());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            reader.push(piece);
            rest = tail;
            while let Some(frame) = reader.next_frame().unwrap() {
                got.push((frame.kind == FrameKind::Rows, frame.body));
            }
        }
        prop_assert_eq!(got, bodies);
        prop_assert!(!reader.mid_frame());
    }

    #[test]
    fn any_octets_are_survived(octets: Vec<u8>) {
        let mut reader = session();
        reader.push(&octets);
        while let Ok(Some(frame)) = reader.next_frame() {
            prop_assert!(frame.body.len() <= octets.len());
        }
    }
}
