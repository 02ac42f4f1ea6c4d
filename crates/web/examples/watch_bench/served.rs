//! The pages from a store, in a process of their own, so that its memory is theirs alone.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use narrows_store::Reader;
use narrows_watch::WallTime;
use narrows_web::{Live, Server, Settings};
use tokio::sync::oneshot;

use crate::fill::now;
use crate::{Failure, clock, percentiles};

/// The process that serves; it ends when this is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Served {
    pub(crate) fn start(file: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stdout.take().ok_or("it is piped")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(Self { address: line.trim().parse()?, child, said })
    }

    /// Tells all readers so many pulses as fast as it can; what a message took whoever told it.
    pub(crate) fn tell(&mut self, pulses: u32) -> Result<String, Failure> {
        writeln!(self.child.stdin.as_mut().ok_or("it is piped")?, "{pulses}")?;
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    pub(crate) fn memory(&self) -> Result<String, Failure> {
        self.status("VmRSS:")
    }

    pub(crate) fn most_memory(&self) -> Result<String, Failure> {
        self.status("VmHWM:")
    }

    fn status(&self, key: &str) -> Result<String, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
        let kibi: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(format!("{:.1} MB", kibi * 1024.0 / 1e6))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until nobody tells it anything more.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn serve(file: &Path) -> Result<(), Failure> {
    let (live, _posts) = Live::new();
    live.ready();
    let clock = || now().since(WallTime::default());
    let server = Server::bind(Settings { now: clock, ..Settings::local(SocketAddr::from(([127, 0, 0, 1], 0))) })?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.address())?;
    let (stop, stopped) = oneshot::channel::<()>();
    let news = live.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let mut times = tell(&news, line.parse().unwrap_or(0));
            times.sort_unstable();
            let longest = times.last().copied().unwrap_or_default();
            let said = writeln!(out, "{}, longest {:.1} ms", percentiles(&mut times), longest.as_secs_f64() * 1e3);
            if said.is_err() {
                break;
            }
        }
        drop(stop);
    });
    server.run(Arc::new(Reader::open(file)?), live, async { drop(stopped.await) }).await?;
    Ok(())
}

/// As many targets as a settings file may have names, so that the messages are long.
fn tell(live: &Live, pulses: u32) -> Vec<Duration> {
    let name = "t".repeat(1000);
    let one = |_| {
        let began = clock();
        live.pulse(&name, now(), Some(Duration::from_millis(18)));
        began.elapsed()
    };
    (0..pulses).map(one).collect()
}
