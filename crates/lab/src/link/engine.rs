//! The thread that plays the links, and what it says of each.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

use narrows_scenario::PathDirection;
use narrows_sim::{Path, Segment};
use narrows_units::nanos;

use super::ethernet::Ethernet;
use super::port::{self, Port};
use super::{EngineOptions, LinkSpec};
use crate::error::LabError;
use crate::namespace::Namespace;
use crate::placement::Placement;
use crate::player::Report;
use crate::player::{Buffer, Feed, Player, Track};
use crate::playing::{Begin, Playing, RealClock, now};
use crate::timing_report::TimingReport;

/// Plays all links of a lab in one spinning thread. Dropping it ends the thread and removes the
/// devices.
#[derive(Debug)]
pub struct LinkEngine {
    links: Vec<LinkSpec>,
    options: EngineOptions,
    placement: Option<Placement>,
    stage: Stage,
    begins: Mutex<Vec<Begin>>,
    /// Where the engine's ends of its devices live; after them in order of dropping.
    own: Namespace,
}

#[derive(Debug)]
enum Stage {
    Made(Vec<[Port; 2]>),
    Plays { playing: Playing<Port, Ethernet>, started: Instant },
}

impl LinkEngine {
    /// Makes the devices in their namespaces, down, without IP addresses.
    pub fn create(links: Vec<LinkSpec>, options: EngineOptions) -> Result<Self, LabError> {
        let own = Namespace::create("link engine", None)?;
        let mut ports = Vec::with_capacity(links.len());
        for (index, link) in links.iter().enumerate() {
            let [first, second] = &link.ends;
            ports.push([
                Port::create(first, options.ports, &own, 2 * index)?,
                Port::create(second, options.ports, &own, 2 * index + 1)?,
            ]);
        }
        Ok(Self {
            links,
            options,
            placement: Placement::choose(options.cpu),
            stage: Stage::Made(ports),
            begins: Mutex::new(Vec::new()),
            own,
        })
    }

    /// Plays the warm-up and starts the clock. What was sent before is not on the links; frames for
    /// a device that is not up yet are refused, and counted as such. Once started, nothing is done.
    pub fn start(&mut self) -> Result<(), LabError> {
        let Stage::Made(ports) = &mut self.stage else {
            return Ok(());
        };
        let ports = std::mem::take(ports);
        let links = self.links.clone();
        let (tell, reported) = mpsc::sync_channel(1);
        let playing = Playing::start(self.placement.as_ref(), self.options.priority, move || {
            let (player, started) = prepare(&links, ports);
            // The receiver lives until this thread plays.
            let _ = tell.send(started);
            player
        })?;
        let started = reported.recv().map_err(|_| LabError::PlayerDied)?;
        self.stage = Stage::Plays { playing, started };
        let begins = (0..self.links.len()).map(|link| Begin { at: now(), kernel_drops: self.kernel_drops(link) });
        self.begins = Mutex::new(begins.collect());
        Ok(())
    }

    /// The links, in the order given.
    pub fn links(&self) -> &[LinkSpec] {
        &self.links
    }

    /// When the clock of the links stood at the scenario's `warm_up`; `None` before the start.
    pub fn started(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Made(_) => None,
            Stage::Plays { started, .. } => Some(*started),
        }
    }

    /// How a link (by its index) did so far: since the start, or since its last
    /// [`LinkEngine::take_timing_report`].
    pub fn timing_report(&self, link: usize) -> Result<TimingReport, LabError> {
        self.report(link, false)
    }

    /// The same, and begins a new report.
    pub fn take_timing_report(&self, link: usize) -> Result<TimingReport, LabError> {
        self.report(link, true)
    }

    /// Stops, removes the devices, and says how each link did since where its report began. An
    /// engine that never started has nothing to say.
    pub fn stop(mut self) -> Result<Vec<TimingReport>, LabError> {
        let Stage::Plays { playing, .. } = &mut self.stage else {
            return Ok(Vec::new());
        };
        // The counters of the devices go with the devices, and those with the player.
        let mut player = playing.end().ok_or(LabError::PlayerDied)?;
        let reports: Vec<Report> = player.tracks.iter_mut().map(Track::report).collect();
        let begins = self.begins.lock().unwrap_or_else(PoisonError::into_inner);
        let timing_report = |(link, (report, begin)): (usize, (&Report, &Begin))| self.judge(link, report, begin);
        Ok(reports.iter().zip(begins.iter()).enumerate().map(timing_report).collect())
    }

    fn report(&self, link: usize, afresh: bool) -> Result<TimingReport, LabError> {
        let mut begins = self.begins.lock().unwrap_or_else(PoisonError::into_inner);
        let (Stage::Plays { playing, .. }, Some(begin)) = (&self.stage, begins.get_mut(link)) else {
            return Err(LabError::NoSuchLink { link });
        };
        let report = playing.report(link, afresh)?;
        let timing_report = self.judge(link, &report, begin);
        if afresh {
            *begin = Begin { at: now(), kernel_drops: total(self.kernel_drops(link), report.lost) };
        }
        Ok(timing_report)
    }

    fn judge(&self, link: usize, report: &Report, begin: &Begin) -> TimingReport {
        let kernel_drops = total(self.kernel_drops(link), report.lost);
        let mut timing_report = begin.judge(&report.tally, kernel_drops);
        if let Some(spec) = self.links.get(link) {
            for dropped in &mut timing_report.dropped {
                // A link has one hop; which one of the path that is, its part says.
                dropped.hop = spec.part.segment(dropped.way).map_or(0, |segment| segment.hop);
            }
        }
        timing_report
    }

    /// What the devices of a link have dropped, by the side whose frames they were or whose device
    /// refused them.
    fn kernel_drops(&self, link: usize) -> [u64; 2] {
        self.links.get(link).map_or([0, 0], |spec| {
            let [first, second] = &spec.ends;
            [
                port::dropped_by_kernel(first, &self.own, 2 * link),
                port::dropped_by_kernel(second, &self.own, 2 * link + 1),
            ]
        })
    }
}

