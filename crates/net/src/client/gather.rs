//! Gathers the packets of one train while something else sends.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use narrows_wire::{ProbeKind, Tag};

use crate::clock;
use crate::error::Error;
use crate::poll_interval::Expected;
use crate::receive::{ArrivalTimes, Datagram, Receiver};
use crate::socket::ProbeSocket;
use crate::thread_scheduling::ThreadScheduling;

/// The first arrival of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) seen: ArrivalTimes,
    /// Of an echo: when the remote host had received the request.
    pub(crate) turned_ns: Option<i64>,
}

/// What came of a train.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Gathered {
    /// By position in the train.
    pub(crate) packets: Vec<Option<Arrived>>,
    pub(crate) reordered: u32,
    pub(crate) duplicates: u32,
    pub(crate) local_drops: u32,
    highest: Option<usize>,
}

impl Gathered {
    /// Stamps from both sides of a step of the wall clock do not compare; the program's own are on
    /// a clock without steps.
    fn forget_kernel_stamps(&mut self) {
        for arrived in self.packets.iter_mut().flatten() {
            arrived.seen.kernel_ns = None;
        }
    }

    fn take(&mut self, seq: u32, arrived: Arrived) -> bool {
        let seq = seq as usize;
        match self.packets.get_mut(seq) {
            None => return false,
            Some(Some(_)) => {
                self.duplicates = self.duplicates.saturating_add(1);
                return false;
            }
            Some(place) => *place = Some(arrived),
        }
        if self.highest.is_some_and(|highest| seq < highest) {
            self.reordered += 1;
        } else {
            self.highest = Some(seq);
        }
        true
    }
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    count: AtomicU32,
    last_ns: AtomicI64,
    /// The remote host's last sign of life.
    last_received_ns: Arc<AtomicI64>,
    gathered: Mutex<Gathered>,
}

/// A thread that receives the packets of one train.
#[derive(Debug)]
pub(crate) struct Gatherer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Which packets to gather.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) tag: Tag,
    pub(super) id: u32,
    /// Echoes, or packets that the remote host sent of itself.
    pub(super) echoes: bool,
    pub(super) expected: Expected,
}

impl Wanted {
    /// Position of a packet in the train, and when it was turned round.
    fn read(&self, payload: &[u8]) -> Option<(u32, Option<i64>)> {
        let Ok(narrows_wire::Datagram::Probe(probe)) = narrows_wire::Datagram::parse(payload) else {
            return None;
        };
        let turned_ns = match probe.kind {
            ProbeKind::Train if !self.echoes => None,
            ProbeKind::EchoReply { turned_ns } if self.echoes => Some(turned_ns),
            _ => return None,
        };
        (probe.tag == self.tag && probe.id == self.id).then_some((probe.seq, turned_ns))
    }
}

/// Room for any header; the padding is not read.
const SLOT_OCTETS: usize = 64;

impl Gatherer {
    /// Every packet that comes is noted in `last_received_ns` as a sign of the remote host's life.
    pub(super) fn start(
        socket: &Arc<ProbeSocket>,
        wanted: Wanted,
        last_received_ns: &Arc<AtomicI64>,
    ) -> Result<Self, Error> {
        Self::reading(socket, wanted.expected, SLOT_OCTETS, last_received_ns, move |datagram| {
            wanted.read(datagram.payload)
        })
    }

    /// Gathers what `read` takes for one of the expected packets, by its position. `slot_octets` of
    /// each are read.
    pub(crate) fn reading(
        socket: &Arc<ProbeSocket>,
        expected: Expected,
        slot_octets: usize,
        last_received_ns: &Arc<AtomicI64>,
        read: impl FnMut(&Datagram<'_>) -> Option<(u32, Option<i64>)> + Send + 'static,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            count: AtomicU32::new(0),
            last_ns: AtomicI64::new(i64::MIN),
            last_received_ns: Arc::clone(last_received_ns),
            gathered: Mutex::new(Gathered { packets: vec![None; expected.packets], ..Gathered::default() }),
        });
        let receiver = Receiver::new(socket, slot_octets);
        let poll_interval_ns = expected.poll_interval_ns(socket);
        let (thread_shared, socket) = (Arc::clone(&shared), Arc::clone(socket));
        let thread = std::thread::Builder::new()
            .name("gather".to_owned())
            .spawn(move || thread_shared.run(&socket, receiver, poll_interval_ns, read))
            .map_err(Error::host("start a thread"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Different packets that came, and when the last did (monotonic nanoseconds).
    pub(crate) fn progress(&self) -> (usize, i64) {
        (self.shared.count.load(Ordering::Relaxed) as usize, self.shared.last_ns.load(Ordering::Relaxed))
    }

    /// Positions of the packets that did not come yet.
    pub(crate) fn missing(&self) -> Vec<usize> {
        let gathered = self.shared.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        (0..).zip(&gathered.packets).filter(|(_, place)| place.is_none()).map(|(seq, _)| seq).collect()
    }

    pub(crate) fn finish(mut self) -> Gathered {
        self.end();
        std::mem::take(&mut *self.shared.gathered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked gathers no more either.
            let _ = thread.join();
        }
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn run(
        &self,
        socket: &ProbeSocket,
        mut receiver: Receiver,
        poll_interval_ns: i64,
        mut read: impl FnMut(&Datagram<'_>) -> Option<(u32, Option<i64>)>,
    ) {
        const POLL_NS: i64 = 5_000_000;
        let _careful = ThreadScheduling::default().take();
        while !self.stop.load(Ordering::Relaxed) {
            // An error of the socket itself shows as silence; the control connection tells more of
            // it.
            if receiver.receive(socket, clock::now_ns() + POLL_NS).unwrap_or(0) == 0 {
                continue;
            }
            let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            for datagram in receiver.iter() {
                let Some((seq, turned_ns)) = read(&datagram) else {
                    continue;
                };
                let arrived = Arrived { seen: datagram.seen, turned_ns };
                self.last_ns.store(datagram.seen.user_ns, Ordering::Relaxed);
                self.last_received_ns.fetch_max(datagram.seen.user_ns, Ordering::Relaxed);
                if gathered.take(seq, arrived) {
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
            }
            let more = gathered.packets.len() > self.count.load(Ordering::Relaxed) as usize;
            drop(gathered);
            if more {
                receiver.rest(poll_interval_ns);
            }
        }
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.local_drops = receiver.take_drops(socket);
        if receiver.steps() > 0 {
            gathered.forget_kernel_stamps();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_arrivals_are_kept_and_the_rest_counted() {
        let mut gathered = Gathered { packets: vec![None; 4], ..Gathered::default() };
        let at =
            |user_ns| Arrived { seen: ArrivalTimes { user_ns, kernel_ns: None, hardware_ns: None }, turned_ns: None };
        let taken: Vec<bool> =
            [(0, 1), (2, 2), (1, 3), (2, 4), (4, 5)].map(|(seq, ns)| gathered.take(seq, at(ns))).to_vec();
        assert_eq!(taken, [true, true, true, false, false]);
        assert_eq!((gathered.reordered, gathered.duplicates), (1, 1));
        assert_eq!(gathered.packets, [Some(at(1)), Some(at(3)), Some(at(2)), None]);
        if let Some(arrived) = &mut gathered.packets[0] {
            arrived.seen.kernel_ns = Some(1);
        }
        gathered.forget_kernel_stamps();
        assert_eq!(gathered.packets, [Some(at(1)), Some(at(3)), Some(at(2)), None]);
    }
}
