//! What arrives on the public UDP port and opens data connections: any octets are a datagram or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let _ = wire::Datagram::parse(octets);
    let _ = wire::DataHello::parse(octets);
    let _ = wire::Psk::from_file_content(octets);
});
