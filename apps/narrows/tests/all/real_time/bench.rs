//! What all tests share.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use narrows_lab::{Lab, RealTimePath, Side, StartOptions};
use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_net::serve::{Running, ServeOptions, host_facts};
use narrows_probe::HostFacts;
use narrows_scenario::Scenario;

use crate::common::Running as Program;

/// Each lab spins on a processor of its own; tests that measure do so one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn start(scenario: &Scenario) -> RealTimePath {
    RealTimePath::start(scenario, StartOptions::default()).unwrap()
}

/// A server in the receiver, at a port of the system's choice.
pub(crate) fn serving(path: &RealTimePath) -> Running {
    let remote = path.host(Side::Receiver).addresses().ipv4;
    let serve = || {
        let mut options = ServeOptions::new(host_facts(&HostFacts::ideal()));
        options.listen = vec![remote.into()];
        options.port = 0;
        Running::start(options).unwrap()
    };
    path.host(Side::Receiver).run(serve).unwrap()
}

/// Runs `measure` in the sender, where data connections must be made too, with a client that is
/// connected to a server in the receiver.
pub(crate) fn connected<R: Send>(path: &RealTimePath, measure: impl FnOnce(&mut SocketWorld) -> R + Send) -> R {
    let remote = path.host(Side::Receiver).addresses().ipv4;
    let server = serving(path);
    let options = ConnectOptions { port: server.addresses().first().unwrap().port(), ..ConnectOptions::default() };
    let inside = || measure(&mut SocketWorld::connect(&remote.to_string(), options).unwrap());
    path.host(Side::Sender).run(inside).unwrap()
}

/// The program's server, not yet in any namespace.
pub(crate) fn server(address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["serve", "-p", "0", "-B", address]);
    command
}

/// The port that a server has said.
pub(crate) fn port_of(server: &mut Program) -> u16 {
    let line = server.wait_for("listening on");
    let address = line.split("listening on ").nth(1).and_then(|rest| rest.split(',').next());
    let port = address.and_then(|address| address.trim().rsplit(':').next()?.parse().ok());
    port.unwrap_or_else(|| panic!("no port in {line:?}"))
}

/// The program's server in a lab's receiver, its address and port.
pub(crate) fn serving_program(lab: &Lab) -> (Program, String, u16) {
    let remote = lab.receiver().addresses().unwrap().ipv4.to_string();
    let mut command = server(&remote);
    let mut server = lab.receiver().run(move || Program::start(&mut command)).unwrap();
    let port = port_of(&mut server);
    (server, remote, port)
}

/// No further measurement of a case begins so long after the first: what takes minutes is measured
/// once.
const LATEST: Duration = Duration::from_secs(60);

/// Measures until the timing was valid, at most five times, and says whether it ever was. What was
/// found is not looked at: that an estimator is inconclusive is a result.
#[expect(clippy::disallowed_methods, reason = "measurements take real time")]
pub(crate) fn in_time<T>(case: &str, mut measure: impl FnMut() -> (T, Result<(), String>)) -> Option<T> {
    let (began, mut last) = (Instant::now(), String::new());
    for attempt in 1..=5 {
        if began.elapsed() > LATEST {
            break;
        }
        let (found, timing) = measure();
        match timing {
            Ok(()) => {
                judged(case);
                return Some(found);
            }
            Err(why) => last = why,
        }
        println!("{case}, measurement {attempt}: {last}");
    }
    not_judged(case, &last);
    None
}

#[test]
fn what_is_found_is_no_reason_to_measure_again() {
    let mut runs = 0;
    let mut said = |found: Option<u64>, timing: &str| {
        in_time("a test of the tests", || {
            runs += 1;
            (found, if timing.is_empty() { Ok(()) } else { Err(timing.to_owned()) })
        })
    };
    assert_eq!(said(None, ""), Some(None));
    assert_eq!(said(Some(1), "late"), None);
    assert_eq!(runs, 1 + 5);
}

/// Says that a case was judged, of a test that has several.
pub(crate) fn judged(case: &str) {
    println!("\nJUDGED: {case}");
}

/// Says that a case says nothing; `cargo xtask` counts such lines as skipped. The line begins
/// afresh because the test's own name may stand on the one before.
pub(crate) fn not_judged(case: &str, why: &str) {
    println!("\nNOT JUDGED: {case}: {}", why.replace('\n', "; "));
}
