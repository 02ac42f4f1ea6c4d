//! What a flow's thread gathers of the datagrams that arrive.

use std::mem;

use wire::{ArrivalRow, Rows, StampSource, Table, TrainResult};

use crate::receive::{Alignment, Seen};

/// One datagram that bears the session's mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived {
    pub(super) id: u32,
    pub(super) seq: u32,
    pub(super) sent_ns: i64,
    pub(super) seen: Seen,
    pub(super) ip_octets: u16,
    pub(super) hop_limit: u8,
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
    Load(LoadCollector),
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
}

impl TrainCollector {
    pub(super) fn new(id: u32, packets: u32) -> Self {
        Self {
            id,
            arrivals: Vec::with_capacity(packets as usize),
            present: vec![false; packets as usize],
            highest: None,
            reordered: 0,
            duplicates: 0,
            drops: 0,
            last_ns: 0,
        }
    }

    /// Takes one in; `true` if it was new.
    pub(super) fn take(&mut self, packet: Arrived) -> bool {
        if packet.id != self.id {
            return false;
        }
        let Some(present) = self.present.get_mut(packet.seq as usize) else {
            return false;
        };
        self.last_ns = packet.seen.user_ns;
        if mem::replace(present, true) {
            self.duplicates = self.duplicates.saturating_add(1);
            return false;
        }
        if self.highest.is_some_and(|highest| packet.seq < highest) {
            self.reordered += 1;
        } else {
            self.highest = Some(packet.seq);
        }
        self.arrivals.push(packet);
        true
    }

    pub(super) fn add_drops(&mut self, drops: u32) {
        self.drops = self.drops.saturating_add(drops);
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
        let rows = Rows {
            id: self.id,
            table: Table::Arrivals(rows),
        };
        (result, rows)
    }
}

/// The protocol's name of a stamp source; sockets never say `Simulated`.
pub(super) fn stamp_source(source: estimate::StampSource) -> StampSource {
    match source {
        estimate::StampSource::Hardware => StampSource::Hardware,
        estimate::StampSource::Kernel => StampSource::Kernel,
        estimate::StampSource::User | estimate::StampSource::Simulated => StampSource::User,
    }
}

/// Sums of one load over an interval; those of several flows add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LoadSums {
    pub(super) packets: u64,
    pub(super) ip_octets: u64,
    /// Net of late arrivals; below zero if more came late than went missing in the interval.
    pub(super) lost: i64,
    pub(super) reordered: u64,
    pub(super) duplicates: u64,
    pub(super) drops: u64,
    /// Smallest, largest and sum of arrival minus departure.
    pub(super) delay: Option<(i64, i64, i128)>,
}

impl LoadSums {
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.ip_octets += other.ip_octets;
        self.lost += other.lost;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.drops += other.drops;
        self.delay = match (self.delay, other.delay) {
            (Some((least, most, sum)), Some((least2, most2, sum2))) => Some((least.min(least2), most.max(most2), sum + sum2)),
            (one, other) => one.or(other),
        };
    }

    /// Smallest, mean and largest delay.
    pub(super) fn delays(&self) -> Option<(i64, i64, i64)> {
        let (least, most, sum) = self.delay?;
        let mean = i64::try_from(sum.checked_div(i128::from(self.new_packets()))?).ok()?;
        Some((least, mean.clamp(least, most), most))
    }

    fn new_packets(&self) -> u64 {
        self.packets.saturating_sub(self.duplicates)
    }
}

/// Late packets are told from repeated ones among this many of the latest sequence numbers; older ones count as repeated.
const WINDOW: u64 = 4096;

/// Gathers one flow's part of a load.
#[derive(Debug)]
pub(super) struct LoadCollector {
    id: u32,
    sums: LoadSums,
    /// One more than the highest sequence number seen.
    next: u64,
    /// Bit per sequence number, modulo the window: has arrived.
    present: Vec<u64>,
    last_ns: i64,
    total_octets: u64,
}

