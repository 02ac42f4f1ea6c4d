//! One connection: both ends, and the ways between them.

use std::collections::VecDeque;
use std::time::Duration;

use estimate::probe::{Congestion, TcpSample};
use scenario::Way;
use units::{BitRate, Sender, Stamp};

use super::congestion::Control;
use super::interface::Backlog;
use super::receiver::TcpReceiver;
use super::segment::{Ack, Data, HEADER_OCTETS};
use super::sender::{SenderConfig, TcpSender};
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
    /// Round-trip time of the handshake.
    pub(crate) handshake: u64,
    /// Where it goes.
    pub(crate) route: Route,
}

/// The ways of a connection's packets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route {
    /// From host to host, and its acknowledgements back.
    Hosts {
        /// The way of the data.
        way: Way,
        /// Nominal rate of the sending host's interface.
        interface_rate: Option<BitRate>,
    },
    /// Over some hops of a way; acknowledgements take a fixed time.
    Hops {
        /// The way of the data.
        way: Way,
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
    /// Acknowledgements on a way of fixed time.
    returning: VecDeque<(u64, Ack)>,
}

impl Flow {
    pub(super) fn new(config: &FlowConfig) -> Self {
        let mss = config.ip_octets.saturating_sub(HEADER_OCTETS).max(1);
        let receiver = TcpReceiver::new(config.window, mss, config.begins);
        let buffer_segments = match config.window {
            ReceiveWindow::Fixed(octets) => Some((octets / u64::from(mss)).max(1)),
            ReceiveWindow::Autotuned(_) => None,
        };
        let sender = SenderConfig {
            mss,
            control: config.control,
            buffer_segments,
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
        }
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

    /// A data segment has come to the receiver; gives the acknowledgement that is to travel, if there is one and it does.
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

    /// Payload octets that the application has read, and when the first marked and the last of them came.
    pub(super) fn read(&self) -> (u64, Option<(u64, u64)>) {
        let (segments, times) = self.receiver.read();
        (segments * u64::from(self.mss), times)
    }

    /// What `TCP_INFO` would say now.
    pub(super) fn sample(&mut self, now: u64, at: Stamp<Sender>) -> TcpSample {
        self.sender.count_time(now);
        let mss = u64::from(self.mss);
        let TcpSender {
            board,
            window,
            rtt,
            counters,
            rate,
            config,
            ..
        } = &self.sender;
        let delivery_rate = rate.latest().and_then(|sample| {
            let rate = BitRate::over(sample.segments * mss, Duration::from_nanos(sample.interval))?;
            Some((rate, sample.app_limited))
        });
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
            pacing_rate: config.pacing,
            peer_window_octets: Some(narrow(self.sender.window_octets)),
            unsent_octets: Some(narrow(self.sender.unsent() * mss)),
            busy: Some(Duration::from_nanos(counters.busy)),
            limited_by_receive_window: Some(Duration::from_nanos(counters.stalled)),
            limited_by_send_buffer: Some(Duration::ZERO),
            bbr_pacing_gain: None,
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
