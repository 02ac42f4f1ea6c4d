//! The figures of a fleet: simulated agents against a hub, a bus and a record that are processes of
//! their own. Printed beside the design's figures, never judged.

mod servers;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::servers::{Servers, free_port, until};
use super::program::{Program, build, built, command, output};
use super::versions;
use crate::provenance::Provenance;
use crate::shell::{root, say};

const USAGE: &str = "cargo xtask bench fleet [--agents 50,1000,10000] [--seconds N] [--program-folder DIR] [--write]";
const PAGE: &str = "docs/results/fleet-bench.md";
/// Beyond this the bus is NATS, and the record PostgreSQL.
const MOST_EMBEDDED: u32 = 50;

/// What the design says, by the name of a figure: §7, and §4 for the matrix.
const DESIGN: [(&str, &str); 7] = [
    ("hub processor, steady", "1 core"),
    ("published to stored, 53 a second", "p50 500 ms, p99 3000 ms"),
    ("lease of six keys", "p99 200 ms"),
    ("backlog", "2000 runs a second"),
    ("matrix by host", "34 ms for 50 x 50"),
    ("matrix by site", "7 ms for 100 x 100, from a kept table"),
    ("hub memory, highest", "300 MB"),
];

struct Options {
    agents: Vec<u32>,
    seconds: u32,
    folder: Option<PathBuf>,
    write: bool,
}

/// `[--agents N,N]`, `[--seconds N]` of the steady load, `[--program-folder DIR]` with `narrows`
/// and `fleet_bench` (built if missing), `[--write]`.
pub(super) fn run(args: &[String]) -> Result<bool> {
    let made = Provenance::begins(&format!("cargo xtask bench fleet {}", args.join(" ")));
    let options = options(args)?;
    let [program, load] = programs(options.folder.as_deref())?;
    let mut sections = String::new();
    for agents in &options.agents {
        let scratch = Scratch::new(*agents)?;
        let measured = measure(*agents, &options, [&program, &load], &scratch.0);
        // What goes wrong with one fleet is no reason to lose the others.
        let table = measured.unwrap_or_else(|error| format!("Not measured: {error:#}\n"));
        let section = format!("## {agents} agents\n\n{table}\n");
        say(&section);
        sections += &section;
    }
    if options.write {
        std::fs::write(root().join(PAGE), page(&made, &options, &sections)).context(PAGE)?;
    }
    Ok(true)
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options { agents: vec![50, 1_000, 10_000], seconds: 60, folder: None, write: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--agents" => {
                let counts = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                options.agents = counts.context("--agents needs numbers, such as 50,1000")?;
            }
            "--seconds" => options.seconds = value()?.parse().context("--seconds needs a number")?,
            "--program-folder" => options.folder = Some(PathBuf::from(value()?)),
            "--write" => options.write = true,
            _ => bail!(USAGE),
        }
    }
    ensure!(options.agents.iter().all(|count| (2..=10_000).contains(count)), "a fleet has 2 to 10 000 agents");
    ensure!(options.seconds >= 20, "leases are not taken within the first 16 s");
    Ok(options)
}

/// The hub's program and that of the load.
fn programs(folder: Option<&Path>) -> Result<[PathBuf; 2]> {
    if let Some(folder) = folder {
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        let found = [folder.join("narrows"), folder.join("fleet_bench")];
        // Cargo puts examples into a folder of their own.
        let [program, load] = &found;
        let load = if load.exists() { load.clone() } else { folder.join("examples/fleet_bench") };
        ensure!(program.exists() && load.exists(), "{} has no narrows and fleet_bench", folder.display());
        return Ok([program.clone(), load]);
    }
    build(&["-p", "narrows", "--all-features"])?;
    build(&["-p", "narrows-hub", "--example", "fleet_bench"])?;
    Ok([built("narrows"), built("examples/fleet_bench")])
}

