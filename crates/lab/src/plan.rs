//! Which address is whose.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_scenario::{PathDirection, Scenario};

use crate::error::LabError;

/// One of the two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The host at node 0 of the forward way.
    Sender,
    /// The host at the other end.
    Receiver,
}

impl Side {
    /// The way that packets of this host go.
    pub const fn way(self) -> PathDirection {
        match self {
            Self::Sender => PathDirection::Forward,
            Self::Receiver => PathDirection::Reverse,
        }
    }

    /// The host that packets of this way reach.
    pub const fn at_end_of(way: PathDirection) -> Self {
        match way {
            PathDirection::Forward => Self::Receiver,
            PathDirection::Reverse => Self::Sender,
        }
    }

    /// `sender` or `receiver`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Sender => 0,
            Self::Receiver => 1,
        }
    }
}

/// Addresses of a host or a virtual router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub ipv4: Ipv4Addr,
    /// IPv6; `None` on a path that cannot carry it (a first hop whose MTU is below 1280 octets, RFC
    /// 8200 §5) and on a machine whose kernel has none.
    pub ipv6: Option<Ipv6Addr>,
}

/// The address plan of every lab (labs live in namespaces of their own, so all can have the same):
///
/// | who | IPv4 | IPv6 |
/// |---|---|---|
/// | sender | 10.77.0.1/16 | `fd5e:4a1c:90b3::1/64` |
/// | router behind forward hop *k* (1, 2, …) | 10.77.1.*k* | `fd5e:4a1c:90b3::1:`*k* |
/// | router behind reverse hop *k* | 10.77.2.*k* | `fd5e:4a1c:90b3::2:`*k* |
/// | receiver | 10.77.3.1/16 | `fd5e:4a1c:90b3::3:1/64` |
/// | source of cross traffic *k* | 10.77.4.*k* | `fd5e:4a1c:90b3::4:`*k* |
/// | its sink | 10.77.5.*k* | `fd5e:4a1c:90b3::5:`*k* |
/// | the nodes that these two are attached to, towards them | 10.77.6.*k*, 10.77.7.*k* | likewise |
///
/// IPv4 is from the private block 10/8 (RFC 1918), IPv6 from a unique local prefix (RFC 4193); *k*
/// counts from 1 as traceroute does and is written in hexadecimal in IPv6 addresses. A real router
/// answers with the address of the interface that the probe came in by, so the two ways have
/// addresses of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPlan {
    forward_routers: u8,
    reverse_routers: u8,
    ipv6: bool,
}

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Host(Side),
    /// Router `number` (from 1) of a way.
    Router(PathDirection, u8),
}

impl AddressPlan {
    /// Octets of the network part of IPv4 addresses, in bits.
    pub const PREFIX_V4: u8 = 16;
    /// Octets of the network part of IPv6 addresses, in bits.
    pub const PREFIX_V6: u8 = 64;

    /// The plan of a scenario. Refuses ways of more than 250 hops.
    pub fn of(scenario: &Scenario) -> Result<Self, LabError> {
        let routers = |way| {
            let hops = scenario.hops(way).len();
            let routers = u8::try_from(hops.saturating_sub(1)).ok();
            routers.filter(|&routers| routers < 250).ok_or(LabError::TooManyHops { hops, most: 250 })
        };
        let first_mtus = [PathDirection::Forward, PathDirection::Reverse]
            .map(|way| scenario.hops(way).first().map_or(0, |hop| hop.mtu));
        Ok(Self {
            forward_routers: routers(PathDirection::Forward)?,
            reverse_routers: routers(PathDirection::Reverse)?,
            ipv6: first_mtus.iter().all(|&mtu| mtu >= 1280),
        })
    }

    /// The same plan for kernels without IPv6.
    #[must_use]
    pub fn without_ipv6(self) -> Self {
        Self { ipv6: false, ..self }
    }

    /// Addresses of a host.
    pub fn host(&self, side: Side) -> Addresses {
        match side {
            Side::Sender => self.addresses(0, 1),
            Side::Receiver => self.addresses(3, 1),
        }
    }

    /// Addresses of a router: `number` counts from 1, as the TTL that runs out there. `None` if the
    /// way has no such router.
    pub fn router(&self, way: PathDirection, number: u8) -> Option<Addresses> {
        (1..=self.routers(way)).contains(&number).then(|| self.addresses(group(way), number))
    }

    /// How many routers a way has: one fewer than hops.
    pub fn routers(&self, way: PathDirection) -> u8 {
        match way {
            PathDirection::Forward => self.forward_routers,
            PathDirection::Reverse => self.reverse_routers,
        }
    }