impl Drop for LinkEngine {
    fn drop(&mut self) {
        if let Stage::Plays { playing, .. } = &mut self.stage {
            playing.end();
        }
        // With the namespace the devices would go too, but only some time later.
        port::remove_all(&self.own, 2 * self.links.len());
    }
}

fn total(devices: [u64; 2], rings: [u64; 2]) -> [u64; 2] {
    [devices[0] + rings[0], devices[1] + rings[1]]
}

/// The links behind their warm-up, ready to play, and when their clock began to run.
fn prepare(links: &[LinkSpec], mut ports: Vec<[Port; 2]>) -> (Player<Port, Ethernet, RealClock>, Instant) {
    let feeds = feeds(links);
    let mut paths: Vec<Path<Buffer>> =
        links.iter().map(|link| Path::link(&link.scenario, link.seed, &link.part)).collect();
    let warm_up = links.iter().map(|link| link.scenario.warm_up).max();
    let warm_up = nanos(warm_up.unwrap_or_default());
    warm(&mut paths, &feeds, warm_up);
    let mtu = links.iter().flat_map(|link| &link.ends).map(|end| end.mtu).max();
    let buffer_octets = port::frame_octets(mtu.unwrap_or(1_500));
    for port in ports.iter_mut().flatten() {
        port.discard(buffer_octets);
    }
    let clock = RealClock::starting_at(warm_up);
    let started = clock.started();
    let tracks = paths.into_iter().zip(ports);
    let tracks = tracks.map(|(path, ends)| Track::new(path, ends, Ethernet)).collect();
    (Player::new(tracks, feeds, buffer_octets, clock), started)
}

/// Nothing but cross traffic is on the links, and cross traffic has no outputs.
fn warm(paths: &mut [Path<Buffer>], feeds: &[Feed], until: u64) {
    /// Cross traffic reaches the next link at most so much late, while nobody is there to see it.
    const STEP_NS: u64 = 10_000;
    let mut at = 0;
    while at < until {
        at = if feeds.is_empty() { until } else { until.min(at + STEP_NS) };
        for path in paths.iter_mut() {
            path.advance(at, &mut Vec::new());
        }
        for feed in feeds {
            let passed: Vec<(u64, u16)> = paths[feed.from].take_passed(feed.way).collect();
            for (at, ip_octets) in passed {
                paths[feed.to].meet(at, feed.way, ip_octets);
            }
        }
    }
}

/// Which links hand virtual cross traffic to which: those of a hop with hidden devices, in the
/// order of each way.
fn feeds(links: &[LinkSpec]) -> Vec<Feed> {
    let mut feeds = Vec::new();
    for way in [PathDirection::Forward, PathDirection::Reverse] {
        for (from, link) in links.iter().enumerate() {
            let next = link
                .part
                .segment(way)
                .map(|segment| Segment { device: Some(segment.device.map_or(0, |device| device + 1)), ..segment });
            let follows = |other: &LinkSpec| {
                next.is_some() && other.part.segment(way) == next && Arc::ptr_eq(&other.scenario, &link.scenario)
            };
            feeds.extend(links.iter().position(follows).map(|to| Feed { from, to, way }));
        }
    }
    feeds
}

#[cfg(test)]
mod tests;
