//! Twenty agents as they are, in namespaces, over one shared link: whether the hub finds the link
//! and proves it, whether loads ever met, and what an agent takes of its host.

mod network;
mod packets;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use self::network::{Host, MOST_PER_SIDE, Network, SHARED, router, within};
use self::packets::{Run, loads, overlaps, read};
use super::program::{found, nap, narrows, output};
use super::versions;
use crate::provenance::Provenance;
use crate::shell::{now, root, say};

const USAGE: &str = "cargo xtask bench agents [--minutes N] [--per-side N] [--program-folder DIR] [--write]";
const PAGE: &str = "docs/results/agents-bench.md";

/// A process of ours. Ended as Ctrl-C would, then by force.
struct Process(Child);

impl Process {
    fn start(mut command: Command, said: &Path) -> Result<Self> {
        let file = File::create(said).with_context(|| said.display().to_string())?;
        let errors = file.try_clone()?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        Ok(Self(child.with_context(|| format!("{command:?}"))?))
    }

    /// What it took so far.
    fn used(&self) -> Result<Used> {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", self.0.id()));
        let (stat, status) = (read("stat")?, read("status")?);
        let fields = stat.rsplit_once(')').context("no name")?.1.split_whitespace().skip(11).take(4);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no memory")?;
            anyhow::Ok(line.split_whitespace().next().unwrap_or_default().parse::<u64>()?)
        };
        // Linux counts for programs in hundredths of a second.
        let cpu = Duration::from_millis(ticks * 10);
        Ok(Used { cpu, most_kb: kilobytes("VmHWM:")?, own_kb: kilobytes("RssAnon:")? })
    }
}

