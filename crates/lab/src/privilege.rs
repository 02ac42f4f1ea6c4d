//! What this process may do, and the user namespace that lets it do more.

use std::fs::{self, OpenOptions};
use std::io;
use std::thread;

use narrows_net::tun::{Tun, TunLayer};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};

use crate::error::WhyNot;

/// Gives this process the rights a lab needs, if it lacks them: moves it into a user namespace of
/// its own, in which it is root and nobody else exists. Files keep their owners' rights; outside,
/// nothing changes. Returns whether it moved.
///
/// Must be called before any thread starts (first in `main`): the kernel refuses it to a process of
/// several threads, and says `Invalid argument`. If an error comes after the move, the process has
/// lost its rights to other users' files; it should say so and end, or go on without a lab. Does
/// nothing if the process may make network namespaces already.
pub fn enter_user_namespace_if_needed() -> Result<bool, WhyNot> {
    if may_administer() {
        return Ok(false);
    }
    let (user, group) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| WhyNot::UserNamespace(errno.into()))?;
    // user_namespaces(7): without rights outside, groups may only be mapped once setgroups is
    // renounced.
    fs::write("/proc/self/setgroups", "deny").map_err(WhyNot::UserNamespace)?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1")).map_err(WhyNot::UserNamespace)?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).map_err(WhyNot::UserNamespace)?;
    Ok(true)
}

/// Tells whether this process can have a real-time path now, by making a namespace with a TUN
/// device and letting both go.
pub fn available() -> Result<(), WhyNot> {
    OpenOptions::new().read(true).write(true).open("/dev/net/tun").map_err(WhyNot::TunDevice)?;
    in_trial_namespace(|| {
        let device = Tun::create(crate::device::INTERFACE, TunLayer::Ip);
        device.map(drop).map_err(WhyNot::TunInNamespace)
    })
}

/// Tells whether this process can have a lab's nodes now, by making a namespace and letting it go.
/// Their devices need no TUN unless the kernel refuses rings, which the making of the ports finds
/// out.
pub fn namespaces_available() -> Result<(), WhyNot> {
    in_trial_namespace(|| Ok(()))
}

fn in_trial_namespace(work: impl FnOnce() -> Result<(), WhyNot> + Send + 'static) -> Result<(), WhyNot> {
    let trial = thread::Builder::new().spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| WhyNot::NetworkNamespace(errno.into()))?;
        work()
    });
    match trial.map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(WhyNot::NetworkNamespace(io::Error::other("the trial panicked"))),
        Err(error) => Err(WhyNot::NetworkNamespace(error)),
    }
}

/// Whether the effective capabilities hold `CAP_SYS_ADMIN` (to make and enter namespaces) and
/// `CAP_NET_ADMIN` (to set them up).
fn may_administer() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| holds_both(&status))
}

fn holds_both(status: &str) -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (NET_ADMIN | SYS_ADMIN) == NET_ADMIN | SYS_ADMIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_capabilities_are_needed() {
        assert!(holds_both("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        // Docker's default set: neither of the two.
        assert!(!holds_both("CapEff:\t00000000a80425fb\n"));
        // With NET_ADMIN only.
        assert!(!holds_both("CapEff:\t00000000a80435fb\n"));
        assert!(!holds_both("Name:\tx\n"));
        assert!(!holds_both("CapEff:\tzz\n"));
    }
}
