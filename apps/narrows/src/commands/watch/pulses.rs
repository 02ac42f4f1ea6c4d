//! One echo per second and target, from one thread, put together to minutes and to blocks of ten
//! seconds.

pub(super) mod collect;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use narrows_net::clock;
use narrows_net::single_ended::pulse::{Pulse, wait};
use narrows_net::via::Via;
use narrows_store::records::PulseMinute;
use narrows_watch::detect::PulseBlock;
use narrows_watch::schedule::TargetId;
use narrows_watch::{BootTime, Moment, WallTime};

use self::collect::{Closed, Collector, One};
use super::clocks;

/// What the thread is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    /// Follow this address; `Some` way only, or the first that is answered.
    Follow(TargetId, IpAddr, Option<Via>),
    /// Follow it no more.
    Forget(TargetId),
    /// A job of ours loads this path, or has ended.
    Loaded(TargetId, bool),
}

/// What it tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// Ten seconds; how long nothing has been answered by its end.
    Block { at: WallTime, block: PulseBlock, round_trips: Vec<Duration>, silent: Duration },
    /// A minute.
    Minute(PulseMinute),
    /// One, when it was sent, and its round trip; `None` if no answer came in time.
    One { at: WallTime, round_trip: Option<Duration> },
}

/// The pulses of one target.
struct Followed {
    /// Ways to be answered that are tried, the best first.
    ways: Vec<Pulse>,
    /// The one that counts.
    chosen: Option<usize>,
    answered: Vec<bool>,
    began_ns: i64,
    next_ns: i64,
    loaded: bool,
    collector: Collector,
}

/// Runs until nobody asks or listens any more.
pub(super) fn run(asked: &Receiver<Asked>, heard: impl Fn(TargetId, Heard) -> bool) {
    let mut all: BTreeMap<TargetId, Followed> = BTreeMap::new();
    loop {
        if all.is_empty() {
            // Nothing else wakes the thread: the first pulse is not to wait for the next look.
            match asked.recv_timeout(LOOK) {
                Ok(asked) => take(&mut all, asked),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        loop {
            match asked.try_recv() {
                Ok(asked) => take(&mut all, asked),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let now_ns = clock::now_ns();
        let now = clocks::now();
        for (target, followed) in &mut all {
            let mut ones = followed.collect(now);
            followed.choose(now_ns);
            ones.extend(followed.collector.lost(now));
            if !ones.into_iter().all(|(at, round_trip)| heard(*target, Heard::One { at, round_trip })) {
                return;
            }
            if followed.next_ns <= now_ns {
                followed.send(now_ns, now.boot);
            }
            for closed in followed.collector.close(now) {
                let message = match closed {
                    Closed::Minute(minute) => Heard::Minute(minute),
                    Closed::Block { at, block, round_trips, silent } => Heard::Block { at, block, round_trips, silent },
                };
                if !heard(*target, message) {
                    return;
                }
            }
        }
        let next = all.values().map(|followed| followed.next_ns).min().unwrap_or(i64::MAX);
        let soon = clock::now_ns() + clock::nanos(LOOK);
        wait(all.values_mut().flat_map(|followed| &mut followed.ways), next.min(soon));
    }
}

fn take(all: &mut BTreeMap<TargetId, Followed>, asked: Asked) {
    match asked {
        Asked::Follow(target, host, via) => {
            let candidates = via.map_or_else(|| WAYS.to_vec(), |via| vec![via]);
            let ways: Vec<Pulse> = candidates.into_iter().filter_map(|via| Pulse::open(host, via).ok()).collect();
            // Targets take turns within the second.
            let turn = clock::nanos(EVERY) / 16 * i64::from(target.number() % 16);
            let began_ns = clock::now_ns();
            let mut collector = all.remove(&target).map_or_else(Collector::default, |before| before.collector);
            collector.restart();
            let followed = Followed {
                answered: vec![false; ways.len()],
                chosen: None,
                began_ns,
                next_ns: began_ns + turn,
                loaded: false,
                collector,
                ways,
            };
            all.insert(target, followed);
        }
        Asked::Forget(target) => {
            all.remove(&target);
        }
        Asked::Loaded(target, loaded) => {
            if let Some(followed) = all.get_mut(&target) {
                followed.loaded = loaded;
            }
        }
    }
}

impl Followed {
    /// Takes the answers in, and returns those of the way that counts, or may come to count.
    fn collect(&mut self, now: Moment) -> Vec<One> {
        let mut ones = Vec::new();
        for (way, pulse) in self.ways.iter_mut().enumerate() {
            for answer in pulse.collect(LONGEST_WAIT) {
                self.answered[way] = true;
                if self.chosen == Some(way) {
                    self.collector.answered(answer.number, answer.round_trip);
                }
                if self.chosen.unwrap_or(0) == way && !self.loaded {
                    ones.push((now.wall.before(answer.round_trip), Some(answer.round_trip)));
                }
            }
        }
        ones
    }

    /// The best way that is answered; after some time without any, the best one, whose losses
    /// count from then on.
    fn choose(&mut self, now_ns: i64) {
        if self.chosen.is_some() || now_ns < self.began_ns + clock::nanos(CHOOSING) || self.ways.is_empty() {
            return;
        }
        let best = self.answered.iter().position(|answered| *answered);
        if best.is_none() && now_ns < self.began_ns + clock::nanos(CHOOSING_AT_MOST) {
            return;
        }
        let chosen = self.ways.swap_remove(best.unwrap_or(0));
        self.ways = vec![chosen];
        self.answered = vec![best.is_some()];
        self.chosen = Some(0);
    }

    fn send(&mut self, now_ns: i64, at: BootTime) {
        self.next_ns = (self.next_ns + clock::nanos(EVERY)).max(now_ns);
        for (way, pulse) in self.ways.iter_mut().enumerate() {
            let number = pulse.send();
            if self.chosen == Some(way) {
                self.collector.sent(number, at, self.loaded);
            }
        }
    }
}

/// The best first. SYNs to a port of others are nothing that a host should get all day unasked.
const WAYS: [Via; 2] = [Via::Icmp, Via::Udp { port: Via::UDP_PORT }];

const EVERY: Duration = Duration::from_secs(1);
/// A later answer counts as none.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// The thread looks for something else to do as often: pulses wake it anyway.
const LOOK: Duration = Duration::from_secs(1);
/// Time until a way is chosen, if any is answered; and if none is.
const CHOOSING: Duration = Duration::from_millis(1500);
const CHOOSING_AT_MOST: Duration = Duration::from_secs(5);
