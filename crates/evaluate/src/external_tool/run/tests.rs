//! With the shell as client and server, in this process's own namespace.

use std::thread;

use super::*;

struct Here;

impl Hosts for Here {
    fn spawn_thread(&self, _: Host, work: Box<dyn FnOnce() + Send>) -> Result<JoinHandle<()>, String> {
        Ok(thread::spawn(work))
    }
}

fn adapter(client: &str, rest: &str) -> Adapter {
    let text = format!(
        "name = 'fake'\nabout = ''\nmetric = 'ip_capacity'\nlayer = 'ip'\nprogram.needs = ['sh']\n\
         [client]\ncommand = ['sh', '-c', '{client}']\ntimeout = '1 s'\n{rest}\n\
         [read]\npattern = '(?P<value>\\d+) (?P<unit>Mbps)'\n"
    );
    Adapter::from_toml(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn setting() -> Setting {
    Setting {
        sender: "127.0.0.1".parse().unwrap(),
        receiver: "127.0.0.2".parse().unwrap(),
        mtu: 1500,
        line_rate: narrows_units::BitRate::from_mbps(1),
    }
}

fn go(adapter: &Adapter) -> Result<ExternalToolRun, ExternalToolError> {
    run(adapter, &setting(), &BTreeMap::new(), &Here, &AtomicBool::new(false))
}

fn said(client: &str, rest: &str) -> String {
    go(&adapter(client, rest)).unwrap_err().to_string()
}

fn value(run: &ExternalToolRun) -> Option<u64> {
    match run.reading.numbers.as_slice() {
        [Number { found: ParsedNumber::Rate { value_bps, .. }, .. }] => Some(*value_bps),
        _ => None,
    }
}

#[test]
fn a_number_comes_back() {
    let run = go(&adapter("echo 7 Mbps", "")).unwrap();
    assert_eq!(value(&run), Some(7_000_000));
}

#[test]
fn a_server_is_waited_for_and_ended() {
    // The server serves only when it has written its line, which it does late.
    let rest = "[server]\ncommand = ['sh', '-c', 'sleep 0.3; touch {folder}/up; echo listening; sleep 60']\n\
                ready = { line = '^listening' }";
    let began = process::now();
    let run = go(&adapter("test -e {folder}/up && echo 7 Mbps", rest)).unwrap();
    assert_eq!(value(&run), Some(7_000_000));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_decoder_runs_afterwards_and_the_folder_goes() {
    let rest =
        "[after]\ncommand = ['sh', '-c', 'cat log; pwd > {log}']\ntimeout = '5 s'\n[params]\nlog = '/dev/null'\n";
    let text = "echo 9 Mbps > {folder}/log";
    let mut source = format!(
        "name = 'fake'\nabout = ''\nmetric = 'ip_capacity'\nlayer = 'ip'\nprogram.needs = ['sh']\n\
         [client]\ncommand = ['sh', '-c', '{text}']\ntimeout = '1 s'\n{rest}\n"
    );
    source.push_str("[read]\nfrom = 'after'\npattern = '(?P<value>\\d+) (?P<unit>Mbps)'\n");
    let adapter = Adapter::from_toml(&source).unwrap();
    let note = tempfile::NamedTempFile::new().unwrap();
    let params = BTreeMap::from([("log".to_owned(), note.path().display().to_string())]);
    let run = run(&adapter, &setting(), &params, &Here, &AtomicBool::new(false)).unwrap();
    assert_eq!(value(&run), Some(9_000_000));
    let folder = fs::read_to_string(note.path()).unwrap();
    assert!(folder.contains("narrows-tool-") && !Path::new(folder.trim()).exists(), "{folder}");
}

#[test]
fn each_failure_says_what_it_is() {
    assert!(said("echo 1 Mbps; sleep 60", "").starts_with("timeout: sh had not ended after 1."));
    assert_eq!(said("echo no route >&2; exit 3", ""), "sh ended with exit code 3; it said \"no route\"");
    assert_eq!(said("echo nothing", ""), "sh: the pattern matches nothing that it printed; it ended with \"nothing\"");
    let dead = "[server]\ncommand = ['sh', '-c', 'echo in use >&2; exit 1']\nready = { after = '5 s' }";
    assert_eq!(said("echo 1 Mbps", dead), "the server (sh) ended before it was ready; it said \"in use\"");
    assert!(said("yes", "").contains("printed more than 4194304 octets"));
}

#[test]
fn exit_codes_may_mean_something() {
    let codes = "inconclusive_exit_codes = [11]\nsuccess_exit_codes = [4]";
    let run = go(&adapter("exit 11", codes)).unwrap();
    assert_eq!(run.reading.numbers[0].found, ParsedNumber::Inconclusive("exit code 11".to_owned()));
    let run = go(&adapter("echo 3 Mbps; exit 4", codes)).unwrap();
    assert_eq!(value(&run), Some(3_000_000));
}

#[test]
fn what_is_missing_is_named() {
    let text = "name = 'x'\nabout = ''\nmetric = 'ip_capacity'\nlayer = 'ip'\n\
                program = { needs = ['sh', 'no-such-program'], package = 'none-such' }\n\
                client = { command = ['sh'], timeout = '1 s' }\nread = { pattern = '(?P<value>.)' }\n";
    let error = go(&Adapter::from_toml(text).unwrap()).unwrap_err();
    assert!(matches!(error, ExternalToolError::NotInstalled { .. }));
    assert_eq!(error.to_string(), "no-such-program is not installed (Debian package none-such)");
}

#[test]
fn an_interrupt_ends_it_soon() {
    let began = process::now();
    let stop = AtomicBool::new(true);
    let ended = run(&adapter("sleep 60", ""), &setting(), &BTreeMap::new(), &Here, &stop);
    assert!(matches!(ended, Err(ExternalToolError::Interrupted)), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_version_is_asked_for() {
    let text = "name = 'x'\nabout = ''\nmetric = 'ip_capacity'\nlayer = 'ip'\n\
                program = { needs = ['sh'], version = ['sh', '-c', 'echo tool v1.2 >&2; exit 1'], version_pattern = 'v(?P<version>\\S+)' }\n\
                client = { command = ['sh'], timeout = '1 s' }\nread = { pattern = '(?P<value>.)' }\n";
    assert_eq!(version(&Adapter::from_toml(text).unwrap()).as_deref(), Some("1.2"));
    assert_eq!(version(&adapter("true", "")), None);
}
