//! ICMP errors, the packets that they quote, and their extensions: any octets are read or refused. Behind a right checksum the quote and
//! the objects are reached as well.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::icmp::{Extensions, IcmpError, Quoted, extensions_behind};

fuzz_target!(|octets: &[u8]| {
    read(octets);
    let mut checked = octets.to_vec();
    if checked.len() >= 8 {
        checked[2..4].fill(0);
        let sum = checksum(&checked).to_be_bytes();
        checked[2..4].copy_from_slice(&sum);
        read(&checked);
    }
    for ipv6 in [false, true] {
        if let Ok(quoted) = Quoted::parse(octets, ipv6) {
            let _ = (quoted.ports(), quoted.udp_check());
        }
    }
    let at = octets.first().map(|at| usize::from(*at));
    let _ = extensions_behind(octets, at, 28);
    let _ = extensions_behind(octets, None, 28);
    let _ = extensions_behind(octets, None, 48);
});

fn read(octets: &[u8]) {
    for error in [IcmpError::parse_v4(octets), IcmpError::parse_v6(octets)].into_iter().flatten() {
        let _ = error.extensions.map(|extensions| extensions.labels().count());
    }
    if let Ok(extensions) = Extensions::parse(octets) {
        let _ = extensions.labels().count();
    }
}

fn checksum(octets: &[u8]) -> u16 {
    let mut sum: u64 = octets
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
