//! Recordings: any octets are a recording, a damaged one or none; what can be read can be replayed
//! and analysed, and a block with a good checksum around any content is read as far as it makes
//! sense.
#![no_main]

use std::io::Write;

use narrows_methods::METHODS;
use narrows_probe::drive;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use libfuzzer_sys::fuzz_target;
use narrows_trace::{Limits, MAGIC, Recording, ReplayWorld, VERSION};

const LIMITS: Limits = Limits { octets: 1 << 20, runs: 16, exchanges: 256 };

fuzz_target!(|octets: &[u8]| {
    let _ = Recording::read_within(octets, LIMITS);
    // Behind a head and a checksum the frames themselves are reached.
    let Some(file) = wrapped(octets) else { return };
    let Ok(recording) = Recording::read_within(file.as_slice(), LIMITS) else { return };
    for held in &recording.runs {
        for method in METHODS {
            let params = held.header.raw_params();
            if let Ok(mut estimator) = method.begin(&params) {
                let _ = drive(&mut ReplayWorld::new(held), estimator.as_mut(), held.header.budget);
            }
            let _ = method.analyse(&held.observations(), &params);
        }
    }
});

fn wrapped(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).ok()?;
    let packed = encoder.finish().ok()?;
    let mut sum = Crc::new();
    sum.update(&packed);
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    for word in [u32::try_from(packed.len()).ok()?, u32::try_from(content.len()).ok()?, sum.sum()] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend(packed);
    Some(file)
}
