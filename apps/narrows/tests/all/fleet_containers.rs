//! What the compose file and the chart start: their words are the program's, their probes
//! are answered, their ports are those of the services.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{Running, directory, free_port, narrows, run};
use crate::fleet_faults::fleet::{Part, within};

fn read(path: &str) -> String {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    std::fs::read_to_string(packaging.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words after `ExecStart=`, without the program.
fn exec(unit: &str) -> Vec<String> {
    let text = read(unit);
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/narrows ")).expect("a command");
    line.split_whitespace().map(ToOwned::to_owned).collect()
}

/// A YAML list in one line: `[agent, run]`.
fn list(text: &str) -> Vec<String> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).expect("a list in one line");
    inner.split(',').map(|word| word.trim().to_owned()).collect()
}

/// The items of the first `args:` after the line that names the container; lines of control are
/// left out, so that every flag is there once.
fn items(template: &str, container: &str) -> Vec<String> {
    let mut lines = template.lines().skip_while(|line| line.trim() != container);
    let args = lines.by_ref().find(|line| line.trim_start().starts_with("args:")).expect("it has args");
    let indent = args.len() - args.trim_start().len();
    let within = lines.take_while(|line| line.len() - line.trim_start().len() > indent);
    within.filter_map(|line| line.trim().strip_prefix("- ")).map(ToOwned::to_owned).collect()
}

/// An item with each expression replaced; one that is not known is a fault of this test.
fn filled(item: &str, values: &BTreeMap<&str, &str>) -> String {
    let mut text = item.to_owned();
    for (expression, value) in values {
        text = text.replace(expression, value);
    }
    assert!(!text.contains("{{") && !text.contains("$("), "{item}: what is that worth?");
    text
}

fn value(values: &str, key: &str) -> String {
    let line = values.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
    line.unwrap_or_else(|| panic!("values.yaml has no {key}")).to_owned()
}

#[test]
fn containers_run_what_the_services_run() {
    let compose = read("fleet/compose.yaml");
    let commands: Vec<_> = compose.lines().filter_map(|line| line.trim().strip_prefix("command: ")).map(list).collect();
    assert_eq!(commands, [exec("narrows-hub.service"), exec("narrows-agent.service")]);
    let (hub, agent) = (read("fleet/chart/templates/hub.yaml"), read("fleet/chart/templates/agent.yaml"));
    assert_eq!(items(&hub, "- name: hub")[..1], exec("narrows-hub.service"));
    assert!(agent.contains(&format!("args: [{}]", exec("narrows-agent.service").join(", "))));
    // Where each keeps its state is what the variable says, and what is mounted.
    for (name, text) in [("compose.yaml", &compose), ("hub.yaml", &hub), ("agent.yaml", &agent)] {
        let said = text.matches("STATE_DIRECTORY").count();
        assert_eq!(said, text.matches("/var/lib/narrows").count() / 2, "{name}: each is mounted where it is said");
    }
    // The ports are those that the program has by itself.
    let help = |words: &[&str]| run(&[words, &["--help"]].concat()).stdout;
    let (listens, serves) = (help(&["hub"]), help(&["agent", "join"]));
    assert!(listens.contains("[default: 0.0.0.0:8622]") && hub.contains("containerPort: 8622"));
    assert!(hub.contains("port: 8622, targetPort: https") && agent.contains("svc:8622"));
    assert_eq!(value(&read("fleet/chart/values.yaml"), "port"), "8620");
    assert!(serves.contains("[default: 8620]"), "{serves}");
}

#[test]
#[ignore = "lab: processes in real time"]
fn the_hub_of_the_chart_starts_and_its_agent_joins() {
    let home = directory();
    let (listen, port) = (format!("127.0.0.1:{}", free_port()), free_port().to_string());
    let (chart, agent) = (read("fleet/chart/templates/hub.yaml"), read("fleet/chart/templates/agent.yaml"));
    let store = format!("sqlite:{}", home.path().join("hub.db").display());
    let values = BTreeMap::from([
        ("{{ .Release.Name }}", "net"),
        ("{{ .Release.Namespace }}", "default"),
        ("--host={{ . }}", "--host=hub.example"),
        ("--bus={{ . }}", "--bus=embedded"),
        ("$(NARROWS_STORE)", &store),
    ]);
    let words: Vec<String> = items(&chart, "- name: hub").iter().map(|item| filled(item, &values)).collect();
    println!("narrows {}", words.join(" "));
    let (state, listens) = (home.path().join("hub"), listen.clone());
    std::fs::create_dir(&state).expect("a temporary directory can be written");
    let folder = state.clone();
    let hub = Part::new("hub", home.path(), move || {
        let mut hub = narrows(&words);
        hub.env("STATE_DIRECTORY", &folder).env("NARROWS_HUB_LISTEN", &listens).arg("--json");
        hub
    });
    // What the kubelet asks, as the probes have it.
    let probes: Vec<&str> =
        chart.lines().filter_map(|line| line.trim().strip_prefix("httpGet: {path: ")?.split(',').next()).collect();
    assert_eq!(probes.len(), 2, "{probes:?}");
    for path in probes {
        let ok = || {
            let mut asked = Command::new("curl");
            asked.args(["-sk", "-o", "/dev/null", "-w", "%{http_code}", &format!("https://{listen}{path}")]);
            asked.output().is_ok_and(|asked| asked.stdout == b"200")
        };
        within(path, Duration::from_secs(60), ok);
    }
    let said = std::fs::read_to_string(home.path().join("hub.out")).expect("what it said");
    let said: serde_json::Value = serde_json::from_str(said.lines().next().expect("a line")).expect("JSON");
    let (url, token) = (format!("https://{listen}"), said["join"].as_str().expect("a token"));
    let address = "{{ .Values.agent.hub | default (printf \"https://%s-hub.%s.svc:8622\" .Release.Name .Release.Namespace) | quote }}";
    let values = BTreeMap::from([
        ("$(NODE_ADDRESS)", "127.0.0.1"),
        ("{{ .Values.agent.port }}", port.as_str()),
        (address, url.as_str()),
        ("$(JOIN_TOKEN)", token),
    ]);
    let words: Vec<String> = items(&agent, "- name: join").iter().map(|item| filled(item, &values)).collect();
    println!("narrows {}", words.join(" "));
    let state = home.path().join("agent");
    std::fs::create_dir(&state).expect("a temporary directory can be written");
    // Its pod may be replaced: it joins no second time.
    for _ in 0..2 {
        let joined = Running::start(narrows(&words).env("STATE_DIRECTORY", &state)).end();
        assert_eq!(joined.status.code(), Some(0), "{joined:?}");
    }
    // To run it needs the hub's name, which only a cluster knows.
    drop(hub);
}
