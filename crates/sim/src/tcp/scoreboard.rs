//! What the sender knows of its segments (RFC 6675).
//!
//! A segment is lost when `DupThresh` segments above it have arrived, and a retransmission is lost
//! when as many of those have arrived that were first sent after it (which RFC 6675 leaves to the
//! timeout; Linux finds them too). `DupThresh` grows to the largest reordering seen, as in Linux
//! (`tcp_reordering`, `tcp_max_reordering`).

use std::collections::{BTreeSet, VecDeque};

use super::ranges::Ranges;
use super::rate::{DeliveryRate, Note};
use super::segment::Ack;

/// State of one segment that is not acknowledged cumulatively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Sacked,
    /// To be sent again.
    Lost,
    /// Lost, and sent again.
    Resent,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    state: State,
    ever_resent: bool,
    at: u64,
    note: Note,
}

/// What an acknowledgement said that was new.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct News {
    /// Segments acknowledged cumulatively.
    pub(super) acked: u32,
    /// Segments that the receiver is now known to have.
    pub(super) delivered: u32,
    /// Segments now believed lost.
    pub(super) lost: u32,
    /// A segment came that was sent again, but in its first copy: it was late, not lost (RFC 3522).
    pub(super) was_late: bool,
    /// The earliest retransmission among segments acknowledged cumulatively.
    first_resent: Option<(u64, u64)>,
    /// Departures of the first and last segment sent only once: acknowledged cumulatively.
    acked_sent: Option<(u64, u64)>,
    /// The same of those sacked.
    sacked_sent: Option<(u64, u64)>,
}

impl News {
    /// Departures of the first and the last segment that give an unambiguous round-trip time
    /// (Karn's rule).
    pub(super) fn timed(&self) -> Option<(u64, u64)> {
        self.acked_sent.or(self.sacked_sent)
    }
}

/// The segments from the first unacknowledged one on.
#[derive(Debug)]
pub(super) struct Scoreboard {
    first: u64,
    sent: VecDeque<Sent>,
    sacked: Ranges,
    sacked_count: u32,
    /// To be sent again, lowest first.
    lost: BTreeSet<u64>,
    /// Retransmissions in order of time, with the next new segment's number at that time.
    resent: VecDeque<(u64, u64)>,
    in_flight: u32,
    /// Below this, no segment that was sent once is still believed in flight because nobody looked.
    scanned: u64,
    threshold: u32,
    reordered: u32,
}

/// RFC 5681's three duplicate acknowledgements.
const DUP_THRESH: u32 = 3;
/// Linux `tcp_max_reordering`.
const MAX_THRESH: u32 = 300;

impl Scoreboard {
    pub(super) fn new() -> Self {
        Self {
            first: 0,
            sent: VecDeque::new(),
            sacked: Ranges::default(),
            sacked_count: 0,
            lost: BTreeSet::new(),
            resent: VecDeque::new(),
            in_flight: 0,
            scanned: 0,
            threshold: DUP_THRESH,
            reordered: 0,
        }
    }

    /// How often a segment came after higher ones without having been sent again (Linux
    /// `tcpi_reord_seen`).
    pub(super) fn reordered(&self) -> u32 {
        self.reordered
    }

    /// The first unacknowledged segment.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The next new segment.
    pub(super) fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// Segments not acknowledged cumulatively (Linux `packets_out`).
    pub(super) fn outstanding(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap_or(u32::MAX)
    }

