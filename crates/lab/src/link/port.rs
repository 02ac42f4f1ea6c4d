//! The ports of a link: how frames get from a kernel to the engine and back.
//!
//! A ring costs no system call to look at, and the sender's processor does the copying, so that
//! several links can be watched at once; a TAP device costs one call per look. Both cost one call
//! per frame handed over, within which the kernel carries the frame on as far as it gets (through a
//! router to its next device, for example).

use std::fmt;
use std::io;

use narrows_net::ring::{PacketRing, RingFrame, RingOptions};
use narrows_net::tun::{Tun, TunLayer};

use super::ethernet::{HEADER_OCTETS, TAG_OCTETS, TYPE_AT};
use super::{PortKind, PortSpec};
use crate::error::LabError;
use crate::namespace::{Namespace, set_queue_packets, transmit_drops};
use crate::netlink::{Link, Netlink};
use crate::player::End;

/// Frames kept for us while the thread stands still: at 1 Gb/s 25 ms of full ones, at 100 Mb/s 12
/// ms of the smallest.
const RING_FRAMES: usize = 2_048;
/// As for the TUN device of a host.
const TAP_QUEUE_PACKETS: u32 = 16_384;

/// A port, seen from the engine.
pub(crate) enum Port {
    Ring(PacketRing),
    Tap(Tun),
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring(_) => "Ring",
            Self::Tap(_) => "Tap",
        })
    }
}

/// Most octets of a frame of a port: header, two tags, packet.
pub(super) fn frame_octets(mtu: u16) -> usize {
    HEADER_OCTETS + 2 * TAG_OCTETS + usize::from(mtu)
}

impl Port {
    /// Makes the device in its namespace, down, and the engine's side of it. `own` is the engine's
    /// namespace, `number` is of this port alone.
    pub(super) fn create(spec: &PortSpec, kind: PortKind, own: &Namespace, number: usize) -> Result<Self, LabError> {
        let wrong = |source: io::Error| LabError::kernel(format!("making the device {}", spec.device), source);
        let made = match kind {
            PortKind::Tap => Self::tap(spec),
            PortKind::Ring => Self::ring(spec, own, number),
            PortKind::Auto => Self::ring(spec, own, number).or_else(|error| {
                tracing::info!(device = spec.device, %error, "no ring for this port; it gets a TAP device");
                Self::tap(spec)
            }),
        };
        made.map_err(wrong)
    }

    /// Takes what waits, at most as much as a queue holds, for nobody.
    pub(super) fn discard(&mut self, frame_octets: usize) {
        let mut frame = vec![0; frame_octets];
        for _ in 0..TAP_QUEUE_PACKETS {
            if !self.may_have() || matches!(self.receive(&mut frame), Ok(None)) {
                return;
            }
        }
    }

    fn ring(spec: &PortSpec, own: &Namespace, number: usize) -> io::Result<Self> {
        let name = own_name(number);
        let options = RingOptions { frames: RING_FRAMES, snap_octets: frame_octets(spec.mtu), outgoing: false };
        let ring = own.inside(|| {
            make_pair(spec, &name)?;
            narrows_net::host::turn_off_offloads(&name)?;
            PacketRing::open(&name, &options)
        });
        let ready = ring.and_then(|ring| ring).and_then(|ring| {
            // A frame that enters is as it would be on a wire: no longer than the MTU allows, with
            // all its checksums.
            spec.namespace.inside(|| narrows_net::host::turn_off_offloads(&spec.device))??;
            Ok(Self::Ring(ring))
        });
        if ready.is_err() {
            // The pair may stand already; a TAP device of the same name is to follow.
            let _ = own.inside(|| remove(&name));
        }
        ready
    }

    fn tap(spec: &PortSpec) -> io::Result<Self> {
        spec.namespace.inside(|| {
            let tap = Tun::create(&spec.device, TunLayer::Ethernet)?;
            Netlink::open()?.set(&Link::named(&spec.device).mtu(spec.mtu).mac(&spec.mac))?;
            set_queue_packets(&spec.device, TAP_QUEUE_PACKETS)?;
            Ok(Self::Tap(tap))
        })?
    }
}

impl End for Port {
    /// A frame of 1500 octets takes some 0.3 µs to read.
    const CLOSE_NS: u64 = 1_000;

