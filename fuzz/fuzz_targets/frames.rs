//! The control stream of either side, names of keys, and a server's table of them: any octets are
//! messages, rows, a name, a table or an error; and what parses prints back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_wire::fleet_key::{KeyName, Table};
use narrows_wire::{ClientMessage, FrameCaps, FrameKind, FrameReader, Rows, ServerMessage};

fuzz_target!(|octets: &[u8]| {
    let mut reader = FrameReader::new(FrameCaps::SESSION);
    for part in octets.chunks(97) {
        reader.push(part);
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) if frame.kind == FrameKind::Json => {
                    let _ = (ClientMessage::parse(&frame.body), ServerMessage::parse(&frame.body));
                }
                Ok(Some(frame)) => drop(Rows::parse(&frame.body)),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    if let Ok(name) = String::from_utf8_lossy(octets).parse::<KeyName>() {
        assert_eq!(name.to_string().as_bytes(), octets);
    }
    let _ = Table::parse(octets);
    // The bodies alone reach the parsers sooner than whole frames do.
    let _ = (ClientMessage::parse(octets), ServerMessage::parse(octets), Rows::parse(octets));
});
