//! Fluid TCP: congestion windows as real numbers, in steps much shorter than a round trip.

use std::time::Duration;

use narrows_units::{Sender, Stamp, rounded};

use super::{Fluid, seconds, stamp};
use crate::contract::Event;
use crate::probes::{Congestion, StreamReport, TcpMarks, TcpSample, TcpState, Then, Transfer, TransferReport};

/// How a window grows and falls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flavour {
    Reno,
    Cubic,
    /// Sends at the largest rate seen, doubling until it sees no larger one.
    Bbr,
    /// Grows and collapses for ever, by a factor of ten in ten round trips.
    Restless,
}

/// Hosts as TCP sees them.
#[derive(Debug, Clone)]
pub struct Tcp {
    pub flavour: Flavour,
    /// Peer's window, octets.
    pub peer_window: f64,
    /// The application offers no more than this, bit/s.
    pub application: f64,
    /// Slow start ends at this window though nothing was lost (HyStart), segments.
    pub hystart: f64,
    /// Share of a CPU of the busiest sending and receiving thread.
    pub cpu: (f32, f32),
    /// Other elastic connections that share the link evenly with ours.
    pub runner_ups: u32,
    /// Share of segments lost at random; the losses come at even spaces.
    pub random_loss: f64,
    /// More connections than this lower the sum by a tenth each.
    pub harmful_beyond: u16,
    connections: Vec<Connection>,
    key: Option<Transfer>,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            flavour: Flavour::Reno,
            peer_window: 1e9,
            application: f64::INFINITY,
            hystart: f64::INFINITY,
            cpu: (0.2, 0.2),
            runner_ups: 0,
            random_loss: 0.0,
            harmful_beyond: u16::MAX,
            connections: Vec::new(),
            key: None,
        }
    }
}

#[derive(Debug, Clone)]
struct Connection {
    age: f64,
    cwnd: f64,
    ssthresh: Option<f64>,
    acked: f64,
    lost: f64,
    until_loss: f64,
    srtt: f64,
    recovery: f64,
    /// CUBIC: plateau, seconds from its epoch's begin to it, and when that was.
    plateau: f64,
    k: f64,
    epoch: f64,
    busy: f64,
    stalled: f64,
}

const MSS: f64 = 1448.0;
/// A full-size segment carries this many of 1500 octets.
const PAYLOAD: f64 = MSS / 1500.0;

impl Connection {
    fn new(rtt: f64) -> Self {
        Self {
            age: 0.0,
            cwnd: 10.0,
            ssthresh: None,
            acked: 0.0,
            lost: 0.0,
            until_loss: 0.0,
            srtt: rtt,
            recovery: 0.0,
            plateau: 0.0,
            k: 0.0,
            epoch: 0.0,
            busy: 0.0,
            stalled: 0.0,
        }
    }

    fn cut(&mut self, flavour: Flavour, rtt: f64) {
        if self.recovery > 0.0 {
            return;
        }
        let factor = if flavour == Flavour::Cubic { 0.7 } else { 0.5 };
        self.plateau = self.cwnd;
        self.k = (0.3 * self.cwnd / 0.4).cbrt();
        self.cwnd = (self.cwnd * factor).max(2.0);
        self.ssthresh = Some(self.cwnd);
        self.epoch = self.age;
        self.recovery = rtt;
    }

    /// Growth in one step, in which `acked` segments were acknowledged.
    fn grow(&mut self, flavour: Flavour, acked: f64, rtt: f64, limited: bool) {
        if limited {
            return;
        }
        match (flavour, self.ssthresh) {
            (Flavour::Restless, _) => {
                let phase = (self.age / (10.0 * rtt)).fract();
                self.cwnd = 10.0 * 10f64.powf(phase);
            }
            (Flavour::Reno | Flavour::Cubic | Flavour::Bbr, None) => self.cwnd += acked,
            (Flavour::Cubic, Some(_)) => {
                let t = self.age - self.epoch;
                self.cwnd = self.cwnd.max(0.4 * (t - self.k).powi(3) + self.plateau);
            }
            (Flavour::Reno, Some(_)) => self.cwnd += acked / self.cwnd,
            (Flavour::Bbr, Some(_)) => {}
        }
    }
}

