use narrows_packet::checksum::checksum;

use super::*;

const MARK: Mark = Mark { tag: [1, 2, 3, 4, 5, 6, 7, 8], id: 9 };

fn marks(form: Form) -> Marks {
    Marks { form, count: 10 }
}

fn icmp(ipv6: bool, checksum: bool) -> Marks {
    marks(Form::Icmp { mark: MARK, ipv6, identifier: 0x1234, checksum })
}

fn tcp() -> Marks {
    marks(Form::Tcp {
        one_port: false,
        near: [192, 0, 2, 1].into(),
        remote: [192, 0, 2, 2].into(),
        remote_port: 80,
        first_port: 20_000,
        first_sequence: 0xffff_0000,
    })
}

/// A segment that answers: ports swapped, this acknowledgement, these flags.
fn answer(port: u16, acknowledges: u32, flags: u8) -> [u8; TCP_OCTETS] {
    let mut octets = [0; TCP_OCTETS];
    let header = TcpHeader {
        source_port: 80,
        destination_port: port,
        acknowledgement: Some(acknowledges),
        ..TcpHeader::default()
    };
    header.write(([192, 0, 2, 2].into(), [192, 0, 2, 1].into()), &mut octets);
    octets[13] = flags;
    octets
}

#[test]
fn echoes_carry_their_mark_there_and_back() {
    for (ipv6, request, reply) in [(false, 8, 0), (true, 128, 129)] {
        let marks = icmp(ipv6, true);
        let mut octets = [0xaa; 64];
        marks.write(3, &mut octets);
        assert_eq!(octets[..2], [request, 0]);
        assert_eq!(octets[4..8], [0x12, 0x34, 0, 3]);
        assert_eq!(checksum(&octets), 0, "sums to nothing with its checksum");
        // Its own request, as a loopback shows it, is no reply.
        assert_eq!(marks.read_echo(&octets, 64), None);
        octets[0] = reply;
        assert_eq!(marks.read_echo(&octets, 64).unwrap().seq, 3);
        for at in [8, 19, 1] {
            let mut wrong = octets;
            wrong[at] ^= 1;
            assert_eq!(marks.read_echo(&wrong, 64), None, "octet {at}");
        }
        assert_eq!(marks.read_echo(&octets[..23], 64), None, "truncated");
        octets[23] = 10;
        assert_eq!(marks.read_echo(&octets, 64), None, "there are only ten");
    }
}

