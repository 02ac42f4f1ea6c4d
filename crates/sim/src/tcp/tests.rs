mod bbr;
mod conservation;
mod laws;

use std::time::Duration;

use narrows_probe::probes::TcpSample;
use narrows_scenario::{Hop, PathDirection, Queue, Scenario};
use narrows_units::{BitRate, Framing, Layer, Octets, Stamp};

use super::*;
use crate::path::{Output, Path};

/// Connections on a path, driven as the world drives them.
pub(super) struct Rig {
    pub(super) path: Path<Segment>,
    pub(super) stack: Stack,
    pub(super) drops: usize,
    outputs: Vec<Output<Segment>>,
    departures: Vec<Departure>,
}

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const MS: u64 = 1_000_000;
pub(super) const MSS: u64 = 1448;

impl Rig {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut stack = Stack::default();
        for (flow, _) in elastic_flows(scenario, seed) {
            stack.open(&flow);
        }
        Self { path: Path::new(scenario, seed), stack, drops: 0, outputs: Vec::new(), departures: Vec::new() }
    }

    pub(super) fn run_until(&mut self, until: u64) {
        loop {
            let due = self.stack.next_at().clamp(self.path.now(), until);
            self.path.advance_to_output(due, &mut self.outputs);
            let now = self.path.now();
            for output in self.outputs.drain(..) {
                match output {
                    Output::Delivered { payload, .. } => self.stack.deliver(now, &payload, &mut self.departures),
                    _ => self.drops += 1,
                }
            }
            self.stack.run_timers(now, &mut self.departures);
            for departure in self.departures.drain(..) {
                departure.enter(&mut self.path, now, None, |segment| segment);
            }
            if now >= until && self.path.next_at().is_none_or(|next| next > until) && self.stack.next_at() > until {
                return;
            }
        }
    }

    pub(super) fn sample(&mut self, flow: u32) -> TcpSample {
        let now = self.path.now();
        self.stack.sample(flow, now, Stamp::from_nanos(now.cast_signed())).unwrap()
    }

    /// Payload rate that the flow's receiver saw between two times.
    pub(super) fn rate(&mut self, flow: u32, from: u64, to: u64) -> f64 {
        self.run_until(from);
        let before = self.stack.read(flow).unwrap().0;
        self.run_until(to);
        let after = self.stack.read(flow).unwrap().0;
        (after - before) as f64 * 8e9 / (to - from) as f64
    }
}

/// A flow from host to host with a window that never limits.
pub(super) fn flow(control: Control) -> FlowConfig {
    FlowConfig {
        begins: 0,
        ip_octets: 1500,
        control,
        window: ReceiveWindow::Fixed(1 << 30),
        pacing: None,
        programs: Programs::default(),
        handshake: 10 * MS,
        route: Route::Hosts { way: PathDirection::Forward, interface_rate: None },
    }
}

/// One hop of this rate and round-trip time, with a queue of so many packets of 1500 octets.
pub(super) fn one_hop(mbps: u64, rtt_ms: u64, packets: u64) -> Hop {
    Hop::rate(BitRate::from_mbps(mbps))
        .delay(Duration::from_millis(rtt_ms) / 2)
        .queue(Queue::Octets(Octets::new(packets * 1500)))
}

pub(super) fn scenario(hop: Hop) -> Scenario {
    Scenario::new("one hop").hop(hop).validate().unwrap()
}

/// TCP payload capacity of Ethernet at 1500 octets, in bit/s.
pub(super) fn payload_capacity(mbps: u64) -> f64 {
    Framing::ETHERNET.convert(BitRate::from_mbps(mbps), Layer::Wire, Layer::TcpPayload, 1500, false).unwrap().as_f64()
}
