//! What arrived of one flow. Pure: times are arguments.

use crate::histogram::Histogram;
use crate::packet::Header;
use crate::received::{Jitter, Received, ReceivedInterval, Reordering};
use crate::series::{Bin, Series};
use crate::windows::Windows;

/// How far behind the newest packet one may arrive and still be told from a duplicate (ours, as for
/// loads).
const WINDOW: u64 = 65_536;
/// Delays that are looked at before the distribution's origin is chosen: small differences are kept
/// best near it, so it should be close to the smallest delay, which the first packet's (that wakes
/// hosts and asks for addresses) is not.
const SETTLING: usize = 64;

/// The account of a UDP flow.
#[derive(Debug)]
pub(crate) struct UdpAccount {
    /// One past the highest number seen.
    expected: u64,
    distinct: u64,
    /// Whether each of the last [`WINDOW`] numbers arrived, by number modulo that.
    seen: Vec<u64>,
    ip_octets: u64,
    duplicates: u64,
    reordered: u64,
    furthest: u64,
    /// Arrival minus departure of the last packet.
    transit_ns: Option<i64>,
    jitter_ns: f64,
    jitter_max_ns: f64,
    settling: Vec<i64>,
    origin_ns: i64,
    delays: Histogram,
    /// The first and last arrival.
    span_ns: Option<(i64, i64)>,
    windows: Windows,
    /// When the last packet came, since the session's first one.
    last_since_ns: u64,
    series: Series<Interval>,
    user_stamps: u64,
}

#[derive(Debug, Clone, Default)]
struct Interval {
    packets: u64,
    ip_octets: u64,
    lost: u64,
    duplicates: u64,
    reordered: u64,
    /// Smallest, sum and largest of arrival minus departure.
    transit: Option<(i64, i128, i64)>,
}

impl Bin for Interval {
    fn join(&mut self, next: &Self) {
        self.packets += next.packets;
        self.ip_octets += next.ip_octets;
        self.lost += next.lost;
        self.duplicates += next.duplicates;
        self.reordered += next.reordered;
        self.transit = match (self.transit, next.transit) {
            (Some((low, sum, high)), Some((other_low, other_sum, other_high))) => {
                Some((low.min(other_low), sum + other_sum, high.max(other_high)))
            }
            (one, other) => one.or(other),
        };
    }
}

enum Place {
    /// The next one, after so many that are missing.
    Next(u64),
    /// So far behind the highest.
    Late(u64),
    Again,
}

impl UdpAccount {
    pub(crate) fn new(interval_ns: u64, most_bins: usize) -> Self {
        Self {
            expected: 0,
            distinct: 0,
            seen: Vec::new(),
            ip_octets: 0,
            duplicates: 0,
            reordered: 0,
            furthest: 0,
            transit_ns: None,
            jitter_ns: 0.0,
            jitter_max_ns: 0.0,
            settling: Vec::new(),
            origin_ns: 0,
            delays: Histogram::default(),
            span_ns: None,
            windows: Windows::default(),
            last_since_ns: 0,
            series: Series::new(interval_ns, most_bins),
            user_stamps: 0,
        }
    }

    /// A packet arrived, `since_ns` after the session's first one. `kernel`: the kernel stamped it.
    pub(crate) fn packet(&mut self, header: Header, at_ns: i64, since_ns: u64, ip_octets: u16, kernel: bool) {
        let Some(number) = header.number_near(self.expected) else {
            return;
        };
        let place = self.place(number);
        let transit = header.transit_near(at_ns, self.transit_ns.unwrap_or(0));
        let bin = self.series.at(since_ns);
        match place {
            Place::Next(missing) => bin.lost = bin.lost.saturating_add(missing),
            Place::Late(distance) => {
                // It was counted as lost, most likely in this interval.
                bin.lost = bin.lost.saturating_sub(1);
                bin.reordered += 1;
                self.reordered += 1;
                self.furthest = self.furthest.max(distance);
            }
            Place::Again => {
                bin.duplicates += 1;
                self.duplicates += 1;
                return;
            }
        }
        bin.packets += 1;
        bin.ip_octets += u64::from(ip_octets);
        let (low, sum, high) = bin.transit.unwrap_or((transit, 0, transit));
        bin.transit = Some((low.min(transit), sum + i128::from(transit), high.max(transit)));
        self.ip_octets += u64::from(ip_octets);
        self.user_stamps += u64::from(!kernel);
        // Stamps of two cards may cross; windows go forward alone.
        self.last_since_ns = self.last_since_ns.max(since_ns);
        self.windows.add(self.last_since_ns, ip_octets);
        let (first, last) = self.span_ns.unwrap_or((at_ns, at_ns));
        self.span_ns = Some((first.min(at_ns), last.max(at_ns)));
        self.delay(transit);
    }

    fn delay(&mut self, transit: i64) {
        if let Some(before) = self.transit_ns {
            // RFC 3550 §6.4.1: J += (|D| - J) / 16, in order of arrival.
            let change = transit.saturating_sub(before).unsigned_abs() as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
            self.jitter_max_ns = self.jitter_max_ns.max(self.jitter_ns);
        }
        self.transit_ns = Some(transit);
        if self.delays.count() == 0 {
            self.settling.push(transit);
            if self.settling.len() == SETTLING {
                self.settle();
            }
        } else {
            self.delays.add(transit.saturating_sub(self.origin_ns));
        }
    }

