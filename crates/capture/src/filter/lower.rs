//! From an expression to tests of single fields at the places where a link type has them.

use std::net::IpAddr;

use super::code::{Compare, Load, Node};
use super::parse::{EndpointSide, Expression, Protocol, Test};
use super::{FilterError, Tags};
use crate::packet::LinkType;

const IP: u16 = 0x0800;
const IP6: u16 = 0x86DD;
const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;
/// Where the kernel shows what it knows of a packet beside its octets: the tag, and whether there
/// is one.
const ASIDE: u32 = 0xFFFF_F000;
const TAG: u32 = ASIDE + 44;
const HAS_TAG: u32 = ASIDE + 48;

pub(super) fn lower(expression: &Expression, link: LinkType, tags: Tags) -> Result<Node, FilterError> {
    let (kind_at, ip_at) = match link {
        LinkType::ETHERNET => (Some(12), 14),
        LinkType::LINUX_SLL => (Some(14), 16),
        LinkType::LINUX_SLL2 => (Some(0), 20),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => (None, 0),
        LinkType(number) => return Err(FilterError::LinkType { number }),
    };
    let mut frame = Frame { kind_at, ip_at, tags: (link == LinkType::ETHERNET).then_some(tags) };
    frame.expression(expression)
}

/// Where fields are; moves on behind each tag that the expression names.
struct Frame {
    kind_at: Option<u32>,
    ip_at: u32,
    /// Where the next tag is; `None`: there are none.
    tags: Option<Tags>,
}

impl Frame {
    fn expression(&mut self, expression: &Expression) -> Result<Node, FilterError> {
        Ok(match expression {
            Expression::All => Node::Always(true),
            Expression::Not(inside) => Node::not(self.expression(inside)?),
            // In the order of the text, because a tag moves what follows.
            Expression::And(left, right) => Node::all([self.expression(left)?, self.expression(right)?]),
            Expression::Or(left, right) => Node::any([self.expression(left)?, self.expression(right)?]),
            Expression::Test(test) => self.test(test)?,
        })
    }

    fn test(&mut self, test: &Test) -> Result<Node, FilterError> {
        Ok(match *test {
            Test::Protocol(protocol) => self.protocol(protocol),
            Test::Net { protocol, way, address, prefix } => self.net(protocol, way, address, prefix),
            Test::Ports { protocol, way, first, last } => self.ports(protocol, way, (first, last)),
            Test::Vlan(number) => self.vlan(number)?,
            Test::AtMost(octets) => Node::not(Node::test(Load::Length, Compare::Above(octets))),
            Test::AtLeast(octets) => Node::test(Load::Length, Compare::AtLeast(octets)),
        })
    }

    fn kind(&self, kind: u16) -> Node {
        if let Some(at) = self.kind_at {
            return Node::test(Load::Half(at), Compare::Equal(kind.into()));
        }
        let version = match kind {
            IP => 0x40,
            IP6 => 0x60,
            _ => return Node::Always(false),
        };
        Node::test(Load::MaskedOctet(self.ip_at, 0xF0), Compare::Equal(version))
    }

    fn protocol(&self, protocol: Protocol) -> Node {
        match protocol {
            Protocol::Ip => self.kind(IP),
            Protocol::Ip6 => self.kind(IP6),
            Protocol::Arp => self.kind(ARP),
            Protocol::Icmp => self.encapsulated_by_4(1),
            Protocol::Icmp6 => self.encapsulated_by_6(58),
            Protocol::Tcp | Protocol::Udp | Protocol::Sctp => {
                let number = number(protocol);
                Node::any([self.encapsulated_by_6(number), self.encapsulated_by_4(number)])
            }
        }
    }

    fn encapsulated_by_4(&self, number: u32) -> Node {
        Node::all([self.kind(IP), Node::test(Load::Octet(self.ip_at + 9), Compare::Equal(number))])
    }

    /// Directly, or behind a fragment header.
    fn encapsulated_by_6(&self, number: u32) -> Node {
        const FRAGMENT: u32 = 44;
        let next = Load::Octet(self.ip_at + 6);
        let behind = Node::all([
            Node::test(next, Compare::Equal(FRAGMENT)),
            Node::test(Load::Octet(self.ip_at + 40), Compare::Equal(number)),
        ]);
        Node::all([self.kind(IP6), Node::any([Node::test(next, Compare::Equal(number)), behind])])
    }

