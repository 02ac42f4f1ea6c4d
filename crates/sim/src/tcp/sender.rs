//! The sending end: what may leave, what to make of acknowledgements, and when to give up waiting.
//!
//! Recovery is RFC 6675 (see the scoreboard) with the window steered by [`Prr`]; a reduction that
//! timestamps show to have been needless is undone (RFC 3522, RFC 4015), but not one after a
//! timeout. Timeouts are RFC 6298.

use narrows_probe::probes::TcpState;
use narrows_units::{BitRate, nanos};

use super::congestion::{AckNews, CongestionControl, Control, RttNews, Window};
use super::prr::Prr;
use super::rate::DeliveryRate;
use super::rtt::Rtt;
use super::scoreboard::{News, Scoreboard};
use super::segment::{Ack, Data, HEADER_OCTETS};
use crate::NEVER;

/// How a sender begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct SenderConfig {
    /// Payload octets per segment.
    pub(super) mss: u16,
    pub(super) control: Control,
    /// Most segments written and not acknowledged: a send buffer of fixed size; `None` if it
    /// follows the window.
    pub(super) buffer_segments: Option<u64>,
    /// What a buffer that follows the window holds at most.
    pub(super) buffer_cap: Option<u64>,
    /// How the application writes; `None`: it is never the limit.
    pub(super) writes: Option<Writes>,
    /// Segments that it has to send; `None`: there is no end.
    pub(super) total: Option<u64>,
    pub(super) pacing: Option<BitRate>,
    /// Round-trip time of the handshake.
    pub(super) handshake: u64,
    /// The window that the handshake announced.
    pub(super) edge: u64,
    pub(super) window_octets: u64,
}

/// An application that takes its time: so many segments at once, and the time from one such lot to
/// the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writes {
    pub(super) lot: u64,
    pub(super) every: u64,
}

/// A sender with data without end, unless it is told otherwise.
#[derive(Debug)]
pub(super) struct TcpSender {
    pub(super) config: SenderConfig,
    pub(super) board: Scoreboard,
    pub(super) window: Window,
    control: Box<dyn CongestionControl>,
    pub(super) state: TcpState,
    /// Recovery ends when everything before this segment has arrived.
    recovery_end: u64,
    prr: Prr,
    /// The window before the present recovery.
    before: Option<Window>,
    pub(super) rtt: Rtt,
    pub(super) rate: DeliveryRate,
    /// When the retransmission timer runs out.
    retransmit_at: u64,
    /// No segment leaves before, by pacing.
    paced_until: u64,
    /// When the last segment left.
    last_sent: u64,
    /// The first segment that the application does not write.
    limit: u64,
    writer: Writer,
    edge: u64,
    pub(super) window_octets: u64,
    echo: Option<u64>,
    /// Most segments written and not acknowledged.
    buffer: u64,
    usage: Usage,
    pub(super) counters: Counters,
}

/// What has happened since the beginning.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    /// Segments, retransmissions included.
    pub(super) sent: u64,
    pub(super) resent: u32,
    pub(super) timeouts: u32,
    /// Nanoseconds with data, up to `counted_until`.
    pub(super) busy: u64,
    /// Of these, stalled by the receiver's window.
    pub(super) stalled: u64,
    /// Of these, stalled because the send buffer holds no more.
    pub(super) buffered: u64,
    counted_until: u64,
    is_stalled: bool,
    is_buffered: bool,
}

/// An application that takes its time: what it has written, and when it writes next.
#[derive(Debug, Clone, Copy, Default)]
struct Writer {
    writes: Option<Writes>,
    written: u64,
    /// Segments of the present lot for which there was no room yet.
    pending: u64,
    next_at: u64,
}

impl Writer {
    /// Writes what is due, as far as the buffer has room up to segment `room`. Time in which it had
    /// to wait is not made up for.
    fn advance(&mut self, now: u64, room: u64) {
        let Some(Writes { lot, every }) = self.writes else {
            return;
        };
        while self.written < room && (self.pending > 0 || self.next_at <= now) {
            if self.pending == 0 {
                self.pending = lot;
                self.next_at += every.max(1);
            }
            let fits = self.pending.min(room - self.written);
            self.written += fits;
            self.pending -= fits;
        }
        self.next_at = self.next_at.max(now);
    }

