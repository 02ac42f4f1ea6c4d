//! What a flow's thread gathers of the datagrams that arrive.

use std::mem;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use narrows_wire::{ArrivalRow, Rows, Table, TrainResult};

use super::convert::stamp_source;
use crate::load::Account;
use crate::receive::{Alignment, ArrivalTimes};

/// One datagram that bears the session's mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived {
    pub(super) id: u32,
    pub(super) seq: u32,
    pub(super) sent_ns: i64,
    pub(super) seen: ArrivalTimes,
    pub(super) ip_octets: u16,
    pub(super) hop_limit: u8,
    /// Datagrams that came together with it, itself included.
    pub(super) gathered: usize,
}

/// What the flow is gathering.
#[derive(Debug, Default)]
pub(super) enum Collector {
    /// Nothing; probes are dropped.
    #[default]
    Idle,
    /// A train.
    Train(TrainCollector),
    /// This flow's part of a load.
    Load(LoadShare),
}

/// Gathers one train.
#[derive(Debug)]
pub(super) struct TrainCollector {
    id: u32,
    arrivals: Vec<Arrived>,
    /// By sequence number: has arrived.
    present: Vec<bool>,
    highest: Option<u32>,
    reordered: u32,
    duplicates: u32,
    drops: u32,
    last_ns: i64,
    /// How long its packets may lie in the kernel.
    poll_interval_ns: i64,
}

impl TrainCollector {
    pub(super) fn new(id: u32, packets: u32, poll_interval_ns: i64) -> Self {
        Self {
            id,
            poll_interval_ns,
            arrivals: Vec::with_capacity(packets as usize),
            present: vec![false; packets as usize],
            highest: None,
            reordered: 0,
            duplicates: 0,
            drops: 0,
            last_ns: 0,
        }
    }

    /// Takes one in.
    pub(super) fn take(&mut self, packet: Arrived) {
        if packet.id != self.id {
            return;
        }
        let Some(present) = self.present.get_mut(packet.seq as usize) else {
            return;
        };
        self.last_ns = packet.seen.user_ns;
        if mem::replace(present, true) {
            self.duplicates = self.duplicates.saturating_add(1);
            return;
        }
        if self.highest.is_some_and(|highest| packet.seq < highest) {
            self.reordered += 1;
        } else {
            self.highest = Some(packet.seq);
        }
        self.arrivals.push(packet);
    }

    pub(super) fn add_drops(&mut self, drops: u32) {
        self.drops = self.drops.saturating_add(drops);
    }

    /// How long the receiver may rest now; not at all once everything is there.
    pub(super) fn poll_interval_ns(&self) -> i64 {
        if self.arrivals.len() < self.present.len() { self.poll_interval_ns } else { 0 }
    }

    /// Packets that arrived, and when the last one did.
    pub(super) fn progress(&self) -> (u32, i64) {
        (u32::try_from(self.arrivals.len()).unwrap_or(u32::MAX), self.last_ns)
    }

    /// The announcement and the rows.
    pub(super) fn finish(self) -> (TrainResult, Rows) {
        let alignment = Alignment::choose(self.arrivals.iter().map(|packet| &packet.seen));
        let rows = self
            .arrivals
            .iter()
            .map(|packet| ArrivalRow {
                seq: packet.seq,
                ip_octets: packet.ip_octets,
                hop_limit: packet.hop_limit,
                stamp_ns: alignment.stamp_ns(&packet.seen),
            })
            .collect();
        let result = TrainResult {
            id: self.id,
            reordered: self.reordered,
            duplicates: self.duplicates,
            local_drops: self.drops,
            stamps: stamp_source(alignment.source()),
        };
        let rows = Rows { id: self.id, table: Table::Arrivals(rows) };
        (result, rows)
    }
}

/// One flow's share in the account of a load.
#[derive(Debug)]
pub(super) struct LoadShare {
    pub(super) id: u32,
    /// Which of the account's flows.
    pub(super) flow: usize,
    pub(super) tally: Arc<Tally>,
}

/// What all flows of a load write to.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) account: Mutex<Account>,
    /// When the last packet arrived.
    pub(super) last_ns: AtomicI64,
}

impl LoadShare {
    /// Takes a batch in under one lock.
    pub(super) fn take(&self, batch: impl Iterator<Item = Arrived>, drops: u32) {
        let mut account = self.tally.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.local_drops(self.flow, drops);
        for packet in batch.filter(|packet| packet.id == self.id) {
            let received_ns = packet.seen.best_ns();
            account.gathered(self.flow, packet.gathered);
            account.packet(self.flow, packet.seq, packet.sent_ns, received_ns, packet.ip_octets);
            self.tally.last_ns.store(packet.seen.user_ns, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(seq: u32, sent_ns: i64, kernel_ns: i64) -> Arrived {
        Arrived {
            id: 1,
            seq,
            sent_ns,
            seen: ArrivalTimes { user_ns: kernel_ns + 5, kernel_ns: Some(kernel_ns), hardware_ns: None },
            ip_octets: 1500,
            hop_limit: 64,
            gathered: 1,
        }
    }

    #[test]
    fn a_train_with_everything_that_can_happen() {
        let mut train = TrainCollector::new(1, 5, 1000);
        for (seq, at) in [(0, 100), (2, 200), (1, 300), (1, 400), (4, 500), (9, 600)] {
            train.take(packet(seq, 0, at));
        }
        train.take(Arrived { id: 2, ..packet(3, 0, 700) });
        train.add_drops(1);
        assert_eq!(train.progress(), (4, 505));
        assert_eq!(train.poll_interval_ns(), 1000);
        let (result, rows) = train.finish();
        assert_eq!((result.reordered, result.duplicates, result.local_drops), (1, 1, 1));
        assert_eq!(result.stamps, narrows_wire::StampSource::Kernel);
        let Table::Arrivals(rows) = rows.table else { panic!("arrivals") };
        let seen: Vec<_> = rows.iter().map(|row| (row.seq, row.stamp_ns)).collect();
        assert_eq!(seen, [(0, 100), (2, 200), (1, 300), (4, 500)]);
    }
}
