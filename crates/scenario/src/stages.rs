//! What becomes of a burst's arrival times at one stage of an idle path: a FIFO, several side by
//! side, a token bucket.

use narrows_units::BitRate;

use crate::hop::{Queue, TokenBucket};

/// [`first_drop`] where packets take `channels` such stages in turn.
pub(crate) fn first_drop_of(arrivals: &mut [u64], time: u64, room: usize, channels: usize) -> Option<usize> {
    if channels == 1 {
        return first_drop(arrivals, time, room);
    }
    let mut first = None;
    for channel in 0..channels {
        let mut own: Vec<u64> = arrivals.iter().copied().skip(channel).step_by(channels).collect();
        let lost = first_drop(&mut own, time, room).map(|index| index * channels + channel);
        first = first.into_iter().chain(lost).min();
        for (place, departure) in arrivals.iter_mut().skip(channel).step_by(channels).zip(own) {
            *place = departure;
        }
    }
    first
}

/// Turns arrival times into departure times at a FIFO stage that serves one packet in `time` and
/// holds `room` packets; returns the index of the first packet that finds it full.
pub(crate) fn first_drop(arrivals: &mut [u64], time: u64, room: usize) -> Option<usize> {
    let mut free = 0u64;
    // Entries before k hold departures already; those before `gone` are over when packet k arrives.
    let mut gone = 0;
    for k in 0..arrivals.len() {
        let arrival = arrivals[k];
        while gone < k && arrivals[gone] <= arrival {
            gone += 1;
        }
        if k - gone >= room {
            return Some(k);
        }
        free = arrival.max(free).saturating_add(time);
        arrivals[k] = free;
    }
    None
}

/// Time of so many octets at a rate, picoseconds: whole nanoseconds are too coarse for bursts of
/// thousands of packets at 10 Gbit/s.
pub(crate) fn picos(octets: u64, rate: BitRate) -> u64 {
    let bits = u128::from(octets) * 8_000_000_000_000;
    u64::try_from(bits / u128::from(rate.bps().max(1))).unwrap_or(u64::MAX)
}

/// Packets of this length that a queue holds.
pub(crate) fn room(queue: Queue, ip_octets: u16) -> usize {
    match queue {
        Queue::Octets(octets) => usize::try_from(octets.count() / u64::from(ip_octets).max(1)).unwrap_or(usize::MAX),
        Queue::Packets(packets) => packets as usize,
        Queue::Unlimited => usize::MAX,
    }
}

/// Turns arrival times at a full token bucket into the times at which packets may go on; returns
/// the index of the first packet that finds neither tokens nor room. Virtual scheduling (ITU-T
/// I.371), in picoseconds times the rate.
pub(crate) fn first_without_tokens(arrivals: &mut [u64], bucket: &TokenBucket, ip_octets: u16) -> Option<usize> {
    let rate = u128::from(bucket.rate.bps()).max(1);
    let packet = u128::from(ip_octets) * 8_000_000_000_000;
    let depth = u128::from(bucket.burst.count()) * 8_000_000_000_000;
    let room = bucket.queue.map(|queue| room(queue, ip_octets));
    let (mut full, mut last, mut gone) = (0u128, 0u64, 0);
    for k in 0..arrivals.len() {
        let arrival = arrivals[k];
        let spent = full.max(u128::from(arrival) * rate) + packet;
        let enough = u64::try_from(spent.saturating_sub(depth).div_ceil(rate)).unwrap_or(u64::MAX);
        let release = arrival.max(last).max(enough);
        if release > arrival {
            while gone < k && arrivals[gone] <= arrival {
                gone += 1;
            }
            // Those that went on at once were never in the queue, and lie before `gone`.
            if room.is_none_or(|room| k - gone >= room) {
                return Some(k);
            }
        }
        last = release;
        full = full.max(u128::from(release) * rate) + packet;
        arrivals[k] = release;
    }
    None
}