impl Fluid {
    pub fn transfer(&mut self, transfer: &Transfer) -> Event {
        let key = Transfer {
            streams: 0,
            duration: Duration::ZERO,
            sample_every: Duration::ZERO,
            then: Then::Continue,
            ..transfer.clone()
        };
        let fewer = self.tcp.connections.len() > usize::from(transfer.streams);
        if self.tcp.key.as_ref() != Some(&key) || fewer {
            self.tcp.connections.clear();
            self.backlog = 0.0;
        }
        self.tcp.key = Some(key);
        while self.tcp.connections.len() < usize::from(transfer.streams) && !self.dead {
            self.tcp.connections.push(Connection::new(self.rtt));
        }
        let began = self.now;
        let before: f64 = self.tcp.connections.iter().map(|c| c.acked).sum();
        let mut samples: Vec<Vec<TcpSample>> = vec![Vec::new(); self.tcp.connections.len()];
        let total = transfer.duration.as_secs_f64();
        let every = transfer.sample_every.as_secs_f64().clamp(1e-4, total.max(1e-4));
        let dt = (self.rtt / 20.0).clamp(2e-5, 1e-3).min(every);
        let mut next = 0.0;
        let mut at = 0.0;
        while at < total - dt / 2.0 {
            if at >= next - dt / 2.0 {
                self.sample(transfer, &mut samples);
                next += every;
            }
            self.tcp_step(transfer, dt);
            at += dt;
            self.now = began + at;
        }
        self.now = began + total;
        self.sample(transfer, &mut samples);
        let after: f64 = self.tcp.connections.iter().map(|c| c.acked).sum();
        let finished = transfer.then == Then::Finish;
        let flavour = self.tcp.flavour;
        let streams = samples.into_iter().map(|samples| StreamReport {
            congestion: Congestion::from_name(match flavour {
                Flavour::Reno | Flavour::Restless => "reno",
                Flavour::Cubic => "cubic",
                Flavour::Bbr => "bbr",
            }),
            granted_send_buffer_octets: transfer.window_octets.map(|octets| octets * 2),
            samples,
        });
        let report = TransferReport {
            began: stamp(began),
            ended: stamp(self.now),
            streams: streams.collect(),
            remote_read: finished.then(|| (rounded((after - before) * MSS), seconds(total))),
            sender_cpu: Some(self.tcp.cpu.0),
            receiver_cpu: Some(self.tcp.cpu.1),
        };
        if finished {
            self.tcp.connections.clear();
            self.tcp.key = None;
            let rtt = self.rtt;
            self.pass(rtt, rtt);
        }
        Event::Transfer(report)
    }

    fn sample(&self, transfer: &Transfer, into: &mut [Vec<TcpSample>]) {
        let at: Stamp<Sender> = stamp(self.now);
        for (connection, samples) in self.tcp.connections.iter().zip(into) {
            samples.push(TcpSample {
                at,
                state: if connection.recovery > 0.0 { TcpState::Recovery } else { TcpState::Open },
                rtt: seconds(connection.srtt),
                rtt_var: seconds(connection.srtt / 8.0),
                min_rtt: Some(seconds(self.rtt)),
                mss_octets: 1448,
                cwnd_segments: segments(connection.cwnd),
                ssthresh_segments: connection.ssthresh.map(segments),
                in_flight_segments: segments(connection.cwnd.min(self.window(transfer) / MSS)),
                acked_octets: rounded(connection.acked * MSS),
                sent_octets: Some(rounded((connection.acked + connection.lost) * MSS)),
                retransmitted_octets: Some(rounded(connection.lost * MSS)),
                retransmitted_segments: segments(connection.lost),
                timeouts: Some(0),
                delivery_rate: None,
                pacing_rate: transfer.pacing,
                peer_window_octets: Some(segments(self.tcp.peer_window)),
                unsent_octets: Some(0),
                busy: Some(seconds(connection.busy)),
                limited_by_receive_window: Some(seconds(connection.stalled)),
                limited_by_send_buffer: Some(Duration::ZERO),
                bbr_pacing_gain: (self.tcp.flavour == Flavour::Bbr).then_some(if connection.ssthresh.is_some() {
                    256
                } else {
                    739
                }),
                marks: TcpMarks::default(),
            });
        }
    }

