//! Which processor plays the path, and which are left to the hosts.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// One processor for the path, the others for the hosts: a program woken on the path's processor
/// would hold up the packets that follow the one that woke it.
///
/// The thread keeps its usual priority. With a real-time policy the kernel takes the processor away
/// from a spinning thread for 50 ms of each second (`sched_rt_runtime_us`, sched(7)), which is
/// worse than what a quiet machine does; a nice value counts only within a session where tasks are
/// grouped by session (`sched_autogroup_enabled`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    path: CpuSet,
    hosts: CpuSet,
}

impl Placement {
    /// Gives the path the processor wanted, or the last one that this process may use. `None` if
    /// there is only one, or none known.
    pub(crate) fn choose(wanted: Option<usize>) -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        Self::among(&allowed, wanted)
    }

    fn among(allowed: &CpuSet, wanted: Option<usize>) -> Option<Self> {
        let is_allowed = |cpu: &usize| allowed.is_set(*cpu).unwrap_or(false);
        let last = (0..CpuSet::count()).rev().find(is_allowed)?;
        let chosen = wanted.filter(is_allowed).unwrap_or(last);
        let (mut path, mut hosts) = (CpuSet::new(), *allowed);
        path.set(chosen).ok()?;
        hosts.unset(chosen).ok()?;
        let others = (0..CpuSet::count()).any(|cpu| hosts.is_set(cpu).unwrap_or(false));
        others.then_some(Self { path, hosts })
    }

    /// The path's processor.
    pub(crate) fn path_cpu(&self) -> Option<usize> {
        (0..CpuSet::count()).find(|&cpu| self.path.is_set(cpu).unwrap_or(false))
    }

    /// Keeps the calling thread, which plays the path, to its processor.
    pub(crate) fn keep_path_here(&self) {
        keep(&self.path, "path");
    }

    /// Keeps the calling thread, and what it starts, off the path's processor.
    pub(crate) fn keep_host_here(&self) {
        keep(&self.hosts, "host");
    }
}

/// Best effort: what goes wrong here is seen in the timing report.
fn keep(set: &CpuSet, whose: &str) {
    if let Err(error) = sched_setaffinity(Pid::from_raw(0), set) {
        tracing::warn!(%error, "could not keep a thread of the {whose} to its processors");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu).unwrap();
        }
        set
    }

    #[test]
    fn the_path_gets_one_and_the_hosts_the_rest() {
        let placement = Placement::among(&set(&[0, 1, 5]), None).unwrap();
        assert_eq!((placement.path, placement.hosts), (set(&[5]), set(&[0, 1])));
        let placement = Placement::among(&set(&[0, 1, 5]), Some(1)).unwrap();
        assert_eq!((placement.path, placement.hosts), (set(&[1]), set(&[0, 5])));
        // Not ours to use: as if not said.
        let placement = Placement::among(&set(&[0, 1, 5]), Some(3)).unwrap();
        assert_eq!(placement.path, set(&[5]));
    }

    #[test]
    fn one_processor_is_not_divided() {
        assert!(Placement::among(&set(&[2]), None).is_none());
        assert!(Placement::among(&set(&[]), Some(0)).is_none());
        assert!(Placement::among(&set(&[2]), Some(usize::MAX)).is_none());
    }
}
