//! What arrived of a load. Pure: times are arguments.

/// What one interval saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// When it began, receiver's nanoseconds.
    pub from_ns: i64,
    /// When it ended.
    pub to_ns: i64,
    /// Packets that arrived for the first time.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// Packets found missing by sequence number, net of late arrivals.
    pub lost: u64,
    /// Packets that arrived behind a later one.
    pub reordered: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that this host dropped for want of buffer.
    pub local_drops: u64,
    /// Smallest, mean and largest of arrival minus departure: one-way delays plus the unknown
    /// offset of two clocks.
    pub delay_ns: Option<(i64, i64, i64)>,
}

/// The account of one load over all its flows.
#[derive(Debug, Clone)]
pub struct Account {
    flows: Vec<Flow>,
    began_ns: i64,
    packets: u64,
    ip_octets: u64,
    reordered: u64,
    duplicates: u64,
    local_drops: u64,
    delay: Option<(i64, i128, i64)>,
    /// Losses already reported; may exceed what is missing now, when packets come late.
    reported_lost: u64,
}

/// How far behind the newest packet one may arrive and still be told from a duplicate (ours: 100 ms
/// of 600 000 packets per second).
const WINDOW: u32 = 65_536;

#[derive(Debug, Clone)]
struct Flow {
    /// One past the highest number seen.
    expected: u32,
    distinct: u64,
    /// Whether each of the last [`WINDOW`] numbers arrived, by number modulo that.
    seen: Vec<u64>,
    dropped: Dropped,
}

/// Packets that this host dropped where the kernel may hand over several at once: such a group it
/// counts as one when it drops it, and the gap in the numbers tells how many they were.
#[derive(Debug, Clone)]
pub(crate) struct Dropped {
    /// What the kernel counted and no gap was found for yet.
    unfound: u64,
    /// How many packets it handed over at once at most.
    group: u64,
}

impl Default for Dropped {
    fn default() -> Self {
        Self { unfound: 0, group: 1 }
    }
}

impl Dropped {
    /// So many were handed over at once.
    pub(crate) fn gathered(&mut self, packets: usize) {
        self.group = self.group.max(packets as u64);
    }

    /// The kernel counted so many.
    pub(crate) fn counted(&mut self, drops: u32) {
        self.unfound = self.unfound.saturating_add(drops.into());
    }

    /// A gap of so many packets was found: how many of them this host dropped beyond those that the
    /// kernel counted.
    pub(crate) fn gap(&mut self, packets: u64) -> u64 {
        let explained = packets.min(self.unfound.saturating_mul(self.group));
        let groups = explained.div_ceil(self.group);
        self.unfound = self.unfound.saturating_sub(groups);
        explained.saturating_sub(groups)
    }
}

enum Place {
    Next,
    Late,
    Again,
}

impl Flow {
    fn new() -> Self {
        Self { expected: 0, distinct: 0, seen: vec![0; (WINDOW / 64) as usize], dropped: Dropped::default() }
    }

    fn bit(seq: u32) -> (usize, u64) {
        let place = seq % WINDOW;
        ((place / 64) as usize, 1 << (place % 64))
    }

    fn place(&mut self, seq: u32) -> Place {
        let (word, mask) = Self::bit(seq);
        if seq >= self.expected {
            if seq - self.expected >= WINDOW {
                self.seen.fill(0);
            } else {
                for skipped in self.expected..seq {
                    let (word, mask) = Self::bit(skipped);
                    self.seen[word] &= !mask;
                }
            }
            self.expected = seq.saturating_add(1);
            self.seen[word] |= mask;
            self.distinct += 1;
            return Place::Next;
        }
        if self.expected - seq > WINDOW || self.seen[word] & mask != 0 {
            return Place::Again;
        }
        self.seen[word] |= mask;
        self.distinct += 1;
        Place::Late
    }

    fn missing(&self) -> u64 {
        u64::from(self.expected).saturating_sub(self.distinct)
    }
}

impl Account {
    /// For so many flows, each of whose packets are numbered from 0.
    pub fn new(flows: usize, began_ns: i64) -> Self {
        Self {
            flows: vec![Flow::new(); flows],
            began_ns,
            packets: 0,
            ip_octets: 0,
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            delay: None,
            reported_lost: 0,
        }
    }

    /// A packet arrived. One of a flow that there is not is ignored.
    pub fn packet(&mut self, flow: usize, seq: u32, sent_ns: i64, received_ns: i64, ip_octets: u16) {
        let Some(flow) = self.flows.get_mut(flow) else { return };
        let gap = seq.saturating_sub(flow.expected);
        self.local_drops += flow.dropped.gap(gap.into());
        match flow.place(seq) {
            Place::Next => {}
            Place::Late => self.reordered += 1,
            Place::Again => {
                self.duplicates += 1;
                return;
            }
        }
        self.packets += 1;
        self.ip_octets += u64::from(ip_octets);
        let delay = received_ns.saturating_sub(sent_ns);
        let (least, sum, most) = self.delay.unwrap_or((delay, 0, delay));
        self.delay = Some((least.min(delay), sum + i128::from(delay), most.max(delay)));
    }

