//! Expressions, and what passes them.

use super::*;

fn frame(kinds: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[2; 12], kinds, packet].concat()
}

fn ip4(protocol: u8, source: [u8; 4], destination: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([source, destination].concat());
    packet.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    packet.extend([0; 36]);
    packet
}

fn ip6(next: u8, source: u8, destination: u8, ports: (u16, u16)) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 40, next, 64];
    for last in [source, destination] {
        packet.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    packet.extend([0; 36]);
    packet
}

fn web() -> Vec<u8> {
    ip4(6, [10, 1, 2, 3], [192, 0, 2, 9], (50_000, 80))
}

fn name() -> Vec<u8> {
    ip4(17, [10, 1, 2, 3], [10, 9, 9, 9], (5_353, 53))
}

fn passes(text: &str, link: LinkType, octets: &[u8]) -> bool {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let program = filter.compile(link, Tags::InFrames, 96).unwrap();
    program.matches(&raw(link, octets, None))
}

fn raw(link: LinkType, octets: &[u8], vlan: Option<u16>) -> RawPacket<'_> {
    RawPacket { at_ns: Some(0), link, octets, whole_octets: 100, vlan, outgoing: None }
}

#[test]
fn each_test_passes_what_it_names_and_nothing_else() {
    let packets = [
        frame(&[8, 0], &web()),
        frame(&[8, 0], &name()),
        frame(&[0x86, 0xDD], &ip6(6, 1, 2, (443, 50_000))),
        frame(&[8, 6], &[&[0; 14][..], &[10, 1, 2, 3], &[0; 6], &[10, 9, 9, 9], &[0; 20]].concat()),
        frame(&[0x81, 0, 0, 7, 8, 0], &web()),
        frame(&[8, 0], &ip4(1, [10, 1, 2, 3], [10, 1, 2, 4], (0, 0))),
        frame(&[0x86, 0xDD], &ip6(58, 1, 3, (0, 0))),
    ];
    let cases = [
        ("", "1111111"),
        ("ip", "1100010"),
        ("ip6", "0010001"),
        ("arp", "0001000"),
        ("tcp", "1010000"),
        ("udp", "0100000"),
        ("icmp", "0000010"),
        ("icmp6", "0000001"),
        ("host 10.1.2.3", "1101010"),
        ("10.1.2.3", "1101010"),
        ("src host 10.1.2.3", "1101010"),
        ("dst 10.9.9.9", "0101000"),
        ("ip host 10.9.9.9", "0100000"),
        ("arp host 10.9.9.9", "0001000"),
        ("dst net 10.0.0.0/8", "0101010"),
        ("net 10.1", "1101010"),
        ("src and dst net 10", "0101010"),
        ("host 2001:db8::1", "0010001"),
        ("dst host 2001:db8::3", "0000001"),
        ("net 2001:db8::/33", "0010001"),
        ("net 2001:db8::2/127", "0010001"),
        ("port 80", "1000000"),
        ("port 80 or 443 or 53", "1110000"),
        ("src port 443", "0010000"),
        ("dst port 443", "0000000"),
        ("tcp port 53", "0000000"),
        ("udp port 53", "0100000"),
        ("portrange 50-90", "1100000"),
        ("portrange 90-50", "1100000"),
        ("not tcp and not udp", "0001111"),
        ("! (tcp || udp)", "0001111"),
        // From left to right, as in pcap-filter(7), not "and" before "or".
        ("udp or tcp and ip6", "0010000"),
        ("udp or (tcp and ip6)", "0110000"),
        ("vlan", "0000100"),
        ("vlan 7", "0000100"),
        ("vlan 8", "0000000"),
        ("vlan and port 80", "0000100"),
        ("vlan 7 and host 192.0.2.9 and tcp", "0000100"),
        ("less 99", "0000000"),
        ("less 100", "1111111"),
        ("greater 101", "0000000"),
    ];
    for (text, expected) in cases {
        let found: String =
            packets.iter().map(|octets| if passes(text, LinkType::ETHERNET, octets) { '1' } else { '0' }).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn other_links_have_their_fields_elsewhere() {
    let cooked = [&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0][..], &web()].concat();
    let cooked_2 = [&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0][..], &web()].concat();
    let links = [(LinkType::RAW, web()), (LinkType::LINUX_SLL, cooked), (LinkType::LINUX_SLL2, cooked_2)];
    for (link, octets) in links {
        assert!(passes("tcp dst port 80 and src net 10.1.0.0/16", link, &octets), "{link:?}");
        assert!(!passes("udp or ip6 or arp", link, &octets), "{link:?}");
    }
    let compile = |text: &str, link| Filter::parse(text).unwrap().compile(link, Tags::InFrames, 1).map(drop);
    assert_eq!(compile("tcp", LinkType::PPP), Err(FilterError::LinkType { number: 9 }));
    assert_eq!(compile("vlan", LinkType::RAW), Err(FilterError::NoTags));
}

