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
