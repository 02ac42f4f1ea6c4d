//! Carries jobs out, by the same calls as the commands that are run by hand.

mod bucket;
#[cfg(test)]
mod seconds;
mod timing;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use narrows_methods as methods;
use narrows_methods::job::JobReport;
use narrows_net::client::SocketWorld;
use narrows_net::via::Via;
use narrows_probe::{BoundKind, Budget, Entry, Order, Outcome as Answer, RawParams, World};
use narrows_report::{Document, Target as Named};
use narrows_store::records::Basis;
use narrows_units::{BitRate, Direction, Metric};
use narrows_watch::schedule::{Job, JobKind, Outcome};
use narrows_watch::{Claim, Signal};

pub(super) use self::bucket::Bucket;
use super::route::{self, Traced};
use super::settings::Target;
use crate::connect::{NotAdmitted, Peer};
use crate::exit::{Exit, Failure};
use crate::key::Key;
use crate::link::LinkLock;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::sparing::Sparing;

/// A job, and what is known of its target.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) job: Job,
    pub(super) target: Target,
    pub(super) address: IpAddr,
    /// This address, and those of all targets whose link has the same name: commands that are run
    /// by hand know links by their interfaces, and not by names.
    pub(super) link_peers: Vec<IpAddr>,
    /// The capacity, once it was measured.
    pub(super) capacity: Option<BitRate>,
    /// Octets of a token bucket in the forward direction, where the capacity showed one.
    pub(super) bucket: Option<u64>,
    pub(super) direction: Direction,
    /// The server does not answer now.
    pub(super) server_gone: bool,
}

/// A value of a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    pub(super) signal: Signal,
    pub(super) basis: Basis,
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) claim: Claim,
    /// This host did not keep time, so that little of the measurement could be used.
    pub(super) host_busy: bool,
}

/// What became of a job.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) work: Work,
    pub(super) outcome: Outcome,
    /// IP octets that left; `None` if nobody knows.
    pub(super) octets: Option<u64>,
    pub(super) values: Vec<Level>,
    /// What a capacity among `values` says of a token bucket.
    pub(super) bucket: Bucket,
    pub(super) traced: Option<Traced>,
    pub(super) document: Option<serde_json::Value>,
    pub(super) fault: Option<String>,
}

impl Done {
    /// Whether this host's timing spoiled it; nothing where timing is not judged.
    pub(super) fn has_invalid_timing(&self) -> Option<bool> {
        (!self.values.is_empty()).then(|| self.values.iter().any(|value| value.host_busy))
    }

    /// An answer that is none is said so: the schedule learns nothing from its cost, and people
    /// read why.
    fn ended_with(&mut self, entry: &Entry) -> Outcome {
        let Answer::Inconclusive { reason, .. } = &entry.outcome else { return Outcome::Done };
        self.fault = Some(reason.to_string());
        Outcome::Inconclusive
    }

    /// Nothing is known of it yet.
    pub(super) const fn of(work: Work) -> Self {
        Self {
            outcome: Outcome::Void,
            octets: None,
            values: Vec::new(),
            bucket: Bucket::Unsaid,
            traced: None,
            document: None,
            fault: None,
            work,
        }
    }
}

/// Takes jobs until nobody gives any.
pub(super) fn run(work: &Mutex<Receiver<Work>>, done: impl Fn(Done) -> bool, stop: &Arc<AtomicBool>) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        if stop.load(Ordering::Relaxed) || !done(carry_out(work, stop)) {
            return;
        }
    }
}

