//! What arrives on the public UDP port and opens data connections: any octets are a datagram or an
//! error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let _ = narrows_wire::Datagram::parse(octets);
    let _ = narrows_wire::DataHello::parse(octets);
    let _ = narrows_wire::Psk::from_file_content(octets);
});
