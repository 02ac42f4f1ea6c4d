//! Which hosts send the streams by which paths are grouped ([`super::rfc8382`]).

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::rfc8382::{DelaySummary, summarise};

/// The command of a stream: 18.4 s of echoes each 20 ms, which are 52 intervals of RFC 8382.
pub const STREAM: &str = "rtt --param probes=920 --param train=920 --param spacing=20ms --param delays=true";

/// Under this name the evidence of its run has a [`super::rfc8382::DelaySummary`].
pub const DELAY_SUMMARY: &str = "delay_summary";

/// Names of the delays of each direction in the evidence of a stream, forward first.
pub const DELAY_SERIES: [&str; 2] = ["forward_delays_ns", "reverse_delays_ns"];

/// By so much the delays of an idle path vary, where hosts wake up late: no queue shows below
/// that, in ns. Ours.
pub const NOISE_NS: f64 = 100_000.0;

/// What the delays in the evidence of a run look like, if it was a stream.
pub fn delay_summary(evidence: &Map<String, Value>) -> Option<DelaySummary> {
    let spacing = Duration::from_nanos(evidence.get("delay_spacing_ns")?.as_u64()?);
    let summary = |name| {
        // A packet without an echo is null.
        let delays: Vec<Option<f64>> = evidence.get(name)?.as_array()?.iter().map(Value::as_f64).collect();
        summarise(&delays, spacing)
    };
    let [forward, reverse] = DELAY_SERIES.map(summary);
    Some(DelaySummary { forward, reverse })
}

/// A path, and which of its hosts sends. Echoes show both directions, so either host can; an agent
/// sends one stream at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream<H> {
    /// Where the path begins.
    pub source: H,
    /// Where it ends.
    pub target: H,
    /// Whether its target sends, and the path is the reverse direction.
    pub from_target: bool,
}

impl<H> Stream<H> {
    /// Who sends, and to whom.
    pub const fn ends(&self) -> (&H, &H) {
        if self.from_target { (&self.target, &self.source) } else { (&self.source, &self.target) }
    }
}

/// A stream for each path as long as there are hosts that send none, so many at most. The source
/// sends unless it sends already.
pub fn streams<H: Clone + Ord>(paths: impl IntoIterator<Item = (H, H)>, most: usize) -> Vec<Stream<H>> {
    let mut sending = BTreeSet::new();
    let stream = |(source, target): (H, H)| {
        let from_target = if sending.insert(source.clone()) {
            false
        } else if sending.insert(target.clone()) {
            true
        } else {
            return None;
        };
        Some(Stream { source, target, from_target })
    };
    paths.into_iter().filter_map(stream).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(paths: &[(u32, u32)], most: usize) -> Vec<(u32, u32)> {
        let streams = streams(paths.iter().copied(), most);
        // Whoever sends, the path is the one that was asked for.
        assert!(streams.iter().all(|one| paths.contains(&(one.source, one.target))), "{streams:?}");
        streams.iter().map(|one| (*one.ends().0, *one.ends().1)).collect()
    }

    #[test]
    fn no_host_sends_two_streams() {
        // From one host to many: the others send.
        assert_eq!(sent(&[(0, 1), (0, 2), (0, 3)], 9), [(0, 1), (2, 0), (3, 0)]);
        // From many to one.
        assert_eq!(sent(&[(1, 0), (2, 0), (3, 0)], 9), [(1, 0), (2, 0), (3, 0)]);
        // Two hosts send two streams, and no third.
        assert_eq!(sent(&[(0, 1), (1, 0), (0, 1)], 9), [(0, 1), (1, 0)]);
        assert_eq!(sent(&[(0, 1), (2, 3), (4, 5)], 2), [(0, 1), (2, 3)]);
    }
}
