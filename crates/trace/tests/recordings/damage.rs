//! Files that were cut or changed: what came before is kept, the reader says where it stopped, and
//! nothing panics.

use std::io::{Read, Write};

use narrows_methods::{METHODS, find};
use narrows_probe::RawParams;
use narrows_trace::{Damage, Limits, ReadError, Recording, ReplayWorld};

use crate::common::{of_method, read, recorded};

/// A small recording of trains, of loads and of transfers, one file each.
fn files() -> Vec<Vec<u8>> {
    ["capacity", "udp", "tcp"]
        .map(|name| {
            let (scenario, toml, _) = of_method(name).swap_remove(0);
            let method = find(name).expect("registered");
            recorded(&scenario, &toml, method, &RawParams::new(), 5).1
        })
        .to_vec()
}

#[test]
fn a_cut_file_keeps_what_it_held() {
    for whole in files() {
        let full = read(&whole);
        let all = full.runs[0].exchanges.len();
        let mut held = 0;
        for length in (10..whole.len()).step_by(whole.len() / 97 + 1) {
            let cut = Recording::read(&whole[..length]).expect("its head is there");
            let exchanges = cut.runs.first().map_or(0, |run| run.exchanges.len());
            assert!(exchanges >= held && exchanges <= all);
            held = exchanges;
            if let Some(run) = cut.runs.first() {
                assert_eq!(run.exchanges, full.runs[0].exchanges[..exchanges]);
                assert_eq!(run.end, None);
            }
            // A cut between two blocks cannot be seen, but for the end that is missing.
            match cut.damage {
                None => {}
                Some(Damage::Truncated { at }) => assert!(at <= length as u64),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    for whole in files() {
        let full = read(&whole);
        for at in (0..whole.len()).step_by(whole.len() / 211 + 1) {
            for bit in [0, 3, 7] {
                let mut bad = whole.clone();
                bad[at] ^= 1 << bit;
                match Recording::read(bad.as_slice()) {
                    Err(ReadError::NoRecording | ReadError::Version { .. }) => assert!(at < 10),
                    Err(other) => panic!("{other}"),
                    // What is left is a part of what was written.
                    Ok(recording) => {
                        assert!(recording.damage.is_some(), "octet {at}, bit {bit}");
                        for run in &recording.runs {
                            assert_eq!(run.header, full.runs[0].header);
                            assert_eq!(run.exchanges, full.runs[0].exchanges[..run.exchanges.len()]);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn limits_hold() {
    let whole = files().swap_remove(0);
    let within = |limits| Recording::read_within(whole.as_slice(), limits).expect("it is a recording");
    let usual = Limits::default();
    let few = within(Limits { exchanges: 3, ..usual });
    assert_eq!(few.damage, Some(Damage::Limit { what: "exchanges" }));
    assert_eq!(few.runs[0].exchanges.len(), 3);
    let none = within(Limits { runs: 0, ..usual });
    assert_eq!((none.runs.len(), none.damage), (0, Some(Damage::Limit { what: "runs" })));
    let small = within(Limits { octets: 100, ..usual });
    assert_eq!(small.damage, Some(Damage::Limit { what: "octets" }));
}

#[test]
fn other_files_are_none() {
    for other in [&b""[..], b"NARROWS", b"{\"schema\": 1}", &[0; 4096]] {
        assert!(matches!(Recording::read(other), Err(ReadError::NoRecording)));
    }
    let mut later = narrows_trace::MAGIC.to_vec();
    later.extend_from_slice(&(narrows_trace::VERSION + 1).to_le_bytes());
    let error = Recording::read(later.as_slice()).expect_err("a later format");
    assert_eq!(error.to_string(), "is a recording of format 2; this program reads format 1");
}

/// A block that claims to inflate to more than it does, and one that inflates to more than it
/// claims.
#[test]
fn lengths_that_lie() {
    let whole = files().swap_remove(0);
    for (at, value) in [(10, u32::MAX), (14, u32::MAX), (14, 1), (10, 0)] {
        let mut bad = whole.clone();
        bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let recording = Recording::read(bad.as_slice()).expect("its head is there");
        assert!(recording.damage.is_some() && recording.runs.is_empty(), "{:?}", recording.damage);
    }
}

/// The content of all blocks.
fn content(file: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    let mut rest = &file[10..];
    while let Some((head, after)) = rest.split_at_checked(12) {
        let stored = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut inflater = flate2::read::DeflateDecoder::new(&after[..stored]);
        inflater.read_to_end(&mut content).expect("it inflates");
        rest = &after[stored..];
    }
    content
}

/// One block of this content, with a good checksum.
fn wrapped(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("memory");
    let packed = encoder.finish().expect("memory");
    let mut sum = flate2::Crc::new();
    sum.update(&packed);
    let mut file = narrows_trace::MAGIC.to_vec();
    file.extend_from_slice(&narrows_trace::VERSION.to_le_bytes());
    let words = [packed.len(), content.len()].map(|length| u32::try_from(length).expect("small"));
    for word in [words[0], words[1], sum.sum()] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend(packed);
    file
}

/// Somebody who knows the format changes what a recording says: whatever can still be read is
/// replayed and analysed by every method without a panic.
#[test]
fn forged_numbers_are_survived() {
    let mut read_on = 0;
    for file in files() {
        let plain = content(&file);
        for at in (0..plain.len()).step_by(plain.len() / 160 + 1) {
            for value in [plain[at] ^ 0x80, 0xff, 0x00, plain[at].wrapping_add(1)] {
                let mut forged = plain.clone();
                forged[at] = value;
                let recording = Recording::read(wrapped(&forged).as_slice()).expect("its head is there");
                let Some(held) = recording.runs.first() else { continue };
                read_on += held.exchanges.len();
                let raw = held.header.raw_params();
                let own = find(&held.header.method).and_then(|method| method.begin(&raw).ok());
                if let Some(mut estimator) = own {
                    let _ = narrows_probe::drive(&mut ReplayWorld::new(held), estimator.as_mut(), held.header.budget);
                }
                let observations = held.observations();
                for method in METHODS {
                    let _ = method.analyse(&observations, &RawParams::new());
                }
            }
        }
    }
    assert!(read_on > 1000, "{read_on}");
}
