use super::*;

const GOOD: &str = r#"
name = "tool"
about = "a tool"
metric = "udp_achievable"
layer = "udp_payload"

[program]
needs = ["toold", "tool"]

[params]
port = 7
seconds = 2.5
colour = "red"
loud = true

[server]
command = ["toold", "-p", "{port}"]
ready = { tcp_port = "{port}" }

[client]
command = ["tool", "{receiver}:{port}", "-b{rate_udp_kbps}k", "-t{milliseconds}", "--{colour}={loud}", "-l", "{udp_payload}"]
timeout = "3 s"

[read]
pattern = '(?P<value>\d+) (?P<unit>\S+)'
"#;

fn setting() -> Setting {
    Setting {
        sender: "10.0.0.1".parse().unwrap(),
        receiver: "10.0.0.2".parse().unwrap(),
        mtu: 1500,
        line_rate: BitRate::from_mbps(100),
    }
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn client_words(given: &[(&str, &str)]) -> Result<Vec<String>, ExternalToolError> {
    let adapter = Adapter::from_toml(GOOD).unwrap();
    let values = adapter.values(&setting(), Path::new("/tmp/f"), &params(given))?;
    Ok(adapter.client.words(&values))
}

#[test]
fn placeholders_are_filled_in() {
    assert_eq!(client_words(&[]).unwrap(), ["tool", "10.0.0.2:7", "-b98133k", "-t2500", "--red=true", "-l", "1472"]);
    assert_eq!(
        client_words(&[("rate", "30 Mbit/s"), ("seconds", "1"), ("colour", "{port}")]).unwrap(),
        ["tool", "10.0.0.2:7", "-b29440k", "-t1000", "--{port}=true", "-l", "1472"]
    );
}

#[test]
fn parameters_of_plans_are_checked() {
    let said = |given: &[(&str, &str)]| client_words(given).unwrap_err().to_string();
    assert_eq!(said(&[("clour", "blue")]), "tool has no parameter clour; it has: colour, loud, port, seconds, rate");
    for value in ["-1", "nan", "soon", "1e9"] {
        assert_eq!(
            said(&[("seconds", value)]),
            format!("tool: parameter seconds: {value:?} is no number of seconds up to a day")
        );
    }
    assert_eq!(said(&[("rate", "fast")]), "tool: parameter rate: \"fast\" is no rate, such as \"20 Mbit/s\"");
}

#[test]
fn defaults_are_what_the_page_says() {
    let adapter = Adapter::from_toml(GOOD).unwrap();
    assert_eq!(adapter.direction(), Direction::Forward);
    assert_eq!(adapter.client.host, Host::Sender);
    assert_eq!(adapter.server.as_ref().unwrap().0.host, Host::Receiver);
    assert!(!adapter.interrupt && !adapter.is_per_hop());
}

#[test]
fn layers_convert_by_the_packets_that_the_program_sends() {
    let adapter = Adapter::from_toml(GOOD).unwrap();
    let rate = BitRate::from_bps(1_472_000);
    let ip = adapter.at_layer(rate, Layer::Ip, 1500, Framing::ETHERNET);
    assert_eq!(ip, Some(BitRate::from_bps(1_500_000)));
    let pchar = super::super::builtin("pchar").unwrap().unwrap();
    let ip = pchar.at_layer(BitRate::from_mbps(100), Layer::Ip, 1500, Framing::ETHERNET);
    assert_eq!(ip, Some(BitRate::from_bps(97_529_259)));
    let small = Adapter::from_toml(&GOOD.replace("layer =", "ip_octets = 128\nlayer =")).unwrap();
    let ip = small.at_layer(BitRate::from_mbps(100), Layer::Ip, 1500, Framing::BARE);
    assert_eq!(ip, Some(BitRate::from_mbps(128)));
}

/// What is replaced in the good description, by what, and the complaint.
const MISTAKES: [(&str, &str, &str); 19] = [
    (
        "name = \"tool\"",
        "name = \"a tool\"",
        "name: \"a tool\" is no name: letters, digits, '.', '_' and '-', at most 64",
    ),
    ("udp_achievable", "path_mtu", "metric: the values of path_mtu are no rates; an adapter reads a rate"),
    ("udp_achievable", "goodput", "unknown variant `goodput`"),
    ("layer = \"udp_payload\"", "", "missing field `layer`"),
    ("about =", "abuot =", "unknown field `abuot`"),
    ("[\"tool\", \"{rec", "[\"pool\", \"{rec", "client.command: program \"pool\" is not in program.needs"),
    (
        "{receiver}",
        "{reciever}",
        "client.command: {reciever} stands for nothing; there are: colour, folder, loud, milliseconds, mtu",
    ),
    ("{receiver}", "{receiver", "a brace without its partner"),
    ("[\"toold\", \"-p\", \"{port}\"]", "[]", "server.command: an empty command"),
    ("colour = \"red\"", "mtu = 5", "params.mtu: the placeholder of this name has a meaning of its own"),
    ("timeout = \"3 s\"", "timeout = \"3\"", "client.timeout: \"3\" is no time, such as \"20 s\""),
    ("'(?P<value>\\d+) (?P<unit>\\S+)'", "'(?P<value>'", "read.pattern: found open group without closing"),
    ("(?P<value>\\d+)", "\\d+", "read.pattern: the pattern has no group `value`, nor both `low` and `high`"),
    ("pattern = '(?P<value>\\d+) (?P<unit>\\S+)'", "", "read: give either `pattern` or `json`"),
    (
        "pattern = '(?P<value>\\d+) (?P<unit>\\S+)'",
        "json = { value = 'end' }",
        "read.json: \"end\" is no JSON pointer: it must begin with '/'",
    ),
    ("[read]", "[read]\nunit = 'furlong'", "read.unit: \"furlong\" is no unit of rates"),
    ("[read]", "[read]\nscale = -1", "read.scale: a scale is a number above zero"),
    ("[read]", "[read]\nfrom = 'after'", "read.from: there is no [after]"),
    (
        "{ tcp_port = \"{port}\" }",
        "{ tcp_port = \"7\", after = \"1 s\" }",
        "server.ready: give one of `tcp_port`, `udp_port`, `line`, `after`",
    ),
];

#[test]
fn each_mistake_is_named() {
    for (from, to, expected) in MISTAKES {
        assert!(GOOD.contains(from), "{from}");
        let error = Adapter::from_toml(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn an_expression_that_would_take_too_much_memory_is_refused() {
    let bomb = GOOD.replacen("(?P<value>\\d+)", "(?P<value>\\d{1000}{1000})", 1);
    let error = Adapter::from_toml(&bomb).unwrap_err().to_string();
    assert!(error.contains("exceeded size limit"), "{error}");
}