/// What a process took.
struct Used {
    /// Of the processors, with the processes that it waited for.
    cpu: Duration,
    /// Its largest memory, with the pages of the program's file.
    most_kb: u64,
    /// What is its own of that now.
    own_kb: u64,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).stderr(Stdio::null()).status();
        let clock = now();
        while matches!(self.0.try_wait(), Ok(None)) && clock.elapsed() < ENDS_WITHIN {
            nap(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many agents, and for how long.
struct Options {
    per_side: u8,
    time: Duration,
}

/// `[--minutes N]` (default 60), `[--per-side N]` agents (default 10), `[--program-folder DIR]`
/// with `narrows`, `[--write]`.
pub(super) fn run(args: &[String]) -> Result<bool> {
    let made = Provenance::begins(&format!("cargo xtask bench agents {}", args.join(" ")));
    let (mut minutes, mut per_side, mut folder, mut write) = (60_u64, MOST_PER_SIDE, None, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--minutes" => minutes = value()?.parse().context("--minutes needs a number")?,
            "--per-side" => per_side = value()?.parse().context("--per-side needs a number")?,
            "--program-folder" => folder = Some(PathBuf::from(value()?).canonicalize()?),
            "--write" => write = true,
            _ => bail!(USAGE),
        }
    }
    ensure!((2..=MOST_PER_SIDE).contains(&per_side), "2 to {MOST_PER_SIDE} agents on either side");
    for program in ["ip", "tc", "tcpdump", "curl", "setpriv"] {
        if !found(program) {
            say(&format!("left out: {program} is not installed\n"));
            return Ok(true);
        }
    }
    if !nix::unistd::geteuid().is_root() {
        say("left out: network namespaces need root\n");
        return Ok(true);
    }
    let program = narrows(folder)?;
    let scratch = Scratch::new()?;
    let options = Options { per_side, time: Duration::from_secs(60 * minutes) };
    let table = measure(&program, &options, &scratch.0)?;
    say(&table);
    if write {
        std::fs::write(root().join(PAGE), page(&made, per_side, minutes, &table)).context(PAGE)?;
    }
    Ok(true)
}

/// What is asked of the hub.
type Ask<'a> = &'a dyn Fn(&str, &str, &Value) -> Result<Value>;

fn measure(program: &Path, options: &Options, folder: &Path) -> Result<String> {
    let _network = Network::lay(options.per_side)?;
    let program = program.to_string_lossy().into_owned();
    let logs = logs(options.per_side, folder)?;
    let file = folder.join("hub.json");
    let mut hub = within(&Host::HUB.name(), &program);
    hub.args(["hub", "--json", "--listen", &format!("{}:8622", Host::HUB.address()), "--state"]);
    hub.arg(folder.join("hub"));
    let hub = Process::start(hub, &file)?;
    let (url, join) = announced(&file)?;
    let ask: Ask<'_> = &|method, path, body| ask(&url, method, path, body);
    let mut agents = Vec::new();
    for host in Host::all(options.per_side) {
        let (name, state) = (host.name(), folder.join(host.name()));
        let mut joins = within(&name, &program);
        joins.args(["agent", "join", &url, &join, "--name", &name, "--state"]).arg(&state);
        output(joins, READY)?;
        let mut runs = within(&name, &program);
        runs.args(["agent", "run", "--state"]).arg(&state);
        agents.push(Process::start(runs, &folder.join(format!("{name}.log")))?);
    }
    let began = now();
    let ordered = order(ask, options.per_side)?;
    let (located, proof) = prove(ask, options.time)?;
    let used: Vec<Used> = agents.iter().map(Process::used).collect::<Result<_>>()?;
    let took = began.elapsed();
    let loads = ended(ask, "throughput", |_, _| true)?;
    let across = ended(ask, "available", |source, target| source != target)?;
    let beside = ended(ask, "available", |source, target| source == target)?;
    let runs = runs(ask, options.per_side)?;
    drop((agents, hub));
    let mut files = Vec::new();
    for (file, process) in logs {
        drop(process);
        files.push(file);
    }
    let share = |used: &Used| 100.0 * used.cpu.as_secs_f64() / took.as_secs_f64();
    let mean = used.iter().map(share).sum::<f64>() / used.len() as f64;
    let busiest = used.iter().map(share).fold(0.0, f64::max);
    let most = |of: fn(&Used) -> u64| used.iter().map(of).max().unwrap_or(0) / 1_000;
    let memory = [most(|used| used.most_kb), most(|used| used.own_kb)];
    let rows = [
        ("link located", located.unwrap_or_else(|| "no".to_owned()), "yes"),
        ("proved", proof.unwrap_or_else(|| "not tried".to_owned()), "shared"),
        ("loading runs", format!("{loads}; {ordered} ordered by hand"), ""),
        ("looks at what is available across the link", across, ""),
        ("looks within a side", beside, ""),
        ("loads that met on a key", met(&files, &runs)?, "0"),
        ("processor of an agent", format!("mean {mean:.1} %, most {busiest:.1} % of a core"), ""),
        (
            "memory of an agent, highest",
            format!("{} MB; without the pages of the program's file {} MB", memory[0], memory[1]),
            "25 MB",
        ),
    ];
    let lines = rows.map(|(name, measured, design)| format!("| {name} | {measured} | {design} |\n"));
    Ok("| figure | measured | design |\n|-|-|-|\n".to_owned() + &lines.concat())
}

/// How the runs of a kind between such sides ended, and why: the most frequent first.
fn ended(ask: Ask<'_>, kind: &str, between: impl Fn(&str, &str) -> bool) -> Result<String> {
    let answer = ask("GET", &format!("runs?kind={kind}&since=7d&limit=5000"), &json!({}))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let side = |run: &Value, key: &str| run[key].as_str().and_then(|name| name.split('-').next()).map(str::to_owned);
    let sides = |run: &Value| Some((side(run, "agent")?, side(run, "target")?));
    let runs = answer["runs"].as_array().into_iter().flatten();
    for run in runs.filter(|run| sides(run).is_some_and(|(source, target)| between(&source, &target))) {
        let [exit, reason] = ["exit", "reason"].map(|key| run[key].as_str().unwrap_or_default());
        let how = if reason.is_empty() { exit.to_owned() } else { format!("{exit} ({reason})") };
        *counts.entry(how).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(counts.into_iter().map(|(how, count)| format!("{count} {how}")).collect::<Vec<_>>().join(", "))
}

/// Each pair across twice a day by the timetable, and by hand as many as the budget allows. Returns
/// how many that were.
fn order(ask: Ask<'_>, per_side: u8) -> Result<u32> {
    let toml = "[groups]\nleft = [\"left-*\"]\nright = [\"right-*\"]\n[[test]]\npairs = \"left to right\"\n\
                run = \"throughput -t 5\"\nevery = \"12 h\"\n";
    ask("POST", "config", &json!({ "toml": toml }))?;
    let mut ordered = 0;
    for number in 1..=per_side {
        let next = 1 + number % per_side;
        let source = Host { side: 1, number }.name();
        for target in [Host { side: 2, number: next }, Host { side: 1, number: next }] {
            let wish = json!({ "source": source, "target": target.name(), "command": "throughput -t 5" });
            ordered += u32::from(ask("POST", "orders", &wish).is_ok());
        }
    }
    Ok(ordered)
}

/// Waits until the hub names the shared link, and has it proved. Returns what it said of both.
fn prove(ask: Ask<'_>, time: Duration) -> Result<(Option<String>, Option<String>)> {
    let (began, mut located, mut proof, mut proved) = (now(), None, Value::Null, String::new());
    let waits = |proof: &Value| proof["state"] == "running" && began.elapsed() < time + PROVES_WITHIN;
    while began.elapsed() < time || waits(&proof) {
        nap(LOOK);
        let answer = ask("GET", "bottlenecks?metric=available", &json!({}))?;
        let Some(row) = answer["bottlenecks"].as_array().into_iter().flatten().find(|row| is_shared(row)) else {
            // Newer values may locate it no more. Its proof goes on.
            if proof["state"] == "running" {
                proof = audited(ask, &proved)?.unwrap_or(proof);
            }
            continue;
        };
        located.get_or_insert_with(|| found_text(began.elapsed(), row));
        proof = row["proof"].clone();
        let id = row["id"].as_str().unwrap_or_default();
        id.clone_into(&mut proved);
        if proof.is_null() {
            // At first there may be no two paths without a common host: then it is refused.
            if let Err(error) = ask("POST", &format!("bottlenecks/{id}/prove"), &json!({})) {
                say(&format!("no proof yet: {error:#}\n"));
            }
        }
    }
    Ok((located, Some(proof.to_string()).filter(|_| !proof.is_null())))
}

/// How a bottleneck's proof ended, by the audit.
fn audited(ask: Ask<'_>, id: &str) -> Result<Option<Value>> {
    let answer = ask("GET", "audit", &json!({}))?;
    let mut entries = answer["entries"].as_array().into_iter().flatten().filter(|entry| entry["what"] == "proof.ended");
    let state = entries.find_map(|entry| entry["text"].as_str()?.strip_prefix(id)?.strip_prefix(": "));
    Ok(state.map(|state| json!({ "state": state })))
}

/// A log of each host's interface and of the shared link.
fn logs(per_side: u8, folder: &Path) -> Result<Vec<(PathBuf, Process)>> {
    let hosts = Host::all(per_side).map(|host| (host.name(), "eth0"));
    let places = hosts.chain([(router(1), "core")]);
    let log = |(name, interface): (String, &str)| {
        let file = folder.join(format!("{name}.pcap"));
        let mut command = within(&name, "tcpdump");
        // Who, to whom, how much; as root, because the folder is root's.
        command.args(["-i", interface, "-s", "48", "-B", "8192", "-Z", "root", "-w"]).arg(&file).arg("ip");
        let process = Process::start(command, &folder.join(format!("{name}.tcpdump")))?;
        Ok((file, process))
    };
    places.map(log).collect()
}

/// All runs of the record. Those that load have leases: of the timetable, or ordered with keys.
fn runs(ask: Ask<'_>, per_side: u8) -> Result<Vec<Run>> {
    let rows = |path: &str, key: &str| anyhow::Ok(ask("GET", path, &json!({}))?[key].take());
    let orders = rows("orders", "orders")?;
    let leased = |order: &&Value| order["keys"].as_array().is_some_and(|keys| !keys.is_empty());
    let leased: BTreeSet<&str> =
        orders.as_array().into_iter().flatten().filter(leased).filter_map(|order| order["run"].as_str()).collect();
    let addresses: BTreeMap<String, Ipv4Addr> = Host::all(per_side).map(|host| (host.name(), host.address())).collect();
    let rows = rows("runs?since=7d&limit=5000", "runs")?;
    let run = |row: &Value| {
        let [source, target] = ["agent", "target"].map(|key| addresses.get(row[key].as_str()?).copied());
        let begin_us = row["began_ms"].as_u64()? * 1_000;
        let loads = row["kind"] == "throughput" || leased.contains(row["id"].as_str()?);
        let end_us = begin_us + row["length_ms"].as_u64()? * 1_000;
        Some(Run { source: source?, target: target?, begin_us, end_us, loads })
    };
    let rows = rows.as_array().context("no runs")?;
    rows.iter().map(|row| run(row).with_context(|| format!("a run that says less than it should: {row}"))).collect()
}

/// What the checker finds in all logs.
fn met(files: &[PathBuf], runs: &[Run]) -> Result<String> {
    let (mut count, mut all, mut said) = (0, 0, String::new());
    for file in files {
        let loads = loads(&read(file)?, runs);
        let overlaps = overlaps(&loads);
        (count, all) = (count + overlaps.len(), all + loads.len());
        if let Some(first) = overlaps.first() {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // Writing to a text cannot fail.
            let _ = write!(said, "; {} at {name}, first {:?}, {} ms", overlaps.len(), first.pairs, first.us / 1_000);
        }
    }
    Ok(format!("{count} of {all} in {} logs{said}", files.len()))
}

fn is_shared(row: &Value) -> bool {
    let ends = |link: &Value| {
        [link["from"].as_str().unwrap_or_default(), link["to"].as_str().unwrap_or_default()].map(ToOwned::to_owned)
    };
    row["links"].as_array().into_iter().flatten().any(|link| SHARED.iter().any(|shared| ends(link) == *shared))
}

fn found_text(when: Duration, row: &Value) -> String {
    let mbps = |key: &str| row[key].as_f64().unwrap_or(0.0) / 1e6;
    let paths = row["paths"].as_array().map_or(0, Vec::len);
    let (value, low, high) = (mbps("value"), mbps("low"), mbps("high"));
    format!("after {} s: {value:.0} Mbit/s ({low:.0}-{high:.0}), {paths} paths", when.as_secs())
}

/// The hub's first line.
fn announced(file: &Path) -> Result<(String, String)> {
    let clock = now();
    while clock.elapsed() < READY {
        let text = std::fs::read_to_string(file)?;
        if let Some(Ok(line)) = text.lines().next().map(serde_json::from_str::<Value>)
            && let (Some(url), Some(join)) = (line["url"].as_str(), line["join"].as_str())
        {
            return Ok((url.to_owned(), join.to_owned()));
        }
        nap(Duration::from_millis(50));
    }
    bail!("the hub does not say where it is")
}

/// From the hub's own host, which it trusts. Its certificate is its own.
fn ask(url: &str, method: &str, path: &str, body: &Value) -> Result<Value> {
    let mut curl = within(&Host::HUB.name(), "curl");
    curl.args(["-sSk", "-X", method, "-H", "content-type: application/json", "-w", "\n%{http_code}"]);
    if method == "POST" {
        curl.args(["-d", &body.to_string()]);
    }
    curl.arg(format!("{url}/api/v1/{path}"));
    let said = output(curl, READY)?;
    let (text, status) = said.rsplit_once('\n').context("no status")?;
    let answer: Value = serde_json::from_str(text).with_context(|| format!("{path}: {text}"))?;
    ensure!(status == "200", "{path}: {status}: {}", answer["detail"].as_str().unwrap_or(text));
    Ok(answer)
}

/// A folder that is gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = root().join(format!("target/bench/agents-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            say(&format!("{}: {error}\n", self.0.display()));
        }
    }
}

fn page(made: &Provenance, per_side: u8, minutes: u64, table: &str) -> String {
    let page = format!(
        "# Twenty agents over a shared link\n\n\
         {}\n\
         The command writes this whole page; change the text in `xtask/src/bench/agents.rs`.\n\n\
         {per_side} hosts on either side of a link of 100 Mbit/s, each with an access link of 300 Mbit/s, all of them namespaces of this machine,\n\
         for {minutes} min. Every host and the shared link have a packet log. A load is what a run with leases sent, and what no light run\n\
         may send. Each log is that of one key: loads of two pairs that met in it would have had the key at once.\n\n\
         {table}\nMeasured on and with:\n\n{}",
        made.lines(),
        versions::list(),
    );
    format!("{}\n", page.trim_end())
}

const READY: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(5);
/// Six runs a minute apart, and what they wait for each other.
const PROVES_WITHIN: Duration = Duration::from_secs(600);
const ENDS_WITHIN: Duration = Duration::from_secs(10);