    #[inline]
    fn may_have(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.is_waiting(),
            Self::Tap(_) => true,
        }
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Ring(ring) => ring.receive(|frame| copy(&frame, into)).transpose(),
            Self::Tap(tap) => match tap.receive(into) {
                Ok(octets) => Ok(Some(octets)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                // Nobody has set the device up yet (EIO), or it is gone (EBADFD).
                Err(error) if matches!(error.raw_os_error(), Some(5 | 77)) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    #[inline]
    fn deliver(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Ring(ring) => ring.send(frame),
            Self::Tap(tap) => tap.send(frame),
        }
    }

    fn lost(&mut self) -> u64 {
        match self {
            Self::Ring(ring) => ring.counts().map_or(0, |counts| counts.dropped),
            Self::Tap(_) => 0,
        }
    }
}

/// Copies a frame out of the ring, its tag back in its place; how many octets it has.
fn copy(frame: &RingFrame<'_>, into: &mut [u8]) -> io::Result<usize> {
    let octets = frame.octets;
    if frame.checksum_partial || frame.whole_octets > octets.len() || octets.len() < HEADER_OCTETS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let tag_octets = if frame.vlan.is_some() { TAG_OCTETS } else { 0 };
    let length = octets.len() + tag_octets;
    let place = into.get_mut(..length).ok_or(io::ErrorKind::InvalidData)?;
    let Some((protocol, control)) = frame.vlan else {
        place.copy_from_slice(octets);
        return Ok(length);
    };
    place[..TYPE_AT].copy_from_slice(&octets[..TYPE_AT]);
    place[TYPE_AT..TYPE_AT + 2].copy_from_slice(&protocol.to_be_bytes());
    place[TYPE_AT + 2..TYPE_AT + 4].copy_from_slice(&control.to_be_bytes());
    place[TYPE_AT + TAG_OCTETS..].copy_from_slice(&octets[TYPE_AT..]);
    Ok(length)
}

/// Frames that kernels dropped between the programs of this namespace and the engine, or behind it:
/// 0 for what is gone.
pub(super) fn dropped_by_kernel(spec: &PortSpec, own: &Namespace, number: usize) -> u64 {
    transmit_drops(&spec.namespace, &spec.device).unwrap_or(0) + transmit_drops(own, &own_name(number)).unwrap_or(0)
}

/// The engine's end of a pair.
fn own_name(number: usize) -> String {
    format!("port{number}")
}

/// Makes a veth pair: one end here and up, the other in the port's namespace and down.
fn make_pair(spec: &PortSpec, name: &str) -> io::Result<()> {
    // No address is wanted on the engine's ends, nor what a kernel sends to get one. Without IPv6
    // there is no such file.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let namespace = std::os::fd::AsRawFd::as_raw_fd(spec.namespace.file());
    let peer = Link::named(&spec.device).mtu(spec.mtu).mac(&spec.mac).within(namespace);
    Netlink::open()?.add(&Link::named(name).mtu(spec.mtu).up().cable_to(&peer))
}

/// Removes the first `count` pairs, as far as they are there.
pub(super) fn remove_all(own: &Namespace, count: usize) {
    let removed = own.inside(|| {
        for number in 0..count {
            // A TAP device goes with its port; a pair may have gone with the namespace of its other
            // end.
            let _ = remove(&own_name(number));
        }
    });
    if let Err(error) = removed {
        tracing::warn!(%error, "could not remove the devices of the link engine");
    }
}

fn remove(name: &str) -> io::Result<()> {
    let index = nix::net::if_::if_nametoindex(name)?;
    Netlink::open()?.delete(&Link::numbered(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(octets: &[u8], vlan: Option<(u16, u16)>) -> RingFrame<'_> {
        RingFrame { octets, whole_octets: octets.len(), vlan, stamp: (0, 0), checksum_partial: false, outgoing: false }
    }

    #[test]
    fn a_tag_is_put_back() {
        let octets: Vec<u8> = (0..20).collect();
        let mut into = [0; 30];
        assert_eq!(copy(&frame(&octets, None), &mut into).unwrap(), 20);
        assert_eq!(into[..20], octets);
        assert_eq!(copy(&frame(&octets, Some((0x8100, 0x2005))), &mut into).unwrap(), 24);
        assert_eq!(into[..12], octets[..12]);
        assert_eq!(into[12..16], [0x81, 0, 0x20, 5]);
        assert_eq!(into[16..24], octets[12..]);
    }

    #[test]
    fn frames_that_are_not_whole_are_refused() {
        let octets = [1; 20];
        let mut into = [0; 22];
        let cut = RingFrame { whole_octets: 21, ..frame(&octets, None) };
        let partial = RingFrame { checksum_partial: true, ..frame(&octets, None) };
        for wrong in [cut, partial, frame(&octets[..13], None), frame(&octets, Some((0x8100, 1)))] {
            assert!(copy(&wrong, &mut into).is_err(), "{wrong:?}");
        }
    }
}
