//! One measurement that loads a link at a time, over all programs of this host: a lock per link.
//!
//! A link is the interface that packets leave by and the router that takes them. Loopback is none.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_net::clock;
use narrows_net::host::Egress;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::progress::Progress;

/// The link is ours until this is dropped; `None` inside where there is no link, or no place for a
/// lock.
#[derive(Debug)]
pub(crate) struct LinkLock {
    _file: Option<Flock<File>>,
}

/// Somebody else loads the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder(Option<u32>);

/// How long a command that was run by hand waits.
const BY_HAND: Duration = Duration::from_secs(10);
/// From one look at a lock to the next.
const EVERY: Duration = Duration::from_millis(100);

impl LinkLock {
    /// Takes the link towards `peer`, if nobody has it now.
    pub(crate) fn now(peer: IpAddr) -> Result<Self, Holder> {
        let Some(egress) = Egress::towards(peer).filter(Egress::is_a_link) else { return Ok(Self { _file: None }) };
        let name = name(&egress, namespace().as_deref());
        for folder in folders() {
            if prepare(&folder).is_ok()
                && let Some(taken) = taken(&folder.join(&name))
            {
                return taken;
            }
        }
        // A host without a place for locks measures all the same.
        Ok(Self { _file: None })
    }

    /// The same for a command that was run by hand: it waits, and says for whom. A name that does
    /// not resolve is the command's to complain of.
    pub(crate) fn by_hand(host: &str, progress: &Progress) -> Result<Self, Failure> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let address = (bare, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
        let Some(peer) = address.map(|address| address.ip()) else { return Ok(Self { _file: None }) };
        let stop = interrupt::flag()?;
        let deadline_ns = clock::now_ns() + clock::nanos(BY_HAND);
        loop {
            let holder = match Self::now(peer) {
                Ok(lock) => return Ok(lock),
                Err(holder) => holder,
            };
            if clock::now_ns() >= deadline_ns || stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(holder.failure());
            }
            progress.say(format!("waiting for the link: {holder}"));
            interrupt::nap(EVERY);
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "process {pid} measures over it"),
            None => f.write_str("another process measures over it"),
        }
    }
}

impl Holder {
    fn failure(self) -> Failure {
        let text = format!("the link is not free after {} s: {self}; try again later", BY_HAND.as_secs());
        Failure { exit: Exit::Failure, who: "host", text }
    }
}

/// `None`: no file can be had there.
fn taken(path: &Path) -> Option<Result<LinkLock, Holder>> {
    let file = open(path).ok()?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut file) => {
            // Who holds it is told to those who wait; the lock itself does not need it.
            let _ = write_pid(&mut file);
            Some(Ok(LinkLock { _file: Some(file) }))
        }
        Err((mut file, Errno::EWOULDBLOCK)) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            Some(Err(Holder(text.trim().parse().ok())))
        }
        Err(_) => None,
    }
}

/// The kernel may forbid to create a file that is there already (`fs.protected_regular`).
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.open(path).or_else(|_| {
        let file = options.create(true).truncate(false).mode(0o666).open(path)?;
        // Other users lock it too, whatever this one's mask is.
        let _ = file.set_permissions(PermissionsExt::from_mode(0o666));
        Ok(file)
    })
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("narrows"));
    [Some(PathBuf::from("/run/narrows")), own].into_iter().flatten().collect()
}

/// Packages make `/run/narrows` for everybody; else the first who may makes it.
fn prepare(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().mode(0o1777).create(folder)?;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o1777))
}

/// Interfaces of two network namespaces may have one name.
fn namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/thread-self/ns/net").ok()?;
    Some(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect())
}

fn name(egress: &Egress, namespace: Option<&str>) -> String {
    let hop = egress.next_hop.map_or_else(|| "direct".to_owned(), |hop| hop.to_string());
    let space = namespace.map_or_else(String::new, |space| format!("-{space}"));
    // Names of interfaces have no slash.
    format!("link-{}-{hop}{space}.lock", egress.interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_one_holders_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link-eth0-10.0.0.1.lock");
        let first = taken(&path).unwrap().unwrap();
        let holder = taken(&path).unwrap().unwrap_err();
        assert_eq!(holder, Holder(Some(std::process::id())));
        assert!(holder.failure().text.contains(&std::process::id().to_string()));
        drop(first);
        assert!(taken(&path).unwrap().is_ok());
        assert!(taken(&folder.path().join("no/such/folder")).is_none());
    }

    #[test]
    fn loopback_needs_no_lock() {
        let one = LinkLock::now([127, 0, 0, 1].into()).unwrap();
        assert!(matches!(one, LinkLock { _file: None }));
        assert!(LinkLock::now([127, 0, 0, 1].into()).is_ok());
    }

    #[test]
    fn links_of_two_namespaces_differ() {
        let egress =
            Egress { interface: "eth0".to_owned(), source: [10, 0, 0, 2].into(), next_hop: Some([10, 0, 0, 1].into()) };
        assert_eq!(name(&egress, Some("4026531840")), "link-eth0-10.0.0.1-4026531840.lock");
        assert_eq!(name(&Egress { next_hop: None, ..egress }, None), "link-eth0-direct.lock");
    }
}