    fn net(&self, protocol: Option<Protocol>, way: EndpointSide, address: IpAddr, prefix: u8) -> Node {
        match address {
            IpAddr::V4(address) => {
                let mask = !u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
                let at = |offset: u32| {
                    let load = if mask == u32::MAX {
                        Load::Word(self.ip_at + offset)
                    } else {
                        Load::MaskedWord(self.ip_at + offset, mask)
                    };
                    Node::test(load, Compare::Equal(address.to_bits() & mask))
                };
                let ip = Node::all([self.kind(IP), way.of(at(12), at(16))]);
                let arp = |kind| Node::all([self.kind(kind), way.of(at(14), at(24))]);
                match protocol {
                    Some(Protocol::Ip) => ip,
                    Some(Protocol::Arp) => arp(ARP),
                    _ => Node::any([ip, arp(ARP), arp(RARP)]),
                }
            }
            IpAddr::V6(address) => {
                let mask = !u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
                let at = |offset: u32| {
                    let word = |index: u32| {
                        let shift = 96 - 32 * index;
                        let part = |whole: u128| u32::try_from(whole >> shift & 0xFFFF_FFFF).unwrap_or(0);
                        let place = self.ip_at + offset + 4 * index;
                        match part(mask) {
                            0 => Node::Always(true),
                            u32::MAX => Node::test(Load::Word(place), Compare::Equal(part(address.to_bits()))),
                            mask => Node::test(
                                Load::MaskedWord(place, mask),
                                Compare::Equal(part(address.to_bits()) & mask),
                            ),
                        }
                    };
                    Node::all([0, 1, 2, 3].map(word))
                };
                Node::all([self.kind(IP6), way.of(at(8), at(24))])
            }
        }
    }

    fn ports(&self, protocol: Option<Protocol>, way: EndpointSide, (first, last): (u16, u16)) -> Node {
        let numbers: Vec<u32> = match protocol {
            Some(protocol) => vec![number(protocol)],
            None => vec![132, 6, 17],
        };
        let one_of = |load: Load| Node::any(numbers.iter().map(|number| Node::test(load, Compare::Equal(*number))));
        let within = |load: Load| {
            if first == last {
                return Node::test(load, Compare::Equal(first.into()));
            }
            Node::all([
                Node::test(load, Compare::AtLeast(first.into())),
                Node::not(Node::test(load, Compare::Above(last.into()))),
            ])
        };
        let behind_4 = |offset: u32| within(Load::HalfBehindIp(self.ip_at, offset));
        let behind_6 = |offset: u32| within(Load::Half(self.ip_at + 40 + offset));
        let first_fragment = Node::not(Node::test(Load::Half(self.ip_at + 6), Compare::AnyBit(0x1FFF)));
        Node::any([
            Node::all([self.kind(IP6), one_of(Load::Octet(self.ip_at + 6)), way.of(behind_6(0), behind_6(2))]),
            Node::all([
                self.kind(IP),
                one_of(Load::Octet(self.ip_at + 9)),
                first_fragment,
                way.of(behind_4(0), behind_4(2)),
            ]),
        ])
    }

    /// A tag; what follows looks behind it.
    fn vlan(&mut self, wanted: Option<u16>) -> Result<Node, FilterError> {
        match self.tags {
            None => Err(FilterError::NoTags),
            Some(Tags::Beside) => {
                self.tags = Some(Tags::InFrames);
                let there = Node::test(Load::Octet(HAS_TAG), Compare::Equal(1));
                Ok(match wanted {
                    None => there,
                    Some(number) => {
                        let same = Node::test(Load::MaskedHalf(TAG, 0x0FFF), Compare::Equal(number.into()));
                        Node::all([there, same])
                    }
                })
            }
            Some(Tags::InFrames) => {
                let kinds = [0x8100, 0x88A8, 0x9100];
                let there = Node::any(kinds.map(|kind| self.kind(kind)));
                let tag_at = self.ip_at;
                self.ip_at += 4;
                self.kind_at = self.kind_at.map(|at| at + 4);
                Ok(match wanted {
                    None => there,
                    Some(number) => {
                        let same = Node::test(Load::MaskedHalf(tag_at, 0x0FFF), Compare::Equal(number.into()));
                        Node::all([there, same])
                    }
                })
            }
        }
    }
}

impl EndpointSide {
    fn of(self, source: Node, destination: Node) -> Node {
        match self {
            Self::Source => source,
            Self::Destination => destination,
            Self::Either => Node::any([source, destination]),
            Self::Both => Node::all([source, destination]),
        }
    }
}

fn number(protocol: Protocol) -> u32 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
        Protocol::Icmp => 1,
        Protocol::Icmp6 => 58,
        Protocol::Ip | Protocol::Ip6 | Protocol::Arp => 0,
    }
}
