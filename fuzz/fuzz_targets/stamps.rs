//! What arrives at a STAMP reflector or comes back from one: any octets are a packet or an error, and an answer is as long as what
//! it answers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::stamp::{ErrorEstimate, ReflectedPacket, Reflection, SessionPacket, StampFormat, Tlvs, reflect};

fuzz_target!(|octets: &[u8]| {
    let key = wire::Psk::from_file_content(b"sixteen octets!!").ok();
    for key in [None, key.as_ref()] {
        let _ = SessionPacket::parse(octets, key).map(|packet| packet.time.unix_ns());
        let _ = ReflectedPacket::parse(octets, key).map(|reply| (reply.received.unix_ns(), reply.error.error_ns()));
        let mut answer = octets.to_vec();
        let seen = Reflection {
            received_ns: 0,
            transmitted_ns: 1,
            error: ErrorEstimate::new(1, false, StampFormat::Ptp),
            hop_limit: 1,
            seq: None,
        };
        let answered = reflect(&mut answer, &seen, key).is_ok();
        assert_eq!(answer.len(), octets.len());
        assert!(answered || answer == octets);
    }
    assert!(Tlvs::new(octets).count() <= octets.len());
});