    /// The kernel handed over so many packets of a flow at once.
    pub fn gathered(&mut self, flow: usize, packets: usize) {
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.dropped.gathered(packets);
        }
    }

    /// This host dropped packets of a flow for want of buffer, so many by its own count: each may
    /// be several that came together, as the gap in their numbers shows.
    pub fn local_drops(&mut self, flow: usize, packets: u32) {
        self.local_drops += u64::from(packets);
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.dropped.counted(packets);
        }
    }

    /// Ends the interval, and begins the next.
    pub fn close(&mut self, at_ns: i64) -> Interval {
        let missing: u64 = self.flows.iter().map(Flow::missing).sum();
        let lost = missing.saturating_sub(self.reported_lost);
        self.reported_lost += lost;
        let packets = std::mem::take(&mut self.packets);
        let from_ns = self.began_ns;
        self.began_ns = at_ns.max(from_ns);
        Interval {
            from_ns,
            to_ns: self.began_ns,
            packets,
            ip_octets: std::mem::take(&mut self.ip_octets),
            lost,
            reordered: std::mem::take(&mut self.reordered),
            duplicates: std::mem::take(&mut self.duplicates),
            local_drops: std::mem::take(&mut self.local_drops),
            delay_ns: self.delay.take().map(|(least, sum, most)| {
                let mean = sum / i128::from(packets.max(1));
                (least, i64::try_from(mean).unwrap_or(least), most)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feed(account: &mut Account, seqs: &[u32]) {
        for &seq in seqs {
            let sent = i64::from(seq) * 1000;
            account.packet(0, seq, sent, sent + 50, 100);
        }
    }

    #[test]
    fn losses_are_net_of_late_arrivals() {
        let mut account = Account::new(1, 10);
        feed(&mut account, &[0, 1, 4]);
        let first = account.close(20);
        assert_eq!((first.packets, first.ip_octets, first.lost, first.reordered), (3, 300, 2, 0));
        assert_eq!((first.from_ns, first.to_ns, first.delay_ns), (10, 20, Some((50, 50, 50))));
        // Two and three come late after all; seven is missing: one loss fewer than reported in sum.
        feed(&mut account, &[3, 2, 5, 6, 8]);
        let second = account.close(30);
        assert_eq!((second.packets, second.lost, second.reordered), (5, 0, 2));
        feed(&mut account, &[11]);
        let third = account.close(40);
        // Missing in all: 7, 9, 10.
        assert_eq!((third.packets, third.lost), (1, 1));
        assert_eq!(first.lost + second.lost + third.lost, 3);
    }

    #[test]
    fn duplicates_are_not_packets() {
        let mut account = Account::new(2, 0);
        feed(&mut account, &[0, 0, 1, 0]);
        account.packet(1, 0, 0, 7, 100);
        account.packet(2, 0, 0, 7, 100);
        account.local_drops(0, 4);
        let interval = account.close(1);
        assert_eq!((interval.packets, interval.duplicates, interval.local_drops), (3, 2, 4));
        assert_eq!(interval.delay_ns, Some((7, 35, 50)));
        assert_eq!(account.close(2).delay_ns, None);
    }

    /// The kernel counts one where it would have handed over several; the gaps tell how many.
    #[test]
    fn what_the_host_dropped_is_reported_by_the_gaps() {
        let mut account = Account::new(2, 0);
        account.gathered(0, 10);
        feed(&mut account, &(0..10).collect::<Vec<_>>());
        // Two groups of ten and one of ten that follow one another; then one of four, cut short by
        // its burst's end.
        account.local_drops(0, 4);
        feed(&mut account, &(40..50).collect::<Vec<_>>());
        let first = account.close(1);
        assert_eq!((first.lost, first.local_drops), (30, 31), "one is not found yet");
        feed(&mut account, &[54]);
        let second = account.close(2);
        assert_eq!((second.lost, second.local_drops), (4, 3));
        // From now on it is the path.
        feed(&mut account, &[64]);
        let third = account.close(3);
        assert_eq!((third.lost, third.local_drops), (9, 0));
        // A flow whose packets come one by one is told by the kernel alone.
        account.local_drops(1, 2);
        account.packet(1, 5, 0, 0, 100);
        account.packet(1, 9, 0, 0, 100);
        assert_eq!(account.close(4).local_drops, 2);
    }

    #[test]
    fn a_gap_wider_than_the_window_is_all_loss() {
        let mut account = Account::new(1, 0);
        feed(&mut account, &[0, 100_000, 99_999, 5]);
        let interval = account.close(1);
        assert_eq!((interval.packets, interval.lost, interval.reordered, interval.duplicates), (3, 99_998, 1, 1));
    }

    proptest! {
        #[test]
        fn packets_and_losses_are_what_was_sent(order in Just((0u32..300).collect::<Vec<_>>()).prop_shuffle(), keep in 1usize..300,
            every in 1usize..50) {
            let kept = &order[..keep];
            let mut account = Account::new(1, 0);
            let (mut packets, mut at) = (0, 0);
            for part in kept.chunks(every) {
                feed(&mut account, part);
                at += 1;
                packets += account.close(at).packets;
            }
            prop_assert_eq!(packets, keep as u64);
            let highest = u64::from(*kept.iter().max().unwrap()) + 1;
            let missing: u64 = account.flows.iter().map(Flow::missing).sum();
            prop_assert_eq!(missing + keep as u64, highest);
            prop_assert!(account.reported_lost >= missing);
        }
    }
}
