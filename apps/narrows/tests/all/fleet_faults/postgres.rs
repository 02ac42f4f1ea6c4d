//! A server of PostgreSQL that only these tests use.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::unistd::{Gid, Uid, User, chown};

use super::bridge::Place;
use crate::common::{directory, text};

/// The programs that Debian has beside the path.
const DEBIAN: &str = "/usr/lib/postgresql/15/bin";

/// A server in a folder of its own, reached by a socket in it.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    owner: Option<(Uid, Gid)>,
    server: Option<Child>,
    place: Place,
}

impl Cluster {
    /// On a host of its own it listens to the others.
    pub(crate) fn new(place: Place) -> Self {
        let folder = directory();
        // PostgreSQL refuses to run as root.
        let nobody = User::from_name("nobody").expect("users can be read").map(|user| (user.uid, user.gid));
        let owner = nobody.filter(|_| Uid::effective().is_root());
        if let Some((user, group)) = owner {
            chown(folder.path(), Some(user), Some(group)).expect("it is ours");
        }
        let made = program("initdb", owner)
            .args(["--auth=trust", "--username=narrows", "--no-sync", "--locale=C", "--encoding=UTF8", "-D"])
            .arg(folder.path().join("data"))
            .output()
            .expect("there is initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        if place.namespace.is_some() {
            let rules = folder.path().join("data/pg_hba.conf");
            std::fs::write(rules, "local all all trust\nhost all all 10.98.0.0/24 trust\n").expect("it is ours");
        }
        let mut cluster = Self { folder, owner, server: None, place };
        cluster.start();
        assert_eq!(cluster.sql("postgres", "create database fleet"), "");
        cluster
    }

    /// The address of the record.
    pub(crate) fn url(&self) -> String {
        match self.place.namespace {
            Some(_) => format!("postgres://narrows@{}/fleet?sslmode=disable", self.place.address),
            None => self.database("fleet"),
        }
    }

    /// Where its files lie.
    pub(crate) fn files(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn database(&self, name: &str) -> String {
        format!("postgres://narrows@{}/{name}", text(self.folder.path()).replace('/', "%2F"))
    }

    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = program("psql", None);
        psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement]).arg(self.database(database));
        let done = psql.output().expect("there is psql");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Ends its first process in the midst of all; the others notice and end too.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().expect("it is our child");
            server.wait().expect("it is our child");
        }
    }

    /// Starts it on the same files, and waits until it answers. What the one before left behind
    /// refuses it as long as one of its processes lives.
    pub(crate) fn start(&mut self) {
        let ready = || {
            let asked = program("pg_isready", None).arg("-q").arg("-h").arg(self.folder.path()).status();
            asked.is_ok_and(|status| status.success())
        };
        let mut server = server(self.folder.path(), self.owner, &self.place);
        super::fleet::within("PostgreSQL", std::time::Duration::from_secs(60), || {
            if server.try_wait().is_ok_and(|ended| ended.is_some()) {
                server = self::server(self.folder.path(), self.owner, &self.place);
            }
            ready()
        });
        self.server = Some(server);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

fn server(folder: &Path, owner: Option<(Uid, Gid)>, place: &Place) -> Child {
    let listens = place.namespace.as_ref().map(|_| place.address.as_str()).unwrap_or_default();
    let mut server = match (&place.namespace, owner) {
        // Whoever enters a namespace is root.
        (Some(_), Some((user, group))) => {
            let mut command = Command::new("setpriv");
            let ids = [format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()];
            command.args(ids).arg(program("postgres", None).get_program());
            place.run(&command)
        }
        _ => program("postgres", owner),
    };
    server.current_dir("/").stdin(Stdio::null());
    // Processes are killed here, not machines: nothing waits for the disk.
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    let listens = format!("listen_addresses={listens}");
    for setting in ["fsync=off", &listens, "shared_buffers=32MB", "logging_collector=off", "max_wal_size=64MB"] {
        server.args(["-c", setting]);
    }
    server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("PostgreSQL starts")
}

fn program(name: &str, owner: Option<(Uid, Gid)>) -> Command {
    let debian = PathBuf::from(DEBIAN).join(name);
    let mut command = if debian.exists() { Command::new(debian) } else { Command::new(name) };
    if let Some((user, group)) = owner {
        command.uid(user.as_raw()).gid(group.as_raw());
    }
    // Not readable by others: the folder in which the test was started.
    command.current_dir("/").stdin(Stdio::null());
    command
}