fn measure(agents: u32, options: &Options, [program, load]: [&Path; 2], folder: &Path) -> Result<String> {
    let servers = if agents > MOST_EMBEDDED { Some(Servers::start(folder)?) } else { None };
    let state = folder.join("hub");
    let embedded = || format!("sqlite:{}", folder.join("hub.db").display());
    let store = servers.as_ref().map_or_else(embedded, Servers::store);
    let bus = servers.as_ref().map_or("embedded".to_owned(), Servers::bus);
    let seeds = folder.join("seeds");
    let mut members = command(&load.to_string_lossy());
    members.args(["members", &store]).arg(&seeds).arg(agents.to_string());
    output(members, LIMIT).context("no members")?;
    let port = free_port()?;
    let mut hub = command(&program.to_string_lossy());
    hub.args(["hub", "--listen", &format!("127.0.0.1:{port}"), "--store", &store, "--bus", &bus, "--state"]);
    let mut hub = Program::start({
        hub.arg(&state);
        hub
    })?;
    until(&mut hub, "the hub does not listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())?;
    let mut bench = command(&load.to_string_lossy());
    bench.arg("load").arg(&state).arg(&seeds).args([&bus, &options.seconds.to_string(), &hub.pid().to_string()]);
    let figures = output(bench, LIMIT)?;
    hub.stop(Duration::from_secs(30))?;
    let with = if servers.is_some() { "NATS and PostgreSQL" } else { "the embedded bus and SQLite" };
    Ok(format!("With {with}.\n\n{}", table(&figures)))
}

/// The load's lines, each beside what the design says.
fn table(figures: &str) -> String {
    let design = BTreeMap::from(DESIGN);
    let mut text = "| figure | measured | design |\n|-|-|-|\n".to_owned();
    for (name, measured) in figures.lines().filter_map(|line| line.split_once('\t')) {
        let _ = writeln!(text, "| {name} | {measured} | {} |", design.get(name).unwrap_or(&""));
    }
    text
}

/// A folder that is gone when this is dropped. Not among those of the build: PostgreSQL runs as
/// nobody, and has to reach it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(agents: u32) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("narrows-fleet-bench-{}-{agents}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
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

fn page(made: &Provenance, options: &Options, sections: &str) -> String {
    let page = format!(
        "# A fleet's hub, bus and record under load\n\n\
         {}\n\
         The command writes this whole page; change the text in `xtask/src/bench/fleet.rs`, and what is measured in\n\
         `crates/hub/examples/fleet_bench/`.\n\n\
         Simulated agents are connections to the bus in one process. They listen as agents do, send a status every 30 s, and hand\n\
         over results of 2.8 kB with five values and eight routers: 53 a second for {} s, as 10 000 hosts do. A result counts as stored when\n\
         its agent hears so. Then the hub's process is stopped while results wait on the bus (with the embedded bus it cannot be), and goes\n\
         on. Everything shares this one machine, whose processors the load takes too. The design's figures are for a core of the hub's own.\n\n\
         A lease is one of six keys that nobody else wants, as the design's figure means: two hosts, whose agents hear of each write, and four\n\
         links. One agent takes and gives them back, again and again, while results come. It reads all keys at once and writes one after the\n\
         other, so that of two runs with the same keys one gets them all: seven round trips. The embedded bus answers a write when the disk\n\
         has it, NATS when the server has it.\n\n\
         {sections}Measured on and with:\n\n{}",
        made.lines(),
        options.seconds,
        versions::list(),
    );
    format!("{}\n", page.trim_end())
}

/// 10 000 agents on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(1_800);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_those_of_the_design() {
        let text = table("backlog\t1800 runs a second\nnoise\noctets of a plan\tmean 7\n");
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows, ["| backlog | 1800 runs a second | 2000 runs a second |", "| octets of a plan | mean 7 |  |"]);
    }

    #[test]
    fn sizes_and_times_are_checked() {
        let read = |text: &str| options(&text.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>());
        assert_eq!(read("--agents 50,1000 --seconds 20").unwrap().agents, [50, 1_000]);
        for wrong in ["--agents 1", "--agents x", "--seconds 5", "--agents", "--quick"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
