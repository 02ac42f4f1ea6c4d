//! A world that counts what comes of each hop, and shows it while the work goes on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use narrows_net::names::Names;
use narrows_probe::outcome::PathHops;
use narrows_probe::progress::{Feed, HopSoFar, Observed, OnPath, Progress};
use narrows_probe::{Estimate, Event, Latest, Measured, Order, PathFacts, Probe, Reason, World};
use narrows_report::hops::{LabelRow, LeastBySize, ProbeFindings, UnmatchedReplies, live, so_far};
use narrows_units::{Octets, Sender, Stamp, format_duration};

use super::server::Server;
use crate::progress::Progress as Console;
use crate::remote::Remote;

/// What is known so far.
pub(super) struct Board {
    found: ProbeFindings,
    latest: Option<Estimate>,
    progress: Console,
    /// Least round trips, for whoever draws them.
    by_size: LeastBySize,
    /// Hops as they were last told.
    reported: BTreeMap<u16, HopSoFar>,
    names: Option<Names>,
    shows: bool,
    tells: bool,
    drawn: Option<Stamp<Sender>>,
    predicted: bool,
}

/// Time between two pictures: faster than eyes follow costs the probing.
const REDRAW: Duration = Duration::from_millis(200);

impl Board {
    /// `shows`: a table while it works; `tells`: beforehand, how long it will take.
    pub(super) fn new(progress: Console, names: Option<Names>, shows: bool, tells: bool) -> Self {
        Self {
            found: ProbeFindings::default(),
            latest: None,
            progress,
            by_size: LeastBySize::default(),
            reported: BTreeMap::new(),
            names,
            shows,
            tells,
            drawn: None,
            predicted: false,
        }
    }

    /// The method says something on the way.
    pub(super) fn tell(&mut self, latest: &Latest) {
        let forecast = PathHops::of_estimate(&latest.estimate).and_then(|path| path.forecast);
        if let Some(forecast) = forecast
            && !std::mem::replace(&mut self.predicted, true)
        {
            let (time, octets) = (format_duration(forecast.time), Octets::new(forecast.octets));
            let text = format!("this will take {time} and {octets} at most");
            match (self.tells, self.shows) {
                (true, true) => self.progress.note(&text),
                (true, false) => crate::output::complain(&text),
                (false, _) => {}
            }
        }
        self.latest = Some(latest.estimate.clone());
    }

    fn take(&mut self, asked: &narrows_probe::probes::Train, event: &Event, remote: IpAddr) {
        if let Event::Train(report) = event {
            self.found.statistics.take(asked, report, Some(remote));
            if self.progress.is_watched() {
                self.by_size.take(asked, report);
            }
        }
        if let Some(names) = &self.names {
            self.found.statistics.addresses().for_each(|address| names.ask(address));
        }
    }

    fn draw(&mut self, now: Stamp<Sender>) {
        if !(self.shows || self.progress.is_watched()) || self.drawn.is_some_and(|drawn| now.since(drawn) < REDRAW) {
            return;
        }
        self.drawn = Some(now);
        if let Some(names) = &self.names {
            self.found.names = names.known();
        }
        if self.progress.is_watched() {
            let hops = so_far(self.latest.as_ref(), &self.found, &self.by_size);
            for hop in hops {
                if self.reported.get(&hop.ttl) != Some(&hop) {
                    self.reported.insert(hop.ttl, hop.clone());
                    self.progress.tell(now, Progress::Hop(hop));
                }
            }
            return;
        }
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let text = live(self.latest.as_ref(), &self.found, columns.unwrap_or(100));
        self.progress.say(format!(" hop  who answers, how often, least round trip, capacity{text}"));
    }

    /// All of it, with what the world itself saw.
    pub(super) fn found(&mut self, remote: &Remote) -> ProbeFindings {
        let mut found = std::mem::take(&mut self.found);
        if let Remote::SingleEnded(world) = remote {
            let responders = world.responders();
            let rows = responders.labels().iter().map(|(key, labels)| {
                let rows = labels.iter().map(|label| LabelRow {
                    label: label.label,
                    traffic_class: label.traffic_class,
                    ttl: label.ttl,
                });
                (*key, rows.collect())
            });
            found.labels = rows.collect();
            found.unmatched_replies = UnmatchedReplies {
                late: responders.unmatched_replies.late,
                duplicate: responders.unmatched_replies.duplicate,
                foreign: responders.unmatched_replies.foreign,
                short: responders.unmatched_replies.short,
            };
        }
        found
    }
}

/// The remote host, watched.
pub(super) struct Watched {
    inner: Remote,
    /// Who stamps packets where they arrive, unless it is the remote host that answers for all.
    server: Option<Server>,
    board: Rc<RefCell<Board>>,
}

impl Watched {
    pub(super) fn new(inner: Remote, server: Option<Server>, board: Rc<RefCell<Board>>) -> Self {
        Self { inner, server, board }
    }

    /// The server that was asked, and what else there is.
    pub(super) fn into_parts(self) -> (Remote, Option<Server>) {
        (self.inner, self.server)
    }
}

impl World for Watched {
    type Fault = narrows_net::Error;

    fn now(&self) -> Stamp<Sender> {
        self.inner.now()
    }

    fn facts(&self) -> PathFacts {
        self.inner.facts()
    }

    fn begins(&mut self, order: &Order<'_>) {
        self.inner.begins(order);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, narrows_net::Error> {
        let asked = match &probe {
            Probe::Train(train) => Some(train.clone()),
            Probe::Load(_) | Probe::Transfer(_) | Probe::Capture(_) => None,
        };
        let single_ended = matches!(self.inner, Remote::SingleEnded(_));
        if let Some(server) = self.server.as_mut().filter(|_| single_ended) {
            if Server::stamps(&probe) {
                let progress = self.board.borrow().progress.clone();
                progress.on_path(OnPath::Train);
                let event = server.send(probe);
                progress.on_path(OnPath::Nothing);
                return Ok(event);
            }
            server.leave();
        }
        let progress = self.board.borrow().progress.clone();
        let event = Observed::new(&mut self.inner, &progress).send(probe)?;
        let mut board = self.board.borrow_mut();
        if let Some(asked) = &asked {
            board.take(asked, &event, self.inner.address().ip());
        }
        board.draw(self.inner.now());
        Ok(event)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), narrows_net::Error> {
        self.inner.wait(until)
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        self.inner.concluded(measured, stopped);
    }

    fn rest(&mut self) -> Result<(), narrows_net::Error> {
        self.inner.rest()
    }

    fn stop_requested(&self) -> bool {
        self.inner.stop_requested()
    }
}
