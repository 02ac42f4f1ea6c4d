//! What a command tells on its way, and where that goes: to the status line on standard error, to
//! a live screen, or, as a stream of JSON lines, to standard output.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use narrows_probe::progress::{Feed, OnPath, Plan, Progress as Event, Timed};
use narrows_units::{Sender, Stamp};

use crate::exit::Failure;
use crate::feed::Feeder;
use crate::output;
use crate::painting::Shared;
use crate::status::StatusLine;
use crate::stream::Stream;

/// Says what is being measured, and what has been found. Clones are the same.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Inner>);

struct Inner {
    began_ns: AtomicI64,
    /// Events have a simulator's time; the last of them.
    played: AtomicBool,
    last_ns: AtomicU64,
    quiet: bool,
    status: StatusLine,
    feeder: Option<Feeder>,
    reader: Mutex<Option<JoinHandle<()>>>,
    stream: Option<Stream>,
    screen: Option<Arc<Shared>>,
    /// What the user should see when the screen is gone.
    kept: Mutex<Vec<String>>,
}

/// A stream of events: to standard output, or to this file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamTo<'a>(pub(crate) Option<&'a Path>);

/// Where a command's progress goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// Nothing on standard error.
    pub(crate) quiet: bool,
    /// A stream of events.
    pub(crate) stream: Option<StreamTo<'a>>,
    /// A live screen, where there can be one; whether its glyphs are ASCII.
    pub(crate) screen: Option<bool>,
}

impl Progress {
    /// The status line alone.
    pub(crate) fn new(quiet: bool) -> Self {
        Self(Arc::new(Inner::new(StatusLine::new(quiet), quiet)))
    }

    /// As wanted, where that can be had; what is going to be measured is the first event.
    pub(crate) fn start(wanted: Wanted<'_>, plan: Plan) -> Result<Self, Failure> {
        let mut inner = None;
        if let Some(StreamTo(file)) = wanted.stream {
            let stream = Stream::open(file)?;
            let (feeder, events) = Feeder::new();
            let reader = stream.read(events)?;
            let mut streams = Inner::new(StatusLine::new(true), true);
            streams.reads(feeder, reader);
            streams.stream = Some(stream);
            inner = Some(streams);
        } else if let Some(ascii) = wanted.screen {
            let shared = Arc::new(Shared::default());
            let (feeder, events) = Feeder::new();
            if let Some(reader) = crate::screen::start(events, Arc::clone(&shared), ascii) {
                let mut shows = Inner::new(StatusLine::new(true), wanted.quiet);
                shows.reads(feeder, reader);
                shows.screen = Some(shared);
                inner = Some(shows);
            }
        }
        let progress = inner.map_or_else(|| Self::new(wanted.quiet), |inner| Self(Arc::new(inner)));
        progress.plan(plan);
        Ok(progress)
    }

    /// What is going to be measured; again when more of it is known.
    pub(crate) fn plan(&self, plan: Plan) {
        self.event(Event::Plan(plan));
    }

    /// What follows is a simulator's, whose time begins here.
    pub(crate) fn played_from(&self, began: Stamp<Sender>) {
        self.0.began_ns.store(began.nanos(), Ordering::Relaxed);
        self.0.played.store(true, Ordering::Relaxed);
    }

    /// An event, now.
    pub(crate) fn event(&self, event: Event) {
        self.0.pass(self.0.now(), event);
    }

    pub(crate) fn say(&self, text: impl Into<String>) {
        self.0.status.say(text);
    }

    /// One line that stays, also where standard error is no terminal.
    pub(crate) fn note(&self, text: &str) {
        if self.0.feeder.is_some() {
            self.event(Event::Note(text.to_owned()));
        }
        if self.0.screen.is_some() {
            lock(&self.0.kept).push(text.to_owned());
        } else if !self.0.quiet {
            self.0.status.above(|| output::complain(text));
        }
    }