fn carry_out(work: Work, stop: &Arc<AtomicBool>) -> Done {
    let mut done = Done::of(work);
    let (peers, link) = (&done.work.link_peers, &done.work.target.budget.link);
    let lock = if done.work.job.kind.loads() { LinkLock::now(peers, link).map(Some) } else { Ok(None) };
    let _lock = match lock {
        Ok(lock) => lock,
        Err(holder) => {
            done.octets = Some(0);
            done.outcome = Outcome::LinkBusy;
            done.fault = Some(holder.to_string());
            return done;
        }
    };
    let ended = match done.work.job.kind {
        JobKind::Route => trace(&mut done, stop),
        JobKind::Slice => slice(&mut done, stop),
        JobKind::Capacity => capacity(&mut done, stop),
        JobKind::Hops => hops(&mut done),
        JobKind::Test => test(&mut done, stop),
    };
    match ended {
        Ok(outcome) => done.outcome = outcome,
        Err(Stopped { outcome, octets, text }) => {
            done.outcome = outcome;
            done.octets = octets;
            done.fault = Some(text);
        }
    }
    done
}

/// Why a job ended without its result.
struct Stopped {
    outcome: Outcome,
    octets: Option<u64>,
    text: String,
}

impl From<Failure> for Stopped {
    /// Nothing was sent yet.
    fn from(failure: Failure) -> Self {
        let outcome = match (failure.exit, failure.who) {
            (Exit::Refused | Exit::Protocol, _) => Outcome::Refused,
            (Exit::Unreachable, _) | (_, "peer") => Outcome::ServerGone,
            _ => Outcome::Void,
        };
        Self { outcome, octets: Some(0), text: failure.text }
    }
}

impl Work {
    /// The server or the host at the address that is followed.
    fn peer(&self) -> Result<Peer, Failure> {
        let psk = self.target.psk_file.as_deref().map(crate::key::read).transpose()?;
        let port = self.target.port.unwrap_or(narrows_wire::DEFAULT_PORT);
        Ok(Peer::of_version(self.address.to_string(), port, self.target.family.version()).with_key(Key::shared(psk)))
    }

    fn budget(&self, usual: Budget) -> Budget {
        Budget { octets: self.job.octets.count().min(usual.octets), time: self.job.time.min(usual.time), ..usual }
    }
}

fn connected(work: &Work, direction: Direction, stop: &Arc<AtomicBool>) -> Result<SocketWorld, Stopped> {
    work.peer()?.connect_admitted(direction, ADMISSION, stop).map_err(|why| match why {
        NotAdmitted::Busy => {
            let text = format!("no slot within {} s", ADMISSION.as_secs());
            Stopped { outcome: Outcome::ServerBusy, octets: Some(0), text }
        }
        NotAdmitted::Fault(failure) => failure.into(),
    })
}

fn trace(done: &mut Done, stop: &Arc<AtomicBool>) -> Result<Outcome, Stopped> {
    // What a route has to say of the server is nothing.
    let work = &done.work;
    let traced = route::trace(&work.peer()?, work.address, work.job.time, stop).map_err(|failure| Stopped {
        outcome: Outcome::Void,
        octets: None,
        text: failure.text,
    })?;
    done.octets = Some(traced.octets);
    done.traced = Some(traced);
    Ok(Outcome::Done)
}

/// The usual measurement of what is available, cut to what a minute may cost.
fn slice(done: &mut Done, stop: &Arc<AtomicBool>) -> Result<Outcome, Stopped> {
    let direction = done.work.direction;
    let mut world = connected(&done.work, direction, stop)?;
    let octets = done.work.job.octets.count().min(LIGHT_OCTETS);
    let bucket = done.work.bucket.filter(|_| direction == Direction::Forward);
    let emptied = bucket.filter(|bucket| bucket * SLICE_TRAINS <= octets);
    let params = slice_params(octets, done.work.capacity, emptied, world.facts().path_mtu);
    let metric = Metric::AvailableIpCapacity;
    let entry = measured(done, &mut world, ("slope", metric, direction), &params, octets)?;
    let signal = if direction == Direction::Reverse { Signal::AvailableReverse } else { Signal::AvailableForward };
    let level = value(&entry, signal, Basis::Server);
    let level = level.map(|level| below(level, done.work.capacity));
    let spent = bucket.is_some() && emptied.is_none();
    done.values.extend(level.map(|level| if spent { at_most(level) } else { level }));
    Ok(done.ended_with(&entry))
}