    /// RFC 6675's pipe.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn has_sacked(&self) -> bool {
        self.sacked_count > 0
    }

    /// The segment to be sent again first.
    pub(super) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// A new segment leaves.
    pub(super) fn push(&mut self, now: u64, note: Note) {
        self.sent.push_back(Sent { state: State::InFlight, ever_resent: false, at: now, note });
        self.in_flight += 1;
    }

    /// A lost segment leaves again.
    pub(super) fn resend(&mut self, seq: u64, now: u64, note: Note) {
        let next = self.next();
        self.lost.remove(&seq);
        if let Some(sent) = self.sent_mut(seq) {
            (sent.state, sent.ever_resent, sent.at, sent.note) = (State::Resent, true, now, note);
            self.in_flight += 1;
            self.resent.push_back((seq, next));
        }
    }

    /// Takes an acknowledgement in. Numbers that were never sent are ignored.
    pub(super) fn acknowledge(&mut self, now: u64, ack: &Ack, rate: &mut DeliveryRate) -> News {
        let mut news = News::default();
        let next = self.next();
        let highest_before = self.sacked.highest();
        for &(start, end) in ack.sacked() {
            let mut fresh = Vec::new();
            let known = start.max(self.first)..end.min(next);
            self.sacked.insert(known, |range| fresh.push(range));
            for seq in fresh.into_iter().flatten() {
                self.sack(now, seq, highest_before, rate, &mut news);
            }
        }
        while self.first < ack.next.min(next) {
            self.pop(now, highest_before, rate, &mut news);
        }
        if let Some((_, seq)) = news.first_resent.filter(|(at, _)| ack.echo < *at) {
            news.was_late = true;
            self.see_reordering(seq, highest_before);
        }
        self.sacked.forget_below(self.first);
        news.lost = self.find_lost();
        news
    }

    /// The timer ran out: everything that is not known to have arrived is lost (RFC 5681 §3.1; RFC
    /// 6675 §5.1).
    pub(super) fn lose_all(&mut self) {
        for (seq, sent) in (self.first..).zip(&mut self.sent) {
            if matches!(sent.state, State::InFlight | State::Resent) {
                sent.state = State::Lost;
                self.lost.insert(seq);
            }
        }
        self.in_flight = 0;
        self.resent.clear();
        self.scanned = self.next();
    }

    fn sent_mut(&mut self, seq: u64) -> Option<&mut Sent> {
        let place = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.sent.get_mut(place)
    }

    fn sack(&mut self, now: u64, seq: u64, highest: Option<u64>, rate: &mut DeliveryRate, news: &mut News) {
        let Some(sent) = self.sent_mut(seq) else {
            return;
        };
        let before = std::mem::replace(&mut sent.state, State::Sacked);
        let sent = *sent;
        self.sacked_count += 1;
        self.leave(now, seq, before, &sent, rate, news);
        if !sent.ever_resent {
            widen(&mut news.sacked_sent, sent.at);
            self.see_reordering(seq, highest);
        }
    }

    fn pop(&mut self, now: u64, highest: Option<u64>, rate: &mut DeliveryRate, news: &mut News) {
        let Some(sent) = self.sent.pop_front() else {
            return;
        };
        let seq = self.first;
        self.first += 1;
        news.acked += 1;
        if sent.state == State::Sacked {
            self.sacked_count -= 1;
            return;
        }
        self.leave(now, seq, sent.state, &sent, rate, news);
        if sent.ever_resent {
            let first = news.first_resent.get_or_insert((sent.at, seq));
            *first = (sent.at, seq).min(*first);
        } else {
            widen(&mut news.acked_sent, sent.at);
            self.see_reordering(seq, highest);
        }
    }

    /// A segment has arrived.
    fn leave(&mut self, now: u64, seq: u64, before: State, sent: &Sent, rate: &mut DeliveryRate, news: &mut News) {
        match before {
            State::InFlight | State::Resent => self.in_flight -= 1,
            State::Lost => {
                self.lost.remove(&seq);
            }
            State::Sacked => {}
        }
        news.delivered += 1;
        rate.on_delivered(now, &sent.note, sent.at);
    }

    /// A segment that was sent once came after higher ones.
    fn see_reordering(&mut self, seq: u64, highest: Option<u64>) {
        if let Some(distance) = highest.and_then(|highest| highest.checked_sub(seq)) {
            let distance = u32::try_from(distance).unwrap_or(MAX_THRESH);
            self.reordered = self.reordered.saturating_add(1);
            self.threshold = self.threshold.max(distance.saturating_add(1)).min(MAX_THRESH);
        }
    }

    /// Marks what the threshold says is lost; returns how many segments.
    fn find_lost(&mut self) -> u32 {
        let Some(bound) = self.sacked.nth_highest(u64::from(self.threshold)) else {
            return 0;
        };
        let before = self.lost.len();
        let mut seq = self.scanned.max(self.first);
        while seq < bound {
            self.lose(seq, State::InFlight);
            seq += 1;
        }
        self.scanned = self.scanned.max(bound);
        while let Some(&(seq, next)) = self.resent.front() {
            if next > bound && seq >= self.first {
                break;
            }
            self.resent.pop_front();
            self.lose(seq, State::Resent);
        }
        u32::try_from(self.lost.len() - before).unwrap_or(u32::MAX)
    }

    fn lose(&mut self, seq: u64, only: State) {
        if let Some(sent) = self.sent_mut(seq)
            && sent.state == only
        {
            sent.state = State::Lost;
            self.in_flight -= 1;
            self.lost.insert(seq);
        }
    }
}

