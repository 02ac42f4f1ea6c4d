//! Processes and users, as the kernel tells of them.

use std::fs;

/// Whether this process is root of the machine, rather than of a user namespace of ours.
pub(crate) fn is_root_of_the_machine() -> bool {
    outer_user() == Some(0)
}

/// Who this process is outside its user namespace.
pub(super) fn outer_user() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    outside(&map, nix::unistd::Uid::effective().as_raw())
}

/// The user outside a user namespace (`user_namespaces(7)`: first inside, first outside, count).
pub(super) fn outside(map: &str, inside: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().ok());
        let (first, outer, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = inside.checked_sub(first).filter(|&offset| offset < count)?;
        outer.checked_add(offset)
    })
}

/// When a process began, in ticks since the kernel booted; `None` if there is none.
pub(super) fn process_began(process: u32) -> Option<u64> {
    began(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Field 22 of `/proc/<pid>/stat`, `proc_pid_stat(5)`; the second one, in parentheses, may hold
/// anything. A zombie is dead.
pub(super) fn began(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

pub(super) fn machine_uptime_s() -> Option<f64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
