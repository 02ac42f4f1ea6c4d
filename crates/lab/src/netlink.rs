//! What a lab asks of the kernel's network configuration, by rtnetlink(7): a dozen messages, each
//! answered before the next.

mod attributes;
mod link;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use self::attributes::Attributes;
pub(crate) use self::link::Link;

/// A socket to the kernel, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
}

/// A route to one address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostRoute {
    pub(crate) to: IpAddr,
    /// Who passes on what goes there; `None`: it is a neighbour.
    pub(crate) via: Option<IpAddr>,
    /// The interface's number.
    pub(crate) interface: u32,
    pub(crate) mtu: Option<u32>,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket::socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Self { socket })
    }

    /// Makes an interface.
    pub(crate) fn add(&self, link: &Link) -> io::Result<()> {
        self.ask(RTM_NEWLINK, NEW, &link.octets())
    }

    /// Changes an interface.
    pub(crate) fn set(&self, link: &Link) -> io::Result<()> {
        self.ask(RTM_NEWLINK, 0, &link.octets())
    }

    /// Deletes an interface.
    pub(crate) fn delete(&self, link: &Link) -> io::Result<()> {
        self.ask(RTM_DELLINK, 0, &link.octets())
    }

    /// Whether an interface of this number sends what it is given. Setting both ends of a cable up
    /// is not enough: until the kernel's own thread has seen the carrier, the device has a queue
    /// that drops everything and says nothing.
    pub(crate) fn sends(&self, number: u32) -> io::Result<bool> {
        let answer = self.exchange(RTM_GETLINK, 0, &Link::numbered(number).octets())?;
        if kind_of(&answer) != Some(RTM_NEWLINK) {
            said(&answer)?;
        }
        let state = attributes::value(answer.get(HEAD + IFINFO..).unwrap_or_default(), IFLA_OPERSTATE);
        // Devices that nothing is plugged into have no state of their own.
        Ok(matches!(state, Some([IF_OPER_UNKNOWN | IF_OPER_UP, ..])))
    }

    /// Gives an interface an address in a network of this length.
    pub(crate) fn add_address(&self, interface: u32, address: IpAddr, length: u8) -> io::Result<()> {
        // struct ifaddrmsg: family, length, flags, scope; then the interface's number.
        let mut message = vec![family(address), length, 0, 0];
        message.extend(interface.to_ne_bytes());
        let mut attributes = Attributes::new(message);
        attributes.put_ip(IFA_ADDRESS, address);
        if let IpAddr::V4(ipv4) = address {
            attributes.put_ip(IFA_LOCAL, address);
            let hosts = u32::MAX.checked_shr(length.into()).unwrap_or(0);
            attributes.put(IFA_BROADCAST, &(ipv4.to_bits() | hosts).to_be_bytes());
        }
        self.ask(RTM_NEWADDR, NEW, &attributes.octets())
    }

    /// Tells the link-layer address of a neighbour, for good.
    pub(crate) fn add_neighbour(&self, interface: u32, address: IpAddr, mac: &[u8]) -> io::Result<()> {
        // struct ndmsg: family and padding; the interface's number; state, flags, kind.
        let mut message = vec![family(address), 0, 0, 0];
        message.extend(interface.to_ne_bytes());
        message.extend(NUD_PERMANENT.to_ne_bytes());
        message.extend([0, 0]);
        let mut attributes = Attributes::new(message);
        attributes.put_ip(NDA_DST, address);
        attributes.put(NDA_LLADDR, mac);
        self.ask(RTM_NEWNEIGH, NEW, &attributes.octets())
    }

    /// Adds a route to one address.
    pub(crate) fn add_route(&self, route: &HostRoute) -> io::Result<()> {
        self.ask(RTM_NEWROUTE, NEW, &route.octets())
    }

    /// Sends a request and reads whether the kernel did it.
    fn ask(&self, kind: u16, flags: u16, message: &[u8]) -> io::Result<()> {
        said(&self.exchange(kind, NLM_F_ACK | flags, message)?)
    }

    /// Sends a request and reads the first thing that the kernel says to it.
    fn exchange(&self, kind: u16, flags: u16, message: &[u8]) -> io::Result<Vec<u8>> {
        // struct nlmsghdr: length, kind, flags, sequence number, port.
        let length = u32::try_from(HEAD + message.len()).map_err(io::Error::other)?;
        let mut request = length.to_ne_bytes().to_vec();
        request.extend(kind.to_ne_bytes());
        request.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        request.extend([0; 8]);
        request.extend(message);
        let socket = self.socket.as_raw_fd();
        socket::send(socket, &request, MsgFlags::empty())?;
        let mut answer = vec![0; ANSWER];
        let octets = socket::recv(socket, &mut answer, MsgFlags::empty())?;
        answer.truncate(octets);
        Ok(answer)
    }
}

