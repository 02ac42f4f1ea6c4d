//! One process at a time loads a link: `narrows watch`, another one, and commands that are run by
//! hand.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Running, Server, directory, file, narrows, text, until};
use crate::from_here_lab::{FAR, Hosts};
use nix::sys::signal::Signal;

/// Whether some process has locked a file, as the kernel lists it.
fn is_locked(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let locks = std::fs::read_to_string("/proc/locks").expect("the kernel lists its locks");
    let ends = format!(":{}", found.ino());
    locks.lines().any(|line| line.split_whitespace().nth(5).is_some_and(|file| file.ends_with(&ends)))
}

/// Where locks of links are, the first that can be had.
fn folder(own: &Path) -> PathBuf {
    let all = Path::new("/run/narrows");
    let is_ours = all.is_dir() || std::fs::create_dir(all).and_then(|()| std::fs::remove_dir(all)).is_ok();
    if is_ours { all.to_owned() } else { own.join("narrows") }
}

/// Lets a process stand still while it loads a link, whose lock it keeps.
fn stop_while_it_loads(running: &Running, lock: &Path) {
    // It says who it is once it has the lock.
    let says = || std::fs::read_to_string(lock).is_ok_and(|text| text.trim() == running.id().to_string());
    until("it loads the link", || {
        if !says() || !is_locked(lock) {
            return false;
        }
        running.signal(Signal::SIGSTOP);
        // A process that is being stopped may get as far as to give the lock back.
        let is_stopped = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:") && line.contains("(stopped)"))
        };
        until("it stands still", is_stopped);
        let holds = says() && is_locked(lock);
        if !holds {
            running.signal(Signal::SIGCONT);
        }
        holds
    });
}

fn settings(home: &tempfile::TempDir, host: &str, port: u16, link: &str) -> Vec<String> {
    let target = format!("[[target]]\nhost = \"{host}\"\nport = {port}\nlink = \"{link}\"\n");
    let (settings, store) = (file(home, "watch.toml", &target), home.path().join("watch.db"));
    let words = ["-v", "watch", "--config", text(&settings), "--store", text(&store), "--listen", "none", "--json"];
    words.map(str::to_owned).to_vec()
}

#[test]
fn a_link_with_a_name_is_loaded_by_one_watch_at_a_time() {
    let server = Server::start(&[]);
    let [runtime, one, other] = [(); 3].map(|()| directory());
    // Loopback is no link by itself.
    let name = format!("test_{}", std::process::id());
    let start = |home: &tempfile::TempDir| {
        let mut program = narrows(settings(home, "127.0.0.1", server.address.port(), &name));
        Running::start(program.env("XDG_RUNTIME_DIR", runtime.path()))
    };
    let first = start(&one);
    let lock = folder(runtime.path()).join(format!("link-named-{name}.lock"));
    stop_while_it_loads(&first, &lock);
    let mut second = start(&other);
    let said = second.wait_for("measures over it");
    assert!(said.contains(&format!("process {} measures", first.id())), "{said}");
    // What holds it is gone, and its lock with it.
    first.signal(Signal::SIGKILL);
    until("the other one loads the link", || is_locked(&lock));
    second.signal(Signal::SIGKILL);
    drop((first, second));
    let _ = std::fs::remove_file(lock);
}

/// Settings give the link a name, of which a command that is run by hand knows nothing.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_command_by_hand_waits_for_a_watch_and_says_for_whom() {
    let hosts = Hosts::new('l');
    let [runtime, home] = [(); 2].map(|()| directory());
    let mut server = hosts.start("f", &["serve"]);
    server.wait_for("listening on");
    let words = settings(&home, FAR, 8620, "dsl");
    let watch = hosts.start("n", &words.iter().map(String::as_str).collect::<Vec<_>>());
    // As the program names it: the interface, the next hop, and the number of the namespace.
    let space = Command::new("ip").args(["netns", "exec", &hosts.name("n"), "readlink", "/proc/self/ns/net"]).output();
    let space = String::from_utf8(space.expect("iproute2 is installed").stdout).expect("text");
    let space: String = space.chars().filter(char::is_ascii_digit).collect();
    let lock = folder(runtime.path()).join(format!("link-v1a-10.9.1.2-{space}.lock"));
    stop_while_it_loads(&watch, &lock);
    let by_hand = hosts.run(&["capacity", FAR, "--quiet"]);
    by_hand.refused(1, &["the link is not free after 10 s", &format!("process {} measures", watch.id())]);
    // The other way round.
    watch.signal(Signal::SIGKILL);
    drop(watch);
    let by_hand = hosts.start("n", &["available", FAR, "--watch", "--duration", "200 s", "--quiet"]);
    let says = |text: String| text.trim() == by_hand.id().to_string();
    until("it loads the link", || is_locked(&lock) && std::fs::read_to_string(&lock).is_ok_and(says));
    let mut watch = hosts.start("n", &words.iter().map(String::as_str).collect::<Vec<_>>());
    let said = watch.wait_for("measures over it");
    assert!(said.contains(&format!("process {} measures", by_hand.id())), "{said}");
    by_hand.signal(Signal::SIGINT);
    let ended: common::ProgramResult = by_hand.end();
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
}