    fn window(&self, transfer: &Transfer) -> f64 {
        transfer.window_octets.map_or(f64::INFINITY, f64::from).min(self.tcp.peer_window)
    }

    /// What our connections may have of the link, in payload bit/s.
    fn share(&self, streams: f64) -> f64 {
        let runner_ups = f64::from(self.tcp.runner_ups);
        let mut share = (self.link - self.cross) * streams / (streams + runner_ups);
        if let Some((rate, _)) = self.policer {
            share = share.min(rate);
        }
        let beyond = (streams - f64::from(self.tcp.harmful_beyond)).max(0.0);
        share * PAYLOAD * (1.0 - 0.1 * beyond).max(0.1)
    }

    fn tcp_step(&mut self, transfer: &Transfer, dt: f64) {
        let window = self.window(transfer) / MSS;
        let flavour = self.tcp.flavour;
        let streams = self.tcp.connections.len() as f64;
        let share = self.share(streams);
        let rtt = self.rtt + self.backlog * 8.0 / self.link;
        let cap = transfer.pacing.map_or(f64::INFINITY, |rate| rate.as_f64() * PAYLOAD);
        let cap = cap.min(self.tcp.application / streams);
        let wanted = |c: &Connection| (c.cwnd.min(window) * MSS * 8.0 / rtt).min(cap);
        let offered: f64 = self.tcp.connections.iter().map(wanted).sum();
        let passed = offered.min(if self.backlog > 0.0 { share } else { offered.min(share) });
        // The backlog is IP octets; a policer keeps none.
        let excess = (offered - share) / 8.0 * dt / PAYLOAD;
        let queue = if self.policer.is_some() { 0.0 } else { self.queue };
        let level = self.backlog + excess;
        let overflow = (level - queue).max(0.0);
        self.backlog = level.clamp(0.0, queue);
        for (index, c) in self.tcp.connections.iter_mut().enumerate() {
            let own = if offered > 0.0 { wanted(c) / offered } else { 0.0 };
            let delivered = passed * own * dt / 8.0 / MSS;
            let limited = c.cwnd.min(window) * MSS * 8.0 / rtt > cap || c.cwnd > window;
            c.age += dt;
            c.busy += if self.tcp.application.is_finite() && wanted(c) >= cap { dt * 0.5 } else { dt };
            c.stalled += if c.cwnd > window && window * MSS * 8.0 / rtt < cap { dt } else { 0.0 };
            c.acked += delivered;
            c.srtt += (rtt - c.srtt) * (dt / rtt).min(1.0) / 2.0;
            c.recovery -= dt;
            c.until_loss += delivered * self.tcp.random_loss;
            if c.until_loss >= 1.0 {
                c.until_loss -= 1.0;
                c.lost += 1.0;
                c.cut(flavour, rtt);
            }
            // The largest connection is the one that an overflow hits; a policer hits every one
            // that is there.
            if overflow > 0.0 {
                c.lost += overflow * own / 1500.0;
                if index == 0 || own * streams >= 1.0 || self.policer.is_some() {
                    c.cut(flavour, rtt);
                }
            }
            if flavour == Flavour::Bbr && c.ssthresh.is_none() && c.cwnd * MSS * 8.0 >= 2.0 * share / streams * self.rtt
            {
                c.ssthresh = Some(c.cwnd);
            }
            if c.ssthresh.is_none() && c.cwnd >= self.tcp.hystart {
                c.ssthresh = Some(c.cwnd);
                c.plateau = c.cwnd;
                c.epoch = c.age;
            }
            c.grow(flavour, delivered, rtt, limited);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "test windows are far below 2^32; saturation is no harm")]
fn segments(value: f64) -> u32 {
    rounded(value.floor()).min(u64::from(u32::MAX)) as u32
}
