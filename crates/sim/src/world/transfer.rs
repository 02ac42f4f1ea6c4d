//! Bulk TCP transfers.

use std::time::Duration;

use narrows_probe::Event;
use narrows_probe::probes::{StreamReport, Then, Transfer, TransferReport};
use narrows_scenario::{Host, PathDirection};
use narrows_units::{Stamp, nanos};

use super::SimWorld;
use crate::tcp::{Control, FlowConfig, Programs, ReceiveWindow, Route};

/// A transfer between two of its segments.
#[derive(Debug)]
pub(super) struct RunningTransfer {
    asked: Transfer,
    flows: Vec<u32>,
}

/// IP octets of a SYN with the usual options.
const SYN_OCTETS: u16 = 60;
/// Shorter intervals between samples would hold less than a timer's slack.
const SHORTEST_SAMPLING: Duration = Duration::from_micros(100);
/// Steps in which the end of the data is waited for, and how long without any progress.
const DRAIN_STEP_NS: u64 = 1_000_000;
const DRAIN_TIMEOUT_NS: u64 = 10_000_000_000;

impl SimWorld {
    /// Carries out a segment. The connections of a new transfer are open when it begins; those that
    /// a later segment adds begin a handshake after it.
    ///
    /// Other congestion controls than Reno, CUBIC and BBR are not simulated: CUBIC is used instead,
    /// and the report says so.
    pub(super) fn send_transfer(&mut self, transfer: &Transfer) -> Event {
        let handshake = nanos(self.scenario.truth(self.way).base_rtt(SYN_OCTETS, SYN_OCTETS)).max(1);
        let mut running = match self.transfer.take() {
            Some(running) if running.continues_as(transfer) => running,
            other => {
                self.transfer = other;
                self.end_transfer();
                let opened = self.begin_at_sender() + handshake;
                self.engine.idle_until(opened);
                RunningTransfer { asked: transfer.clone(), flows: Vec::new() }
            }
        };
        let begin = self.engine.now();
        let wait = if running.flows.is_empty() { 0 } else { handshake };
        for _ in running.flows.len()..usize::from(transfer.streams) {
            let config = self.flow_config(transfer, begin + wait, handshake);
            running.flows.push(self.engine.connections().stack.open(&config));
        }
        running.asked = transfer.clone();
        let end = begin.saturating_add(nanos(transfer.duration));
        let read_before = self.read_octets(&running);
        let cpu_before = self.cpu(&running);
        for flow in &running.flows {
            self.engine.connections().stack.mark_read(*flow);
        }
        let streams = self.sampled(&running, begin, end);
        let end = self.engine.now().max(end);
        let (sender_cpu, receiver_cpu) = shares(&cpu_before, &self.cpu(&running), end.saturating_sub(begin));
        let remote_read = match transfer.then {
            Then::Continue => {
                self.transfer = Some(running);
                None
            }
            Then::Finish => Some(self.drain(&running, read_before)),
        };
        Event::Transfer(TransferReport {
            began: Stamp::from_nanos(self.engine.reading(self.way, begin)),
            ended: Stamp::from_nanos(self.engine.reading(self.way, end)),
            streams,
            remote_read,
            sender_cpu,
            receiver_cpu,
        })
    }

    /// Ends a transfer that was to continue: its connections are closed at once.
    pub(super) fn end_transfer(&mut self) {
        for flow in self.transfer.take().map(|running| running.flows).unwrap_or_default() {
            self.engine.connections().stack.close(flow);
        }
    }

    fn flow_config(&self, transfer: &Transfer, begins: u64, handshake: u64) -> FlowConfig {
        let (sender, receiver) = self.ends();
        let limit = u64::from(receiver.tcp_receive_octets);
        FlowConfig {
            begins,
            ip_octets: self.segment_octets(),
            control: Control::granted(transfer.congestion.as_ref()),
            window: match granted_window(transfer, receiver) {
                Some(octets) => ReceiveWindow::Fixed(u64::from(octets)),
                None => ReceiveWindow::Autotuned(limit),
            },
            pacing: transfer.pacing,
            programs: Programs {
                send_octets: sender.tcp.send_octets.map(u64::from),
                writes: sender.tcp.writes,
                reads: receiver.tcp.reads,
                costs: (
                    nanos(sender.tcp.segment_cost_among(transfer.streams)),
                    nanos(receiver.tcp.segment_cost_among(transfer.streams)),
                ),
                ..Programs::default()
            },
            handshake,
            route: Route::Hosts { way: self.way, interface_rate: sender.interface_rate },
        }
    }

    /// IP octets of a full segment: what TCP takes for the path's MTU. A host begins with its own
    /// link's, and routers in front of narrower links tell it of theirs (RFC 1191), unless they
    /// keep silent.
    fn segment_octets(&self) -> u16 {
        let hops = self.scenario.hops(self.way);
        let Some(first) = hops.first() else {
            return self.facts.path_mtu;
        };
        let mut octets = first.mtu;
        for pair in hops.windows(2) {
            if pair[1].mtu < octets && pair[0].router.answers {
                octets = pair[1].mtu;
            }
        }
        octets
    }