#[test]
fn a_tag_that_the_kernel_took_off_is_looked_for_beside_the_frame() {
    let octets = frame(&[8, 0], &web());
    let program = Filter::parse("vlan 7 and port 80").unwrap();
    let program = program.compile(LinkType::ETHERNET, Tags::Beside, 96).unwrap();
    assert!(program.matches(&raw(LinkType::ETHERNET, &octets, Some(0x2007))));
    assert!(!program.matches(&raw(LinkType::ETHERNET, &octets, Some(8))));
    assert!(!program.matches(&raw(LinkType::ETHERNET, &octets, None)));
}

#[test]
fn fragments_have_no_ports_and_short_packets_do_not_pass() {
    let mut later = web();
    later[7] = 9;
    assert!(!passes("port 80", LinkType::RAW, &later));
    assert!(passes("tcp", LinkType::RAW, &later));
    assert!(!passes("port 80", LinkType::RAW, &web()[..22]));
    // Also where the test is turned around: there was nothing to test.
    assert!(!passes("not port 80", LinkType::RAW, &web()[..22]));
}

#[test]
fn long_filters_jump_remote() {
    let many: Vec<String> = (1..110).map(|port| format!("port {port}")).collect();
    let text = many.join(" or ");
    assert!(passes(&text, LinkType::RAW, &web()));
    assert!(passes(&format!("({text}) and tcp"), LinkType::RAW, &web()));
    assert!(!passes(&format!("not ({text})"), LinkType::RAW, &web()));
    assert!(!passes(&format!("udp and ({text})"), LinkType::RAW, &web()));
    assert!(passes(&format!("tcp and ({text}) and host 10.1.2.3"), LinkType::RAW, &web()));
    let endless = vec!["host 2001:db8::1"; 340].join(" or ");
    let long = Filter::parse(&endless).unwrap().compile(LinkType::RAW, Tags::InFrames, 1);
    assert!(matches!(long, Err(FilterError::TooLong { .. })), "{long:?}");
}

#[test]
fn mistakes_are_named_where_they_are() {
    let error = |text: &str| Filter::parse(text).expect_err(text).to_string();
    let cases = [
        ("prot 80", "\"prot\" at character 1"),
        ("tcp prot 80", "\"prot\" at character 5"),
        ("port http", "\"http\" at character 6"),
        ("port 70000", "up to 65535"),
        ("host example.org", "names are not looked up"),
        ("net 10.0.0.1/8", "nothing behind its prefix"),
        ("tcp host 10.0.0.1", "tcp and host"),
        ("ip port 80", "ip and port"),
        ("ip6 host 10.0.0.1", "other version"),
        ("(tcp", "closing parenthesis"),
        ("tcp)", "\")\" at character 4"),
        ("tcp and", "missing"),
        ("port", "missing"),
        ("src or 10.0.0.1", "src or dst"),
        ("vlan 4096", "up to 4095"),
        ("tcp & udp", "\"&\" at character 5"),
        ("ether host 00:11:22:33:44:55", "\"ether\""),
    ];
    for (text, part) in cases {
        let said = error(text);
        assert!(said.contains(part), "{text}: {said}");
    }
    assert!(error(&"(".repeat(5_000)).contains("words"));
    assert!(error(&"not ".repeat(500)).contains("within each other"));
}
