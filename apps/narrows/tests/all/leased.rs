//! Children of an agent end by themselves: with their lease, and with their agent.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};

use nix::time::{ClockId, clock_gettime};

use crate::common::{ProgramResult, Server, narrows};

/// The program as an agent starts it, with its standard input in our hands.
fn child(arguments: &[&str], until: &str) -> Command {
    let mut command = narrows(arguments);
    command.env("NARROWS_SEND_UNTIL", until).stdin(Stdio::piped());
    command
}

/// Ends when `act` has done what it does with the child's standard input.
fn ended(mut command: Command, act: impl FnOnce(ChildStdin) -> Option<ChildStdin>) -> ProgramResult {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let kept = act(child.stdin.take().expect("piped"));
    let output = child.wait_with_output().expect("it is our child");
    drop(kept);
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    ProgramResult {
        status: output.status,
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        took: std::time::Duration::ZERO,
    }
}

fn in_ms(milliseconds: i64) -> String {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("every kernel has it");
    format!("{}\n", now.tv_sec() * 1_000_000_000 + now.tv_nsec() + milliseconds * 1_000_000)
}

#[test]
fn a_load_ends_with_its_lease() {
    let server = Server::start(&[]);
    let port = server.port();
    let load = ["throughput", "127.0.0.1", "-p", &port, "-t", "50", "--no-quick", "--json"];
    // The pipe stays open, as that of an agent which was stopped: time alone ends it.
    let stopped = ended(child(&load, "stdin"), |mut stdin| {
        stdin.write_all(in_ms(400).as_bytes()).expect("it reads");
        Some(stdin)
    });
    stopped.refused(1, &["its lease ended"]);
    // A renewal that says another time counts, also an earlier one.
    let shortened = ended(child(&load, "stdin"), |mut stdin| {
        stdin.write_all((in_ms(600_000) + &in_ms(0)).as_bytes()).expect("it reads");
        Some(stdin)
    });
    shortened.refused(1, &["its lease ended"]);
}

#[test]
fn nothing_is_sent_before_a_lease_or_after_the_agent() {
    let measured = ["rtt", "127.0.0.1", "-p", "1", "--json"];
    ended(child(&measured, "stdin"), |_| None).refused(1, &["it was never leased"]);
    let killed = |mut stdin: ChildStdin| {
        stdin.write_all(in_ms(600_000).as_bytes()).expect("it reads");
        None
    };
    let serve = ["serve", "-p", "0", "-B", "127.0.0.1"];
    ended(child(&serve, "stdin"), killed).refused(1, &["its agent is gone"]);
    ended(child(&serve, "closed"), |_| None).refused(1, &["its agent is gone"]);
    ended(child(&serve, "yes"), |_| None).refused(2, &["NARROWS_SEND_UNTIL"]);
}
