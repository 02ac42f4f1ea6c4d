//! Who is refused, and what bounds what a stranger can cost.

use std::fs::Permissions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use narrows_web::{ServeError, Server, Settings};

use crate::site::{Site, local, read};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// `htpasswd -nbBC 4 anna secret`, which is as fast as bcrypt gets.
const COST: u32 = 4;

fn with_token(folder: &Path) -> Settings {
    let file = folder.join("token");
    secret(&file, &format!("{TOKEN}\n"));
    Settings { token_file: Some(file), ..local() }
}

/// Writes a file for its owner alone.
fn secret(file: &Path, text: &str) {
    std::fs::write(file, text).expect("a file");
    allow(file, 0o600);
}

fn allow(file: &Path, mode: u32) {
    std::fs::set_permissions(file, Permissions::from_mode(mode)).expect("it is ours");
}

fn web_config(folder: &Path, text: &str) -> Settings {
    let file = folder.join("web.yml");
    std::fs::write(&file, text).expect("a file");
    Settings { web_config: Some(file), ..local() }
}

fn user() -> String {
    format!("basic_auth_users:\n  anna: {}\n", bcrypt::hash("secret", COST).expect("a hash"))
}

/// Files of a certificate for `localhost`, and their lines of the web config file.
fn tls(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("a file");
    secret(&folder.join("key.pem"), &made.signing_key.serialize_pem());
    "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n".to_owned()
}

#[test]
fn from_other_machines_it_needs_tls_and_somebody_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let exposed = |settings: Settings| {
        let bound = Server::bind(Settings { listen: everywhere, ..settings });
        matches!(bound, Err(ServeError::Exposed(_)))
    };
    assert!(exposed(local()));
    assert!(exposed(with_token(folder.path())));
    assert!(exposed(web_config(folder.path(), &user())));
    assert!(exposed(web_config(folder.path(), &tls(folder.path()))));
    assert!(!exposed(web_config(folder.path(), &(tls(folder.path()) + &user()))));
    let token = with_token(folder.path()).token_file;
    assert!(!exposed(Settings { token_file: token, ..web_config(folder.path(), &tls(folder.path())) }));
}

#[test]
fn secrets_that_others_can_read_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = with_token(folder.path());
    let file = token.token_file.clone().expect("it has one");
    for mode in [0o644, 0o640, 0o604, 0o602] {
        allow(&file, mode);
        let error = Server::bind(token.clone()).expect_err("it is open").to_string();
        assert!(error.contains("token") && error.contains(&format!("open to others (mode {mode:04o})")), "{error}");
    }
    // The service manager keeps others away from what it hands over.
    let credentials = Some(folder.path().to_owned());
    assert!(Server::bind(Settings { credentials, ..token.clone() }).is_ok());
    allow(&file, 0o400);
    assert!(Server::bind(token).is_ok());

    let config = web_config(folder.path(), &tls(folder.path()));
    let key = folder.path().join("key.pem");
    for mode in [0o644, 0o604, 0o660] {
        allow(&key, mode);
        let error = Server::bind(config.clone()).expect_err("it is open").to_string();
        assert!(error.contains("key.pem") && error.contains("open to others"), "{error}");
    }
    allow(&key, 0o640);
    assert!(Server::bind(config).is_ok());
}

#[test]
fn a_wrong_web_config_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |text: &str| Server::bind(web_config(folder.path(), text)).expect_err(text).to_string();
    assert!(said("basic_auth_user:\n  anna: x\n").contains("basic_auth_user"));
    assert!(said("basic_auth_users:\n  anna: secret\n").contains("bcrypt"));
    assert!(said("tls_server_config:\n  cert_file: none.pem\n  key_file: none.pem\n").contains("none.pem"));
    assert!(said("http_server_config:\n  http2: true\n").contains("http_server_config"));
}

