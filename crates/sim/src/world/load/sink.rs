//! What the receiver of a load counts.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_probe::probes::LoadStatus;
use narrows_units::Stamp;

use crate::NEVER;

/// The receiving end of a load. Intervals begin with the first packet.
#[derive(Debug)]
pub(super) struct LoadSink {
    /// Length of the intervals to come.
    pub(super) every: u64,
    pub(super) received: u64,
    pub(super) last_heard: u64,
    /// When the present interval began; [`NEVER`] before the first packet.
    from: u64,
    tally: Tally,
    /// Highest sequence number plus one.
    expected: u64,
    /// Losses reported so far. Late arrivals may push the losses below; then the next ones are set
    /// off against them.
    reported_lost: u64,
    least_delay: i64,
    /// Statuses with the times at which they were sent.
    statuses: VecDeque<(u64, LoadStatus)>,
}

#[derive(Debug, Clone, Copy)]
struct Tally {
    packets: u64,
    ip_octets: u64,
    reordered: u64,
    local_drops: u64,
    delay_sum: i128,
    delay_min: i64,
    delay_max: i64,
}

const NOTHING: Tally = Tally {
    packets: 0,
    ip_octets: 0,
    reordered: 0,
    local_drops: 0,
    delay_sum: 0,
    delay_min: i64::MAX,
    delay_max: i64::MIN,
};

impl Default for LoadSink {
    fn default() -> Self {
        Self {
            every: NEVER,
            received: 0,
            last_heard: 0,
            from: NEVER,
            tally: NOTHING,
            expected: 0,
            reported_lost: 0,
            least_delay: i64::MAX,
            statuses: VecDeque::new(),
        }
    }
}

impl LoadSink {
    /// A packet was read at `at`; `delay` is its stamp minus the sender's.
    pub(super) fn take(&mut self, at: u64, seq: u32, ip_octets: u16, delay: i64, reading: impl Fn(u64) -> i64) {
        if self.from == NEVER {
            self.from = at;
        }
        // A packet at an interval's end belongs to the next one.
        self.close_until(at, reading);
        self.received += 1;
        self.last_heard = at;
        self.least_delay = self.least_delay.min(delay);
        let tally = &mut self.tally;
        tally.packets += 1;
        tally.ip_octets += u64::from(ip_octets);
        tally.reordered += u64::from(u64::from(seq) < self.expected);
        tally.delay_sum += i128::from(delay);
        tally.delay_min = tally.delay_min.min(delay);
        tally.delay_max = tally.delay_max.max(delay);
        self.expected = self.expected.max(u64::from(seq) + 1);
    }

    /// The host has dropped a packet.
    pub(super) fn local_drop(&mut self) {
        self.tally.local_drops += 1;
    }

    /// Ends the intervals that are over at `now`.
    pub(super) fn close_until(&mut self, now: u64, reading: impl Fn(u64) -> i64) {
        while self.from.saturating_add(self.every) <= now {
            let to = self.from + self.every;
            self.close(to, &reading);
        }
    }

    /// The load is over, and the sender has said how many packets it was.
    pub(super) fn finish(&mut self, sent: u64, reading: impl Fn(u64) -> i64) {
        self.expected = sent;
        let rest = self.tally.packets > 0 || self.lost() > self.reported_lost;
        if self.from != NEVER && rest {
            self.close(self.last_heard.max(self.from + 1), reading);
        }
    }

    /// Statuses sent up to this time, which are then forgotten.
    pub(super) fn known(&mut self, by: u64) -> Vec<LoadStatus> {
        let count = self.statuses.partition_point(|(at, _)| *at <= by);
        self.statuses.drain(..count).map(|(_, status)| status).collect()
    }

    fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }

    fn close(&mut self, to: u64, reading: impl Fn(u64) -> i64) {
        let tally = std::mem::replace(&mut self.tally, NOTHING);
        let lost = self.lost().saturating_sub(self.reported_lost);
        self.reported_lost += lost;
        let above =
            |delay: i64| Duration::from_nanos(u64::try_from(delay.saturating_sub(self.least_delay)).unwrap_or(0));
        let mean = tally.delay_sum.checked_div(i128::from(tally.packets));
        let mean = mean.and_then(|mean| i64::try_from(mean).ok());
        let status = LoadStatus {
            from: Stamp::from_nanos(reading(self.from)),
            to: Stamp::from_nanos(reading(to)),
            packets: tally.packets,
            ip_octets: tally.ip_octets,
            lost,
            reordered: tally.reordered,
            duplicates: 0,
            local_drops: tally.local_drops,
            delay_above_min: mean.map(|mean| (above(tally.delay_min), above(mean), above(tally.delay_max))),
        };
        self.statuses.push_back((to, status));
        self.from = to;
    }
}
