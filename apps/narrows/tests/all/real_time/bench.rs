//! What all tests share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_lab::{RealTimePath, Side, StartOptions};
use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_net::serve::{Running, ServeOptions, host_facts};
use narrows_probe::HostFacts;
use narrows_scenario::Scenario;

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

/// Says that a test says nothing; `cargo xtask` counts such lines as skipped. The line begins
/// afresh because the test's name may stand on the one before.
pub(crate) fn not_judged(name: &str, why: &str) {
    println!("\nNOT JUDGED: {name}: {why}");
}
