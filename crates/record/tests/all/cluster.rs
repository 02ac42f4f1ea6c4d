//! A server of PostgreSQL that only the tests use.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use narrows_record::postgres::Record;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User, chown};
use tempfile::TempDir;

/// The programs that Debian has beside the path.
const DEBIAN: &str = "/usr/lib/postgresql/15/bin";

/// The tables, made once and copied for each test.
const TEMPLATE: &str = "made";

/// A server in a folder of its own, reached by a socket in it.
pub(crate) struct Cluster {
    folder: TempDir,
    owner: Option<(Uid, Gid)>,
    server: Child,
    made: AtomicUsize,
}

impl Cluster {
    /// A server with the tables in one database.
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // PostgreSQL refuses to run as root.
        let nobody = User::from_name("nobody").unwrap().map(|user| (user.uid, user.gid));
        let owner = nobody.filter(|_| Uid::effective().is_root());
        if let Some((user, group)) = owner {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let made = program("initdb", owner)
            .args(["--auth=trust", "--username=narrows", "--no-sync", "--locale=C", "--encoding=UTF8", "-D"])
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let server = start(folder.path(), owner);
        let cluster = Self { folder, owner, server, made: AtomicUsize::new(0) };
        cluster.sql("postgres", &format!("create database {TEMPLATE}"));
        drop(Record::open(&cluster.url(TEMPLATE)).await.unwrap());
        // Only a database that nobody uses is copied; connections end after the call.
        let used = format!("select count(*) from pg_stat_activity where datname = '{TEMPLATE}'");
        while cluster.sql("postgres", &used) != "0" {
            tokio::task::yield_now().await;
        }
        cluster
    }

    /// The address of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        let socket = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://narrows@{socket}/{database}")
    }

    /// Another database; with the tables of a record in it, or empty.
    pub(crate) fn database(&self, has_tables: bool) -> String {
        let name = format!("d{}", self.made.fetch_add(1, Ordering::Relaxed));
        let from = if has_tables { TEMPLATE } else { "template1" };
        self.sql("postgres", &format!("create database {name} template {from}"));
        name
    }

    /// What no record does.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = program("psql", None);
        psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement]).arg(self.url(database));
        let done = psql.output().unwrap();
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Ends the server in the midst of all.
    pub(crate) fn stop(&mut self) {
        let id = i32::try_from(self.server.id()).unwrap();
        // Its children end too, which they would not do at once after `kill -9` of this process.
        // Nothing is written that was not written before.
        kill(Pid::from_raw(id), Signal::SIGQUIT).unwrap();
        self.server.wait().unwrap();
    }

    /// The next one, on the same files.
    pub(crate) fn start(&mut self) {
        self.server = start(self.folder.path(), self.owner);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have been stopped.
        if self.server.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop();
        }
    }
}

fn program(name: &str, owner: Option<(Uid, Gid)>) -> Command {
    let debian = PathBuf::from(DEBIAN).join(name);
    let mut command = if debian.exists() { Command::new(debian) } else { Command::new(name) };
    if let Some((user, group)) = owner {
        command.uid(user.as_raw()).gid(group.as_raw());
    }
    // Not readable by others: the folder in which the test was started.
    command.current_dir("/");
    command
}

/// Starts the server, and returns when it has said that it is ready.
fn start(folder: &Path, owner: Option<(Uid, Gid)>) -> Child {
    let mut server = program("postgres", owner);
    // Processes are killed here, not machines: nothing waits for the disk.
    let settings =
        ["fsync=off", "listen_addresses=", "shared_buffers=32MB", "max_connections=200", "logging_collector=off"];
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    for setting in settings {
        server.args(["-c", setting]);
    }
    let mut child = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while !said.contains("ready to accept connections") {
        let line = log.next().unwrap_or_else(|| panic!("not ready: {said}")).unwrap();
        said.push_str(&line);
        said.push('\n');
    }
    // The pipe is read to its end, so that the server never waits for us.
    std::thread::spawn(move || log.for_each(drop));
    child
}
