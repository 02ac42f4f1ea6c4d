//! The queueing discipline of an interface, asked of the kernel by rtnetlink.

use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

const RTM_GETQDISC: u16 = 38;
const RTM_NEWQDISC: u16 = 36;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_KIND: u16 = 1;
const HEADER_OCTETS: usize = 16;
const TCMSG_OCTETS: usize = 20;

/// The kind of the discipline at the interface's root (`fq_codel`, `noqueue` …).
pub(super) fn root_of(interface: u32) -> Option<String> {
    let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute).ok()?;
    setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::milliseconds(100)).ok()?;
    sendto(fd.as_raw_fd(), &request(), &NetlinkAddr::new(0, 0), MsgFlags::empty()).ok()?;
    let mut buffer = vec![0; 64 << 10];
    // The kernel answers in as many datagrams as it needs; a bound for the case that it never says
    // it is done.
    for _ in 0..64 {
        let length = recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty()).ok()?;
        match search(&buffer[..length], interface) {
            Answer::Kind(kind) => return Some(kind),
            Answer::Over => return None,
            Answer::More => {}
        }
    }
    None
}

/// A dump of all disciplines.
fn request() -> [u8; HEADER_OCTETS + TCMSG_OCTETS] {
    const NLM_F_REQUEST: u16 = 1;
    const NLM_F_DUMP: u16 = 0x300;
    let mut octets = [0; HEADER_OCTETS + TCMSG_OCTETS];
    octets[0..4].copy_from_slice(&36u32.to_ne_bytes());
    octets[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
    octets[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    octets
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Kind(String),
    More,
    Over,
}

fn search(mut octets: &[u8], interface: u32) -> Answer {
    while let (Some(length), Some(kind)) = (word(octets, 0), half(octets, 4)) {
        let length = length as usize;
        let Some(body) = octets.get(HEADER_OCTETS..length) else {
            return Answer::Over;
        };
        match kind {
            NLMSG_DONE | NLMSG_ERROR => return Answer::Over,
            RTM_NEWQDISC if word(body, 4) == Some(interface) && word(body, 12) == Some(TC_H_ROOT) => {
                if let Some(kind) = kind_of(body.get(TCMSG_OCTETS..).unwrap_or_default()) {
                    return Answer::Kind(kind);
                }
            }
            _ => {}
        }
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Answer::More
}

fn kind_of(mut attributes: &[u8]) -> Option<String> {
    loop {
        let (length, kind) = (usize::from(half(attributes, 0)?), half(attributes, 2)?);
        let value = attributes.get(4..length)?;
        if kind == TCA_KIND {
            let text = value.strip_suffix(&[0]).unwrap_or(value);
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut octets = u32::try_from(HEADER_OCTETS + body.len()).unwrap().to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.resize(HEADER_OCTETS, 0);
        octets.extend(body);
        octets
    }

    fn qdisc(interface: u32, parent: u32, name: [u8; 4]) -> Vec<u8> {
        let mut body = vec![0; TCMSG_OCTETS];
        body[4..8].copy_from_slice(&interface.to_ne_bytes());
        body[12..16].copy_from_slice(&parent.to_ne_bytes());
        body.extend([8u16.to_ne_bytes(), TCA_KIND.to_ne_bytes()].concat());
        body.extend(name);
        message(RTM_NEWQDISC, &body)
    }

    #[test]
    fn finds_the_root_of_the_right_interface() {
        let mut octets = qdisc(2, TC_H_ROOT, *b"tbf\0");
        octets.extend(qdisc(3, 7, *b"fq\0\0"));
        octets.extend(qdisc(3, TC_H_ROOT, *b"mq\0\0"));
        assert_eq!(search(&octets, 2), Answer::Kind("tbf".to_owned()));
        assert_eq!(search(&octets, 4), Answer::More);
        octets.extend(message(NLMSG_DONE, &[0; 4]));
        assert_eq!(search(&octets, 4), Answer::Over);
    }

    proptest! {
        #[test]
        fn any_octets_end(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            search(&octets, 1);
        }
    }
}
