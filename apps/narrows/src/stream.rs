//! `--json-stream`: a line of JSON per event, the result in the last one.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use narrows_net::thread_scheduling::Background;
use narrows_probe::progress::Timed;
use narrows_report::Problem;
use narrows_report::events;

use crate::exit::Failure;

/// Where the lines go.
#[derive(Clone)]
pub(crate) struct Stream(Arc<Mutex<Box<dyn Write + Send>>>);

impl Stream {
    /// To a file, else to standard output.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let out: Box<dyn Write + Send> = match file {
            Some(path) => {
                Box::new(File::create(path).map_err(|error| Failure::usage(format!("-o {}: {error}", path.display())))?)
            }
            None => Box::new(io::stdout()),
        };
        Ok(Self(Arc::new(Mutex::new(out))))
    }

    /// Writes what comes, on a thread of its own.
    pub(crate) fn read(&self, events: Receiver<Timed>) -> Result<JoinHandle<()>, Failure> {
        let stream = self.clone();
        let write = move || {
            let _background = Background::take();
            for event in events {
                // The end has none: its line comes with the document.
                let Some(line) = events::line(&event) else { return };
                stream.put(&line);
            }
        };
        std::thread::Builder::new()
            .spawn(write)
            .map_err(|error| Failure::host(format!("cannot start a thread: {error}")))
    }

    pub(crate) fn end(&self, at_ns: u64, document: &str) {
        self.put(&events::end(at_ns, document));
    }

    pub(crate) fn error(&self, at_ns: u64, failure: &Failure) {
        let problem = Problem { code: failure.exit.code(), who: failure.who, text: failure.text.clone() };
        self.put(&events::error(at_ns, &problem));
    }

    /// A reader that went away has the exit code.
    fn put(&self, line: &str) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
