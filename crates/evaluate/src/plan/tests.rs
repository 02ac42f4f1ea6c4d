use narrows_report::World;
use narrows_units::Metric;

use super::*;

const SCENARIO: &str = "name = \"own\"\nseed = 5\n[[hop]]\nrate = \"{{rate}}\"\ndelay = \"{{delay}}\"\n";

/// A folder with one template and one scenario file.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SCENARIO).unwrap();
    let plain = SCENARIO.replace("{{rate}}", "10 Mbit/s").replace("{{delay}}", "1 ms");
    std::fs::write(folder.path().join("plain.toml"), plain).unwrap();
    folder
}

fn read(text: &str) -> Result<Plan, String> {
    let folder = folder();
    Plan::from_toml(text, Path::new("p.toml"), folder.path()).map_err(|error| error.to_string())
}

const FULL: &str = r#"
name = "p"
source = "[Key] table 1"
worlds = ["lab", "simulator"]
runs = { simulator = 7, lab = 2 }
seed = 100

[[scenario]]
template = "t.toml"
with = { rate = ["10 Mbit/s", "1 Gbit/s"], delay = ["1 ms", "5 ms", "10 ms"] }
as = { delay = ["near", "far", "farther"] }
name = "x-{{rate}}-{{delay}}"

[[scenario]]
file = "plain.toml"
worlds = ["simulator"]
methods = ["pathload", "tool"]

[[method]]
name = "default"
metric = "available_ip_capacity"

[[method]]
name = "pathload"
params = { quick = ["true", "false"] }

[[method]]
name = "delphi"
metric = "available_ip_capacity"
worlds = ["simulator"]

[[external_tool]]
name = "iperf3-tcp"
label = "tool"

[[published]]
scenario = "x-10Mbit-s-near"
method = "pathload"
value = "67.4 Mbit/s"
truth = 70e6
error_ratio = -0.037
octets = "7.2 MB"
packets = 4800
seconds = 32

[[published]]
scenario = "own"
method = "netvigator"
hop = 2
"#;

/// By hand. Six scenarios of the template and one file. On each of the six: default, pathload twice
/// and the tool, in both worlds (the tool in the lab only), and delphi in the simulator: 3·2 + 1 +
/// 1 = 8 rows. On the file, in the simulator only: pathload twice; the tool has no world left.
#[test]
fn everything_is_crossed() {
    let plan = read(FULL).unwrap();
    let names: Vec<&str> = plan.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(
        names,
        [
            // Placeholders in order of their names, the last running fastest.
            "x-10Mbit-s-near",
            "x-1Gbit-s-near",
            "x-10Mbit-s-far",
            "x-1Gbit-s-far",
            "x-10Mbit-s-farther",
            "x-1Gbit-s-farther",
            "own"
        ]
    );
    assert_eq!(plan.scenarios[1].scenario.forward[0].rate.bps(), 1_000_000_000);
    let cells = plan.cells();
    assert_eq!(cells.len(), 6 * 8 + 2);
    let runs: u32 = cells.iter().map(|cell| cell.runs).sum();
    assert_eq!(runs, 6 * (3 * 9 + 7 + 2) + 14);
    let labels: Vec<(&str, World)> = cells[..8].iter().map(|cell| (cell.subject.label(), cell.world)).collect();
    assert_eq!(
        labels,
        [
            ("default", World::Simulator),
            ("default", World::Lab),
            ("pathload quick=true", World::Simulator),
            ("pathload quick=true", World::Lab),
            ("pathload quick=false", World::Simulator),
            ("pathload quick=false", World::Lab),
            ("delphi", World::Simulator),
            ("tool", World::Lab),
        ]
    );
    assert_eq!(cells[0].seed_of(3), 103);
    assert_eq!((cells[0].keep, cells[1].keep), (1, u32::MAX));
}

/// The automatic choice per hop has parameters of its own, and needs no metric.
#[test]
fn the_choice_per_hop_is_a_row() {
    let rows = "name = \"default_per_hop\"\nparams = { last_hop = [\"answers\", \"stamps\"] }";
    let plan = read(&FULL.replace("name = \"delphi\"\nmetric = \"available_ip_capacity\"", rows)).unwrap();
    let cells = plan.cells();
    let chosen: Vec<(&str, &str)> = cells
        .iter()
        .filter_map(|cell| match &cell.subject {
            Subject::Method(method) if method.name == "default_per_hop" => {
                Some((method.label.as_str(), method.method()?.info().name))
            }
            _ => None,
        })
        .take(2)
        .collect();
    assert_eq!(chosen, [("default_per_hop last_hop=answers", "hops"), ("default_per_hop last_hop=stamps", "hops")]);
}

