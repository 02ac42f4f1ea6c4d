//! The TUN device of a host: its kernel's end is the host's only interface, ours is where the path begins and ends.

use std::fmt;
use std::io;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::error::LabError;
use crate::host::LabHost;
use crate::namespace::{set_queue_packets, transmit_drops};
use crate::plan::AddressPlan;
use crate::player::End;

/// Name of the interface inside each host.
pub const INTERFACE: &str = "path0";

/// Packets that the kernel keeps for us, so that it never drops what a train puts in at once while we are away. At 1500 octets this is
/// 20 MB, more than the path's own queues usually hold.
const QUEUE_PACKETS: u32 = 16_384;

/// A TUN device, seen from the path. Packets come complete: without a virtio header the kernel has to segment and to compute checksums
/// itself. A packet counts as sent once it is in the device's queue, so TCP small queues do not hold a sender back here as they do on an
/// interface card.
pub(crate) struct Device {
    tun: SyncDevice,
}

impl Device {
    /// Makes the device inside the host and sets it up.
    pub(crate) fn create(host: &LabHost) -> Result<Self, LabError> {
        let doing = || format!("making the TUN device of the {}", host.side().name());
        let addresses = host.addresses();
        let made = host.run(|| -> io::Result<SyncDevice> {
            let builder = DeviceBuilder::new()
                .name(INTERFACE)
                .mtu(host.mtu())
                .packet_information(false)
                .offload(false)
                .ipv4(addresses.ipv4, AddressPlan::PREFIX_V4, None);
            let builder = match addresses.ipv6 {
                Some(ipv6) => builder.ipv6(ipv6, AddressPlan::PREFIX_V6),
                None => builder,
            };
            let tun = builder.build_sync()?;
            set_queue_packets(INTERFACE, QUEUE_PACKETS)?;
            tun.set_nonblocking(true)?;
            Ok(tun)
        })?;
        let tun = made.map_err(|source| LabError::kernel(doing(), source))?;
        Ok(Self { tun })
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INTERFACE)
    }
}

impl End for Device {
    /// A read takes some 0.3 to 1 µs.
    const CLOSE_NS: u64 = 2_000;

    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tun.recv(into) {
            Ok(octets) => Ok(Some(octets)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn deliver(&mut self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet).map(|_| ())
    }
}

/// Packets that the host's kernel dropped on their way to us, because its queue was full.
pub(crate) fn dropped_by_kernel(host: &LabHost) -> Result<u64, LabError> {
    let doing = || format!("reading the interface counters of the {}", host.side().name());
    transmit_drops(host.namespace(), INTERFACE).map_err(|source| LabError::kernel(doing(), source))
}