    /// The same of a line that names no program: it opens what the command has to say.
    pub(crate) fn headline(&self, text: &str) {
        if self.0.feeder.is_some() {
            self.event(Event::Note(text.to_owned()));
        }
        if !self.0.quiet {
            self.0.status.above(|| output::hint(&format!("{text}\n")));
        }
    }

    /// A stream or a screen wants all events.
    pub(crate) fn is_watched(&self) -> bool {
        self.0.feeder.is_some()
    }

    /// Nothing is measured any more: the line or the screen goes. May come again.
    pub(crate) fn finish(&self) {
        self.0.finish();
    }

    /// The result, where it is the end of a stream; else it is to be printed.
    pub(crate) fn conclude(&self, document: &str) -> bool {
        self.finish();
        let Some(stream) = &self.0.stream else { return false };
        stream.end(self.0.now(), document);
        true
    }

    /// What went wrong, for readers of a stream.
    pub(crate) fn failed(&self, failure: Failure) -> Failure {
        self.finish();
        if let Some(stream) = &self.0.stream {
            stream.error(self.0.now(), &failure);
        }
        failure
    }
}

impl Inner {
    fn new(status: StatusLine, quiet: bool) -> Self {
        Self {
            began_ns: AtomicI64::new(narrows_net::clock::now_ns()),
            played: AtomicBool::new(false),
            last_ns: AtomicU64::new(0),
            quiet,
            status,
            feeder: None,
            reader: Mutex::new(None),
            stream: None,
            screen: None,
            kept: Mutex::new(Vec::new()),
        }
    }

    fn reads(&mut self, feeder: Feeder, reader: JoinHandle<()>) {
        self.feeder = Some(feeder);
        self.reader = Mutex::new(Some(reader));
    }

    fn since(&self, at: Stamp<Sender>) -> u64 {
        let began = Stamp::from_nanos(self.began_ns.load(Ordering::Relaxed));
        let at_ns = narrows_units::nanos(at.since(began));
        // Never back: a simulator's time begins when something has been told already.
        at_ns.max(self.last_ns.fetch_max(at_ns, Ordering::Relaxed))
    }

    /// The time of an event that no probe brought.
    fn now(&self) -> u64 {
        if self.played.load(Ordering::Relaxed) {
            return self.last_ns.load(Ordering::Relaxed);
        }
        self.since(narrows_net::clock::now())
    }

    fn pass(&self, at_ns: u64, progress: Event) {
        if let Some(feeder) = &self.feeder {
            feeder.offer(Timed { at_ns, progress });
        }
    }

    fn finish(&self) {
        self.status.finish();
        let Some(reader) = lock(&self.reader).take() else { return };
        if let Some(feeder) = &self.feeder {
            let at_ns = self.now();
            feeder.close(Timed { at_ns, progress: Event::Ended });
        }
        // A reader that panicked has put the terminal back.
        let _ = reader.join();
        for text in std::mem::take(&mut *lock(&self.kept)) {
            if !self.quiet {
                output::complain(&text);
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Feed for Progress {
    fn tell(&self, at: Stamp<Sender>, event: Event) {
        match &event {
            Event::StageBegan(began) => {
                let (metric, method) = (began.metric, began.method.as_str());
                tracing::info!(%metric, method, "begins");
                self.say(format!("{metric} by {method}"));
            }
            Event::StageEnded(ended) => {
                let line = narrows_report::stage_line(ended);
                tracing::info!("ends: {line}");
                self.0.status.print(&format!("  {line}"));
            }
            _ => {}
        }
        self.0.pass(self.0.since(at), event);
    }

    fn on_path(&self, what: OnPath) {
        if let Some(shared) = &self.0.screen {
            shared.put_on_path(what);
        }
    }

    fn paused(&self) -> bool {
        self.0.screen.as_ref().is_some_and(|shared| shared.paused())
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