    fn settle(&mut self) {
        let settling = std::mem::take(&mut self.settling);
        if let Some(least) = settling.iter().min() {
            self.origin_ns = *least;
        }
        for transit in settling {
            self.delays.add(transit.saturating_sub(self.origin_ns));
        }
    }

    fn place(&mut self, number: u64) -> Place {
        if self.seen.is_empty() {
            self.seen = vec![0; usize::try_from(WINDOW / 64).unwrap_or(1)];
        }
        let (word, mask) = bit(number);
        if number >= self.expected {
            let missing = number - self.expected;
            if missing >= WINDOW {
                self.seen.fill(0);
            } else {
                for skipped in self.expected..number {
                    let (word, mask) = bit(skipped);
                    self.seen[word] &= !mask;
                }
            }
            self.expected = number.saturating_add(1);
            self.seen[word] |= mask;
            self.distinct += 1;
            return Place::Next(missing);
        }
        let behind = self.expected - number;
        if behind > WINDOW || self.seen[word] & mask != 0 {
            return Place::Again;
        }
        self.seen[word] |= mask;
        self.distinct += 1;
        Place::Late(behind - 1)
    }

    /// Packets that arrived, each counted once.
    pub(crate) fn distinct(&self) -> u64 {
        self.distinct
    }

    /// What is known. `sent`: how many the sender sent, if it said so; then losses at the end count
    /// too. `same_clock`: departure and arrival were stamped by one clock.
    pub(crate) fn reported(&mut self, sent: Option<u64>, same_clock: bool) -> Received {
        if self.delays.count() == 0 {
            self.settle();
        }
        let least = self.delays.min().map(|least| least.saturating_add(self.origin_ns));
        let missing = sent.unwrap_or(0).max(self.expected).saturating_sub(self.distinct);
        let span_ns = self.span_ns.map_or(0, |(first, last)| last.saturating_sub(first).unsigned_abs());
        let interval_ns = self.series.interval_ns();
        let intervals = self.series.iter().map(|(from_ns, bin)| ReceivedInterval {
            from_ns,
            packets: bin.packets,
            octets: bin.ip_octets,
            lost: bin.lost,
            duplicates: bin.duplicates,
            reordered: bin.reordered,
            delay_variation_ns: bin.transit.zip(least).map(|((low, sum, high), least)| {
                let mean = sum / i128::from(bin.packets.max(1));
                let above = |value: i64| value.saturating_sub(least);
                [above(low), above(i64::try_from(mean).unwrap_or(low)), above(high)]
            }),
        });
        Received {
            packets: self.distinct,
            octets: self.ip_octets,
            span_ns,
            lost: missing,
            duplicates: self.duplicates,
            reordering: Reordering { packets: self.reordered, distance_max: self.furthest },
            one_way_delay_ns: if same_clock { self.delays.reported(self.origin_ns.saturating_neg()) } else { None },
            delay_variation_ns: least.and_then(|least| self.delays.reported(least.saturating_sub(self.origin_ns))),
            jitter_ns: (self.distinct > 1).then_some(Jitter { last: self.jitter_ns, max: self.jitter_max_ns }),
            packets_without_kernel_stamp: self.user_stamps,
            windows: self.windows.moments(self.last_since_ns),
            interval_ns,
            intervals: intervals.collect(),
        }
    }
}

fn bit(number: u64) -> (usize, u64) {
    let place = number % WINDOW;
    (usize::try_from(place / 64).unwrap_or(0), 1 << (place % 64))
}

/// The account of a TCP connection: what the program read.
#[derive(Debug)]
pub(crate) struct TcpAccount {
    octets: u64,
    span_ns: Option<(i64, i64)>,
    series: Series<Interval>,
    pub(crate) ended: bool,
}

impl TcpAccount {
    pub(crate) fn new(interval_ns: u64, most_bins: usize) -> Self {
        Self { octets: 0, span_ns: None, series: Series::new(interval_ns, most_bins), ended: false }
    }

    /// Payload was read.
    pub(crate) fn read(&mut self, octets: u64, at_ns: i64, since_ns: u64) {
        self.octets += octets;
        self.series.at(since_ns).ip_octets += octets;
        let (first, _) = self.span_ns.unwrap_or((at_ns, at_ns));
        self.span_ns = Some((first, at_ns));
    }

    pub(crate) fn reported(&self) -> Received {
        Received {
            octets: self.octets,
            span_ns: self.span_ns.map_or(0, |(first, last)| last.saturating_sub(first).unsigned_abs()),
            interval_ns: self.series.interval_ns(),
            intervals: self
                .series
                .iter()
                .map(|(from_ns, bin)| ReceivedInterval {
                    from_ns,
                    octets: bin.ip_octets,
                    ..ReceivedInterval::default()
                })
                .collect(),
            ..Received::default()
        }
    }
}

#[cfg(test)]
mod tests;
