//! One direction of one TCP connection, condensed.

use super::{Course, SeenPacket};

/// One direction of one TCP connection, condensed to what passive methods read. Its memory is bounded, however long the flow.
#[derive(Debug, Clone, Default)]
pub struct FlowLog {
    packets: u64,
}

impl FlowLog {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more packet of the connection, in capture order.
    pub fn see(&mut self, course: Course, packet: &SeenPacket) {
        let _ = (course, packet);
        self.packets += 1;
    }
}
