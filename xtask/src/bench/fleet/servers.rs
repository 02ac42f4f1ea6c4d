//! NATS and PostgreSQL in a folder, for as long as this lives.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::{Uid, User, chown};

use crate::bench::program::{POLL, Program, command, found, nap, output};
use crate::shell::now;

/// The programs that Debian has beside the path.
const POSTGRES: &str = "/usr/lib/postgresql/15/bin";
const READY: Duration = Duration::from_secs(60);

pub(super) struct Servers {
    // Ended in this order.
    nats: Program,
    postgres: Program,
    port: u16,
    folder: PathBuf,
}

impl Servers {
    /// What is missing is named.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        ensure!(found("nats-server"), "nats-server is not installed");
        ensure!(postgres("initdb").is_some(), "PostgreSQL is not installed");
        let port = free_port()?;
        let mut nats = command("nats-server");
        nats.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(folder.join("nats"));
        let mut nats = Program::start(nats)?;
        until(&mut nats, "nats-server does not listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        let postgres = database(folder)?;
        Ok(Self { nats, postgres, port, folder: folder.to_owned() })
    }

    pub(super) fn bus(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(super) fn store(&self) -> String {
        format!("postgres://narrows@{}/postgres", self.folder.join("sql").to_string_lossy().replace('/', "%2F"))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Its children end with it when it is asked to end, and not when it is killed.
        self.postgres.interrupt();
        self.nats.interrupt();
        let clock = now();
        while self.postgres.running() && clock.elapsed() < READY {
            nap(POLL);
        }
    }
}

fn postgres(name: &str) -> Option<Command> {
    let debian = Path::new(POSTGRES).join(name);
    if debian.exists() {
        return Some(command(&debian.to_string_lossy()));
    }
    found(name).then(|| command(name))
}

/// A server with the durability that it has by itself, as an operator's has.
fn database(folder: &Path) -> Result<Program> {
    let folder = folder.join("sql");
    std::fs::create_dir_all(&folder)?;
    // PostgreSQL refuses to run as root.
    let nobody = User::from_name("nobody")?.filter(|_| Uid::effective().is_root());
    if let Some(nobody) = &nobody {
        chown(&folder, Some(nobody.uid), Some(nobody.gid))?;
    }
    let program = |name| -> Result<Command> {
        let mut program = postgres(name).with_context(|| format!("{name} is not installed"))?;
        // Not readable by others: the folder in which this was started.
        program.current_dir("/");
        if let Some(nobody) = &nobody {
            program.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        }
        Ok(program)
    };
    let data = folder.join("data");
    let mut made = program("initdb")?;
    made.args(["--auth=trust", "--username=narrows", "--no-sync", "--locale=C", "--encoding=UTF8", "-D"]).arg(&data);
    output(made, READY)?;
    let mut server = program("postgres")?;
    server.arg("-D").arg(&data).arg("-k").arg(&folder).args(["-c", "listen_addresses="]);
    let mut server = Program::start(server)?;
    let ready = || {
        let asked = program("psql").map(|mut ask| {
            ask.args(["-qAtX", "-U", "narrows", "-c", "select 1", "-h"]).arg(&folder).arg("postgres");
            output(ask, READY).is_ok()
        });
        asked.unwrap_or(false)
    };
    until(&mut server, "PostgreSQL is not ready", ready)?;
    Ok(server)
}

/// Waits for a program, which may end instead.
pub(super) fn until(program: &mut Program, complaint: &str, ready: impl Fn() -> bool) -> Result<()> {
    let clock = now();
    while !ready() {
        if !program.running() || clock.elapsed() > READY {
            bail!("{complaint}");
        }
        nap(POLL);
    }
    Ok(())
}

/// One that nobody listens on now.
pub(super) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
