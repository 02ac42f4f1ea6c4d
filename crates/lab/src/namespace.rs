//! Network namespaces: made in a thread, held by a descriptor, optionally named for
//! `ip netns exec`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::LabError;
use crate::netlink::{Link, Netlink};
use crate::plan::Side;

/// Where iproute2 looks for named namespaces.
pub(crate) const NAMED: &str = "/run/netns";
/// How our names begin: `narrows-<process>-<lab>-<side>`.
const PREFIX: &str = "narrows-";

/// A network namespace. It lives as long as this value, a thread or process inside, or its name.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    name: Option<String>,
}

/// Tells the real-time paths of one process apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathNumber(u32);

impl PathNumber {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The name of a host's namespace.
    pub(crate) fn name(self, side: Side) -> String {
        format!("{PREFIX}{}-{}-{}", std::process::id(), self.0, side.name())
    }
}

impl Namespace {
    /// Makes a new namespace with its `lo` up, for the node of this name in messages. With a
    /// `name`, it can also be found under `/run/netns`, if this process may mount.
    pub(crate) fn create(node: &str, name: Option<String>) -> Result<Self, LabError> {
        let doing = || format!("making the network namespace of the {node}");
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            raise_loopback()?;
            File::open("/proc/thread-self/ns/net")
        });
        // The closure only returns errors; a panic inside would be a bug of a dependency.
        let file = made
            .join()
            .map_err(|_| LabError::kernel(doing(), io::Error::other("its thread panicked")))?
            .map_err(|source| LabError::kernel(doing(), source))?;
        let mut namespace = Self { file, name: None };
        if let Some(name) = name {
            namespace.bind(name)?;
        }
        Ok(namespace)
    }

    /// Moves the calling thread into the namespace. Threads and processes that it starts from then
    /// on live there too.
    pub(crate) fn enter(&self) -> io::Result<()> {
        setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
    }

    /// Runs `work` in a thread inside and waits for it. A panic of `work` goes on in the caller.
    pub(crate) fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        let done = thread::scope(|scope| scope.spawn(|| self.enter().map(|()| work())).join());
        match done {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Gives `lo` these addresses of 127/8 too.
    pub(crate) fn mark(&self, addresses: [Ipv4Addr; 2]) -> io::Result<()> {
        self.inside(|| {
            let loopback = nix::net::if_::if_nametoindex("lo")?;
            let netlink = Netlink::open()?;
            addresses.into_iter().try_for_each(|address| netlink.add_address(loopback, address.into(), 32))
        })?
    }

    /// Its number among all namespaces that live now.
    pub(crate) fn number(&self) -> io::Result<u64> {
        self.file.metadata().map(|file| file.ino())
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    fn bind(&mut self, name: String) -> Result<(), LabError> {
        let path = Path::new(NAMED).join(&name);
        let doing = || format!("naming a network namespace {}", path.display());
        let wrong = |source| LabError::kernel(doing(), source);
        fs::create_dir_all(NAMED).map_err(wrong)?;
        share_names().map_err(|errno| wrong(errno.into()))?;
        // A file of this name is left from an earlier process of the same number.
        remove(&path);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(wrong)?;
        // As iproute2 does: nobody has a use for the contents of the mount point itself.
        let closed = fs::Permissions::from_mode(0o000);
        file.set_permissions(closed).map_err(wrong)?;
        // The name is recorded first, so that Drop removes the file when mounting fails.
        self.name = Some(name);
        let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.file));
        mount(Some(own.as_str()), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|errno| wrong(errno.into()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            remove(&Path::new(NAMED).join(name));
        }
    }
}

/// Removes the named namespaces that processes left behind that live no more (killed, or crashed);
/// returns their names. Anything else, also anonymous namespaces and TUN devices, ends with its
/// process by itself. Names that cannot be removed stay and are not returned.
pub fn clean_leftovers() -> Vec<String> {
    let Ok(entries) = fs::read_dir(NAMED) else {
        return Vec::new();
    };
    let mut removed: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| owner(name).is_some_and(|process| !is_alive(process)))
        .filter(|name| remove(&Path::new(NAMED).join(name)))
        .collect();
    removed.sort();
    removed
}

/// The process that made a namespace of this name; `None` if it is not one of ours.
fn owner(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let process = parts.next()?.parse().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    matches!(parts.next()?, "sender" | "receiver").then_some(process)
}

fn is_alive(process: u32) -> bool {
    PathBuf::from(format!("/proc/{process}")).exists()
}

/// Makes the folder of names a shared mount of its own, as the first `ip netns add` since the
/// machine began does. If that came later, it would hide the names that are mounted by then: nobody
/// could remove them any more, and no other lab could have them.
fn share_names() -> nix::Result<()> {
    let share = || mount(None::<&str>, NAMED, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // It is no mount point yet.
        Err(Errno::EINVAL) => {
            mount(Some(NAMED), NAMED, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
            share()
        }
        shared => shared,
    }
}

/// Unmounts and deletes a name; whether it is gone.
pub(crate) fn remove(path: &Path) -> bool {
    // Not mounted is fine; what matters is whether the file goes.
    let _ = umount2(path, MntFlags::MNT_DETACH);
    fs::remove_file(path).is_ok()
}

/// Sets `lo` up in the namespace of the calling thread.
fn raise_loopback() -> io::Result<()> {
    Netlink::open()?.set(&Link::named("lo").up())
}

/// Sets the length of an interface's queue in the namespace of the calling thread. The older
/// `ioctl` for it is closed to user namespaces.
pub(crate) fn set_queue_packets(interface: &str, packets: u32) -> io::Result<()> {
    Netlink::open()?.set(&Link::named(interface).queue_packets(packets))
}

/// The column `transmit drop` of an interface in `/proc/net/dev` (`proc_pid_net(5)`): packets that
/// the kernel dropped on their way out.
pub(crate) fn transmit_drops(namespace: &Namespace, interface: &str) -> io::Result<u64> {
    let table = namespace.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
    drops_in(&table, interface).ok_or_else(|| io::Error::other("the interface is not in the table"))
}

/// The 12th number of the interface's line.
fn drops_in(table: &str, interface: &str) -> Option<u64> {
    table.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        if name.trim() != interface {
            return None;
        }
        numbers.split_whitespace().nth(11)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_have_owners() {
        assert_eq!(owner("narrows-17-0-sender"), Some(17));
        assert_eq!(owner("narrows-17-3-receiver"), Some(17));
        for other in ["narrows-17-0", "narrows--0-sender", "blue", "narrows-17-x-sender", "narrows-17-0-router"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn our_own_process_lives() {
        assert!(is_alive(std::process::id()));
        // Above the largest possible process number (2^22).
        assert!(!is_alive(u32::MAX));
    }

    const TABLE: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 path0:      48       1    0    5    0     0          0         0    96048      70    2    7    0     0       0          0
";

    #[test]
    fn the_drop_column_of_the_right_line() {
        assert_eq!(drops_in(TABLE, "path0"), Some(7));
        assert_eq!(drops_in(TABLE, "lo"), Some(0));
        assert_eq!(drops_in(TABLE, "path"), None);
    }
}
