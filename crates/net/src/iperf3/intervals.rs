//! The intervals of a test, as many as a host should have to remember.

use std::time::Duration;

use narrows_probe::probes::TcpSample;

use super::stream::Snapshot;

/// Streams' parts of intervals that are kept, and samples of all of them. Ours: some hundred
/// megabytes together, and a minute of 128 streams ten times a second fits.
const MOST_ROWS: usize = 100_000;
const MOST_SAMPLES: usize = 100_000;

/// One stream's part of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamPart {
    /// At its begin.
    pub from: Snapshot,
    /// At its end.
    pub to: Snapshot,
    /// Samples of the connection in between, those at begin and end included; empty unless this
    /// side sends by TCP.
    pub samples: Vec<TcpSample>,
}

/// One interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// When it began, since the test began.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
    /// Before counting began.
    pub omitted: bool,
    /// One per stream.
    pub streams: Vec<StreamPart>,
}

/// What a test reported so far. Where there are too many intervals, each two are joined, again and
/// again; where there are too many samples, every second one is let go of. First and last sample of
/// all stay, and so do all sums.
#[derive(Debug, Clone)]
pub struct Intervals {
    parts: Vec<Part>,
    samples: usize,
    most_rows: usize,
    most_samples: usize,
}

impl Default for Intervals {
    fn default() -> Self {
        Self::keeping(MOST_ROWS, MOST_SAMPLES)
    }
}

impl Intervals {
    fn keeping(most_rows: usize, most_samples: usize) -> Self {
        Self { parts: Vec::new(), samples: 0, most_rows, most_samples }
    }

    /// One more.
    pub fn push(&mut self, part: Part) {
        let streams = part.streams.len();
        self.samples += count(&part);
        self.parts.push(part);
        if self.parts.len().saturating_mul(streams) > self.most_rows {
            self.join_pairs();
        }
        if self.samples > self.most_samples {
            for part in &mut self.parts {
                part.streams.iter_mut().for_each(|stream| halve(&mut stream.samples));
            }
            self.samples = self.parts.iter().map(count).sum();
        }
    }

    /// What is kept.
    pub fn kept(&self) -> &[Part] {
        &self.parts
    }

    /// What is kept, to be changed.
    pub fn kept_mut(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// What was kept.
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    fn join_pairs(&mut self) {
        let mut kept: Vec<Part> = Vec::with_capacity(self.parts.len() / 2 + 1);
        let mut parts = std::mem::take(&mut self.parts).into_iter().peekable();
        while let Some(one) = parts.next() {
            let other = parts.next_if(|other| other.omitted == one.omitted);
            kept.push(match other {
                Some(other) => joined(one, other),
                None => one,
            });
        }
        self.samples = kept.iter().map(count).sum();
        self.parts = kept;
    }
}

fn count(part: &Part) -> usize {
    part.streams.iter().map(|stream| stream.samples.len()).sum()
}

/// Every second sample, the last one among them.
fn halve(samples: &mut Vec<TcpSample>) {
    let odd = samples.len() % 2;
    let mut place = 0;
    samples.retain(|_| {
        place += 1;
        place % 2 == odd
    });
}

/// Lets go of every second sample of a connection where there are more than one of so many streams
/// may have.
pub(super) fn bound(samples: &mut Vec<TcpSample>, streams: usize) {
    if samples.len() > (MOST_SAMPLES / streams.max(1)).max(16) {
        halve(samples);
    }
}

/// Two intervals as one.
pub fn joined(mut one: Part, other: Part) -> Part {
    one.to = other.to;
    let streams = one.streams.len();
    for (stream, next) in one.streams.iter_mut().zip(other.streams) {
        stream.to = next.to;
        stream.samples.extend(next.samples);
        bound(&mut stream.samples, streams);
    }
    one
}

#[cfg(test)]
mod tests {
    use narrows_probe::probes::{TcpMarks, TcpState};
    use narrows_units::Stamp;

    use super::*;

    fn snapshot(id: u32, octets: u64) -> Snapshot {
        Snapshot { octets, ..Snapshot::nothing(id, true) }
    }

    fn part(number: u32, streams: u32, samples: &[TcpSample]) -> Part {
        Part {
            from: Duration::from_millis(100) * number,
            to: Duration::from_millis(100) * (number + 1),
            omitted: number < 5,
            streams: (0..streams)
                .map(|id| StreamPart {
                    from: snapshot(id, u64::from(number)),
                    to: snapshot(id, u64::from(number) + 1),
                    samples: samples.to_vec(),
                })
                .collect(),
        }
    }

    fn sample(at: i64) -> TcpSample {
        TcpSample {
            at: Stamp::from_nanos(at),
            state: TcpState::Open,
            rtt: Duration::ZERO,
            rtt_var: Duration::ZERO,
            min_rtt: None,
            mss_octets: 1448,
            cwnd_segments: 10,
            ssthresh_segments: None,
            in_flight_segments: 1,
            acked_octets: 1,
            sent_octets: None,
            retransmitted_octets: None,
            retransmitted_segments: 0,
            timeouts: None,
            delivery_rate: None,
            pacing_rate: None,
            peer_window_octets: None,
            unsent_octets: None,
            busy: None,
            limited_by_receive_window: None,
            limited_by_send_buffer: None,
            bbr_pacing_gain: None,
            marks: TcpMarks::default(),
        }
    }

    #[test]
    fn an_hour_of_many_streams_is_bounded() {
        let (most_rows, most_samples) = (250, 400);
        let mut intervals = Intervals::keeping(most_rows, most_samples);
        let streams = 16;
        for number in 0..3_600 {
            intervals.push(part(number, streams, &[sample(i64::from(number)); 2]));
            let rows = intervals.kept().len() * streams as usize;
            let samples: usize = intervals.kept().iter().map(count).sum();
            assert!(rows <= most_rows && samples <= most_samples, "{number}: {rows} {samples}");
        }
        let parts = intervals.into_parts();
        // Nothing between them is missing, and what was omitted stayed apart.
        assert_eq!(parts[0].from, Duration::ZERO);
        assert_eq!(parts.last().unwrap().to, Duration::from_secs(360));
        assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from));
        let omitted = parts.iter().filter(|part| part.omitted).map(|part| part.to).max();
        assert_eq!(omitted, Some(Duration::from_millis(500)));
        let octets = |part: &Part| part.streams[7].to.octets - part.streams[7].from.octets;
        assert_eq!(parts.iter().map(octets).sum::<u64>(), 3_600);
        let last = parts.last().unwrap().streams[0].samples.last().unwrap();
        assert_eq!(last.at.nanos(), 3_599);
    }

    #[test]
    fn one_interval_of_an_hour_is_bounded() {
        let mut whole = part(0, 2, &[]);
        let most = MOST_SAMPLES / 2;
        for number in 1..2_000 {
            whole = joined(whole, part(number, 2, &vec![sample(i64::from(number)); 100]));
            assert!(whole.streams[1].samples.len() <= most);
        }
        assert_eq!(whole.to, Duration::from_secs(200));
        assert_eq!(whole.streams[1].samples.last().unwrap().at.nanos(), 1_999);
    }

    #[test]
    fn every_second_sample_and_the_last() {
        for length in 0..6 {
            let mut samples: Vec<_> = (0..length).map(sample).collect();
            halve(&mut samples);
            let left: Vec<i64> = samples.iter().map(|sample| sample.at.nanos()).collect();
            let expected: Vec<i64> = (0..length).rev().step_by(2).collect::<Vec<_>>().into_iter().rev().collect();
            assert_eq!(left, expected, "{length}");
        }
    }
}
