//! The receiving end: puts segments in order, and acknowledges (RFC 5681 §4.2, RFC 2018, delayed as
//! Linux does).

use super::ranges::Ranges;
use super::segment::{Ack, Data, SACK_BLOCKS};
use super::window::{Autotuning, ReceiveWindow};
use crate::NEVER;

/// A receiver whose application reads at once, unless it is told to take its time.
#[derive(Debug)]
pub(super) struct TcpReceiver {
    mss: u64,
    next: u64,
    /// Beyond `next`.
    stored: Ranges,
    /// The latest arrivals out of order, newest first, each in another block if possible.
    recent: Vec<u64>,
    tuning: Autotuning,
    /// The right edge of the window never moves left.
    edge: u64,
    /// Segments in order since the last acknowledgement.
    unacknowledged: u32,
    /// Acknowledgements that are sent at once because the connection is young.
    quick: u32,
    /// RFC 7323's `TS.Recent`, and `Last.ACK.sent`.
    echo: u64,
    acknowledged: u64,
    deadline: u64,
    /// When the first segment since the mark and the last one were read.
    read_times: Option<(u64, u64)>,
    reader: Reader,
    duplicates: u32,
}

/// An application that takes its time.
#[derive(Debug, Clone, Copy, Default)]
struct Reader {
    every: Option<u64>,
    read: u64,
    next_at: u64,
}

/// Linux's quick acknowledgements at a connection's begin (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;
/// Linux's least delayed-acknowledgement timeout (`TCP_DELACK_MIN`).
const DELAY_NS: u64 = 40_000_000;

impl TcpReceiver {
    pub(super) fn new(window: ReceiveWindow, mss: u16, now: u64) -> Self {
        let mss = u64::from(mss.max(1));
        let tuning = Autotuning::new(window, mss, now);
        Self {
            mss,
            next: 0,
            stored: Ranges::default(),
            recent: Vec::new(),
            edge: tuning.octets() / mss,
            tuning,
            unacknowledged: 0,
            quick: QUICK_ACKS,
            echo: now,
            acknowledged: 0,
            deadline: NEVER,
            read_times: None,
            reader: Reader::default(),
            duplicates: 0,
        }
    }

    /// With an application that takes so long over a segment.
    pub(super) fn reading(mut self, every: Option<u64>) -> Self {
        self.reader.every = every;
        self
    }

    /// Segments that came again.
    pub(super) fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Segments that the application has read.
    fn read_up_to(&self) -> u64 {
        self.reader.every.map_or(self.next, |_| self.reader.read)
    }

    /// The application reads what is due.
    fn read_on(&mut self, now: u64) {
        let Some(every) = self.reader.every else {
            return;
        };
        let before = self.reader.read;
        while self.reader.read < self.next && self.reader.next_at <= now {
            self.reader.read += 1;
            self.reader.next_at = self.reader.next_at.saturating_add(every.max(1));
        }
        if self.reader.read > before {
            self.note_read(now);
        }
    }

    fn note_read(&mut self, now: u64) {
        self.read_times = Some((self.read_times.map_or(now, |(first, _)| first), now));
        let read = self.read_up_to();
        self.tuning.on_read(now, read);
    }

    /// Where the window would end now.
    fn edge_now(&self) -> u64 {
        self.edge.max(self.read_up_to() + self.tuning.octets() / self.mss)
    }

    /// The window has opened by so much that the sender should know: by two segments at least, and
    /// as much again as it knows of (Linux `tcp_cleanup_rbuf`).
    fn has_opened(&self) -> bool {
        let known = self.edge - self.next.min(self.edge);
        let now = self.edge_now() - self.next.min(self.edge_now());
        self.reader.every.is_some() && now >= known.saturating_mul(2).max(known + 2)
    }

    /// Segments that the application has read, and when the first since the mark and the last of
    /// them came.
    pub(super) fn read(&self) -> (u64, Option<(u64, u64)>) {
        (self.read_up_to(), self.read_times)
    }

    /// Forgets when segments were read.
    pub(super) fn mark_read(&mut self) {
        self.read_times = None;
    }

