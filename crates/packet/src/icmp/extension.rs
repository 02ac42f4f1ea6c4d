//! What ICMP errors say beside the quote (RFC 4884).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::checksum as checksum_of;
use crate::reader::Reader;

/// Most objects and labels that are read of one message: real ones have a handful.
pub const MAX_OBJECTS: usize = 32;

/// An extension structure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extensions {
    /// Its objects, in order.
    pub objects: Vec<Object>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// The label stack with which the packet came, top first (RFC 4950).
    Mpls(Vec<MplsLabel>),
    /// An interface of the router (RFC 5837).
    Interface(InterfaceInfo),
    /// Another one.
    Other {
        /// Its class.
        class: u8,
        /// Its type within the class.
        kind: u8,
        /// Octets of its payload.
        octets: usize,
    },
}

/// A label of a stack (RFC 3032).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MplsLabel {
    /// The label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// It is the last of the stack.
    pub bottom: bool,
    /// Its time to live.
    pub ttl: u8,
}

/// What a router says of one of its interfaces. What it does not say, or says wrongly, is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// What the interface is to the packet.
    pub role: InterfaceRole,
    /// Its `ifIndex`.
    pub index: Option<u32>,
    /// An address of it.
    pub address: Option<IpAddr>,
    /// Its name, at most 63 octets.
    pub name: Option<String>,
    /// Its MTU.
    pub mtu: Option<u32>,
}

/// What an interface is to the packet (RFC 5837 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceRole {
    /// The packet came in there.
    Incoming,
    /// A component of a bundle there.
    SubIp,
    /// It would have gone out there.
    Outgoing,
    /// Its next hop would have been there.
    NextHop,
}

/// Octets that are no extension structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionsError {
    /// They end too early.
    #[error("the extensions end in the middle of {0}")]
    Short(&'static str),
    /// They are of another version.
    #[error("extensions of version {0} are not known")]
    Version(u8),
    /// The checksum is another.
    #[error("the checksum of the extensions does not fit")]
    Checksum,
    /// An object is shorter than its own header, or longer than what there is.
    #[error("an object of {0} octets has no place")]
    Length(u16),
}

impl Extensions {
    /// From the extension header to the end of the message. A checksum of zero says that there is
    /// none.
    pub fn parse(octets: &[u8]) -> Result<Self, ExtensionsError> {
        Self::read(octets, false)
    }

    /// The same where nothing else says that these octets are extensions: the checksum must be
    /// there.
    pub(crate) fn parse_checked(octets: &[u8]) -> Result<Self, ExtensionsError> {
        Self::read(octets, true)
    }

    fn read(octets: &[u8], must_check: bool) -> Result<Self, ExtensionsError> {
        let mut reader = Reader::new(octets);
        let short = ExtensionsError::Short("their header");
        let version = reader.u16().ok_or(short)? >> 12;
        let checksum = reader.u16().ok_or(short)?;
        if version != 2 {
            return Err(ExtensionsError::Version(u8::try_from(version).unwrap_or(u8::MAX)));
        }
        if (must_check || checksum != 0) && (checksum == 0 || checksum_of(octets) != 0) {
            return Err(ExtensionsError::Checksum);
        }
        let mut objects = Vec::new();
        let mut rest = reader.rest();
        while !rest.is_empty() && objects.len() < MAX_OBJECTS {
            let mut reader = Reader::new(rest);
            let short = ExtensionsError::Short("an object's header");
            let length = reader.u16().ok_or(short)?;
            let (class, kind) = (reader.u8().ok_or(short)?, reader.u8().ok_or(short)?);
            let wrong = ExtensionsError::Length(length);
            let payload = rest.get(4..usize::from(length)).ok_or(wrong)?;
            objects.push(Object::read(class, kind, payload));
            rest = rest.get(usize::from(length)..).ok_or(wrong)?;
        }
        Ok(Self { objects })
    }

    /// All labels of all stacks, top first.
    pub fn labels(&self) -> impl Iterator<Item = MplsLabel> + '_ {
        self.objects
            .iter()
            .flat_map(|object| match object {
                Object::Mpls(labels) => labels.as_slice(),
                Object::Interface(_) | Object::Other { .. } => &[],
            })
            .copied()
    }
}

impl Object {
    fn read(class: u8, kind: u8, payload: &[u8]) -> Self {
        match (class, kind) {
            (1, 1) => {
                let (labels, _) = payload.as_chunks::<4>();
                let labels = labels.iter().take(MAX_OBJECTS).map(|octets| MplsLabel::read(*octets));
                Self::Mpls(labels.collect())
            }
            (2, _) => Self::Interface(InterfaceInfo::read(kind, payload)),
            _ => Self::Other { class, kind, octets: payload.len() },
        }
    }
}

impl MplsLabel {
    fn read(octets: [u8; 4]) -> Self {
        let word = u32::from_be_bytes(octets);
        let [_, _, middle, ttl] = octets;
        Self { label: word >> 12, traffic_class: (middle >> 1) & 7, bottom: middle & 1 == 1, ttl }
    }
}

impl InterfaceInfo {
    /// The bits of the type say which fields follow, in this order: index, address, name, MTU.
    fn read(kind: u8, payload: &[u8]) -> Self {
        let mut info = Self {
            role: match kind >> 6 {
                0 => InterfaceRole::Incoming,
                1 => InterfaceRole::SubIp,
                2 => InterfaceRole::Outgoing,
                _ => InterfaceRole::NextHop,
            },
            index: None,
            address: None,
            name: None,
            mtu: None,
        };
        // What is damaged ends the reading; what came before it stays.
        let _ = info.fill(kind, &mut Reader::new(payload));
        info
    }

    fn fill(&mut self, kind: u8, reader: &mut Reader<'_>) -> Option<()> {
        const INDEX: u8 = 8;
        const ADDRESS: u8 = 4;
        const NAME: u8 = 2;
        const MTU: u8 = 1;
        if kind & INDEX > 0 {
            self.index = Some(reader.u32()?);
        }
        if kind & ADDRESS > 0 {
            let family = reader.u16()?;
            let _reserved = reader.u16()?;
            // Address family numbers of IANA.
            self.address = match family {
                1 => Some(Ipv4Addr::from(reader.take::<4>()?).into()),
                2 => Some(Ipv6Addr::from(reader.take::<16>()?).into()),
                _ => return None,
            };
        }
        if kind & NAME > 0 {
            // The first octet counts all, itself included; a multiple of four, at most 64.
            let length = usize::from(reader.u8()?);
            if !(4..=64).contains(&length) || length % 4 != 0 {
                return None;
            }
            let mut octets = Vec::with_capacity(length);
            for _ in 1..length {
                octets.push(reader.u8()?);
            }
            let text = String::from_utf8_lossy(&octets);
            self.name = Some(text.trim_end_matches('\0').to_owned());
        }
        if kind & MTU > 0 {
            self.mtu = Some(reader.u32()?);
        }
        Some(())
    }
}
