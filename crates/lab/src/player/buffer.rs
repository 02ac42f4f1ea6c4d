//! Packets in memory that is used again and again.

/// Octets of buffers made before the start: more than most paths ever hold (11 000 packets of 1500
/// octets), so that no burst meets an allocation.
const READY_OCTETS: usize = 16 << 20;

/// A packet's octets, in a buffer that is used again.
#[derive(Debug)]
pub(crate) struct Buffer {
    octets: Box<[u8]>,
    length: usize,
}

impl Buffer {
    pub(crate) fn packet(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    pub(crate) fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.octets[..self.length]
    }

    /// All the room there is.
    pub(crate) fn room_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }

    /// Says how much of the room is the packet.
    pub(crate) fn set_length(&mut self, length: usize) {
        self.length = length.min(self.octets.len());
    }

    /// Takes over a packet; `false`, and nothing changed, if it does not fit.
    pub(crate) fn fill(&mut self, packet: &[u8]) -> bool {
        let Some(place) = self.octets.get_mut(..packet.len()) else {
            return false;
        };
        place.copy_from_slice(packet);
        self.length = packet.len();
        true
    }
}

/// The buffers that hold no packet now. The one given back last is the next to be used: its octets
/// are still in a cache.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<Buffer>,
    octets: usize,
}

impl Pool {
    /// Buffers of so many octets each.
    pub(crate) fn new(octets: usize) -> Self {
        let count = READY_OCTETS / octets.max(1);
        Self { free: (0..count).map(|_| new_buffer(octets)).collect(), octets }
    }

    pub(crate) fn take(&mut self) -> Buffer {
        self.free.pop().unwrap_or_else(|| new_buffer(self.octets))
    }

    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.free.len()
    }
}

fn new_buffer(octets: usize) -> Buffer {
    // Touched once here, so that its pages exist before the first packet.
    Buffer { octets: vec![1; octets].into_boxed_slice(), length: 0 }
}
