//! What the remote host has read of a transfer.

use std::time::Duration;

use narrows_wire::TransferReceived;

use crate::client::convert::share;

/// What the remote host has read of a forward transfer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RemoteRead {
    pub(super) octets: u64,
    pub(super) span_ns: Option<(i64, i64)>,
    /// The highest CPU share since it was last asked for.
    pub(super) cpu: Option<f32>,
}

impl RemoteRead {
    pub(super) fn take(&mut self, received: &TransferReceived) {
        self.octets = received.octets;
        self.span_ns = received.span_ns;
        let cpu = received.receiver_cpu_permille.map(share);
        self.cpu = match (self.cpu, cpu) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Octets since `before`, and the time from the first of them to the last.
pub(super) fn read_since(before: (u64, Option<(i64, i64)>), after: (u64, Option<(i64, i64)>)) -> (u64, Duration) {
    let (first, last) = after.1.unwrap_or((0, 0));
    let first = before.1.map_or(first, |(_, last_before)| last_before);
    (after.0.saturating_sub(before.0), Duration::from_nanos(u64::try_from(last.saturating_sub(first)).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_counts_from_the_segments_begin() {
        assert_eq!(read_since((0, None), (0, None)), (0, Duration::ZERO));
        assert_eq!(read_since((0, None), (500, Some((10, 40)))), (500, Duration::from_nanos(30)));
        assert_eq!(read_since((200, Some((10, 25))), (500, Some((10, 40)))), (300, Duration::from_nanos(15)));
    }
}