    /// Segments of window that a new sender may assume.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    pub(super) fn window_octets(&self) -> u64 {
        self.tuning.octets()
    }

    /// When the delayed acknowledgement or the next reading is due.
    pub(super) fn timer(&self) -> u64 {
        let waiting = self.reader.every.is_some() && self.reader.read < self.next;
        self.deadline.min(if waiting { self.reader.next_at } else { NEVER })
    }

    /// A segment has come.
    pub(super) fn on_data(&mut self, now: u64, data: &Data) -> Option<Ack> {
        if let Some(echo) = data.echo {
            self.tuning.on_rtt(now - echo.min(now));
        }
        if data.seq <= self.acknowledged {
            self.echo = data.sent;
        }
        self.read_on(now);
        if data.seq < self.next {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        if data.seq < self.next || data.seq >= self.edge {
            return Some(self.acknowledge(now));
        }
        if data.seq > self.next {
            let mut known = true;
            self.stored.insert(data.seq..data.seq + 1, |_| known = false);
            if known {
                self.duplicates = self.duplicates.saturating_add(1);
            }
            self.remember(data.seq);
            return Some(self.acknowledge(now));
        }
        if self.read_up_to() == self.next {
            // What comes after a wait is not read the sooner for it.
            self.reader.next_at = self.reader.next_at.max(now);
        }
        let had_holes = !self.stored.is_empty();
        self.next += 1;
        if let Some(end) = self.stored.take_first(self.next) {
            self.next = end;
        }
        if self.reader.every.is_none() {
            self.note_read(now);
        }
        self.read_on(now);
        self.unacknowledged += 1;
        if had_holes || self.quick > 0 || self.unacknowledged >= 2 {
            return Some(self.acknowledge(now));
        }
        self.deadline = now + DELAY_NS;
        None
    }

    /// The delayed acknowledgement, if it is due.
    pub(super) fn on_timer(&mut self, now: u64) -> Option<Ack> {
        self.read_on(now);
        (now >= self.deadline || self.has_opened()).then(|| self.acknowledge(now))
    }

    fn remember(&mut self, seq: u64) {
        let block = self.stored.around(seq);
        self.recent.retain(|old| block.as_ref().is_none_or(|block| !block.contains(old)));
        self.recent.insert(0, seq);
        self.recent.truncate(2 * SACK_BLOCKS);
    }

    fn acknowledge(&mut self, now: u64) -> Ack {
        self.quick = self.quick.saturating_sub(1);
        self.unacknowledged = 0;
        self.deadline = NEVER;
        self.acknowledged = self.next;
        self.edge = self.edge_now();
        let mut ack = Ack {
            next: self.next,
            edge: self.edge,
            window_octets: (self.edge - self.next) * self.mss,
            sent: now,
            echo: self.echo,
            blocks: [(0, 0); SACK_BLOCKS],
            block_count: 0,
        };
        if self.stored.is_empty() {
            self.recent.clear();
            return ack;
        }
        self.recent.retain(|seq| *seq > self.next);
        for seq in &self.recent {
            let Some(block) = self.stored.around(*seq) else {
                continue;
            };
            let block = (block.start, block.end);
            if ack.sacked().contains(&block) {
                continue;
            }
            if let Some(place) = ack.blocks.get_mut(usize::from(ack.block_count)) {
                *place = block;
                ack.block_count += 1;
            }
        }
        ack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> TcpReceiver {
        TcpReceiver::new(ReceiveWindow::Fixed(100_000), 1000, 0)
    }

    fn data(seq: u64) -> Data {
        Data { seq, sent: seq * 10, echo: None }
    }

    #[test]
    fn sixteen_quick_ones_then_every_second() {
        let mut receiver = receiver();
        let acks: Vec<bool> = (0..22).map(|seq| receiver.on_data(seq, &data(seq)).is_some()).collect();
        assert!(acks[..16].iter().all(|ack| *ack));
        assert_eq!(acks[16..], [false, true, false, true, false, true]);
        assert_eq!(receiver.on_data(30, &data(22)), None);
        assert_eq!(receiver.timer(), 30 + DELAY_NS);
        assert_eq!(receiver.on_timer(29 + DELAY_NS), None);
        let ack = receiver.on_timer(30 + DELAY_NS).unwrap();
        assert_eq!((ack.next, ack.edge, ack.window_octets, ack.echo), (23, 123, 100_000, 220));
    }

    #[test]
    fn holes_are_reported_newest_block_first() {
        let mut receiver = receiver();
        let mut ack = None;
        for seq in [0, 2, 3, 5, 7, 9] {
            ack = receiver.on_data(1, &data(seq));
        }
        assert_eq!(ack.unwrap().sacked(), [(9, 10), (7, 8), (5, 6)]);
        assert_eq!(ack.unwrap().echo, 0);
        let ack = receiver.on_data(2, &data(4)).unwrap();
        assert_eq!((ack.next, ack.sacked()), (1, &[(2, 6), (9, 10), (7, 8)][..]));
        let ack = receiver.on_data(3, &data(1)).unwrap();
        assert_eq!((ack.next, ack.sacked()), (6, &[(9, 10), (7, 8)][..]));
        assert_eq!(ack.echo, 10, "the segment that filled the hole");
        assert_eq!(ack.ip_octets(), 72);
    }

    #[test]
    fn the_window_follows_what_is_read() {
        let mut tuning = Autotuning::new(ReceiveWindow::Autotuned(200_000), 1000, 0);
        assert_eq!(tuning.octets(), 65_536);
        tuning.on_rtt(100);
        tuning.on_read(50, 60);
        assert_eq!(tuning.octets(), 65_536, "not a round trip yet");
        tuning.on_read(100, 12);
        // 2 · 12 000 + 16 000, and 2 · 40 000 · (12 000 − 10 000) / 10 000 more, is below what it
        // has.
        assert_eq!(tuning.octets(), 65_536);
        tuning.on_read(200, 36);
        // 24 000 read: 64 000 + 2 · 64 000 · 12/12 = 192 000.
        assert_eq!(tuning.octets(), 192_000);
        tuning.on_read(300, 96);
        assert_eq!(tuning.octets(), 200_000, "the limit");
    }
}
