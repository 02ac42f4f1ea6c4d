//! The loop that plays paths against the real clock: a whole path between two hosts, or several
//! links of a lab at once.
//!
//! One turn: look at every end (at most one packet each, so that no release waits for a batch of
//! reads), let the paths move on to now (also while nobody sends: cross traffic that nobody served
//! while a path was idle would make the first packet of every train wait while it is caught up),
//! hand over what has arrived, and if the next event is close, spin until it comes. In its steady
//! state nothing is allocated: packets live in buffers that are used again.

mod buffer;
mod routers;
mod track;

use narrows_scenario::PathDirection;

use crate::plan::Side;
use crate::tally::Stalls;

pub(crate) use buffer::{Buffer, Pool};
pub(crate) use routers::Routers;
use track::Hands;
pub(crate) use track::{Admitted, End, Report, Rules, Track};

/// With an event this close the processor is not given away, on machines where there is only one.
const SOON_NS: u64 = 50_000;

/// The paths' time: nanoseconds since the scenario's begin, never backwards.
pub(crate) trait Clock {
    /// Now.
    fn now(&mut self) -> u64;
}

/// Cross traffic that leaves one path goes on into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Feed {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) way: PathDirection,
}

/// The paths, and what they share.
#[derive(Debug)]
pub(crate) struct Player<E, R, C> {
    pub(crate) tracks: Vec<Track<E, R>>,
    feeds: Vec<Feed>,
    fed: Vec<(u64, u16)>,
    pool: Pool,
    watch: Watch<C>,
    last_poll: u64,
}

/// The clock, and the stalls that are seen by it.
#[derive(Debug)]
struct Watch<C> {
    clock: C,
    last_read: u64,
    stalls: Stalls,
}

impl<C: Clock> Watch<C> {
    #[inline]
    fn now(&mut self) -> u64 {
        let now = self.clock.now();
        self.stalls.note(now - self.last_read);
        self.last_read = now;
        now
    }
}

impl<E: End, R: Rules, C: Clock> Player<E, R, C> {
    /// Takes paths to play; their time goes on from where it stands. No packet is longer than the
    /// buffers.
    pub(crate) fn new(tracks: Vec<Track<E, R>>, feeds: Vec<Feed>, buffer_octets: usize, mut clock: C) -> Self {
        let now = clock.now();
        Self {
            tracks,
            feeds,
            fed: Vec::with_capacity(1_024),
            pool: Pool::new(buffer_octets),
            watch: Watch { clock, last_read: now, stalls: Stalls::default() },
            last_poll: now,
        }
    }

    /// One turn. Returns whether anything was going on, or will be soon.
    pub(crate) fn turn(&mut self) -> bool {
        let now = self.watch.now();
        let gap = now - self.last_poll;
        self.last_poll = now;
        let mut sent = false;
        for track in &mut self.tracks {
            track.tally.looked(gap);
            for side in [Side::Sender, Side::Receiver] {
                sent |= track.poll(side, &mut self.pool, || self.watch.now());
            }
        }
        let now = self.watch.now();
        self.play(now);
        let next = self.tracks.iter().map(Track::next_at).min().unwrap_or(u64::MAX);
        let wait = next.saturating_sub(now);
        if wait <= E::CLOSE_NS {
            let mut now = self.watch.now();
            while now < next {
                std::hint::spin_loop();
                now = self.watch.now();
            }
            self.play(now);
        }
        self.note_stalls();
        sent || wait <= SOON_NS
    }

    fn play(&mut self, until: u64) {
        let Self { tracks, feeds, fed, pool, watch, .. } = self;
        let mut hands = Hands { pool, now: &mut || watch.now() };
        for track in tracks.iter_mut() {
            track.play(until, &mut hands);
        }
        for feed in feeds {
            fed.extend(tracks[feed.from].path.take_passed(feed.way));
            for (at, ip_octets) in fed.drain(..) {
                tracks[feed.to].path.meet(at, feed.way, ip_octets);
            }
        }
    }

    /// A stall holds up every path.
    fn note_stalls(&mut self) {
        if self.watch.stalls != Stalls::default() {
            let stalls = std::mem::take(&mut self.watch.stalls);
            for track in &mut self.tracks {
                track.tally.stalled(stalls);
            }
        }
    }
}

#[cfg(test)]
mod tests;
