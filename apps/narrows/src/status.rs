//! The status line: the last line of standard error, drawn twice a second; none where that is no
//! terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(500);

/// Clones are the same line; the last one takes it away.
#[derive(Clone)]
pub(crate) struct StatusLine(Option<Arc<Shared>>);

struct Shared {
    line: Arc<Mutex<Line>>,
    /// The thread that draws ends with it.
    _alive: Sender<()>,
}

struct Line {
    began_ns: i64,
    text: String,
    finished: bool,
}

impl StatusLine {
    pub(crate) fn new(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if quiet || dumb || !io::stderr().is_terminal() {
            return Self(None);
        }
        let line =
            Arc::new(Mutex::new(Line { began_ns: narrows_net::clock::now_ns(), text: String::new(), finished: false }));
        let (alive, ended) = mpsc::channel::<()>();
        let drawn = Arc::clone(&line);
        let drawing = std::thread::Builder::new().spawn(move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                lock(&drawn).draw();
            }
        });
        // Without a thread for it there is no line, which nobody needs.
        Self(drawing.is_ok().then(|| Arc::new(Shared { line, _alive: alive })))
    }

    fn line(&self) -> Option<MutexGuard<'_, Line>> {
        self.0.as_ref().map(|shared| lock(&shared.line))
    }

    /// Changes the text, from the next drawing on.
    pub(crate) fn say(&self, text: impl Into<String>) {
        if let Some(mut line) = self.line() {
            line.text = text.into();
        }
    }

    pub(crate) fn elapsed(&self) -> Option<Duration> {
        self.line().map(|line| line.elapsed())
    }

    /// Writes something else to standard error, above the line.
    pub(crate) fn above(&self, write: impl FnOnce()) {
        // Held meanwhile, so that nothing is drawn into it.
        let line = self.line();
        if line.is_some() {
            clear();
        }
        write();
    }

    /// Writes another line above this one; nothing where there is none.
    pub(crate) fn print(&self, text: &str) {
        if self.0.is_some() {
            self.above(|| put(&format!("{text}\n")));
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(mut line) = self.line() {
            line.finish();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        lock(&self.line).finish();
    }
}

impl Line {
    fn elapsed(&self) -> Duration {
        let ns = narrows_net::clock::now_ns().saturating_sub(self.began_ns);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
    }

    /// The terminal cuts what is too long for it: its wrapping is off meanwhile.
    fn draw(&self) {
        if !self.finished {
            let seconds = self.elapsed().as_secs();
            put(&format!("\r\x1b[?7l{seconds:>3} s {}\x1b[K\x1b[?7h", self.text));
        }
    }

    fn finish(&mut self) {
        if !self.finished {
            self.finished = true;
            clear();
        }
    }
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

fn clear() {
    put("\r\x1b[K");
}

fn put(text: &str) {
    // Nobody watches any more: no reason to end a measurement.
    let _ = io::stderr().write_all(text.as_bytes());
}