/// No more is available than the narrow link carries. An interval above is left alone: it tells
/// that the capacity is another one now.
fn below(level: Level, capacity: Option<BitRate>) -> Level {
    let Some(capacity) = capacity.map(BitRate::as_f64) else { return level };
    let most = CAPACITY_ERROR * capacity;
    if level.low > most {
        return level;
    }
    let value = level.value.min(capacity);
    Level { value, low: level.low.min(value), high: level.high.min(most), ..level }
}

/// What trains say that a deep bucket may have let through: no more than this lasts.
fn at_most(level: Level) -> Level {
    match level.claim {
        Claim::Estimate | Claim::AtMost => Level { value: level.high, low: level.high, claim: Claim::AtMost, ..level },
        Claim::AtLeast | Claim::Inconclusive => Level { claim: Claim::Inconclusive, ..level },
    }
}

/// Of few octets slow paths get small packets and few trains: what a slice knows little of, its
/// interval says.
fn slice_params(octets: u64, capacity: Option<BitRate>, bucket: Option<u64>, path_mtu: u16) -> RawParams {
    let mut params = RawParams::new();
    params.set("octets", (octets / 4).clamp(SLICE_OCTETS.0, SLICE_OCTETS.1).to_string());
    let size = (octets / SLICE_PACKETS).clamp(LEAST_SIZE.min(path_mtu.into()), path_mtu.into());
    params.set("size", size.to_string());
    if size < path_mtu.into() {
        params.set("trains", "3");
    }
    if let Some(capacity) = capacity {
        params.set("narrow", format!("{} bit/s", capacity.bps()));
    }
    if let Some(bucket) = bucket {
        params.set("bucket", bucket.to_string());
    }
    params
}

/// From both ends if the server answers, else from here alone.
fn capacity(done: &mut Done, stop: &Arc<AtomicBool>) -> Result<Outcome, Stopped> {
    let mut why = None;
    if !done.work.server_gone {
        match connected(&done.work, Direction::Forward, stop) {
            Ok(mut world) => {
                let octets = done.work.job.octets.count().min(LIGHT_OCTETS);
                let what = (methods::DEFAULT, Metric::IpCapacity, Direction::Forward);
                let entry = measured(done, &mut world, what, &RawParams::new(), octets)?;
                done.values.extend(value(&entry, Signal::Capacity, Basis::Server));
                done.bucket = Bucket::of(&entry);
                return Ok(done.ended_with(&entry));
            }
            Err(stopped) if stopped.outcome == Outcome::ServerGone => why = Some(stopped),
            Err(stopped) => return Err(stopped),
        }
    }
    let peer = done.work.peer()?;
    let ways = [Via::Icmp, Via::Udp { port: Via::UDP_PORT }];
    let world = ways.into_iter().find_map(|via| peer.connect_single_ended(via, None, stop).ok());
    let silent = || Stopped { outcome: Outcome::Void, octets: None, text: "the host answers to nothing".to_owned() };
    let Some(world) = world else { return Err(why.unwrap_or_else(silent)) };
    let mut world = Remote::SingleEnded(Box::new(world));
    let answering = world.facts().answering;
    let Some(method) = methods::automatic_for(Metric::IpCapacity, answering) else { return Err(silent()) };
    let octets = done.work.job.octets.count();
    let what = (method.info().name, Metric::IpCapacity, Direction::Forward);
    let mut entry = measured(done, &mut world, what, &RawParams::new(), octets)?;
    entry.outcome = world.reported(method.info(), entry.outcome);
    done.values.extend(value(&entry, Signal::Capacity, Basis::Single));
    // That the server did not answer is what the schedule has to know.
    done.fault = why.map(|stopped| stopped.text);
    Ok(if done.fault.is_some() { Outcome::ServerGone } else { done.ended_with(&entry) })
}

