//! A server under a service manager.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use common::{Running, TIMEOUT, client, narrows};
use nix::sys::signal::Signal;

#[test]
fn the_manager_is_told_and_its_key_is_asked_for() {
    let folder = common::directory();
    let notices = folder.path().join("notify");
    let socket = UnixDatagram::bind(&notices).expect("a free path");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a deadline");
    let notice = || {
        let mut octets = [0; 256];
        let length = socket.recv(&mut octets).expect("the manager is notified");
        String::from_utf8_lossy(&octets[..length]).into_owned()
    };
    let key = common::file(&folder, "psk", "correct horse battery staple\n");
    // As the manager hands it over: an access list shows in the group's bits.
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o440)).expect("it is ours");
    let mut server = narrows(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    server.env("NOTIFY_SOCKET", &notices).env("CREDENTIALS_DIRECTORY", folder.path());
    let mut server = Running::start(&mut server);
    let said = server.wait_for("listening on 127.0.0.1:");
    assert_eq!(notice().trim(), "READY=1");

    let port = said.rsplit_once("127.0.0.1:").expect("it is there").1;
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let without = Running::start(&mut client("rtt", port.parse().expect("a port"), &[])).end();
    assert_eq!(without.status.code(), Some(4), "a client without the key is refused: {without:?}");

    server.signal(Signal::SIGTERM);
    assert_eq!(notice().trim(), "STOPPING=1");
    assert_eq!(server.end().status.code(), Some(0));
}

/// Status, watchdog, and settings that are read again, right or wrong.
#[test]
fn a_watching_service_reloads_and_says_how_it_is() {
    let folder = common::directory();
    let notices = folder.path().join("notify");
    let socket = UnixDatagram::bind(&notices).expect("a free path");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a deadline");
    let wait_for = |wanted: &str| {
        let mut octets = [0; 256];
        loop {
            let length = socket.recv(&mut octets).expect("the manager is notified");
            if String::from_utf8_lossy(&octets[..length]).contains(wanted) {
                return;
            }
        }
    };
    // Nobody answers there, and the names never resolve.
    let target = |name: &str| format!("[[target]]\nhost = \"no..such..host\"\nname = \"{name}\"\n");
    let settings = common::file(&folder, "watch.toml", &target("one"));
    let store = folder.path().join("watch.db");
    let mut program = narrows(["watch", "--config", common::text(&settings), "--store", common::text(&store)]);
    program.args(["--listen", "none"]);
    program.env("NOTIFY_SOCKET", &notices).env("WATCHDOG_USEC", "3000000");
    let mut watch = Running::start(&mut program);
    wait_for("READY=1");
    wait_for("STATUS=targets: 1, 1 without an address");
    wait_for("WATCHDOG=1");
    for (content, said) in [
        (target("one") + "[budget]\nshares = \"1 %\"\n", "settings are as before: "),
        (target("one") + &target("two"), "settings read; targets: 2, of which 1 new; 0 gone"),
        (target("two"), "settings read; targets: 1, of which 0 new; 1 gone"),
    ] {
        std::fs::write(&settings, content).expect("it is ours");
        watch.signal(Signal::SIGHUP);
        watch.wait_for(said);
        wait_for("RELOADING=1\nMONOTONIC_USEC=");
        wait_for("READY=1");
    }
    watch.signal(Signal::SIGTERM);
    wait_for("STOPPING=1");
    assert_eq!(watch.end().status.code(), Some(11), "nothing was measured");
}
