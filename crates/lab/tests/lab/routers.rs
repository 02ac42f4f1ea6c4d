//! What virtual routers say to real kernels.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;

use narrows_lab::{RealTimePath, Side};
use narrows_scenario::{Hop, PathDirection, Router, Scenario};
use narrows_units::BitRate;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, recvfrom, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

use crate::bench::{MS, PORT, alone, bound_in, ip_of, start};

/// An ICMP socket in the sender, with a time limit.
fn icmp_socket(path: &RealTimePath, v6: bool) -> OwnedFd {
    let (family, protocol) =
        if v6 { (AddressFamily::Inet6, SockProtocol::IcmpV6) } else { (AddressFamily::Inet, SockProtocol::Icmp) };
    let open = || socket(family, SockType::Raw, SockFlag::empty(), protocol);
    let icmp = path.host(Side::Sender).run(open).unwrap().unwrap();
    setsockopt(&icmp, sockopt::ReceiveTimeout, &TimeVal::new(5, 0)).unwrap();
    icmp
}

/// Source, type, code, octets 4 to 7 and the length of the quote of the next ICMP error.
fn next_error(icmp: &OwnedFd, v6: bool) -> (IpAddr, u8, u8, [u8; 4], usize) {
    let mut data = [0; 2_000];
    loop {
        let (length, from) = recvfrom::<SockaddrStorage>(icmp.as_raw_fd(), &mut data).unwrap();
        let from = from.unwrap();
        // Raw IPv4 sockets give the IP header too.
        let (message, ip) = if v6 {
            (&data[..length], IpAddr::from(from.as_sockaddr_in6().unwrap().ip()))
        } else {
            (&data[20..length], IpAddr::from(from.as_sockaddr_in().unwrap().ip()))
        };
        // Neighbour discovery and the like.
        if v6 && message[0] >= 128 {
            continue;
        }
        let rest = message[4..8].try_into().unwrap();
        return (ip, message[0], message[1], rest, message.len() - 8);
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn hop_limits_find_their_routers() {
    let _alone = alone();
    let terse = Router { icmp_max_octets: 56, ..Router::default() };
    let scenario = Scenario::new("routers")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(MS).router(terse))
        .hop(Hop::rate(BitRate::from_mbps(200)).delay(MS))
        .validate()
        .unwrap();
    let path = start(&scenario);
    for v6 in [false, true] {
        let icmp = icmp_socket(&path, v6);
        let client = bound_in(path.host(Side::Sender), ip_of(&path, Side::Sender, v6), 0);
        let target = SocketAddr::new(ip_of(&path, Side::Receiver, v6), PORT);
        for (hop_limit, number) in [(1_u8, 1), (2, 2)] {
            if v6 {
                setsockopt(&client, sockopt::Ipv6Ttl, &i32::from(hop_limit)).unwrap();
            } else {
                client.set_ttl(u32::from(hop_limit)).unwrap();
            }
            client.send_to(&[7; 1_000], target).unwrap();
            let (from, kind, code, _, quoted) = next_error(&icmp, v6);
            let router = path.addresses().router(PathDirection::Forward, number).unwrap();
            let expected: IpAddr = if v6 { router.ipv6.unwrap().into() } else { router.ipv4.into() };
            assert_eq!((from, kind, code), (expected, if v6 { 3 } else { 11 }, 0));
            let whole = match (v6, number) {
                (false, 1) => 576 - 28,
                (true, 1) => 576 - 48,
                (false, _) => 28,
                (true, _) => 48,
            };
            assert_eq!(quoted, whole, "IPv6 {v6}, router {number}");
        }
    }
    assert_eq!(path.stop().unwrap().router_answers, 4);
}

/// The first datagram is too big for the second hop; the kernel learns it from the router and
/// fragments the second.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_smaller_mtu_is_reported_and_believed() {
    let _alone = alone();
    let scenario = Scenario::new("mtu")
        .hop(Hop::rate(BitRate::from_gbps(1)))
        .hop(Hop::rate(BitRate::from_gbps(1)).mtu(1_400))
        .hop(Hop::rate(BitRate::from_gbps(1)))
        .validate()
        .unwrap();
    let path = start(&scenario);
    for v6 in [false, true] {
        let icmp = icmp_socket(&path, v6);
        let target = SocketAddr::new(ip_of(&path, Side::Receiver, v6), PORT);
        let server = bound_in(path.host(Side::Receiver), target.ip(), PORT);
        let client = bound_in(path.host(Side::Sender), ip_of(&path, Side::Sender, v6), 0);
        let mut data = [0; 2_000];
        client.send_to(&[1; 1_452], target).unwrap();
        let (from, kind, code, mtu, _) = next_error(&icmp, v6);
        let router = path.addresses().router(PathDirection::Forward, 1).unwrap();
        let expected: IpAddr = if v6 { router.ipv6.unwrap().into() } else { router.ipv4.into() };
        assert_eq!(from, expected);
        assert_eq!((kind, code), if v6 { (2, 0) } else { (3, 4) });
        assert_eq!(mtu, [0, 0, 5, 120]);
        thread::sleep(10 * MS);
        client.send_to(&[2; 1_452], target).unwrap();
        assert_eq!(server.recv(&mut data).unwrap(), 1_452);
        assert_eq!(data[0], 2, "the first one never came");
    }
}
