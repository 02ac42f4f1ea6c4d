//! One connection: both ends, and the ways between them.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_probe::probes::{Congestion, TcpMarks, TcpSample};
use narrows_scenario::PathDirection;
use narrows_units::{BitRate, Sender, Stamp, nanos};

use super::congestion::Control;
use super::interface::Backlog;
use super::receiver::TcpReceiver;
use super::segment::{Ack, Data, HEADER_OCTETS};
use super::sender::{SenderConfig, TcpSender, Writes};
use super::window::ReceiveWindow;
use crate::NEVER;

/// What a connection is asked to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowConfig {
    /// When the handshake is over and the first data leave.
    pub(crate) begins: u64,
    /// IP octets of a full segment, header included.
    pub(crate) ip_octets: u16,
    /// Congestion control.
    pub(crate) control: Control,
    /// The receiver's window.
    pub(crate) window: ReceiveWindow,
    /// IP-layer rate that the sender keeps to.
    pub(crate) pacing: Option<BitRate>,
    /// What the hosts' programs and the send buffer allow.
    pub(crate) programs: Programs,
    /// Round-trip time of the handshake.
    pub(crate) handshake: u64,
    /// Where it goes.
    pub(crate) route: Route,
}

/// What the two programs, and the send buffer between, allow one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Programs {
    /// Most octets of payload in the send buffer.
    pub(crate) send_octets: Option<u64>,
    /// Payload that the sender writes at most.
    pub(crate) writes: Option<BitRate>,
    /// Payload that the receiver reads at most.
    pub(crate) reads: Option<BitRate>,
    /// Processor time per segment of the sending and of the receiving thread.
    pub(crate) costs: (u64, u64),
    /// Payload after which the sender has nothing more to write.
    pub(crate) total: Option<u64>,
    /// Payload that the sender writes at once, and the time from one such chunk to the next.
    pub(crate) chunks: Option<(u64, u64)>,
}

impl Programs {
    /// The slower of a rate and a cost, as time per segment.
    fn every(rate: Option<BitRate>, cost: u64, mss: u64) -> Option<u64> {
        let by_rate = rate.map(|rate| rate.time_for(mss).map_or(NEVER, nanos));
        let by_cost = (cost > 0).then_some(cost);
        by_rate.max(by_cost)
    }
}

/// The ways of a connection's packets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route {
    /// From host to host, and its acknowledgements back.
    Hosts {
        /// The way of the data.
        way: PathDirection,
        /// Nominal rate of the sending host's interface.
        interface_rate: Option<BitRate>,
    },
    /// Over some hops of a way; acknowledgements take a fixed time.
    Hops {
        /// The way of the data.
        way: PathDirection,
        /// First hop.
        first: usize,
        /// Last hop.
        last: usize,
        /// Time from the last hop's end to the sender.
        back: u64,
    },
}

/// A connection.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) route: Route,
    control: Control,
    begins: u64,
    mss: u16,
    pub(super) sender: TcpSender,
    pub(super) receiver: TcpReceiver,
    backlog: Option<Backlog>,
    costs: (u64, u64),
    /// Acknowledgements on a way of fixed time.
    returning: VecDeque<(u64, Ack)>,
}

impl Flow {
    pub(super) fn new(config: &FlowConfig) -> Self {
        let mss = config.ip_octets.saturating_sub(HEADER_OCTETS).max(1);
        let programs = config.programs;
        let octets = u64::from(mss);
        let reads = Programs::every(programs.reads, programs.costs.1, octets);
        let receiver = TcpReceiver::new(config.window, mss, config.begins).reading(reads);
        let buffer_segments = match config.window {
            ReceiveWindow::Fixed(octets) => Some((octets / u64::from(mss)).max(1)),
            ReceiveWindow::Autotuned(_) => None,
        };
        let sender = SenderConfig {
            mss,
            control: config.control,
            buffer_segments,
            buffer_cap: programs.send_octets.map(|most| (most / octets).max(1)),
            writes: match programs.chunks {
                Some((chunk, every)) => Some(Writes { lot: chunk.div_ceil(octets).max(1), every }),
                None => {
                    Programs::every(programs.writes, programs.costs.0, octets).map(|every| Writes { lot: 1, every })
                }
            },
            total: programs.total.map(|total| total.div_ceil(octets).max(1)),
            pacing: config.pacing,
            handshake: config.handshake,
            edge: receiver.edge(),
            window_octets: receiver.window_octets(),
        };
        let interface_rate = match config.route {
            Route::Hosts { interface_rate, .. } => interface_rate,
            Route::Hops { .. } => None,
        };
        Self {
            route: config.route,
            control: config.control,
            begins: config.begins,
            mss,
            sender: TcpSender::new(sender, config.begins),
            receiver,
            backlog: interface_rate.map(Backlog::new),
            returning: VecDeque::new(),
            costs: programs.costs,
        }
    }

