//! The threads beside the scheduler: those that measure, and one each for pulses, names and changes
//! of routes.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use super::super::jobs::{self, Work};
use super::super::{pulses, resolve, route_changes};
use super::{LOADING_JOBS, Message};
use crate::exit::Failure;

/// How to ask them for something. Where one has ended, so will the program: nobody minds what it
/// was asked.
pub(super) struct Threads {
    pub(super) jobs: Sender<Work>,
    pub(super) pulses: Sender<pulses::Asked>,
    pub(super) names: Sender<resolve::Asked>,
}

/// What the threads are asked, at their ends.
pub(super) struct Ends {
    pub(super) jobs: Receiver<Work>,
    pub(super) pulses: Receiver<pulses::Asked>,
    pub(super) names: Receiver<resolve::Asked>,
}

impl Threads {
    pub(super) fn new() -> (Self, Ends) {
        let (jobs, jobs_end) = mpsc::channel();
        let (pulses, pulses_end) = mpsc::channel();
        let (names, names_end) = mpsc::channel();
        (Self { jobs, pulses, names }, Ends { jobs: jobs_end, pulses: pulses_end, names: names_end })
    }
}

impl Ends {
    /// Starts them; they tell `sender`.
    pub(super) fn start(self, sender: &Sender<Message>, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
        let work = Arc::new(Mutex::new(self.jobs));
        for _ in 0..=LOADING_JOBS {
            let (work, sender, stop) = (Arc::clone(&work), sender.clone(), Arc::clone(stop));
            spawn("measuring", move || {
                jobs::run(&work, |done| sender.send(Message::Done(Box::new(done))).is_ok(), &stop);
            })?;
        }
        let (asked, heard) = (self.pulses, sender.clone());
        spawn("pulses", move || pulses::run(&asked, |id, one| heard.send(Message::Heard(id, one)).is_ok()))?;
        let (changes, ended) = (sender.clone(), Arc::clone(stop));
        spawn("routes", move || route_changes::run(|| changes.send(Message::RoutesChanged).is_ok(), &ended))?;
        let (asked, sender, stop) = (self.names, sender.clone(), Arc::clone(stop));
        spawn("names", move || {
            resolve::run(&asked, |id, all| sender.send(Message::Resolved(id, all)).is_ok(), &stop);
        })
    }
}

pub(in super::super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| Failure::host(format!("cannot start a thread: {error}")))
}
