//! The static archive.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::place::Place;
use super::{Made, Outcome, lacking, not_root};
use crate::shell::output;

/// Unpacked, it runs alone. Beside the two files that tell names, and the devices that give a
/// static program its random numbers, it also serves, and finds `localhost`.
pub(super) fn alone(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["tar", "xz", "chroot"]).or_else(not_root) {
        return Ok(skipped);
    }
    let place = unpacked(made, "archive-root")?;
    let program = format!("/{}/narrows", made.release.archive_folder());
    let version = place.run(&[&program, "--version"])?;
    ensure!(version.trim() == format!("narrows {}", made.release.version), "it calls itself {version}");
    place.demo(&program)?;
    std::fs::create_dir(place.path().join("dev"))?;
    for (name, minor) in [("random", "8"), ("urandom", "9")] {
        let device = place.path().join("dev").join(name);
        output("mknod", &["--mode=666", &device.to_string_lossy(), "c", "1", minor])?;
    }
    std::fs::create_dir(place.path().join("etc"))?;
    std::fs::write(place.path().join("etc/hosts"), "127.0.0.1 localhost\n")?;
    std::fs::write(place.path().join("etc/resolv.conf"), "")?;
    let manager = UnixDatagram::bind(place.path().join("notify")).context("no socket for its notices")?;
    manager.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut server = place.command(&[&program, "serve", "--bind", "127.0.0.1", "--port", "0"]);
    server.env("NOTIFY_SOCKET", "/notify");
    let mut server = Server::start(server)?;
    let port = server.port()?;
    place.run(&[&program, "rtt", "localhost", "--port", &port])?;
    let mut notice = [0; 64];
    let length = manager.recv(&mut notice).context("the service manager hears nothing")?;
    ensure!(notice[..length].starts_with(b"READY=1"), "the service manager hears something else");
    Ok(Outcome::Passed)
}

/// Read, not run: that needs a terminal.
pub(super) fn completions(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["tar", "xz", "zsh", "fish"]) {
        return Ok(skipped);
    }
    let place = unpacked(made, "completions")?;
    let folder = place.path().join(made.release.archive_folder()).join("completions");
    output("zsh", &["-n", &folder.join("_narrows").to_string_lossy()])?;
    output("fish", &["--no-execute", &folder.join("narrows.fish").to_string_lossy()])?;
    output("bash", &["-n", &folder.join("narrows.bash").to_string_lossy()])?;
    Ok(Outcome::Passed)
}

fn unpacked(made: &Made, name: &str) -> Result<Place> {
    let place = Place::new(name)?;
    let archive = made.folder.join(made.release.archive());
    output("tar", &["-xJf", &archive.to_string_lossy(), "-C", &place.path().to_string_lossy()])?;
    Ok(place)
}

/// A server that ends with this value.
struct Server(Child);

impl Server {
    fn start(mut command: std::process::Command) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        Ok(Self(child.context("cannot start the server")?))
    }

    /// The port that its first line names.
    fn port(&mut self) -> Result<String> {
        let mut line = String::new();
        let said = self.0.stderr.take().context("its complaints are piped")?;
        BufReader::new(said).read_line(&mut line)?;
        let (_, port) = line.split_once("127.0.0.1:").with_context(|| format!("the server says: {line}"))?;
        Ok(port.chars().take_while(char::is_ascii_digit).collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
