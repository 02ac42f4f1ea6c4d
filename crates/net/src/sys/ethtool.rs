//! `SIOCETHTOOL`: settings of an interface that are one number each, and what its driver says of
//! it.

#![expect(unsafe_code, reason = "this ioctl takes a pointer within a structure and has no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Sets one such value of an interface in the namespace of the socket.
pub(crate) fn set(socket: BorrowedFd<'_>, interface: &str, command: u32, data: u32) -> io::Result<()> {
    let mut value = Value { command, data };
    let mut request = named(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the kernel reads and writes one `ifreq`, and through it one `Value`, which is as long
    // as these commands say; both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Octets of the longest answer of any [`Question`], with room: `ETHTOOL_GLINKSETTINGS` has 48 and
/// three masks of at most 127 words.
const ANSWER_OCTETS: usize = 2048;

/// What can be asked of a driver. Every answer is a structure of fixed length below
/// [`ANSWER_OCTETS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// `ETHTOOL_GDRVINFO`.
    Driver,
    /// `ETHTOOL_GLINKSETTINGS`, without its masks.
    Link,
    /// `ETHTOOL_GSET`.
    Modes,
    /// `ETHTOOL_GLINK`.
    Carrier,
    /// `ETHTOOL_GCOALESCE`.
    Coalescing,
    /// `ETHTOOL_GRINGPARAM`.
    Rings,
    /// `ETHTOOL_GCHANNELS`.
    Channels,
    /// `ETHTOOL_GET_TS_INFO`.
    Stamps,
    /// `SIOCGHWTSTAMP`.
    StampsOn,
    /// `ETHTOOL_GRXCSUM`.
    ReceiveChecksums,
    /// `ETHTOOL_GTXCSUM`.
    SendChecksums,
    /// `ETHTOOL_GSG`.
    ScatterGather,
    /// `ETHTOOL_GTSO`.
    Segmentation,
    /// `ETHTOOL_GGSO`.
    GenericSegmentation,
    /// `ETHTOOL_GGRO`.
    GenericReceive,
    /// `ETHTOOL_GFLAGS`.
    Flags,
}

impl Question {
    fn command(self) -> u32 {
        match self {
            Self::Driver => 0x03,
            Self::Link => 0x4c,
            Self::Modes => 0x01,
            Self::Carrier => 0x0a,
            Self::Coalescing => 0x0e,
            Self::Rings => 0x10,
            Self::Channels => 0x3c,
            Self::Stamps => 0x41,
            // Has a request of its own, and no command in its structure.
            Self::StampsOn => 0,
            Self::ReceiveChecksums => 0x14,
            Self::SendChecksums => 0x16,
            Self::ScatterGather => 0x18,
            Self::Segmentation => 0x1e,
            Self::GenericSegmentation => 0x23,
            Self::GenericReceive => 0x2b,
            Self::Flags => 0x25,
        }
    }

    fn request(self) -> libc::Ioctl {
        const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
        if self == Self::StampsOn { SIOCGHWTSTAMP } else { libc::SIOCETHTOOL as libc::Ioctl }
    }
}

/// What a driver said, the command's own word included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer(Vec<u8>);

impl Answer {
    #[cfg(test)]
    pub(crate) fn from_octets(octets: &[u8]) -> Self {
        Self(octets.to_vec())
    }

    /// The 32-bit number at this octet.
    pub(crate) fn number(&self, at: usize) -> Option<u32> {
        let octets = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(octets.try_into().ok()?))
    }

    /// The octet at this place.
    pub(crate) fn octet(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// The text of at most so many octets that begins there; up to the first zero.
    pub(crate) fn text(&self, at: usize, most: usize) -> Option<String> {
        let octets = self.0.get(at..at.checked_add(most)?)?;
        let end = octets.iter().position(|octet| *octet == 0).unwrap_or(most);
        Some(String::from_utf8_lossy(&octets[..end]).into_owned())
    }
}

/// Asks the driver of an interface in the namespace of the socket.
pub(crate) fn ask(socket: BorrowedFd<'_>, interface: &str, question: Question) -> io::Result<Answer> {
    // Aligned as any of the structures; as octets afterwards.
    let mut words = [0u32; ANSWER_OCTETS / 4];
    words[0] = question.command();
    let mut request = named(interface)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the kernel reads and writes one `ifreq`, and through it one structure of a fixed
    // length that is below the length of `words` for each question there is (link settings without
    // their number of words are answered without masks); both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), question.request(), &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    if question == Question::Link {
        // The first answer only says, as a negative number, how many words its masks have: ask
        // again with that.
        const WORDS_AT: usize = 15;
        let mut octets: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let masks = octets[WORDS_AT].cast_signed();
        if masks < 0 {
            octets.fill(0);
            octets[..4].copy_from_slice(&question.command().to_ne_bytes());
            octets[WORDS_AT] = masks.wrapping_neg().cast_unsigned();
            for (word, octets) in words.iter_mut().zip(octets.as_chunks::<4>().0) {
                *word = u32::from_ne_bytes(*octets);
            }
            request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
            // SAFETY: as above; at most 127 words for each of three masks behind 48 octets are
            // below the length of `words`.
            let result = unsafe { libc::ioctl(socket.as_raw_fd(), question.request(), &raw mut request) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(Answer(words.iter().flat_map(|word| word.to_ne_bytes()).collect()))
}

/// The largest IP packet of an interface in the namespace of the socket.
pub(crate) fn mtu(socket: BorrowedFd<'_>, interface: &str) -> io::Result<u32> {
    let mut request = named(interface)?;
    // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as libc::Ioctl, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled this field of the union with an int, for which any pattern is
    // valid.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// What frames of an interface begin with: the kernel's `ARPHRD_` number.
pub(crate) fn hardware_type(socket: BorrowedFd<'_>, interface: &str) -> io::Result<u16> {
    let mut request = named(interface)?;
    // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as libc::Ioctl, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled this field of the union with a `sockaddr`, for which any pattern is
    // valid.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family)
}

/// A request about this interface.
pub(super) fn named(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is a C structure of integers, octets and pointers, for all of which zero is a
    // valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, octet) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = libc::c_char::from_ne_bytes([octet]);
    }
    Ok(request)
}
