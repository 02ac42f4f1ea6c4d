//! The thread that plays, and how it is asked and stopped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use narrows_net::thread_scheduling::ThreadScheduling;
use narrows_units::nanos;
use nix::sched::sched_yield;

use crate::error::LabError;
use crate::placement::Placement;
use crate::player::{Clock, End, Player, Report, Rules};
use crate::tally::Tally;
use crate::timing_report::TimingReport;

/// A spinning thread with a player. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Playing<E, R> {
    control: Arc<Control>,
    reports: Mutex<Receiver<Report>>,
    thread: Option<JoinHandle<Player<E, R, RealClock>>>,
}

/// Where a report begins.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) at: Instant,
    pub(crate) kernel_drops: [u64; 2],
}

impl Begin {
    pub(crate) fn judge(&self, tally: &Tally, kernel_drops: [u64; 2]) -> TimingReport {
        let [sender, receiver] = self.kernel_drops;
        // A device that is gone counts from zero again.
        let since = [kernel_drops[0].saturating_sub(sender), kernel_drops[1].saturating_sub(receiver)];
        tally.timing_report(self.at.elapsed(), since)
    }
}

/// What the thread is told.
#[derive(Debug)]
struct Control {
    stop: AtomicBool,
    /// The track that is to report, or [`NO_TRACK`].
    report: AtomicUsize,
    /// With the report: begin a new tally.
    afresh: AtomicBool,
}

const NO_TRACK: usize = usize::MAX;

impl<E: End + Send + 'static, R: Rules + Send + 'static> Playing<E, R> {
    /// Starts the thread on the path's processor, makes the player there, and waits until it plays.
    pub(crate) fn start(
        placement: Option<&Placement>,
        priority: Option<u8>,
        make: impl FnOnce() -> Player<E, R, RealClock> + Send + 'static,
    ) -> Result<Self, LabError> {
        let control = Arc::new(Control {
            stop: AtomicBool::new(false),
            report: AtomicUsize::new(NO_TRACK),
            afresh: AtomicBool::new(false),
        });
        let (tell, reports) = mpsc::sync_channel(1);
        let (ready, is_ready) = mpsc::sync_channel(0);
        let reported = Arc::clone(&control);
        let placement = placement.copied();
        let work = move || {
            if let Some(placement) = placement {
                placement.keep_path_here();
            }
            let player = make();
            let thread_scheduling = ThreadScheduling { pin_to: None, priority };
            let _until_the_end = priority.map(|_| thread_scheduling.take());
            // The receiver waits below.
            let _ = ready.send(());
            play(player, &reported, &tell, placement.is_some())
        };
        let thread = thread::Builder::new()
            .name("narrows-path".to_owned())
            .spawn(work)
            .map_err(|source| LabError::kernel("starting the thread that plays the path", source))?;
        let playing = Self { control, reports: Mutex::new(reports), thread: Some(thread) };
        is_ready.recv().map_err(|_| LabError::PlayerDied)?;
        Ok(playing)
    }

    /// What a track has counted so far; `afresh` begins to count anew.
    pub(crate) fn report(&self, track: usize, afresh: bool) -> Result<Report, LabError> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        self.control.afresh.store(afresh, Ordering::Release);
        self.control.report.store(track, Ordering::Release);
        reports.recv().map_err(|_| LabError::PlayerDied)
    }
}

impl<E, R> Playing<E, R> {
    /// Stops the thread; `None` if it had died, or was stopped before.
    pub(crate) fn end(&mut self) -> Option<Player<E, R, RealClock>> {
        self.control.stop.store(true, Ordering::Release);
        self.thread.take()?.join().ok()
    }
}

impl<E, R> Drop for Playing<E, R> {
    fn drop(&mut self) {
        self.end();
    }
}

fn play<E: End, R: Rules>(
    mut player: Player<E, R, RealClock>,
    control: &Control,
    reports: &SyncSender<Report>,
    alone: bool,
) -> Player<E, R, RealClock> {
    while !control.stop.load(Ordering::Acquire) {
        let busy = player.turn();
        if !busy && !alone {
            // Hosts and path share one processor: let the hosts run.
            let _ = sched_yield();
        }
        if control.report.load(Ordering::Relaxed) != NO_TRACK {
            let asked = control.report.swap(NO_TRACK, Ordering::AcqRel);
            if let Some(track) = player.tracks.get_mut(asked) {
                // Full or closed: nobody waits for this one.
                let _ = reports.try_send(track.report());
                if control.afresh.load(Ordering::Acquire) {
                    track.tally = Tally::new();
                }
            }
        }
    }
    player
}

/// The real clock, beginning at some time of the path.
#[derive(Debug)]
pub(crate) struct RealClock {
    started: Instant,
    at_start: u64,
}

impl RealClock {
    pub(crate) fn starting_at(at_start: u64) -> Self {
        Self { started: now(), at_start }
    }

    /// When it stood at its begin.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }
}

impl Clock for RealClock {
    #[inline]
    fn now(&mut self) -> u64 {
        // 584 years fit.
        let elapsed = nanos(self.started.elapsed());
        self.at_start.saturating_add(elapsed)
    }
}

#[expect(clippy::disallowed_methods, reason = "the lab is a world: it may read the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
