//! What a host's kernel answers by itself, without any program's call.

use narrows_scenario::{PathDirection, Scenario};

use super::{HostState, Intake};
use crate::path::Answers;

/// Packets without a program, from the interface to their answers' departure. They share the
/// interface's coalescing and the host's stalls with those that a program reads, and cost no call.
#[derive(Debug)]
pub(crate) struct Kernel<C> {
    host: HostState,
    intake: Intake<C>,
    answers: Answers,
    /// Packets are handled one after the other, so that no answer overtakes another.
    last: u64,
}

impl<C> Kernel<C> {
    /// The kernel of the host at the beginning of `way`, where the other way ends.
    pub(crate) fn new(scenario: &Scenario, way: PathDirection, seed: u64) -> Self {
        let (host, arriving) = match way {
            PathDirection::Forward => (&scenario.sender, PathDirection::Reverse),
            PathDirection::Reverse => (&scenario.receiver, PathDirection::Forward),
        };
        Self {
            host: HostState::without_program(host, way, seed),
            intake: Intake::new(host.coalescing),
            answers: Answers::new(host.answers, arriving, scenario.hops(arriving).len(), seed),
            last: 0,
        }
    }

    /// A packet arrives at `at`, no earlier than the one before.
    pub(crate) fn arrive(&mut self, at: u64, payload: C) {
        self.intake.arrive(at, 0, payload, &mut self.host);
    }

    /// When the kernel sees the next packet.
    pub(crate) fn next_at(&self) -> u64 {
        self.intake.next_at()
    }

    /// The next packet seen up to `until`, and when its answer leaves: an ICMP message about so
    /// many octets, which the limit concerns, or a segment.
    pub(crate) fn pop_until(&mut self, until: u64, icmp: impl Fn(&C) -> Option<u16>) -> Option<(Option<u64>, C)> {
        let reading = self.intake.pop_until(until, &mut self.host)?;
        let made = match (reading.dropped, icmp(&reading.payload)) {
            (true, _) => None,
            (false, Some(ip_octets)) => self.answers.answer(reading.at, ip_octets),
            (false, None) => self.answers.answer_unlimited(reading.at),
        };
        let leaves = made.map(|at| at.max(self.last));
        self.last = leaves.unwrap_or(self.last);
        Some((leaves, reading.payload))
    }
}