    /// The first segment that is not written yet.
    fn end(&self) -> u64 {
        self.writes.map_or(u64::MAX, |_| self.written)
    }
}

/// Whether the window was used up (Linux `tcp_cwnd_validate`).
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    is_limit: bool,
    most_out: u32,
    valid_until: u64,
}

impl TcpSender {
    pub(super) fn new(config: SenderConfig, now: u64) -> Self {
        Self {
            board: Scoreboard::new(),
            window: Window::initial(),
            control: config.control.begin(now, config.handshake),
            state: TcpState::Open,
            recovery_end: 0,
            prr: Prr::new(1, 1),
            before: None,
            rtt: Rtt::new(config.handshake),
            rate: DeliveryRate::new(now),
            retransmit_at: NEVER,
            paced_until: now,
            last_sent: now,
            limit: config.total.unwrap_or(u64::MAX),
            writer: Writer { writes: config.writes, written: 0, pending: 0, next_at: now },
            edge: config.edge,
            window_octets: config.window_octets,
            echo: None,
            buffer: 0,
            usage: Usage::default(),
            counters: Counters { counted_until: now, ..Counters::default() },
            config,
        }
    }

    /// Segments written and not yet sent: the send buffer is kept full. Without a fixed size it
    /// holds twice the largest congestion window so far (Linux `tcp_sndbuf_expand`; its limit
    /// `tcp_wmem` is not modelled).
    pub(super) fn unsent(&self) -> u64 {
        let room = self.buffer_room();
        room.min(self.limit.min(self.writer.end()).saturating_sub(self.board.next()))
    }

    /// Segments for which the send buffer has room beyond those that are out.
    fn buffer_room(&self) -> u64 {
        let buffer = match self.config.buffer_segments {
            Some(fixed) => fixed,
            None => self.buffer.max(2 * u64::from(self.window.segments)),
        };
        let buffer = buffer.min(self.config.buffer_cap.unwrap_or(u64::MAX));
        buffer.saturating_sub(u64::from(self.board.outstanding()))
    }

    /// Segments that an application that takes its time has written since the beginning.
    pub(super) fn written(&self) -> u64 {
        self.writer.written
    }

    /// The first segment for which there is no room.
    fn writable_to(&self) -> u64 {
        self.board.next().saturating_add(self.buffer_room()).min(self.limit)
    }

    fn write(&mut self, now: u64) {
        let room = self.writable_to();
        self.writer.advance(now, room);
    }

    /// The application writes nothing more; what is in the send buffer still leaves.
    pub(super) fn finish(&mut self) {
        self.limit = self.board.next().saturating_add(self.unsent());
        self.writer.writes = None;
    }

