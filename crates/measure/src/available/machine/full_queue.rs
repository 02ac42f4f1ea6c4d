//! Trains of two rates, where those before them lost packets that no queue of theirs explains:
//! whether others keep the queue full.

use std::collections::VecDeque;

use narrows_units::{BitRate, Sender, Stamp};

use super::super::answer::Ending;
use super::super::full_queue::Queue;
use super::Machine;
use narrows_probe::Step;
use narrows_probe::probes::TrainReport;
use narrows_train::train_method::whole_packets;

/// Rates of the trains, as shares of the capacity (ours: the first bounds what is free, and both
/// together tell that losses grow and delays do not), and how many of each.
const RATES: [f64; 2] = [0.125, 2.0];
const EACH: usize = 3;
/// Trains that met a full queue before these come.
const MET: u32 = 2;
/// A train between those rates is of the faster ones from this share on.
const FAST: f64 = 0.5;
/// Packets of one at most and at least, and the seconds that it takes at most (ours).
const PACKETS: (f64, f64) = (24.0, 100.0);
const LONGEST: f64 = 1.0;

/// Rates of the trains to come, and why the run ends behind them; without a reason it goes on,
/// unless they find the queue full.
#[derive(Debug)]
pub(super) struct FullQueueLook {
    rates: VecDeque<f64>,
    ending: Option<Ending>,
}

impl Machine {
    /// Trains that ask whether others keep the queue full, if that may be why the run ends.
    pub(super) fn look_full(&mut self, now: Stamp<Sender>, ending: &Ending) -> Option<Step> {
        let may_look = match ending {
            Ending::Flawed(_) => ending.is_of_losses(),
            Ending::Settled | Ending::Exhausted => self.seen.slow.is_lossy(),
            Ending::HostLimited | Ending::Stopped(_) => false,
        };
        if !may_look || !self.begin_look(Some(ending.clone())) {
            return None;
        }
        self.next_full(now)
    }

    /// Asks for such trains now where some lost much from their first packets on, though the link
    /// takes their rate: none of them would say more.
    pub(super) fn look_early(&mut self) {
        if self.seen.met_full >= MET && !self.looked_early {
            self.looked_early = self.begin_look(None);
        }
    }

    fn begin_look(&mut self, ending: Option<Ending>) -> bool {
        let capacity = self.seen.carries().filter(|_| !self.replayed && self.full_queue.is_none());
        let Some(capacity) = capacity else { return false };
        let rates = RATES.iter().cycle().take(RATES.len() * EACH).map(|share| share * capacity).collect();
        self.full_queue = Some(FullQueueLook { rates, ending });
        true
    }

    /// Takes a train of these, and sends the next.
    pub(super) fn take_full(&mut self, now: Stamp<Sender>, report: &TrainReport, octets: u64) -> Step {
        self.seen.count(report);
        let rate = report.departure_rate().map_or(0.0, BitRate::as_f64);
        let fast = self.seen.carries().is_some_and(|capacity| rate > FAST * capacity);
        self.seen.full_queue[usize::from(fast)].push(report, rate);
        let until = self.train_began + self.scale().period(&self.params, octets, 1.0, self.seen.count);
        self.wait_or_send(now, until)
    }

    /// The next of these trains, or the run's end behind them.
    pub(super) fn next_full(&mut self, now: Stamp<Sender>) -> Option<Step> {
        let look = self.full_queue.as_mut()?;
        let Some(rate) = look.rates.pop_front() else {
            let full = || matches!(self.seen.queue(), Some(Queue::Full(_)));
            let ending = look.ending.clone().or_else(|| full().then(|| Ending::Flawed(self.seen.too_much_loss())));
            if let Some(ending) = ending {
                return Some(self.done(&ending));
            }
            // As if nobody had looked.
            self.seen.full_queue = Default::default();
            self.full_queue = None;
            return None;
        };
        let rate = self.seen.max_rate.map_or(rate, |most| rate.min(most));
        let packets = whole_packets((LONGEST * rate / self.packet_bits()).clamp(PACKETS.0, PACKETS.1));
        let rate = BitRate::from_bps_f64(rate).unwrap_or(BitRate::ZERO);
        Some(self.send_even(now, packets, self.seen.packet_octets, rate))
    }
}