/// One method over one world, within the job's budget, with its document.
fn measured<W: World<Fault = narrows_net::Error>>(
    done: &mut Done,
    world: &mut W,
    (name, metric, direction): (&str, Metric, Direction),
    params: &RawParams,
    octets: u64,
) -> Result<Entry, Stopped> {
    let nothing = |text: String| Stopped { outcome: Outcome::Void, octets: Some(0), text };
    let method = methods::named(name, metric).ok_or_else(|| nothing(format!("no method {name}")))?;
    let estimator = method.begin(params).map_err(|error| nothing(error.to_string()))?;
    let budget = done.work.budget(method.imposes(params).budget());
    let budget = Budget { octets: budget.octets.min(octets), ..budget };
    let facts = world.facts();
    let order = Order { metric, method: method.info().name, params, budget, estimator };
    let measured = match narrows_probe::run(&mut Sparing::new(world, done.work.job.over_second), order) {
        Ok(measured) => measured,
        Err(broken) => {
            let failure = crate::connect::failure(&broken.fault);
            return Err(Stopped { octets: Some(broken.measured.cost.octets), ..failure.into() });
        }
    };
    done.octets = Some(measured.cost.octets);
    let entry = Entry { metric, direction, method: method.info().name, outcome: measured.outcome, cost: measured.cost };
    let kind = if metric == Metric::IpCapacity { "capacity" } else { "available" };
    let job: JobReport<()> =
        JobReport { facts, entries: vec![entry.clone()], cost: measured.cost, fault: None, stages: Vec::new() };
    let named =
        Named { name: done.work.target.host.clone(), address: Some(done.work.address), port: done.work.target.port };
    let mut document = Document::new(kind, env!("CARGO_PKG_VERSION").to_owned(), named, &[job], &[]);
    document.started_at = Some(crate::environment::now());
    document.conclude();
    done.document = serde_json::from_str(&document.row_json()).ok();
    Ok(entry)
}

fn hops(done: &mut Done) -> Result<Outcome, Stopped> {
    let work = &done.work;
    let port = work.target.port.unwrap_or(narrows_wire::DEFAULT_PORT);
    let limits = format!("{} octets, {} s", work.job.octets.count(), work.job.time.as_secs());
    let host = work.address.to_string();
    let document = crate::commands::hops::of_host((&host, port), &limits, work.job.over_second)
        .map_err(|failure| Stopped { outcome: Outcome::Void, octets: None, text: failure.text })?;
    done.octets = Some(document.cost.octets);
    done.document = serde_json::from_str(&document.json()).ok();
    Ok(Outcome::Done)
}

/// The whole job of `narrows test`.
fn test(done: &mut Done, stop: &Arc<AtomicBool>) -> Result<Outcome, Stopped> {
    let usual = Budget { octets: u64::MAX, time: Duration::MAX, ..Budget::default() };
    let budget = done.work.budget(usual);
    let progress = Progress::new(true);
    let (document, entries, fault) = crate::commands::test::of_peer(&done.work.peer()?, budget, stop, &progress);
    done.octets = Some(document.cost.octets);
    done.document = serde_json::from_str(&document.json()).ok();
    for entry in &entries {
        let signal = match entry.metric {
            Metric::IpCapacity => Signal::Capacity,
            Metric::AvailableIpCapacity => Signal::AvailableForward,
            _ => continue,
        };
        done.values.extend(value(entry, signal, Basis::Server));
        if signal == Signal::Capacity {
            done.bucket = Bucket::of(entry);
        }
    }
    match fault {
        Some(failure) => Err(Stopped { octets: done.octets, ..failure.into() }),
        None => Ok(Outcome::Done),
    }
}