#[test]
fn syns_are_whole_segments() {
    let mut octets = [0x55; 60];
    tcp().write(2, &mut octets);
    assert_eq!(octets[0..4], [0x4e, 0x22, 0, 80]);
    assert_eq!(octets[4..8], 0x0001_0000u32.to_be_bytes(), "wraps");
    assert_eq!((octets[12], octets[13]), (0x50, 2));
    let sum = Sum::pseudo_header([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 6, 60);
    assert_eq!(sum.octets(&octets).checksum(), 0);
    assert_eq!(octets[20..], [0x55; 40], "the payload is left alone");
}

#[test]
fn segments_must_acknowledge_the_very_syn() {
    let marks = tcp();
    let isn = 0x0001_0000u32;
    // RST and ACK of SYN and payload; SYN and ACK of the SYN alone.
    for (acknowledged, flags) in [(isn + 41, 0x14), (isn + 1, 0x12)] {
        let segment = answer(20_002, acknowledged, flags);
        assert_eq!(marks.read_echo(&segment, 20).map(|echo| echo.seq), Some(2));
    }
    for (port, acknowledged, flags, why) in [
        (20_002, isn, 0x14, "acknowledges nothing"),
        (20_002, isn + 0x1_0000, 0x14, "another's number"),
        (20_003, isn + 1, 0x14, "another's port"),
        (20_010, 0x0009_0001, 0x14, "there are only ten"),
        (20_002, isn + 1, 0x04, "a reset that acknowledges nothing"),
        (20_002, isn + 1, 0x10, "an acknowledgement alone"),
        (20_002, isn + 1, 0x16, "reset and SYN at once"),
    ] {
        assert_eq!(marks.read_echo(&answer(port, acknowledged, flags), 20), None, "{why}");
    }
    let whole = answer(20_002, isn + 1, 0x14);
    assert_eq!(marks.read_echo(&whole[..19], 19), None);
    let mut elsewhere = whole;
    elsewhere[1] = 81;
    assert_eq!(marks.read_echo(&elsewhere, 20), None);
}

#[test]
fn quotes_are_reported_apart() {
    let mut octets = [0; 64];
    for marks in [icmp(false, false), marks(Form::Udp { mark: MARK }), tcp()] {
        octets.fill(0);
        marks.write(7, &mut octets);
        assert_eq!(marks.read_quote(&octets), Quote::Packet(7));
        assert_eq!(marks.read_quote(&octets[..7]), Quote::Short);
        let mut other = octets;
        other[15] ^= 0x40;
        other[5] ^= 0x40;
        assert_eq!(marks.read_quote(&other), Quote::Foreign, "{marks:?}");
    }
    // RFC 792's eight octets are enough for TCP.
    tcp().write(7, &mut octets);
    assert_eq!(tcp().read_quote(&octets[..8]), Quote::Packet(7));
}

#[test]
fn stamp_replies_must_bring_number_and_time_back() {
    const NOW: i64 = 1_800_000_000_123_456_789;
    let packet = session_packet(NOW, 77);
    let marks = marks(Form::Stamp { first: u32::MAX - 1, packet, key: None });
    let mut octets = [0xcc; 100];
    marks.write(5, &mut octets);
    assert_eq!(marks.read_quote(&octets), Quote::Packet(5));
    // The request itself is no reply: it echoes no time.
    assert_eq!(marks.read_echo(&octets, 100), None);
    let seen = stamp::Reflection {
        received_ns: NOW + 1_000,
        transmitted_ns: NOW + 31_000,
        error: stamp::ErrorEstimate::new(1, true, stamp::StampFormat::Ptp),
        hop_limit: 250,
        seq: Some(1),
        surroundings: stamp::Surroundings::default(),
    };
    let mut reply = octets;
    stamp::reflect(&mut reply, &seen, None).unwrap();
    let echo = marks.read_echo(&reply, 100).unwrap();
    let expected =
        Echo { seq: 5, turned_ns: Some(NOW + 1_000), residence_ns: Some(30_000), behind: 2, clock: Some(seen.error) };
    assert_eq!(echo, expected);
    for (at, why) in [(35, "another time"), (15, "another session"), (24, "not of this train")] {
        let mut wrong = reply;
        wrong[at] ^= 3;
        assert_eq!(marks.read_echo(&wrong, 100), None, "{why}");
    }
    // A TWAMP reflector leaves the identifier out.
    reply[14..16].fill(0);
    assert_eq!(marks.read_echo(&reply, 100), Some(expected));
    // A clock that was set back between the stamps.
    let set_back = stamp::Reflection { transmitted_ns: NOW - 9, ..seen };
    stamp::reflect(&mut octets, &set_back, None).unwrap();
    assert_eq!(marks.read_echo(&octets, 100).unwrap().residence_ns, None);
}

/// What routers choose paths by stays the same from packet to packet and train to train, whatever
/// the size and the rest of the payload.
#[test]
fn echoes_of_one_flow_have_one_checksum() {
    for ipv6 in [false, true] {
        let mut sums = Vec::new();
        for (id, seq, octets, filling) in
            [(9, 0, 64, 0x00), (9, 7, 1472, 0x5a), (10, 3, 99, 0xff), (4_000_000, 9, 26, 0x11)]
        {
            let marks = marks(Form::Icmp { mark: Mark { id, ..MARK }, ipv6, identifier: 0x1234, checksum: false });
            let mut packet = vec![filling; octets];
            marks.write(seq, &mut packet);
            // The kernel adds its checksum, over IPv6 with the length.
            let length = if ipv6 { u16::try_from(octets).unwrap() } else { 0 };
            sums.push(Sum::new().word(length).octets(&packet).checksum());
            assert_eq!(packet[8..16], MARK.tag);
        }
        assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:x?}");
    }
    // Where there is no room the mark stays whole.
    let mut least = [0xaa; 25];
    icmp(false, false).write(3, &mut least);
    assert_eq!(least[24], 0xaa);
}

#[test]
fn syns_of_one_flow_leave_from_one_port() {
    let marks = marks(Form::Tcp {
        one_port: true,
        near: [192, 0, 2, 1].into(),
        remote: [192, 0, 2, 2].into(),
        remote_port: 80,
        first_port: 20_007,
        first_sequence: 0xffff_0000,
    });
    let mut numbers = std::collections::BTreeSet::new();
    for seq in 0..10u32 {
        let mut octets = [0x55; 60];
        marks.write(seq, &mut octets);
        assert_eq!(octets[0..2], 20_007u16.to_be_bytes());
        let number = be32(&octets[4..8]);
        assert!(numbers.insert(number));
        assert_eq!(marks.read_quote(&octets[..8]), Quote::Packet(seq));
        let reset = answer(20_007, number.wrapping_add(41), 0x14);
        assert_eq!(marks.read_echo(&reset, 20).map(|echo| echo.seq), Some(seq));
        assert_eq!(marks.read_echo(&answer(20_008, number.wrapping_add(41), 0x14), 20), None);
    }
    let beyond = answer(20_007, 0xffff_0000u32.wrapping_add(11 << 16), 0x14);
    assert_eq!(marks.read_echo(&beyond, 20), None);
}

#[test]
fn answers_to_earlier_trains_are_late_and_no_others() {
    let now = marks(Form::Udp { mark: MARK });
    let before = marks(Form::Udp { mark: Mark { id: 8, ..MARK } });
    let mut octets = [0; 64];
    before.write(7, &mut octets);
    assert_eq!(now.read_quote(&octets), Quote::Late);
    octets[0] ^= 1;
    assert_eq!(now.read_quote(&octets), Quote::Foreign);
}