#[test]
fn unknown_hosts_are_refused() {
    let site = Site::with(Settings { hosts: vec!["watch.example".to_owned()], ..local() });
    for (host, status) in [("watch.example", 200), ("localhost:8621", 200), ("[::1]:8621", 200), ("10.0.0.7", 200)] {
        assert_eq!(site.get_with("/-/healthy", &format!("Host: {host}\r\n")).status, status, "{host}");
    }
    for host in ["evil.example", "watch.example.evil.example", "localhost.evil", ""] {
        site.get_with("/-/healthy", &format!("Host: {host}\r\n")).refused(421, "host name");
    }
    site.get_with("/-/healthy", "Host: localhost\r\nHost: evil.example\r\n").refused(421, "host name");
    site.get_with("http://evil.example/", "Host: localhost\r\n").refused(421, "host name");
}

#[test]
fn posts_come_from_here_and_are_json() {
    let site = Site::start();
    let post = |headers: &str| site.post("/api/v1/notes", headers, r#"{"text":"x"}"#);
    post("Content-Type: text/plain\r\n").refused(415, "application/json");
    post("Origin: http://evil.example\r\n").refused(403, "another site");
    post("Origin: null\r\n").refused(403, "another site");
    post(&format!("Origin: https://{}\r\n", site.address)).refused(403, "another site");
    post("Sec-Fetch-Site: cross-site\r\n").refused(403, "another site");
    let reply = site.get_with("/api/v1/targets", "Origin: http://evil.example\r\n");
    assert!(!reply.head.contains("access-control"), "{reply:?}");
}

#[test]
fn every_answer_forbids_frames_and_foreign_content() {
    let site = Site::start();
    for path in ["/", "/nowhere", "/api/v1/targets", "/metrics", "/assets/none/app.js"] {
        let head = site.get(path).head;
        for line in [
            "content-security-policy: default-src 'none'; ",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.contains(line), "{path}: {head}");
        }
        assert!(!head.contains("unsafe"), "{head}");
    }
    let page = site.get("/").body;
    assert!(!page.contains("<style") && !page.contains("onclick") && !page.contains("http://"), "{page}");
}

#[test]
fn a_token_opens_and_a_session_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = Site::with(with_token(folder.path()));
    site.get("/api/v1/targets").refused(401, "sign in");
    assert!(site.get("/api/v1/targets").head.contains("www-authenticate: bearer"));
    assert_eq!(site.get("/metrics").status, 401);
    assert_eq!(site.get("/-/healthy").status, 200);
    assert_eq!(site.get_with("/", "Accept: text/html\r\n").status, 401);
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(site.get_with("/metrics", &bearer).status, 200);
    let reply = site.post("/api/v1/session", "", &format!("{{\"secret\":\"{TOKEN}\"}}"));
    assert_eq!(reply.status, 204, "{reply:?}");
    let cookie = reply.head.lines().find(|line| line.starts_with("set-cookie")).expect("a cookie").to_owned();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    site.get_with("/api/v1/targets", "Cookie: narrows_session=guess\r\n").refused(401, "sign in");
}

#[test]
fn whoever_has_the_reading_token_reads_everything_and_changes_nothing() {
    const READING: &str = "fedcba9876543210fedcba9876543210";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("reading");
    secret(&file, READING);
    // On the machine whose own users show nothing, too.
    for trusts_own_machine in [false, true] {
        let settings = Settings { read_token_file: Some(file.clone()), ..with_token(folder.path()) };
        let site = Site::with(Settings { trusts_own_machine, ..settings });
        let reading = format!("Authorization: Bearer {READING}\r\n");
        let mut stream = site.connect();
        let (host, body) = (site.address, format!("{{\"secret\":\"{READING}\"}}"));
        let head = format!("POST /api/v1/session HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
        let length = body.len();
        write!(stream, "{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}").expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        let cookie = reply.split(['\r', ';']).find_map(|part| part.trim().strip_prefix("set-cookie: "));
        let session = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
        for shown in [&reading, &session] {
            for path in ["/", "/api/v1/targets", "/metrics"] {
                assert_eq!(site.get_with(path, shown).status, 200, "{path}: {shown}");
            }
            site.post("/api/v1/notes", shown, r#"{"text":"x"}"#).refused(403, "changes nothing");
        }
        let all = format!("Authorization: Bearer {TOKEN}\r\n");
        assert_eq!(site.post("/nowhere", &all, "{}").status, 404);
        let nothing = if trusts_own_machine { 404 } else { 401 };
        assert_eq!(site.post("/nowhere", "", "{}").status, nothing);
    }
}

#[test]
fn users_are_known_by_their_hash() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = Site::with(web_config(folder.path(), &user()));
    // anna:secret, anna:wrong, bob:secret
    for (pair, status) in [("YW5uYTpzZWNyZXQ=", 200), ("YW5uYTp3cm9uZw==", 401), ("Ym9iOnNlY3JldA==", 401), ("%", 401)]
    {
        let reply = site.get_with("/api/v1/targets", &format!("Authorization: Basic {pair}\r\n"));
        assert_eq!(reply.status, status, "{pair}: {reply:?}");
    }
}

#[test]
fn guesses_at_speed_are_not_even_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = Site::with(with_token(folder.path()));
    let guess = |token: &str| site.get_with("/metrics", &format!("Authorization: Bearer {token}\r\n")).status;
    let statuses: Vec<u16> = (0..12).map(|n| guess(&n.to_string())).collect();
    assert_eq!(statuses, [[401; 10].as_slice(), &[429; 2]].concat());
    assert_eq!(guess(TOKEN), 429);
}