    pub(crate) fn owner(&self, address: IpAddr) -> Option<Owner> {
        let (group, number) = match address {
            IpAddr::V4(address) => match address.octets() {
                [10, 77, group, number] => (group, number),
                _ => return None,
            },
            IpAddr::V6(address) => match address.segments() {
                [first, second, third, 0, 0, 0, group, number] if [first, second, third] == PREFIX => {
                    (u8::try_from(group).ok()?, u8::try_from(number).ok()?)
                }
                _ => return None,
            },
        };
        match (group, number) {
            (0, 1) => Some(Owner::Host(Side::Sender)),
            (3, 1) => Some(Owner::Host(Side::Receiver)),
            (1, number) if (1..=self.forward_routers).contains(&number) => {
                Some(Owner::Router(PathDirection::Forward, number))
            }
            (2, number) if (1..=self.reverse_routers).contains(&number) => {
                Some(Owner::Router(PathDirection::Reverse, number))
            }
            _ => None,
        }
    }

    /// Addresses of number `number` of a group of the plan.
    pub(crate) fn addresses(&self, group: u8, number: u8) -> Addresses {
        let [first, second, third] = PREFIX;
        let (group16, number16) = (u16::from(group), u16::from(number));
        Addresses {
            ipv4: Ipv4Addr::new(10, 77, group, number),
            ipv6: self.ipv6.then(|| Ipv6Addr::new(first, second, third, 0, 0, 0, group16, number16)),
        }
    }
}

impl Addresses {
    /// Both, as far as it has them.
    pub(crate) fn all(self) -> impl Iterator<Item = IpAddr> {
        std::iter::once(IpAddr::V4(self.ipv4)).chain(self.ipv6.map(IpAddr::V6))
    }

    /// The address of the version that `like` has.
    pub(crate) fn like(self, like: IpAddr) -> Option<IpAddr> {
        match like {
            IpAddr::V4(_) => Some(self.ipv4.into()),
            IpAddr::V6(_) => self.ipv6.map(IpAddr::V6),
        }
    }
}

fn group(way: PathDirection) -> u8 {
    match way {
        PathDirection::Forward => 1,
        PathDirection::Reverse => 2,
    }
}

/// Drawn once, as RFC 4193 §3.2 asks.
const PREFIX: [u16; 3] = [0xfd5e, 0x4a1c, 0x90b3];

#[cfg(test)]
mod tests {
    use narrows_scenario::Hop;
    use narrows_units::BitRate;

    use super::*;

    fn path(hops: usize, mtu: u16) -> Scenario {
        let hop = Hop::rate(BitRate::from_mbps(10)).mtu(mtu);
        (0..hops).fold(Scenario::new("plan"), |path, _| path.hop(hop.clone())).validate().unwrap()
    }

    #[test]
    fn three_hops_have_two_routers_each_way() {
        let plan = AddressPlan::of(&path(3, 1500)).unwrap();
        let sender = plan.host(Side::Sender);
        assert_eq!(sender.ipv4.to_string(), "10.77.0.1");
        assert_eq!(sender.ipv6.unwrap().to_string(), "fd5e:4a1c:90b3::1");
        let router = plan.router(PathDirection::Forward, 2).unwrap();
        assert_eq!(router.ipv4.to_string(), "10.77.1.2");
        assert_eq!(router.ipv6.unwrap().to_string(), "fd5e:4a1c:90b3::1:2");
        assert_eq!(plan.router(PathDirection::Forward, 3), None);
        assert_eq!(plan.router(PathDirection::Reverse, 0), None);
    }

    #[test]
    fn owners_are_found_by_address() {
        let plan = AddressPlan::of(&path(4, 1500)).unwrap();
        for (way, number) in [(PathDirection::Forward, 1), (PathDirection::Forward, 3), (PathDirection::Reverse, 2)] {
            let router = plan.router(way, number).unwrap();
            assert_eq!(plan.owner(router.ipv4.into()), Some(Owner::Router(way, number)));
            let ipv6 = router.ipv6.unwrap();
            assert_eq!(plan.owner(ipv6.into()), Some(Owner::Router(way, number)));
        }
        for side in [Side::Sender, Side::Receiver] {
            let host = plan.host(side);
            assert_eq!(plan.owner(host.ipv4.into()), Some(Owner::Host(side)));
            assert_eq!(plan.owner(host.ipv6.unwrap().into()), Some(Owner::Host(side)));
        }
        assert_eq!(plan.owner([10, 77, 1, 4].into()), None);
        assert_eq!(plan.owner([10, 77, 255, 255].into()), None);
    }

    #[test]
    fn small_links_carry_no_ipv6() {
        let plan = AddressPlan::of(&path(2, 576)).unwrap();
        assert_eq!(plan.host(Side::Sender).ipv6, None);
        let plan = AddressPlan::of(&path(2, 1280)).unwrap();
        assert!(plan.host(Side::Sender).ipv6.is_some());
        assert_eq!(plan.without_ipv6().host(Side::Sender).ipv6, None);
    }

    #[test]
    fn too_many_hops_are_refused() {
        assert!(AddressPlan::of(&path(250, 1500)).is_ok());
        assert!(matches!(AddressPlan::of(&path(251, 1500)), Err(LabError::TooManyHops { hops: 251, .. })));
    }
}
