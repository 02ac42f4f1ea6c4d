//! Stamped receiving: batches of datagrams, each with the time at which kernel, card and program
//! saw it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_probe::StampSource;

use crate::clock::{self, Crossing};
use crate::socket::ProbeSocket;
use crate::sys::receive::{BATCH, Slots};

/// When a datagram arrived, by every clock that saw it. Nanoseconds on the monotonic scale, save
/// the card's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalTimes {
    /// When the program got it.
    pub user_ns: i64,
    /// When the kernel got it.
    pub kernel_ns: Option<i64>,
    /// When the card got it, on the card's own scale.
    pub hardware_ns: Option<i64>,
}

impl ArrivalTimes {
    /// The best stamp on the monotonic scale; for one packet alone. Trains choose with
    /// [`Alignment`].
    pub fn best_ns(&self) -> i64 {
        self.kernel_ns.unwrap_or(self.user_ns)
    }
}

/// One datagram of the last batch.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// What it carries, as far as it fits the receiver's slots.
    pub payload: &'a [u8],
    /// Length of its payload, even if that was cut.
    pub payload_octets: usize,
    /// Who sent it.
    pub from: Option<SocketAddr>,
    /// When it arrived.
    pub seen: ArrivalTimes,
    /// The hop limit (TTL) that was left.
    pub hop_limit: Option<u8>,
    /// DSCP and, in the two lowest bits, ECN with which it arrived; where the socket was told to
    /// ask for them.
    pub traffic_class: Option<u8>,
    /// Position within its batch: more than zero means that the program was woken for an earlier
    /// one.
    pub batch_position: usize,
    /// Datagrams that the kernel handed over together with it, itself included: they share their
    /// stamps, and had the host dropped them, it would have counted them as one.
    pub gathered: usize,
}

/// What one message holds at most, and how many of them are taken at a time where datagrams are
/// gathered (ours: a megabyte for each socket, of which no more is touched than comes).
const GATHERED_OCTETS: usize = 65_536;
const GATHERED_BATCH: usize = 16;

/// A receiver follows a step of the wall clock within this time.
pub(crate) const CROSS_EVERY_NS: i64 = 1_000_000_000;

/// Receives in batches and keeps count of what the host itself dropped.
pub struct Receiver {
    slots: Slots,
    slot_octets: usize,
    gathers: bool,
    crossing: Crossing,
    crossed_ns: i64,
    steps: u32,
    user_ns: i64,
    last_batch: usize,
    drops_before: u32,
    batches: u64,
    datagrams: u64,
}

impl Receiver {
    /// For this socket, and payloads of at most `slot_octets`; longer ones are cut. Drops count
    /// from now.
    pub fn new(socket: &ProbeSocket, slot_octets: usize) -> Self {
        Self {
            slots: Slots::new(BATCH, slot_octets),
            slot_octets,
            gathers: false,
            crossing: Crossing::sample(),
            crossed_ns: clock::now_ns(),
            steps: 0,
            user_ns: 0,
            last_batch: 0,
            drops_before: socket.drops().unwrap_or(0),
            batches: 0,
            datagrams: 0,
        }
    }

    /// Has the kernel hand over datagrams that came together at once, or ends that. A receiver that
    /// counts many of them keeps up with more; those that came together have one stamp, so it is
    /// nothing for trains. A kernel that cannot changes nothing.
    pub fn gather(&mut self, socket: &ProbeSocket, on: bool) {
        if self.gathers == on {
            return;
        }
        self.gathers = on;
        if on {
            // Room first: a long message must not be cut.
            self.slots = Slots::new(GATHERED_BATCH, GATHERED_OCTETS);
            // Without it datagrams come one by one, as always.
            let _ = socket.gather(true);
        } else {
            let _ = socket.gather(false);
            self.slots = Slots::new(BATCH, self.slot_octets);
        }
    }