    /// Processor time that the sending and the receiving thread have taken by now; `None` where it
    /// costs nothing.
    pub(super) fn cpu(&self) -> (Option<u64>, Option<u64>) {
        let (send, receive) = self.costs;
        let of = |cost: u64, segments: u64| (cost > 0).then(|| segments.saturating_mul(cost));
        (of(send, self.sender.written()), of(receive, self.receiver.read().0))
    }

    /// When something happens here by itself.
    pub(super) fn next_at(&self) -> u64 {
        let sender = self.sender.timer().max(self.begins);
        let sender = match &self.backlog {
            Some(backlog) if self.sender.timer() <= backlog.open_at() => sender.max(backlog.open_at()),
            _ => sender,
        };
        let returning = self.returning.front().map_or(NEVER, |(at, _)| *at);
        sender.min(self.receiver.timer()).min(returning)
    }

    /// A data segment has come to the receiver; gives the acknowledgement that is to travel, if
    /// there is one and it does.
    pub(super) fn on_data(&mut self, now: u64, data: &Data) -> Option<Ack> {
        let ack = self.receiver.on_data(now, data)?;
        self.send_back(now, ack)
    }

    /// An acknowledgement has come to the sender.
    pub(super) fn on_ack(&mut self, now: u64, ack: &Ack) {
        self.sender.on_ack(now, ack);
    }

    /// What is due by now; gives the delayed acknowledgement, if it is to travel.
    pub(super) fn on_timers(&mut self, now: u64) -> Option<Ack> {
        while let Some((_, ack)) = self.returning.front().filter(|(at, _)| *at <= now) {
            self.sender.on_ack(now, ack);
            self.returning.pop_front();
        }
        self.sender.on_timer(now);
        let ack = self.receiver.on_timer(now)?;
        self.send_back(now, ack)
    }

    /// The next segment, if one may leave now.
    pub(super) fn transmit(&mut self, now: u64) -> Option<Data> {
        if now < self.begins || self.backlog.as_mut().is_some_and(|backlog| !backlog.has_room(now)) {
            return None;
        }
        let data = self.sender.transmit(now)?;
        let ip_octets = self.ip_octets();
        if let Some(backlog) = &mut self.backlog {
            backlog.push(now, ip_octets);
        }
        Some(data)
    }

    pub(super) fn ip_octets(&self) -> u16 {
        self.mss + HEADER_OCTETS
    }

    pub(super) fn congestion(&self) -> Congestion {
        self.control.named()
    }

    /// Payload octets that the application has read, and when the first marked and the last of them
    /// came.
    pub(super) fn read(&self) -> (u64, Option<(u64, u64)>) {
        let (segments, times) = self.receiver.read();
        (segments * u64::from(self.mss), times)
    }

    /// What `TCP_INFO` would say now.
    pub(super) fn sample(&mut self, now: u64, at: Stamp<Sender>) -> TcpSample {
        self.sender.count_time(now);
        let mss = u64::from(self.mss);
        let TcpSender { board, window, rtt, counters, rate, .. } = &self.sender;
        let delivery_rate = rate.latest().and_then(|sample| {
            let rate = BitRate::over(sample.segments * mss, Duration::from_nanos(sample.interval))?;
            Some((rate, sample.app_limited))
        });
        let (pacing_rate, bbr_pacing_gain) = self.sender.pacing();
        let narrow = |octets: u64| u32::try_from(octets).unwrap_or(u32::MAX);
        TcpSample {
            at,
            state: self.sender.state,
            rtt: Duration::from_nanos(rtt.smoothed()),
            rtt_var: Duration::from_nanos(rtt.deviation()),
            min_rtt: Some(Duration::from_nanos(rtt.smallest())),
            mss_octets: u32::from(self.mss),
            cwnd_segments: window.segments,
            ssthresh_segments: window.threshold,
            in_flight_segments: board.outstanding(),
            acked_octets: board.first() * mss,
            sent_octets: Some(counters.sent * mss),
            retransmitted_octets: Some(u64::from(counters.resent) * mss),
            retransmitted_segments: counters.resent,
            timeouts: Some(counters.timeouts),
            delivery_rate,
            pacing_rate,
            peer_window_octets: Some(narrow(self.sender.window_octets)),
            unsent_octets: Some(narrow(self.sender.unsent() * mss)),
            busy: Some(Duration::from_nanos(counters.busy)),
            limited_by_receive_window: Some(Duration::from_nanos(counters.stalled)),
            limited_by_send_buffer: Some(Duration::from_nanos(counters.buffered)),
            bbr_pacing_gain,
            marks: TcpMarks {
                window_scaled: Some(true),
                reordered: Some(board.reordered()),
                // As told by DSACKs, but at once.
                needless: Some(self.receiver.duplicates()),
                path_mtu_octets: Some(u32::from(self.mss + HEADER_OCTETS)),
            },
        }
    }

    /// Puts an acknowledgement on the way of fixed time, or gives it back to travel.
    fn send_back(&mut self, now: u64, ack: Ack) -> Option<Ack> {
        match self.route {
            Route::Hosts { .. } => Some(ack),
            Route::Hops { back, .. } => {
                self.returning.push_back((now.saturating_add(back), ack));
                None
            }
        }
    }
}