impl HostRoute {
    fn octets(&self) -> Vec<u8> {
        let scope = if self.via.is_none() && self.to.is_ipv4() { RT_SCOPE_LINK } else { RT_SCOPE_UNIVERSE };
        let whole = if self.to.is_ipv4() { 32 } else { 128 };
        // struct rtmsg: family, lengths of destination and source, service; table, who says so,
        // scope, kind; flags.
        let mut message = vec![family(self.to), whole, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST];
        message.extend(if self.via.is_some() { RTNH_F_ONLINK } else { 0 }.to_ne_bytes());
        let mut attributes = Attributes::new(message);
        attributes.put_ip(RTA_DST, self.to);
        attributes.put(RTA_OIF, &self.interface.to_ne_bytes());
        if let Some(via) = self.via {
            attributes.put_ip(RTA_GATEWAY, via);
        }
        if let Some(mtu) = self.mtu {
            let mut metrics = Attributes::new(Vec::new());
            metrics.put(RTAX_MTU, &mtu.to_ne_bytes());
            attributes.put(RTA_METRICS, &metrics.octets());
        }
        attributes.octets()
    }
}

/// What an answer says: the kernel's error number, below zero, or zero.
fn said(answer: &[u8]) -> io::Result<()> {
    let error = answer.get(HEAD..HEAD + 4).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes);
    match (kind_of(answer), error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(io::Error::other("the kernel's answer is no acknowledgement")),
    }
}

/// The kind of an answer.
fn kind_of(answer: &[u8]) -> Option<u16> {
    answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes)
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    }
}

const HEAD: usize = 16;
/// struct ifinfomsg.
const IFINFO: usize = 16;
/// Room for an answer: an interface with all its counters takes 2 kB.
const ANSWER: usize = 16_384;
// Numbers of linux/netlink.h, linux/rtnetlink.h, linux/if_addr.h, linux/if_link.h, linux/if.h and
// linux/neighbour.h.
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
/// Create, and only what is not there yet.
const NEW: u16 = 0x400 | 0x200;
const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const NUD_PERMANENT: u16 = 0x80;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const IFLA_OPERSTATE: u16 = 16;
const IF_OPER_UNKNOWN: u8 = 0;
const IF_OPER_UP: u8 = 6;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTAX_MTU: u16 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;
const RTNH_F_ONLINK: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_as_iproute2_writes_it() {
        let route = HostRoute {
            to: [10, 0, 0, 2].into(),
            via: Some([10, 0, 0, 1].into()),
            interface: 0x0102_0304,
            mtu: Some(1400),
        };
        let mut wanted = vec![2, 32, 0, 0, 254, 4, 0, 1];
        wanted.extend(4u32.to_ne_bytes());
        let mut put = |kind: u16, value: &[u8]| {
            wanted.extend(u16::try_from(value.len() + 4).unwrap().to_ne_bytes());
            wanted.extend(kind.to_ne_bytes());
            wanted.extend(value);
        };
        put(1, &[10, 0, 0, 2]);
        put(4, &0x0102_0304_u32.to_ne_bytes());
        put(5, &[10, 0, 0, 1]);
        let mtu = [8_u16.to_ne_bytes(), 2_u16.to_ne_bytes()].concat();
        put(8, &[mtu, 1400_u32.to_ne_bytes().to_vec()].concat());
        assert_eq!(route.octets(), wanted);
        let near = HostRoute { via: None, mtu: None, ..route };
        assert_eq!(near.octets()[6], 253);
    }

    #[test]
    fn the_kernel_says_what_is_wrong() {
        // Whatever this machine allows: no interface has this number.
        let answer = Netlink::open().unwrap().delete(&Link::numbered(i32::MAX.unsigned_abs()));
        let errno = answer.unwrap_err().raw_os_error();
        assert!(errno == Some(nix::libc::ENODEV) || errno == Some(nix::libc::EPERM), "{errno:?}");
        assert!(said(&[0; 3]).is_err() && said(&[0; 20]).is_err());
        let answer = Netlink::open().unwrap().sends(i32::MAX.unsigned_abs());
        assert_eq!(answer.unwrap_err().raw_os_error(), Some(nix::libc::ENODEV));
    }
}