    /// Waits for datagrams until `deadline_ns` (monotonic) and takes what there is; how many, zero
    /// if time ran out.
    ///
    /// Errors that ICMP messages left on the socket are passed over; entries of the error queue
    /// stay there for [`crate::errors`], except that a full queue does not turn the wait into a
    /// spin: it is looked at a thousand times a second.
    pub fn receive(&mut self, socket: &ProbeSocket, deadline_ns: i64) -> io::Result<usize> {
        if clock::now_ns() - self.crossed_ns > CROSS_EVERY_NS {
            self.steps();
        }
        loop {
            match self.slots.receive(socket.as_fd(), false) {
                Ok(0) => {}
                Ok(count) => {
                    self.note(count);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted || crate::socket::is_queued_icmp(&error) => {
                    if clock::now_ns() < deadline_ns {
                        continue;
                    }
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
            let now = clock::now_ns();
            if now >= deadline_ns {
                return Ok(0);
            }
            let ready = socket.wait(deadline_ns)?;
            if ready.error && !ready.wanted {
                clock::sleep_until_ns(deadline_ns.min(now + 1_000_000));
            }
        }
    }

    /// Receives until `stop` is set, `deadline_ns` passes, or `take` returns `false`; looks at
    /// `stop` at least every 20 ms.
    pub fn receive_until(
        &mut self,
        socket: &ProbeSocket,
        deadline_ns: i64,
        stop: &AtomicBool,
        mut take: impl FnMut(&Datagram<'_>) -> bool,
    ) -> io::Result<()> {
        const POLL_NS: i64 = 20_000_000;
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now_ns();
            if now >= deadline_ns {
                return Ok(());
            }
            if self.receive(socket, deadline_ns.min(now + POLL_NS))? > 0 && !self.iter().all(|datagram| take(&datagram))
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Leaves what comes to the kernel for a while, unless there was more than the last batch could
    /// take.
    pub(crate) fn rest(&self, poll_interval_ns: i64) {
        if poll_interval_ns > 0 && self.last_batch < BATCH {
            clock::sleep_until_ns(self.user_ns.saturating_add(poll_interval_ns));
        }
    }

    fn note(&mut self, count: usize) {
        self.last_batch = count;
        self.user_ns = clock::now_ns();
        self.batches += 1;
        self.datagrams += count as u64;
    }

    /// The datagrams of the last batch.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> + '_ {
        let datagrams = self.slots.iter().flat_map(|(message, payload)| {
            let (each, count) = segments(message.octets, message.ancillary.segment_octets);
            (0..count).map(move |place| {
                let begin = place.saturating_mul(each);
                let held = payload.get(begin..).unwrap_or_default();
                let octets = message.octets.saturating_sub(begin).min(each);
                (message, &held[..held.len().min(octets)], octets, count)
            })
        });
        datagrams.enumerate().map(|(batch_position, (message, payload, payload_octets, gathered))| Datagram {
            payload,
            payload_octets,
            gathered,
            from: message.from,
            seen: ArrivalTimes {
                user_ns: self.user_ns,
                kernel_ns: message.ancillary.kernel_ns.map(|stamp| self.crossing.monotonic_ns(stamp)),
                hardware_ns: message.ancillary.hardware_ns,
            },
            hop_limit: message.ancillary.hop_limit,
            traffic_class: message.ancillary.traffic_class,
            batch_position,
        })
    }

    /// Packets that the socket dropped for want of buffer since the last call; zero where the
    /// kernel does not tell.
    pub fn take_drops(&mut self, socket: &ProbeSocket) -> u32 {
        let now = socket.drops().unwrap_or(self.drops_before);
        let new = now.wrapping_sub(self.drops_before);
        self.drops_before = now;
        new
    }

    /// Mean datagrams per wake-up so far; `None` before the first.
    pub fn mean_batch(&self) -> Option<f64> {
        (self.batches > 0).then(|| self.datagrams as f64 / self.batches as f64)
    }

    /// Steps of the wall clock since the receiver was made. Looked for now, and once a second while
    /// it receives; later stamps are on the right scale again. Stamps taken across a step are not
    /// to be compared.
    pub fn steps(&mut self) -> u32 {
        self.crossed_ns = clock::now_ns();
        self.steps += u32::from(self.crossing.follow());
        self.steps
    }
}

/// Octets of each datagram of a message, and how many there are.
fn segments(octets: usize, each: Option<usize>) -> (usize, usize) {
    match each {
        Some(each @ 1..) if octets > each => (each, octets.div_ceil(each)),
        _ => (octets, 1),
    }
}

/// One source of stamps for a whole train: the card's if it stamped every packet, else the kernel's
/// if it did, else the program's. Two sources are never mixed.
///
/// The card's clock has an origin of its own; its stamps are moved as a whole so that the first
/// packet keeps the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    source: StampSource,
    shift_ns: i64,
}

impl Alignment {
    /// Chooses for these packets.
    pub fn choose<'a>(packets: impl IntoIterator<Item = &'a ArrivalTimes>) -> Self {
        let mut shift_ns = None;
        let (mut hardware, mut kernel) = (true, true);
        for seen in packets {
            if let (None, Some(card)) = (shift_ns, seen.hardware_ns) {
                shift_ns = Some(seen.best_ns().saturating_sub(card));
            }
            hardware &= seen.hardware_ns.is_some();
            kernel &= seen.kernel_ns.is_some();
        }
        let source = match (hardware, kernel, shift_ns) {
            (true, _, Some(_)) => StampSource::Hardware,
            (_, true, _) => StampSource::Kernel,
            _ => StampSource::User,
        };
        Self { source, shift_ns: shift_ns.unwrap_or(0) }
    }

    /// Where the stamps come from.
    pub fn source(&self) -> StampSource {
        self.source
    }

    /// A packet's stamp by the chosen source, on the monotonic scale.
    pub fn stamp_ns(&self, seen: &ArrivalTimes) -> i64 {
        match self.source {
            StampSource::Hardware => seen.hardware_ns.map_or(seen.best_ns(), |card| card.saturating_add(self.shift_ns)),
            StampSource::Kernel | StampSource::Simulated => seen.best_ns(),
            StampSource::User => seen.user_ns,
        }
    }
}

#[cfg(test)]
mod tests;
