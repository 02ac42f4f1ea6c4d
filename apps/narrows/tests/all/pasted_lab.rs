//! The guide's runs over a network, between the two hosts of the demo's path: they print what the
//! pages show, but for numbers.

#![expect(clippy::print_stdout, reason = "what could not be compared is said")]

use std::fmt::Write as _;
use std::path::Path;

use crate::common;
use crate::pasted::{Live, Pasted, of_kind, root};

use common::{Running, directory, narrows, text};

/// What waits on the receiver: a server and a sink. Both end with the shell, however it ends.
const RECEIVER: &str = "\
setpriv --pdeathsig KILL NARROWS serve > serve.out 2>&1 &
setpriv --pdeathsig KILL NARROWS traffic sink > sink.out 2>&1 &
wait
";

#[test]
#[ignore = "lab: needs namespaces"]
fn live_runs_look_as_shown() {
    look_as_shown(false);
}

#[test]
#[ignore = "soak: needs namespaces"]
fn long_runs_between_hosts_look_as_shown() {
    look_as_shown(true);
}

fn look_as_shown(is_long: bool) {
    let home = directory();
    let program = narrows([""; 0]).get_program().to_string_lossy().into_owned();
    let is_here = |live: Live<'_>| live.stand_in.is_none() && live.is_long == is_long;
    let blocks: Vec<(Pasted, String)> =
        of_kind("live").into_iter().filter(|(_, rest)| is_here(Live::of(rest))).collect();
    let mut script = format!("cd {}\nsleep 1\n", text(home.path()));
    for (number, command) in blocks.iter().flat_map(|(block, _)| block.runs()).map(|(command, _)| command).enumerate() {
        if place(command) == Place::Sender {
            let _ = writeln!(script, "{}\necho $? > {number}.code", on_the_sender(command, &program, number));
        }
    }
    let write = |name: &str, content: &str| std::fs::write(home.path().join(name), content).expect("it is ours");
    write("sender.sh", &script);
    write("receiver.sh", &format!("cd {}\n{}", text(home.path()), RECEIVER.replace("NARROWS", &program)));
    let [sender, receiver] = ["sender.sh", "receiver.sh"].map(|name| format!("sh {}", text(&home.path().join(name))));
    let scenario = root().join("scenarios/demo.toml");
    let sender: Vec<&str> = sender.split(' ').collect();
    let ended = Running::start(
        narrows(["emulate", text(&scenario), "--receiver", &receiver, "--"])
            .args(sender)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
    )
    .end();
    write("emulate.out", &format!("{}{}", ended.stdout, ended.stderr));
    compare(&blocks, home.path());
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Sender,
    /// With the output there.
    Receiver(&'static str),
    /// The path itself.
    Path,
}

fn place(command: &str) -> Place {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        ["narrows", "serve", ..] => Place::Receiver("serve.out"),
        ["narrows", "traffic", "sink", ..] => Place::Receiver("sink.out"),
        ["narrows", "emulate", ..] => Place::Path,
        _ => Place::Sender,
    }
}

/// A line of the script. A capture needs something to capture, from the interface that is there.
fn on_the_sender(command: &str, program: &str, number: usize) -> String {
    let arguments = command.strip_prefix("narrows ").unwrap_or_else(|| panic!("{command} cannot be run here"));
    let plain = format!("{program} {arguments} > {number}.out 2> {number}.err");
    if !arguments.starts_with("passive") {
        return plain;
    }
    let interface = "$(ip -o route get 10.77.3.1 | sed 's/.* dev \\([^ ]*\\).*/\\1/')";
    format!("{program} throughput 10.77.3.1 -R -t 6 > /dev/null 2>&1 & {}; wait $!", plain.replace("eth0", interface))
}

fn compare(blocks: &[(Pasted, String)], folder: &Path) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let runs = blocks.iter().flat_map(|(block, rest)| block.runs().into_iter().map(move |run| (block, rest, run)));
    let mut faults = String::new();
    // What a path says of its own timing decides, not what was measured over it.
    let is_late = read("emulate.out").contains("timing not valid");
    for (number, (block, rest, (command, shown))) in runs.enumerate() {
        let printed = match place(command) {
            Place::Receiver(file) => read(file),
            Place::Path => read("emulate.out"),
            Place::Sender => {
                let code = read(&format!("{number}.code"));
                let printed = read(&format!("{number}.out"));
                if code.trim() == "11" || Live::is_disturbed(&shown, &printed) {
                    println!("{}: inconclusive or in doubt this time, so not compared: {command}", block.place);
                    continue;
                }
                assert_eq!(code.trim(), "0", "{}: {command}: {}", block.place, read(&format!("{number}.err")));
                printed
            }
        };
        let missing = Live::of(rest).missing(&shown, &printed);
        if is_late && missing.len() * 2 <= shown.len() {
            for line in missing {
                println!("{}: not this time, on a busy machine: {line}", block.place);
            }
        } else if !missing.is_empty() {
            let _ = writeln!(
                faults,
                "{}: $ {command}\nprinted\n{printed}\nand nothing like\n{}",
                block.place,
                missing.join("\n")
            );
        }
    }
    assert!(faults.is_empty(), "{faults}");
}