/// What an entry says of a signal; one without a number says that it is inconclusive.
fn value(entry: &Entry, signal: Signal, basis: Basis) -> Option<Level> {
    let host_busy = timing::is_invalid(entry);
    let nothing = Level { signal, basis, value: 0.0, low: 0.0, high: 0.0, claim: Claim::Inconclusive, host_busy };
    match &entry.outcome {
        Answer::Estimated(estimate) => {
            let range = estimate.rate()?;
            let claim = match range.verdict {
                BoundKind::Estimated => Claim::Estimate,
                BoundKind::LowerBound => Claim::AtLeast,
                BoundKind::UpperBound => Claim::AtMost,
                BoundKind::Inconclusive => Claim::Inconclusive,
            };
            let [value, low, high] = [range.value, range.low, range.high].map(BitRate::as_f64);
            Some(Level { value, low, high, claim, ..nothing })
        }
        Answer::Inconclusive { .. } => Some(nothing),
    }
}

/// A server that has no slot within this time is left alone until the next one is due.
const ADMISSION: Duration = Duration::from_secs(5);
/// What `slope` allows the capacity to be off by.
const CAPACITY_ERROR: f64 = 1.02;
/// Octets from which on `slope` may end, if its interval is fair by then (docs/design/adr/0028).
const SLICE_OCTETS: (u64, u64) = (100_000, 250_000);
/// Trains of a slice, at most as a rule. Each empties a token bucket first, if that is affordable.
const SLICE_TRAINS: u64 = 20;
/// Packets of a slice, about.
const SLICE_PACKETS: u64 = 500;
/// IP octets of the smallest packets of trains.
const LEAST_SIZE: u64 = 100;
/// The `light` slot gives four million; what the session itself sends comes out of it as well.
const LIGHT_OCTETS: u64 = 3_500_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_fits_what_it_may_cost() {
        let capacity = Some(BitRate::from_mbps(2));
        let params = |octets, capacity| -> String {
            let params = slice_params(octets, capacity, None, 1500);
            params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        // A minute of 2 Mbit/s at one per cent.
        assert_eq!(params(142_000, capacity), "narrow=2000000 bit/s octets=100000 size=284 trains=3");
        assert_eq!(params(1_950_000, None), "octets=250000 size=1500");
        assert_eq!(params(10_000, None), "octets=100000 size=100 trains=3");
        let behind = slice_params(3_500_000, None, Some(30_000), 1500);
        assert!(behind.iter().any(|(name, value)| (name, value) == ("bucket", "30000")), "{behind:?}");
    }

    /// Trains that a deep bucket lets through bound what is available, and say no more of it.
    #[test]
    fn behind_a_deep_bucket_there_are_upper_bounds() {
        let level = Level {
            signal: Signal::AvailableForward,
            basis: Basis::Server,
            value: 40e6,
            low: 38e6,
            high: 45e6,
            claim: Claim::Estimate,
            host_busy: false,
        };
        let bound = Level { value: 45e6, low: 45e6, claim: Claim::AtMost, ..level };
        assert_eq!(at_most(level), bound);
        assert_eq!(at_most(Level { claim: Claim::AtLeast, ..level }).claim, Claim::Inconclusive);
    }

    #[test]
    fn no_interval_exceeds_the_capacity() {
        let level = Level {
            signal: Signal::AvailableForward,
            basis: Basis::Server,
            value: 40e6,
            low: 10e6,
            high: 500e6,
            claim: Claim::Estimate,
            host_busy: false,
        };
        let capacity = Some(BitRate::from_mbps(100));
        assert_eq!(below(level, capacity), Level { high: 102e6, ..level });
        assert_eq!(below(level, None), level);
        let over = Level { value: 103e6, low: 101e6, high: 105e6, ..level };
        assert_eq!(
            below(over, capacity),
            Level { value: 100e6, low: 100e6, high: 102e6, ..level },
            "all of it is free"
        );
        let more = Level { value: 120e6, low: 110e6, ..level };
        assert_eq!(below(more, capacity), more, "the link became faster");
    }
}
