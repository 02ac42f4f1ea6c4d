//! Notices of the kernel that links, addresses or routes have changed, by rtnetlink.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};

/// Says when packets may leave by another way than before.
#[derive(Debug)]
pub struct RouteChanges {
    socket: OwnedFd,
}

impl RouteChanges {
    /// Of the calling thread's network namespace, from now on. Needs no privilege.
    pub fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        Ok(Self { socket })
    }

    /// Whether something changed since the last call; waits for it until `timeout` is over. What
    /// the notices say is not read: whoever wants to know asks the kernel for what is so now.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let millis = u16::try_from(timeout.as_millis()).unwrap_or(u16::MAX);
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::from(millis)) {
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; 8 << 10];
        let mut changed = false;
        // One change has many notices.
        for _ in 0..1000 {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                // The kernel had more to say than it could keep.
                Ok(_) | Err(Errno::ENOBUFS) => changed = true,
                Err(Errno::EAGAIN | Errno::EINTR) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(changed)
    }
}

/// Links, then addresses, routes and rules of either IP version (`linux/rtnetlink.h`).
const GROUPS: u32 = LINK | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 18;
const LINK: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// The namespace is this test's own; without one there is nothing to change.
    #[test]
    #[ignore = "lab: needs namespaces"]
    fn another_address_is_noticed() {
        let other_thread = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("a namespace of our own");
            let changes = RouteChanges::open().unwrap();
            assert!(!changes.wait(Duration::ZERO).unwrap());
            let run = |arguments: &[&str]| {
                let done = std::process::Command::new("ip").args(arguments).status().expect("the program ip");
                assert!(done.success(), "{arguments:?}");
            };
            run(&["link", "set", "lo", "up"]);
            assert!(changes.wait(Duration::from_secs(10)).unwrap());
            assert!(!changes.wait(Duration::ZERO).unwrap(), "all notices of a change are taken at once");
            run(&["address", "add", "192.0.2.1/24", "dev", "lo"]);
            assert!(changes.wait(Duration::from_secs(10)).unwrap());
        });
        other_thread.join().unwrap();
    }
}
