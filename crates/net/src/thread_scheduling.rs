//! What the operating system can do for a thread that must keep time. All of it is best effort:
//! without privilege the thread runs as any other.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::prctl::set_timerslack;
use nix::unistd::Pid;

use crate::sys::thread;

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadScheduling {
    /// Keep the thread on this CPU.
    pub pin_to: Option<usize>,
    /// Real-time priority (`SCHED_FIFO`), 1 to 50. A spinning thread at such a priority starves all
    /// others of its CPU, so it is not the default.
    pub priority: Option<u8>,
}

/// What the system granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrantedScheduling {
    /// Sleeps end within microseconds of their time instead of 50 µs late.
    pub fine_sleep: bool,
    /// The thread stays on its CPU.
    pub pinned: bool,
    /// The thread has real-time priority.
    pub priority: bool,
}

/// Undoes the priority when the careful work is over.
#[derive(Debug)]
pub struct SchedulingGuard {
    granted: GrantedScheduling,
}

impl ThreadScheduling {
    /// Asks, for the calling thread, until the result is dropped (timer slack and pinning stay).
    pub fn take(self) -> SchedulingGuard {
        let pinned = self.pin_to.is_some_and(|cpu| {
            let mut set = CpuSet::new();
            set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).is_ok()
        });
        SchedulingGuard {
            granted: GrantedScheduling {
                fine_sleep: set_timerslack(1).is_ok(),
                pinned,
                priority: self.priority.is_some_and(|priority| thread::set_fifo(priority.clamp(1, 50)).is_ok()),
            },
        }
    }
}

impl SchedulingGuard {
    /// What the system granted.
    pub fn granted(&self) -> GrantedScheduling {
        self.granted
    }
}

impl Drop for SchedulingGuard {
    fn drop(&mut self) {
        if self.granted.priority {
            // Cannot fail: giving up a privilege needs none.
            let _ = thread::set_ordinary();
        }
    }
}

/// A thread that must not disturb those that keep time.
#[derive(Debug)]
pub struct Background {
    allowed: CpuSet,
    off: Option<usize>,
}

impl Background {
    /// Makes the calling thread one: it runs when nobody else wants to.
    pub fn take() -> Self {
        // Best effort, as all here.
        let _ = thread::set_nicest();
        Self { allowed: sched_getaffinity(Pid::from_raw(0)).unwrap_or_default(), off: None }
    }

    /// Keeps the calling thread off a CPU, if it may run on another one.
    pub fn stay_off(&mut self, cpu: usize) {
        if self.off == Some(cpu) {
            return;
        }
        self.off = Some(cpu);
        leave(self.allowed, cpu);
    }
}

/// Keeps the calling thread to these CPUs but one, if any is left.
fn leave(mut others: CpuSet, cpu: usize) {
    if others.unset(cpu).is_ok() && count(&others) > 0 {
        let _ = sched_setaffinity(Pid::from_raw(0), &others);
    }
}

/// Keeps the calling thread off a CPU, if it may run on another one.
pub fn stay_off(cpu: usize) {
    if let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) {
        leave(allowed, cpu);
    }
}

/// The CPU with the highest number on which the calling thread may run.
pub fn last_allowed_cpu() -> Option<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    (0..CpuSet::count()).rev().find(|&cpu| allowed.is_set(cpu).unwrap_or(false))
}

fn count(set: &CpuSet) -> usize {
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).count()
}

/// CPUs on which the calling thread may run.
pub fn allowed_cpus() -> usize {
    sched_getaffinity(Pid::from_raw(0)).map_or(1, |set| count(&set))
}

/// The CPU on which the calling thread runs just now.
pub fn current_cpu() -> Option<usize> {
    sched_getcpu().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_thread_leaves_a_cpu_to_others() {
        // In a thread of its own: affinity stays with it.
        let run = || {
            let mut background = Background::take();
            let (Some(cpu), before) = (current_cpu(), allowed_cpus()) else { return };
            background.stay_off(cpu);
            assert_eq!(allowed_cpus(), (before - 1).max(1));
            if before > 1 {
                let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
                assert!(!set.is_set(cpu).unwrap());
            }
        };
        std::thread::spawn(run).join().unwrap();
    }

    #[test]
    fn asking_for_the_impossible_is_no_failure() {
        let thread_scheduling = ThreadScheduling { pin_to: Some(usize::MAX), priority: None };
        let granted = thread_scheduling.take().granted();
        assert!(!granted.pinned && !granted.priority);
    }
}
