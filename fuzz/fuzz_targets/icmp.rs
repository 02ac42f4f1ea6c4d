//! Headers of packets, ICMP errors, the packets that they quote, and their extensions: any octets
//! are read or refused. Behind a right checksum the quote and the objects are reached as well.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_packet::icmp::{Extensions, IcmpError, Message, Quoted, extensions_behind, write_checksum};
use narrows_packet::ip::{IpHeader, set_hop_limit};
use narrows_packet::tcp::{TcpHeader, TcpOptions};
use narrows_packet::udp::UdpHeader;

fuzz_target!(|octets: &[u8]| {
    read(octets);
    let mut checked = octets.to_vec();
    write_checksum(&mut checked);
    read(&checked);
    headers(octets);
    for ipv6 in [false, true] {
        let _ = Message::read_echo(octets, ipv6);
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

fn headers(octets: &[u8]) {
    if let Ok(header) = IpHeader::read(octets) {
        let _ = header.transport(octets);
    }
    let _ = IpHeader::read_whole(octets);
    set_hop_limit(&mut octets.to_vec(), 7);
    let _ = (UdpHeader::read(octets), TcpHeader::read(octets));
    let _ = TcpOptions::read(octets, true);
}
