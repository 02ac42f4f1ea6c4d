//! One measurement that loads a link at a time, over all programs of this host: a lock per link.
//!
//! A link is the interface that packets leave by and the router that takes them, or what settings
//! give a name. Loopback is none, unless it has a name.

use std::collections::BTreeSet;
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

/// The link is ours until this is dropped; nothing inside where there is no link, or no place for a
/// lock.
#[derive(Debug)]
pub(crate) struct LinkLock {
    _files: Vec<Flock<File>>,
}

/// Somebody else loads the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder(Option<u32>);

/// How long a command that was run by hand waits.
const BY_HAND: Duration = Duration::from_secs(10);
/// From one look at a lock to the next.
const EVERY: Duration = Duration::from_millis(100);

impl LinkLock {
    /// Takes the links towards all of `peers` and the one of that name, if nobody has any of them
    /// now. An empty name is none.
    pub(crate) fn now(peers: &[IpAddr], link: &str) -> Result<Self, Holder> {
        let space = namespace();
        let egress = peers.iter().filter_map(|peer| Egress::towards(*peer)).filter(Egress::is_a_link);
        let mut names: BTreeSet<String> = egress.map(|egress| name(&egress, space.as_deref())).collect();
        if !link.is_empty() {
            names.insert(named(link));
        }
        // All processes take them in one order, so that one of those that want the same gets all.
        let files = names.iter().filter_map(|name| {
            let taken = |folder: PathBuf| prepare(&folder).ok().and_then(|()| taken(&folder.join(name)));
            // A host without a place for locks measures all the same.
            folders().into_iter().find_map(taken)
        });
        files.collect::<Result<Vec<_>, _>>().map(|files| Self { _files: files })
    }

    /// The same for a command that was run by hand: it waits, and says for whom. A name that does
    /// not resolve is the command's to complain of.
    pub(crate) fn by_hand(host: &str, progress: &Progress) -> Result<Self, Failure> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let address = (bare, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
        let Some(peer) = address.map(|address| address.ip()) else { return Ok(Self { _files: Vec::new() }) };
        let stop = interrupt::flag()?;
        let deadline_ns = clock::now_ns() + clock::nanos(BY_HAND);
        loop {
            let holder = match Self::now(&[peer], "") {
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
fn taken(path: &Path) -> Option<Result<Flock<File>, Holder>> {
    let file = open(path).ok()?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut file) => {
            // Who holds it is told to those who wait; the lock itself does not need it.
            let _ = write_pid(&mut file);
            Some(Ok(file))
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

/// A name of the settings means the same link in all namespaces.
fn named(link: &str) -> String {
    let octet = |octet: u8| match octet {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' => char::from(octet).to_string(),
        other => format!("%{other:02X}"),
    };
    format!("link-named-{}.lock", link.bytes().map(octet).collect::<String>())
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
    fn loopback_needs_no_lock_unless_it_has_a_name() {
        let peer = [127, 0, 0, 1].into();
        let LinkLock { _files: files } = LinkLock::now(&[peer], "").unwrap();
        assert!(files.is_empty());
        assert!(LinkLock::now(&[peer], "").is_ok());
        let link = format!("test {}", std::process::id());
        let first = LinkLock::now(&[peer], &link).unwrap();
        assert_eq!(LinkLock::now(&[], &link).unwrap_err(), Holder(Some(std::process::id())));
        drop(first);
        assert!(LinkLock::now(&[], &link).is_ok());
        assert_eq!(named("a/b c"), "link-named-a%2Fb%20c.lock");
    }

    #[test]
    fn links_of_two_namespaces_differ() {
        let egress =
            Egress { interface: "eth0".to_owned(), source: [10, 0, 0, 2].into(), next_hop: Some([10, 0, 0, 1].into()) };
        assert_eq!(name(&egress, Some("4026531840")), "link-eth0-10.0.0.1-4026531840.lock");
        assert_eq!(name(&Egress { next_hop: None, ..egress }, None), "link-eth0-direct.lock");
    }
}