impl LoadCollector {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            sums: LoadSums::default(),
            next: 0,
            present: vec![0; usize::try_from(WINDOW / 64).unwrap_or(64)],
            last_ns: 0,
            total_octets: 0,
        }
    }

    fn bit(seq: u64) -> (usize, u64) {
        (usize::try_from(seq % WINDOW / 64).unwrap_or(0), 1 << (seq % 64))
    }

    pub(super) fn take(&mut self, packet: Arrived) {
        if packet.id != self.id {
            return;
        }
        self.last_ns = packet.seen.user_ns;
        self.sums.packets += 1;
        self.sums.ip_octets += u64::from(packet.ip_octets);
        self.total_octets += u64::from(packet.ip_octets);
        let seq = u64::from(packet.seq);
        let (word, bit) = Self::bit(seq);
        if seq >= self.next {
            let missing = seq - self.next;
            for skipped in self.next.max(seq.saturating_sub(WINDOW))..seq {
                let (word, bit) = Self::bit(skipped);
                self.present[word] &= !bit;
            }
            self.sums.lost += i64::try_from(missing).unwrap_or(0);
            self.next = seq + 1;
        } else if self.next - seq > WINDOW || self.present[word] & bit != 0 {
            self.sums.duplicates += 1;
            return;
        } else {
            self.sums.lost -= 1;
            self.sums.reordered += 1;
        }
        self.present[word] |= bit;
        let delay = packet.seen.best_ns().saturating_sub(packet.sent_ns);
        let one = (delay, delay, i128::from(delay));
        self.sums.delay = Some(self.sums.delay.map_or(one, |(least, most, sum)| {
            (least.min(delay), most.max(delay), sum + i128::from(delay))
        }));
    }

    pub(super) fn add_drops(&mut self, drops: u32) {
        self.sums.drops += u64::from(drops);
    }

    /// What came since the last call; the octets of the whole load so far; when the last packet came.
    pub(super) fn interval(&mut self) -> (LoadSums, u64, i64) {
        (mem::take(&mut self.sums), self.total_octets, self.last_ns)
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
            seen: Seen {
                user_ns: kernel_ns + 5,
                kernel_ns: Some(kernel_ns),
                hardware_ns: None,
            },
            ip_octets: 1500,
            hop_limit: 64,
        }
    }

    #[test]
    fn a_train_with_everything_that_can_happen() {
        let mut train = TrainCollector::new(1, 5);
        for (seq, at) in [(0, 100), (2, 200), (1, 300), (1, 400), (4, 500), (9, 600)] {
            train.take(packet(seq, 0, at));
        }
        train.take(Arrived {
            id: 2,
            ..packet(3, 0, 700)
        });
        train.add_drops(1);
        assert_eq!(train.progress(), (4, 505));
        let (result, rows) = train.finish();
        assert_eq!((result.reordered, result.duplicates, result.local_drops), (1, 1, 1));
        assert_eq!(result.stamps, StampSource::Kernel);
        let Table::Arrivals(rows) = rows.table else { panic!("arrivals") };
        let seen: Vec<_> = rows.iter().map(|row| (row.seq, row.stamp_ns)).collect();
        assert_eq!(seen, [(0, 100), (2, 200), (1, 300), (4, 500)]);
    }

    #[test]
    fn a_load_tells_late_from_lost_from_repeated() {
        let mut load = LoadCollector::new(1);
        for seq in [0, 1, 4, 3, 3, 5] {
            load.take(packet(seq, 1000 * i64::from(seq), 1000 * i64::from(seq) + 10));
        }
        let (sums, octets, last_ns) = load.interval();
        assert_eq!((sums.packets, sums.lost, sums.reordered, sums.duplicates), (6, 1, 1, 1));
        assert_eq!((octets, last_ns), (9000, 5015));
        assert_eq!(sums.delays(), Some((10, 10, 10)));
        // The missing one comes in the next interval: the sum over both is no loss.
        load.take(packet(2, 0, 6000));
        assert_eq!(load.interval().0.lost, -1);
        assert_eq!(load.interval().0.delays(), None);
    }

    #[test]
    fn a_gap_wider_than_the_window() {
        let mut load = LoadCollector::new(1);
        load.take(packet(0, 0, 0));
        load.take(packet(100_000, 0, 0));
        load.take(packet(99_999, 0, 0));
        load.take(packet(0, 0, 0));
        let (sums, ..) = load.interval();
        assert_eq!((sums.lost, sums.reordered, sums.duplicates), (99_998, 1, 1));
    }

    #[test]
    fn flows_add_up() {
        let (mut one, mut two) = (LoadCollector::new(1), LoadCollector::new(1));
        one.take(packet(0, 0, 10));
        one.take(packet(1, 0, 30));
        two.take(packet(0, 0, -10));
        let mut sums = one.interval().0;
        sums.add(&two.interval().0);
        assert_eq!(sums.delays(), Some((-10, 10, 30)));
        assert_eq!(sums.packets, 3);
    }
}