/// Guesses at once wait for each other's hash, and the rest is refused without one.
#[test]
fn guesses_at_once_are_no_more_than_guesses_in_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = Site::with(web_config(folder.path(), &user()));
    let guess = |n: usize| {
        let mut stream = site.connect();
        let pair = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("anna:{n}"));
        let host = site.address;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {pair}\r\nConnection: close\r\n\r\n"
        )
        .expect("the server reads");
        stream
    };
    let mut all: Vec<_> = (0..30).map(guess).collect();
    let statuses: Vec<u16> = all.iter_mut().map(|stream| read(stream).status).collect();
    let looked_at = statuses.iter().filter(|status| **status == 401).count();
    assert_eq!(looked_at, 10, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 20, "{statuses:?}");
}

#[test]
fn one_address_asks_so_often_and_no_more() {
    let site = Site::start();
    let statuses: Vec<u16> = (0..200).map(|_| site.get("/-/healthy").status).collect();
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert!(served >= 40 && statuses[..40].iter().all(|status| *status == 200), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_large_body_is_refused_before_it_is_sent() {
    let site = Site::start();
    let mut stream = site.connect();
    let head = format!("POST /api/v1/notes HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n", site.address);
    write!(stream, "{head}Content-Length: 1000000000\r\nConnection: close\r\n\r\n").expect("the server reads");
    // Nothing follows: whoever waited for the body would wait for ever.
    let reply = read(&mut stream);
    reply.refused(413, "16 kB");
}

/// A gigabyte, streamed without a length or with a lie: the server reads none of it but what its
/// sockets hold, so memory is bounded by what was taken.
#[test]
fn a_gigabyte_is_not_taken() {
    let site = Site::start();
    let chunked = "Transfer-Encoding: chunked\r\n\r\n40000000\r\n";
    let long = "Content-Length: 1073741824\r\n\r\n";
    for (line, rest, status) in [
        ("POST /api/v1/notes", chunked, 413),
        ("POST /api/v1/notes", long, 413),
        ("POST /api/v1/session", chunked, 413),
        ("GET /api/v1/targets", long, 200),
        ("POST /nowhere", chunked, 404),
    ] {
        let mut stream = site.connect();
        stream.set_write_timeout(Some(std::time::Duration::from_secs(30))).expect("a socket has a timeout");
        let host = site.address;
        write!(stream, "{line} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{rest}")
            .expect("it reads");
        let block = vec![b' '; 1 << 16];
        let mut taken = 0;
        while taken < 1 << 30 {
            match stream.write(&block) {
                Ok(octets) => taken += octets,
                Err(error) => {
                    let ended = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind());
                    assert!(ended, "{line}: {error}");
                    break;
                }
            }
        }
        assert!(taken < 32 << 20, "{line}: {taken} octets were taken");
        let said = read(&mut stream).status;
        // The answer may be lost with the connection that is reset.
        assert!([0, status].contains(&said), "{line}: {said}");
    }
}
