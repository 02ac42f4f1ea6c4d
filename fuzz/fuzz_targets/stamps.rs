//! What arrives at a STAMP reflector or comes back from one: any octets are a packet or an error,
//! and an answer is as long as what it answers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_wire::stamp::{
    ErrorEstimate, ReflectedPacket, Reflection, SessionPacket, StampFormat, Surroundings, Tlvs, is_sealed, reflect, seal,
    stamp_octets,
};

fuzz_target!(|octets: &[u8]| {
    let key = narrows_wire::Psk::from_file_content(b"sixteen octets!!").ok();
    for key in [None, key.as_ref()] {
        let _ = SessionPacket::parse(octets, key).map(|packet| packet.time.unix_ns());
        let _ = ReflectedPacket::parse(octets, key).map(|reply| (reply.received.unix_ns(), reply.error.error_ns()));
        let base = stamp_octets(key.is_some());
        let mut answer = octets.to_vec();
        // Packets that hold a right HMAC are not found by chance.
        if let (Some(_), Some(fields)) = (key, answer.get_mut(..base)) {
            if let Ok(packet) = SessionPacket::parse(fields, None) {
                let _ = packet.write(fields, key);
            }
        }
        if let (Some(key), true) = (key, octets.first() == Some(&1)) {
            let seq = octets.first_chunk().map_or(0, |seq| u32::from_be_bytes(*seq));
            let _ = answer.get_mut(base..).and_then(|behind| seal(behind, seq, key));
        }
        let asked = answer.clone();
        let seen = Reflection {
            received_ns: 0,
            transmitted_ns: 1,
            error: ErrorEstimate::new(1, false, StampFormat::Ptp),
            hop_limit: 1,
            seq: None,
            surroundings: Surroundings {
                ports: (862, 1),
                traffic_class: octets.last().copied(),
                synchronised: true,
                counts: Some((1, u32::MAX)),
                last: Some((7, u64::MAX)),
            },
        };
        let answered = reflect(&mut answer, &seen, key).is_ok();
        assert_eq!(answer.len(), octets.len());
        assert!(answered || answer == asked);
        if let Some(key) = key {
            let _ = is_sealed(&answer, base, key);
        }
    }
    assert!(Tlvs::new(octets).count() <= octets.len());
});