/// A scenario for each of the hosts, which rows and keys tell apart.
#[test]
fn scenarios_are_crossed_with_hosts() {
    let folder = folder();
    let busy = include_str!("../../../../hosts/busy.toml");
    std::fs::write(folder.path().join("busy.toml"), busy).unwrap();
    let plan = |hosts: &str| {
        let text =
            format!("name = \"p\"\n[[scenario]]\nfile = \"plain.toml\"\nhosts = {hosts}\n[[method]]\nname = \"rtt\"\n");
        Plan::from_toml(&text, Path::new("p.toml"), folder.path()).map_err(|error| error.to_string())
    };
    let crossed = plan("[\"own\", \"busy.toml\"]").unwrap();
    let [own, played] = &crossed.scenarios[..] else { panic!("{:?}", crossed.scenarios) };
    assert_eq!((own.name.as_str(), played.name.as_str()), ("own", "own-busy"));
    assert_eq!((own.profiles.as_str(), played.profiles.as_str()), ("", busy));
    assert!(own.scenario.sender.profile.is_none() && played.scenario.receiver.profile.is_some());
    let keys: Vec<crate::Key> = crossed.cells().iter().map(|cell| crate::key::Keys::of_runs(cell).seed(1)).collect();
    assert_ne!(keys[0], keys[1]);
    assert!(plan("\"none.toml\"").unwrap_err().contains("none.toml"));
    assert!(plan("\"plain.toml\"").unwrap_err().contains("plain.toml: schema"));
}

/// One profile for all paths: names stay, keys do not.
#[test]
fn a_profile_takes_the_place_of_all_hosts() {
    let folder = folder();
    let file = folder.path().join("busy.toml");
    std::fs::write(&file, include_str!("../../../../hosts/busy.toml")).unwrap();
    let text = "name = \"p\"\nworlds = [\"simulator\", \"lab\"]\n[[scenario]]\nfile = \"plain.toml\"\n[[method]]\nname = \"rtt\"\n";
    let own = Plan::from_toml(text, Path::new("p.toml"), folder.path()).unwrap();
    let mut played = own.clone();
    played.play(&file).unwrap();
    assert_eq!(played.scenarios[0].name, own.scenarios[0].name);
    assert_eq!(played.scenarios[0].scenario.name, own.scenarios[0].scenario.name);
    assert!(played.scenarios[0].scenario.sender.profile.is_some());
    assert_eq!(played.worlds, [World::Simulator]);
    let key = |plan: &Plan| crate::key::Keys::of_runs(&plan.cells()[0]).seed(1);
    assert_ne!(key(&played), key(&own));
    assert!(played.play(Path::new("none.toml")).is_err());
}

#[test]
fn published_numbers_are_read_in_their_units() {
    let plan = read(FULL).unwrap();
    let numbers = &plan.published[0].numbers;
    assert_eq!((numbers.value_bps, numbers.truth_bps), (Some(67.4e6), Some(70e6)));
    assert_eq!((numbers.octets, numbers.packets), (Some(7_200_000), Some(4800)));
    assert_eq!((numbers.seconds, numbers.error_ratio), (Some(32.0), Some(-0.037)));
    assert_eq!(plan.published[1].metric, Metric::AvailableIpCapacity);
}

