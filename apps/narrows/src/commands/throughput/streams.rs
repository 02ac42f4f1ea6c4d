//! Streams as both sides counted them.

use narrows_net::iperf3::Finished;
use narrows_wire::iperf3::StreamResult;

/// A stream as both sides counted it.
pub(super) struct Both<'a> {
    pub(super) sends: bool,
    pub(super) id: u32,
    pub(super) sent: &'a StreamResult,
    pub(super) received: &'a StreamResult,
}

/// Streams that both sides know.
pub(super) fn both(finished: &Finished) -> Vec<Both<'_>> {
    let streams = finished.outline.streams.iter();
    streams
        .filter_map(|stream| {
            let (ours, theirs) = (finished.ours.stream(stream.id)?, finished.theirs.stream(stream.id)?);
            let (sent, received) = if stream.sends { (ours, theirs) } else { (theirs, ours) };
            Some(Both { sends: stream.sends, id: stream.id, sent, received })
        })
        .collect()
}