    /// Everything has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.board.first() >= self.limit
    }

    /// When the sender wants to be woken.
    pub(super) fn timer(&self) -> u64 {
        let paced = if self.has_sendable() { self.paced_until } else { NEVER };
        let writes = self.writer.writes.is_some() && self.writer.written < self.writable_to();
        let written = if writes { self.writer.next_at } else { NEVER };
        self.retransmit_at.min(paced).min(written)
    }

    /// The next segment, if one may leave now.
    pub(super) fn transmit(&mut self, now: u64) -> Option<Data> {
        self.write(now);
        if !self.has_sendable() {
            self.note_limit(now);
            return None;
        }
        if now < self.paced_until {
            return None;
        }
        self.restart_after_idle(now);
        let in_flight = self.board.in_flight();
        let note = self.rate.on_sent(now, self.board.outstanding());
        let seq = if let Some(seq) = self.board.first_lost() {
            self.board.resend(seq, now, note);
            self.counters.resent = self.counters.resent.saturating_add(1);
            seq
        } else {
            let seq = self.board.next();
            self.board.push(now, note);
            seq
        };
        if in_flight == 0 || self.retransmit_at == NEVER || seq == self.board.first() {
            self.restart_timer(now);
        }
        self.counters.sent += 1;
        self.last_sent = now;
        if self.state == TcpState::Recovery {
            self.prr.on_sent();
        }
        if let Some(gap) = self.gap() {
            self.paced_until = now.saturating_add(gap);
        }
        Some(Data { seq, sent: now, echo: self.echo })
    }

    /// Takes an acknowledgement in.
    pub(super) fn on_ack(&mut self, now: u64, ack: &Ack) {
        self.count_time(now);
        self.buffer = self.buffer.max(2 * u64::from(self.window.segments));
        if ack.edge >= self.edge {
            (self.edge, self.window_octets) = (ack.edge, ack.window_octets);
        }
        self.echo = self.echo.max(Some(ack.sent));
        let in_flight_before = self.board.in_flight();
        let news = self.board.acknowledge(now, ack, &mut self.rate);
        if let Some((first, last)) = news.timed() {
            self.rtt.sample(now - first);
            let rtt = RttNews {
                now,
                rtt: now - last,
                first: self.board.first(),
                next: self.board.next(),
                paced: self.gap().is_some(),
            };
            self.control.on_rtt(&rtt, &mut self.window);
        }
        let taken = self.rate.finish(now, self.rtt.smallest());
        if news.acked > 0 {
            self.rtt.reset_backoff();
            self.restart_timer(now);
        }
        self.recover(&news);
        if self.control.steers() {
            let (delivered_before, sample) = taken.unwrap_or((self.rate.delivered(), None));
            self.steer(&AckNews {
                now,
                delivered: self.rate.delivered(),
                delivered_before,
                sample,
                rtt: news.timed().map(|(_, last)| now - last),
                in_flight: self.board.in_flight(),
                in_flight_before,
                acked: news.delivered,
                lost: news.lost,
                state: self.state,
            });
        } else if self.state == TcpState::Recovery {
            let safe = news.acked > 0 && news.lost == 0;
            let in_flight = self.board.in_flight();
            self.window.segments = self.prr.window(news.delivered, in_flight, safe);
        } else if news.acked > 0 && self.window_was_limit() {
            self.control.on_ack(now, news.delivered, &mut self.window);
        }
    }

    /// The retransmission timer, if it has run out.
    pub(super) fn on_timer(&mut self, now: u64) {
        if now < self.retransmit_at {
            return;
        }
        self.count_time(now);
        self.counters.timeouts = self.counters.timeouts.saturating_add(1);
        let first_time = match self.state {
            TcpState::Open | TcpState::Disorder => true,
            TcpState::Loss => !self.rtt.backed_off(),
            TcpState::Cwr | TcpState::Recovery => false,
        };
        if first_time {
            self.window.threshold = self.control.on_loss(&self.window);
        }
        self.control.on_timeout();
        self.board.lose_all();
        self.window.segments = 1;
        self.state = TcpState::Loss;
        self.recovery_end = self.board.next();
        self.rtt.back_off();
        self.restart_timer(now);
    }

    /// Brings the time counters up to now.
    pub(super) fn count_time(&mut self, now: u64) {
        let passed = now - self.counters.counted_until.min(now);
        let starved = self.writer.writes.is_some() && self.board.outstanding() == 0 && self.unsent() == 0;
        let idle = self.is_done() || starved;
        if !idle {
            self.counters.busy += passed;
        }
        if self.counters.is_stalled {
            self.counters.stalled += passed;
        } else if self.counters.is_buffered {
            self.counters.buffered += passed;
        }
        self.counters.counted_until = self.counters.counted_until.max(now);
    }

    fn recover(&mut self, news: &News) {
        if news.was_late && self.state == TcpState::Recovery && self.board.first_lost().is_none() {
            self.undo();
        }
        if self.board.first() >= self.recovery_end {
            if self.state == TcpState::Recovery && !self.control.steers() {
                self.window.segments = self.window.threshold.unwrap_or(self.window.segments);
            }
            if matches!(self.state, TcpState::Recovery | TcpState::Loss) {
                self.state = TcpState::Open;
            }
        }
        if matches!(self.state, TcpState::Recovery | TcpState::Loss) {
            return;
        }
        if news.lost > 0 {
            let threshold = self.control.on_loss(&self.window);
            self.before = Some(self.window.clone());
            self.prr = Prr::new(threshold.unwrap_or(self.window.segments), self.window.segments);
            self.window.threshold = threshold;
            self.state = TcpState::Recovery;
            self.recovery_end = self.board.next();
        } else if self.board.has_sacked() {
            self.state = TcpState::Disorder;
        } else {
            self.state = TcpState::Open;
        }
    }

    fn steer(&mut self, reported: &AckNews) {
        if self.control.steer(reported, &mut self.window) {
            self.rate.starve(reported.in_flight);
        }
    }

    /// Time between departures, if they are paced: by the control's rate and by what was asked for,
    /// whichever is slower.
    fn gap(&self) -> Option<u64> {
        let ip_octets = u64::from(self.config.mss + HEADER_OCTETS);
        let asked = self.config.pacing.map(|rate| rate.time_for(ip_octets).map_or(NEVER, nanos));
        let control = self.control.segments_per_second();
        let control = control.map(|rate| crate::rng::round_ns(1e9 / rate.max(1e-3)));
        asked.max(control)
    }

    /// The rate to which departures are paced, and the control's gain.
    pub(super) fn pacing(&self) -> (Option<BitRate>, Option<u32>) {
        let ip_octets = u64::from(self.config.mss + HEADER_OCTETS);
        let rate = self.gap().and_then(|gap| BitRate::over(ip_octets, std::time::Duration::from_nanos(gap)));
        (rate, self.control.gain_256())
    }

    /// Takes the reduction back.
    fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.window.segments = self.window.segments.max(before.segments);
            self.window.threshold = before.threshold;
            self.state = TcpState::Open;
        }
    }

    /// After a pause the window is what it was before no more: it halves for each retransmission
    /// timeout that passed, down to the initial one (RFC 2861; Linux `tcp_cwnd_restart`).
    fn restart_after_idle(&mut self, now: u64) {
        if self.board.outstanding() > 0 || self.control.steers() || self.counters.sent == 0 {
            return;
        }
        let timeout = self.rtt.timeout().max(1);
        let idle = now.saturating_sub(self.last_sent);
        if idle > timeout {
            self.window.restart(idle / timeout);
            self.control.on_idle(idle);
        }
    }

    fn restart_timer(&mut self, now: u64) {
        self.retransmit_at = if self.board.outstanding() == 0 { NEVER } else { now.saturating_add(self.rtt.timeout()) };
    }

    fn has_room(&self) -> bool {
        self.board.in_flight() < self.window.segments
    }

    fn has_sendable(&self) -> bool {
        let next = self.board.next();
        self.has_room() && (self.board.first_lost().is_some() || next < self.limit.min(self.edge) && self.unsent() > 0)
    }

    /// Nothing may leave: notes which limit that is.
    fn note_limit(&mut self, now: u64) {
        self.count_time(now);
        let next = self.board.next();
        self.counters.is_stalled = self.has_room() && next < self.limit && next >= self.edge;
        let full = self.buffer_room() == 0;
        self.counters.is_buffered = self.has_room() && next < self.limit && full;
        if self.has_room() && (next >= self.limit || (!full && next >= self.writer.end())) {
            self.rate.starve(self.board.in_flight());
        }
        let out = self.board.outstanding();
        let is_limit = !self.has_room();
        let usage = &mut self.usage;
        let expired = self.board.first() >= usage.valid_until;
        if expired || is_limit || (!usage.is_limit && out > usage.most_out) {
            *usage = Usage { is_limit, most_out: out, valid_until: next };
        }
    }

    /// Linux `tcp_is_cwnd_limited`: growth stops while something else is the limit.
    fn window_was_limit(&self) -> bool {
        self.usage.is_limit
            || (self.window.in_slow_start() && self.window.segments < self.usage.most_out.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests;