/// Each of these is refused, and the error says where.
#[test]
fn refusals_name_the_place() {
    for (from, to, word) in [
        ("seed = 100", "sead = 100", "sead"),
        ("name = \"p\"", "name = \"p/q\"", "name"),
        ("runs = { simulator = 7,", "runs = { simulator = 0,", "runs: simulator"),
        ("runs = { simulator = 7,", "runs = { simulater = 7,", "simulater"),
        ("\"lab\", \"simulator\"]", "\"lab\", \"moon\"]", "moon"),
        ("worlds = [\"lab\", \"simulator\"]", "worlds = []", "worlds"),
        ("template = \"t.toml\"", "template = \"none.toml\"", "none.toml"),
        ("template = \"t.toml\"", "template = \"t.toml\"\nfile = \"t.toml\"", "exactly one"),
        ("delay = [\"1 ms\", \"5 ms\", \"10 ms\"]", "delai = [\"1 ms\"]", "scenario 1: as"),
        ("\"far\", \"farther\"]", "\"far\", \"far\"]", "twice"),
        ("\"10 Mbit/s\", \"1 Gbit/s\"]", "\"10 Mbit/s\", \"1 parsec\"]", "1 parsec"),
        ("\"far\", \"farther\"]", "\"far\"]", "3 values"),
        ("x-{{rate}}-", "x-{{speed}}-", "{{speed}}"),
        (
            "metric = \"available_ip_capacity\"\n\n[[method]]\nname = \"pathload\"",
            "\n[[method]]\nname = \"pathload\"",
            "metric",
        ),
        ("quick = [\"true\"", "quik = [\"true\"", "quik"),
        ("quick = [\"true\"", "quick = [\"perhaps\"", "perhaps"),
        ("methods = [\"pathload\"", "methods = [\"pathlode\"", "pathlode"),
        ("scenario = \"own\"", "scenario = \"owl\"", "published 2"),
        ("hop = 2", "hop = 0", "from 1"),
        ("\"67.4 Mbit/s\"", "\"67.4 miles\"", "published 1"),
        ("\"67.4 Mbit/s\"", "-5", "zero"),
        ("label = \"tool\"", "label = \"default\"", "twice"),
        ("name = \"delphi\"\nmetric = \"available_ip_capacity\"", "name = \"delphi\"", "delphi"),
        ("quick = [\"true\", \"false\"]", "quick = []", "empty"),
    ] {
        let text = FULL.replace(from, to);
        assert_ne!(text, FULL, "{from} is not in the plan");
        let error = read(&text).expect_err(word);
        assert!(error.contains(word), "{word} is not in: {error}");
    }
}

#[test]
fn values_without_a_placeholder_are_refused() {
    let text = "name = \"p\"\n[[scenario]]\ntemplate = \"t.toml\"\nwith = { rate = \"1 Gbit/s\", delay = \"1 ms\", loss = 0.1 }\n[[method]]\nname = \"rtt\"\n";
    let error = read(text).expect_err("loss is nowhere in the template");
    assert!(error.contains("{{loss}}"), "{error}");
    let text = text.replace(", loss = 0.1", "").replace(", delay = \"1 ms\"", "");
    let error = read(&text).expect_err("delay has no value");
    assert!(error.contains("{{delay}}"), "{error}");
}

/// What would not end, or not fit into memory, is refused before it is spread out.
#[test]
fn absurd_plans_are_refused() {
    let method = "[[method]]\nname = \"rtt\"\n";
    let numbers = |count: usize| {
        let words: Vec<String> = (1..=count).map(|k| format!("\"{k} ms\"")).collect();
        words.join(", ")
    };
    let crossed = |count: usize, runs: u32| {
        let list = numbers(count);
        read(&format!(
            "name = \"p\"\nruns = {{ simulator = {runs} }}\n[[scenario]]\ntemplate = \"t.toml\"\nwith = {{ rate = \"1 Gbit/s\", delay = [{list}] }}\n{method}"
        ))
    };
    assert_eq!(crossed(10, 1_000_000).unwrap().cells().len(), 10);
    let runs = crossed(11, 1_000_000).unwrap_err();
    assert!(runs.contains("11000000 runs"), "{runs}");
    let many = "{ a = [".to_owned() + &"1, ".repeat(400) + "], b = [" + &"1, ".repeat(400) + "] }";
    let combined = read(&format!("name = \"p\"\n[[scenario]]\ntemplate = \"t.toml\"\nwith = {many}\n{method}"));
    assert!(combined.unwrap_err().contains("100000 combinations"));
    let nested = read(&format!(
        "name = \"p\"\n[[scenario]]\ntemplate = \"t.toml\"\nwith = {{ delay = \"{{{{rate}}}}{{{{rate}}}}\", rate = \"1 Gbit/s\" }}\n{method}"
    ));
    assert!(nested.unwrap_err().contains("cannot hold a placeholder"));
    let endless = read(&format!("name = \"p\"\n[[scenario]]\nfile = \"/dev/zero\"\n{method}"));
    assert!(endless.unwrap_err().contains("longer than"));
}
