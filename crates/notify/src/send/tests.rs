use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::{self, JoinHandle};

use super::*;
use crate::body::tests::example;

/// A peer on loopback that serves one connection. What `serve` returns is what it received.
fn peer<T: Send + 'static>(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (address, thread::spawn(move || serve(listener.accept().unwrap().0)))
}

/// Reads a request to its end, answers, and returns the head and the body.
fn http(answer: &'static str) -> (String, JoinHandle<(String, String)>) {
    peer(move |stream| {
        let mut reader = BufReader::new(&stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let start = head.len();
            reader.read_line(&mut head).unwrap();
            let line = head[start..].trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
        (head, String::from_utf8(body).unwrap())
    })
}

/// Listens, and holds on to what connects until the test ends.
fn hanging() -> (String, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (listener.local_addr().unwrap().to_string(), listener)
}

/// Where nobody listens.
const NOBODY: &str = "127.0.0.1:1";

fn limits(millis: u64) -> Limits {
    let limit = Duration::from_millis(millis);
    Limits { webhook: limit, smtp: limit, exec: limit }
}

/// Long enough for any machine.
const LONG: u64 = 60_000;

fn notifier(settings: &str, folder: &Path, limits: Limits) -> Result<Notifier, String> {
    let channel: Channel = toml::from_str(settings).unwrap();
    let folders = Folders { settings: folder, credentials: None };
    Notifier::new(&BTreeMap::from([("ops".to_owned(), channel)]), folders, limits).map_err(|error| error.to_string())
}

fn send(settings: &str, limits: Limits) -> Result<String, SendError> {
    notifier(settings, Path::new("/"), limits).unwrap().send("ops", &example(), example().at)
}

fn hook(address: &str, more: &str) -> String {
    format!("kind = \"webhook\"\nurl = \"http://{address}/in\"\n{more}")
}

fn mail(address: &str) -> String {
    format!("kind = \"smtp\"\nserver = \"{address}\"\nfrom = \"a@x.example\"\nto = [\"b@x.example\"]\ntls = \"none\"")
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_webhook_posts_json_with_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret\n").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (address, served) = http(TAKEN);
    let notifier = notifier(&hook(&address, "token_file = \"token\""), folder.path(), limits(LONG)).unwrap();
    assert_eq!(notifier.send("ops", &example(), example().at).unwrap(), "HTTP 200 OK: ok");
    assert!(!format!("{notifier:?}").contains("s3cret"));
    let (head, body) = served.join().unwrap();
    assert!(head.starts_with("POST /in HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("authorization: bearer s3cret\r\n"), "{head}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), crate::shape::json(&example()));
}

#[test]
fn each_shape_goes_where_its_server_wants_it() {
    for (shape, line, key) in [
        ("slack", "POST /in HTTP/1.1", "blocks"),
        ("ntfy", "POST / HTTP/1.1", "topic"),
        ("alertmanager", "POST /in/api/v2/alerts HTTP/1.1", "startsAt"),
    ] {
        let (address, served) = http(TAKEN);
        send(&hook(&address, &format!("shape = \"{shape}\"")), limits(LONG)).unwrap();
        let (head, body) = served.join().unwrap();
        assert!(head.starts_with(line) && body.contains(&format!("\"{key}\"")), "{shape}: {head}{body}");
    }
}

#[test]
fn what_a_server_answers_says_who_can_mend_it() {
    for (answer, who, said) in [
        ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 3\r\n\r\nwho", "settings", "who; is the token right?"),
        ("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "settings", "has moved"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "settings", "is the address right?"),
        ("HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 3\r\n\r\nbad", "peer", "bad"),
        ("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "peer", "HTTP 500"),
        ("SSH-2.0-x\r\n", "peer", "127.0.0.1"),
        ("", "path", "127.0.0.1"),
    ] {
        let (address, served) = http(answer);
        let error = send(&hook(&address, ""), limits(LONG)).unwrap_err();
        served.join().unwrap();
        assert!(error.who() == who && error.to_string().contains(said), "{answer:?}: {error:?}");
    }
    let (address, _served) = http("HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n");
    let error = send(&hook(&address, ""), limits(LONG)).unwrap_err();
    let SendError::Busy { retry_after, .. } = error else { panic!("{error:?}") };
    assert_eq!(retry_after, Some(Duration::from_secs(30)));
}

#[test]
fn peers_that_are_away_or_hang_are_told_apart() {
    for settings in [hook(NOBODY, ""), mail(NOBODY)] {
        let error = send(&settings, limits(LONG)).unwrap_err();
        assert!(matches!(&error, SendError::Unreachable(text) if text.contains("refused")), "{error:?}");
    }
    let (address, _held) = hanging();
    for settings in [hook(&address, ""), mail(&address)] {
        let error = send(&settings, limits(50)).unwrap_err();
        assert!(matches!(error, SendError::Silent(_)), "{error:?}");
    }
}

/// A mail server that says yes to all, but for `but`, to which it says the answer there.
fn smtp(but: (&'static str, &'static str)) -> (String, JoinHandle<String>) {
    peer(move |stream| {
        let mut heard = String::new();
        let mut reader = BufReader::new(&stream);
        let say = |text: &str| (&stream).write_all(format!("{text}\r\n").as_bytes());
        say("220 mail.example").unwrap();
        let mut in_data = false;
        loop {
            let start = heard.len();
            if reader.read_line(&mut heard).unwrap_or(0) == 0 {
                return heard;
            }
            let line = heard[start..].trim_end();
            let answer = match line.split(' ').next().unwrap_or_default() {
                "." => "250 2.0.0 queued as 7",
                _ if in_data => continue,
                command if command == but.0 => but.1,
                "EHLO" => "250 mail.example",
                "DATA" => "354 go on",
                "QUIT" => "221 bye",
                _ => "250 ok",
            };
            in_data = answer.starts_with("354");
            if say(answer).is_err() || answer.is_empty() {
                return heard;
            }
        }
    })
}

#[test]
fn a_mail_has_sender_recipient_and_text() {
    let (address, served) = smtp(("", ""));
    assert_eq!(send(&mail(&address), limits(LONG)).unwrap(), "SMTP 250 2.0.0 queued as 7");
    let heard = served.join().unwrap();
    for line in [
        "MAIL FROM:<a@x.example>",
        "RCPT TO:<b@x.example>",
        "Subject: [narrows] FIRING office: uplink-low",
        "Date: Tue, 24 Nov 2026 19:05:00 +0000",
        "Auto-Submitted: auto-generated",
        "Cause: queue at hop 4",
    ] {
        assert!(heard.contains(line), "{line}: {heard}");
    }
}

#[test]
fn what_a_mail_server_answers_says_who_can_mend_it() {
    for (but, who, said) in [
        (("RCPT", "550 no such user"), "peer", "no such user"),
        (("MAIL", "451 try later"), "peer", "try later"),
        (("MAIL", "535 wrong password"), "settings", "are user and password right?"),
        (("EHLO", "hello there"), "peer", "127.0.0.1"),
    ] {
        let (address, served) = smtp(but);
        let error = send(&mail(&address), limits(LONG)).unwrap_err();
        served.join().unwrap();
        assert!(error.who() == who && error.to_string().contains(said), "{but:?}: {error:?}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn a_mail_server_without_starttls_gets_nothing() {
    let (address, served) = smtp(("", ""));
    let error = send(&mail(&address).replace("none", "starttls"), limits(LONG)).unwrap_err();
    assert!(error.to_string().contains("STARTTLS"), "{error:?}");
    assert!(!served.join().unwrap().contains("MAIL"));
}

#[test]
fn a_program_gets_json_and_its_exit_code_counts() {
    let cat =
        "kind = \"exec\"\ncommand = [\"sh\", \"-c\", \"read line; case $line in *uplink-low*) echo paged;; esac\"]";
    assert_eq!(send(cat, limits(LONG)).unwrap(), "exit code 0: paged");
    let fails = "kind = \"exec\"\ncommand = [\"sh\", \"-c\", \"echo no line >&2; exit 3\"]";
    let error = send(fails, limits(LONG)).unwrap_err();
    assert!(error.who() == "program" && error.to_string() == "sh: exit code 3: no line", "{error}");
    // In the folder of the settings, as secrets are.
    let folder = tempfile::tempdir().unwrap();
    let keeps = "kind = \"exec\"\ncommand = [\"sh\", \"-c\", \"cat > notice\"]";
    notifier(keeps, folder.path(), limits(LONG)).unwrap().send("ops", &example(), example().at).unwrap();
    assert!(std::fs::read_to_string(folder.path().join("notice")).unwrap().contains("uplink-low"));
    let error = send("kind = \"exec\"\ncommand = [\"/nowhere/pager\"]", limits(LONG)).unwrap_err();
    assert!(error.who() == "settings" && error.to_string().contains("/nowhere/pager"), "{error}");
}

/// The child of the program holds one end of a pipe: only when it is dead, the other end sees the
/// end of the file.
#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // A writer of our own: opening the pipe waits for nobody, however early the program is killed.
    let both = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let mut reader = std::fs::File::open(&fifo).unwrap();
    let script = format!("sleep 100000 3>{} & wait", fifo.display());
    let error = send(&format!("kind = \"exec\"\ncommand = [\"sh\", \"-c\", \"{script}\"]"), limits(200)).unwrap_err();
    assert!(error.to_string().contains("ran longer than 200"), "{error}");
    drop(both);
    assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0);
}

/// The end of narrows is no reason to wait for a program.
#[test]
fn a_program_is_ended_when_asked() {
    let settings = "kind = \"exec\"\ncommand = [\"sleep\", \"100000\"]";
    let notifier = notifier(settings, Path::new("/"), limits(LONG * 60)).unwrap();
    notifier.stop();
    let error = notifier.send("ops", &example(), example().at).unwrap_err();
    assert!(error.to_string().contains("narrows stops"), "{error}");
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    std::fs::write(folder.path().join("open"), "x").unwrap();
    std::fs::set_permissions(folder.path().join("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let certificate = if cfg!(feature = "tls") { "no certificate" } else { "this build has no TLS" };
    let web = |more: &str| format!("kind = \"webhook\"\n{more}");
    let smtp = |more: &str| format!("kind = \"smtp\"\nfrom = \"a@x.example\"\n{more}");
    for (settings, said) in [
        (web(""), "url or url_file"),
        (web("url = \"ftp://x\""), "must begin with https://"),
        (web("url = \"https://me:s3cret@x/\""), "use token_file"),
        (web("url = \"http://x/\"\ntoken_file = \"open\""), "others can read it (mode 0644)"),
        (web("url = \"https://x/\"\ntoken_file = \"none\""), "No such file"),
        (web("url = \"https://x/\"\nshape = \"ntfy\""), "must end in a topic"),
        (web("url = \"https://x/\"\nca_file = \"empty.pem\""), certificate),
        (web("url = \"https://x/\"\nproxy = \"::\""), "proxy is no address"),
        ("kind = \"exec\"\ncommand = []".to_owned(), "command is empty"),
        (smtp("server = \"x\"\nto = []"), "to is empty"),
        (smtp("server = \"x\"\nto = [\"nobody\"]"), "\"nobody\" is no mail address"),
        (smtp("server = \"x:y\"\nto = [\"b@x.example\"]"), "HOST:PORT"),
        (smtp("server = \"x\"\nto = [\"b@x.example\"]\nuser = \"me\""), "belong together"),
    ] {
        let error = notifier(&settings, folder.path(), Limits::default()).unwrap_err();
        assert!(error.starts_with("channel.ops: ") && error.contains(said), "{settings}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