    /// Processor time of each connection's threads by now.
    fn cpu(&mut self, running: &RunningTransfer) -> Vec<CpuTime> {
        let stack = &self.engine.connections().stack;
        running.flows.iter().filter_map(|flow| stack.cpu(*flow)).collect()
    }

    fn ends(&self) -> (&Host, &Host) {
        match self.way {
            PathDirection::Forward => (&self.scenario.sender, &self.scenario.receiver),
            PathDirection::Reverse => (&self.scenario.receiver, &self.scenario.sender),
        }
    }

    /// Lets the segment pass, and samples at its begin, its end, and as often as asked between
    /// them. A program that samples is held up by the stalls of a measured host.
    fn sampled(&mut self, running: &RunningTransfer, begin: u64, end: u64) -> Vec<StreamReport> {
        let every = match running.asked.sample_every {
            Duration::ZERO => running.asked.duration,
            every => every,
        };
        let every = nanos(every.max(SHORTEST_SAMPLING));
        let granted = granted_window(&running.asked, self.ends().1);
        let stack = &self.engine.connections().stack;
        let report = |flow: &u32| {
            Some(StreamReport {
                congestion: stack.congestion(*flow)?,
                // The kernel counts its own overhead too, and grants twice what is asked for
                // (socket(7)).
                granted_send_buffer_octets: granted.map(|octets| octets.saturating_mul(2)),
                samples: Vec::new(),
            })
        };
        let mut streams: Vec<StreamReport> = running.flows.iter().filter_map(report).collect();
        let mut at = begin;
        loop {
            let asked = at;
            at = self.engine.host(self.way).program_running(at);
            self.engine.idle_until(at);
            let stamp = Stamp::from_nanos(self.engine.reading(self.way, at));
            let stack = &mut self.engine.connections().stack;
            for (stream, flow) in streams.iter_mut().zip(&running.flows) {
                stream.samples.extend(stack.sample(*flow, at, stamp));
            }
            if at >= end {
                return streams;
            }
            let next = asked.saturating_add(every);
            at = end.min(if next > at { next } else { at.saturating_add(every) });
        }
    }

    /// Waits until the data that were written have arrived, and for the peer's word of it: the
    /// octets that it read, and its time from the first to the last of them.
    fn drain(&mut self, running: &RunningTransfer, read_before: u64) -> (u64, Duration) {
        for flow in &running.flows {
            self.engine.connections().stack.finish(*flow);
        }
        let mut progress = (self.read_octets(running), self.engine.now());
        loop {
            let now = self.engine.now();
            let stack = &self.engine.connections().stack;
            let done = running.flows.iter().all(|flow| stack.is_done(*flow));
            let read = self.read_octets(running);
            if read > progress.0 {
                progress = (read, now);
            }
            if done || now - progress.1 >= DRAIN_TIMEOUT_NS {
                break;
            }
            self.engine.idle_until(now + DRAIN_STEP_NS);
        }
        let stack = &mut self.engine.connections().stack;
        let times = running.flows.iter().filter_map(|flow| stack.read(*flow)?.1);
        let (first, last) = times.fold((u64::MAX, 0), |(first, last), (from, to)| (first.min(from), last.max(to)));
        for flow in &running.flows {
            stack.close(*flow);
        }
        let reader = self.way.opposite();
        let took =
            if first <= last { self.engine.reading(reader, last) - self.engine.reading(reader, first) } else { 0 };
        self.await_word_from_peer_kind();
        let took = Duration::from_nanos(u64::try_from(took).unwrap_or(0));
        (progress.0 - read_before, took)
    }

    fn read_octets(&mut self, running: &RunningTransfer) -> u64 {
        let stack = &self.engine.connections().stack;
        let read = running.flows.iter().filter_map(|flow| stack.read(*flow));
        read.map(|(octets, _)| octets).sum()
    }
}

/// Processor time of the sending and of the receiving thread; `None` where it costs nothing.
type CpuTime = (Option<u64>, Option<u64>);

/// Shares of a time for which the busiest threads were on a processor.
fn shares(before: &[CpuTime], after: &[CpuTime], time: u64) -> (Option<f32>, Option<f32>) {
    let share = |of: fn(&CpuTime) -> Option<u64>| {
        let used = before.iter().zip(after).filter_map(|(before, after)| Some(of(after)?.saturating_sub(of(before)?)));
        used.max().map(|used| (used as f32 / time.max(1) as f32).min(1.0))
    };
    (share(|cpu| cpu.0), share(|cpu| cpu.1))
}

impl RunningTransfer {
    /// The next segment takes over: nothing changes but its length, its samples, and perhaps more
    /// streams.
    fn continues_as(&self, next: &Transfer) -> bool {
        let asked = &self.asked;
        next.streams >= asked.streams
            && next.congestion == asked.congestion
            && next.window_octets == asked.window_octets
            && next.pacing == asked.pacing
    }
}

/// The window that a host grants when one is asked for.
fn granted_window(transfer: &Transfer, receiver: &Host) -> Option<u32> {
    transfer.window_octets.map(|octets| octets.min(receiver.tcp_receive_octets))
}