fn widen(span: &mut Option<(u64, u64)>, at: u64) {
    let (first, last) = span.unwrap_or((at, at));
    *span = Some((first.min(at), last.max(at)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tcp::segment::SACK_BLOCKS;

    fn ack(next: u64, blocks: &[(u64, u64)]) -> Ack {
        let mut ack = Ack {
            next,
            edge: 1000,
            window_octets: 0,
            sent: 0,
            echo: 1,
            blocks: [(0, 0); SACK_BLOCKS],
            block_count: u8::try_from(blocks.len()).unwrap(),
        };
        ack.blocks[..blocks.len()].copy_from_slice(blocks);
        ack
    }

    struct StepContext(Scoreboard, DeliveryRate);

    impl StepContext {
        fn with(count: u64) -> Self {
            let mut step_context = Self(Scoreboard::new(), DeliveryRate::new(0));
            step_context.push(count);
            step_context
        }

        fn push(&mut self, count: u64) {
            for _ in 0..count {
                let note = self.1.on_sent(0, 1);
                self.0.push(0, note);
            }
        }

        fn resend(&mut self) -> Option<u64> {
            let seq = self.0.first_lost()?;
            let note = self.1.on_sent(0, 1);
            self.0.resend(seq, 0, note);
            Some(seq)
        }

        fn ack(&mut self, next: u64, blocks: &[(u64, u64)]) -> (u32, u32, u32) {
            let news = self.0.acknowledge(1, &ack(next, blocks), &mut self.1);
            (news.acked, news.delivered, news.lost)
        }

        /// In flight and lost, counted anew.
        fn recount(&self) -> (usize, usize) {
            let count = |wanted: &[State]| self.0.sent.iter().filter(|sent| wanted.contains(&sent.state)).count();
            (count(&[State::InFlight, State::Resent]), count(&[State::Lost]))
        }
    }

    #[test]
    fn three_sacked_above_make_a_loss() {
        let mut step_context = StepContext::with(10);
        assert_eq!(step_context.ack(1, &[(2, 4)]), (1, 3, 0));
        assert_eq!(step_context.ack(1, &[(5, 6), (2, 4)]), (0, 1, 1));
        assert_eq!((step_context.0.first_lost(), step_context.0.in_flight()), (Some(1), 5));
        assert_eq!(step_context.resend(), Some(1));
        // Not 4: only two of the segments above it have arrived.
        assert_eq!(step_context.ack(1, &[(5, 7), (2, 4)]), (0, 1, 0));
        assert_eq!(step_context.ack(1, &[(5, 8), (2, 4)]), (0, 1, 1));
        assert_eq!(step_context.0.first_lost(), Some(4));
    }

    /// The retransmission of 0 is lost too: three segments that were first sent after it have
    /// arrived.
    #[test]
    fn a_lost_retransmission_is_found() {
        let mut step_context = StepContext::with(4);
        assert_eq!(step_context.ack(0, &[(1, 4)]), (0, 3, 1));
        assert_eq!(step_context.resend(), Some(0));
        step_context.push(3);
        assert_eq!(step_context.ack(0, &[(1, 6)]), (0, 2, 0));
        assert_eq!(step_context.ack(0, &[(1, 7)]), (0, 1, 1));
        assert_eq!(step_context.resend(), Some(0));
        assert_eq!(step_context.ack(7, &[]), (7, 1, 0));
    }

    /// The retransmission of 0 leaves at 5; an echo from before that says that the first copy has
    /// come after all.
    #[test]
    fn a_late_segment_is_reported_from_a_lost_one() {
        for (echo, late) in [(4, true), (5, false)] {
            let mut step_context = StepContext::with(8);
            step_context.ack(0, &[(1, 4)]);
            let note = step_context.1.on_sent(5, 1);
            step_context.0.resend(0, 5, note);
            let ack = Ack { echo, ..ack(4, &[]) };
            assert_eq!(step_context.0.acknowledge(6, &ack, &mut step_context.1).was_late, late);
            // Three places late: from now on four above it make a loss.
            assert_eq!(step_context.ack(4, &[(5, 8)]).2, u32::from(!late));
        }
    }

    #[test]
    fn reordering_raises_the_threshold() {
        let mut step_context = StepContext::with(20);
        assert_eq!(step_context.ack(0, &[(5, 6)]), (0, 1, 0));
        assert_eq!(step_context.ack(5, &[]), (5, 5, 0), "0 came last: six places late");
        step_context.ack(6, &[]);
        assert_eq!(step_context.ack(6, &[(7, 12)]), (0, 5, 0));
        assert_eq!(step_context.ack(6, &[(7, 13)]), (0, 1, 1));
    }

    proptest! {
        #[test]
        fn counts_agree(steps in prop::collection::vec((0u8..4, 0u64..40, 1u64..6), 1..60)) {
            let mut step_context = StepContext::with(5);
            for (kind, place, length) in steps {
                let first = step_context.0.first();
                match kind {
                    0 => step_context.push(length),
                    1 => drop(step_context.resend()),
                    2 => drop(step_context.ack(first, &[(first + 1 + place, first + 1 + place + length)])),
                    _ if place == 0 => step_context.0.lose_all(),
                    _ => drop(step_context.ack(first + place / 8, &[])),
                }
                let (in_flight, lost) = step_context.recount();
                prop_assert_eq!((step_context.0.in_flight() as usize, step_context.0.lost.len()), (in_flight, lost));
                let sacked = step_context.0.sent.iter().filter(|sent| sent.state == State::Sacked).count();
                prop_assert_eq!(step_context.0.sacked_count as usize, sacked);
                prop_assert_eq!(step_context.0.outstanding() as usize, in_flight + lost + sacked);
            }
        }
    }
}
