//! What arrives in an ndt7 test: any text is a measurement or none, any request is for a test or
//! for nothing; what parses prints back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_wire::ndt7::{Measurement, Subtest, check_target, next_octets, payload_bps};

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    if let Some(read) = Measurement::parse(text) {
        let app = read.app_info.unwrap_or_default();
        let _ = payload_bps(app.num_bytes, app.elapsed_time);
        assert_eq!(Measurement::parse(&read.to_json()), Some(read));
    }
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let _ = check_target(path, Some(query));
    let _ = check_target(Subtest::Download.path(), Some(text));
    let sent = octets.first_chunk().map_or(0, |octets| u64::from_le_bytes(*octets));
    assert!(next_octets(octets.len(), sent) <= octets.len().max(1 << 20));
});
