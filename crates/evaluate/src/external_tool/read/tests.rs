//! On what the programs really printed, over real-time paths of 50 Mbit/s (one hop), and of 100, 10
//! and 100 Mbit/s (`pchar`, `bing`).

use super::super::{Adapter, builtin};
use super::*;

fn adapter(name: &str) -> Adapter {
    builtin(name).unwrap().unwrap()
}

fn printed(text: &str) -> Texts {
    let own = Printed { stdout: text.to_owned(), stderr: String::new() };
    Texts { client: own.clone(), after: own.clone(), server: own }
}

fn rate(bps: u64) -> ParsedNumber {
    ParsedNumber::Rate { value_bps: bps, interval_bps: None }
}

fn scalar(name: &str, text: &str) -> (ParsedNumber, PrintedCost) {
    let reading = adapter(name).read(&printed(text)).unwrap();
    let [Number { hop: None, found }] = reading.numbers.as_slice() else {
        panic!("{name}: {reading:?}");
    };
    (found.clone(), reading.printed)
}

#[test]
fn one_number_for_the_path() {
    let cost = |octets, packets, seconds| PrintedCost { octets, packets, seconds };
    let cases = [
        ("iperf3-tcp", include_str!("data/iperf3-tcp.json"), 46_751_232, cost(Some(17_974_024), None, Some(3.000_161))),
        (
            "iperf3-udp",
            include_str!("data/iperf3-udp.json"),
            47_742_413,
            cost(Some(37_490_168), Some(25_891), Some(3.000_084)),
        ),
        ("iperf2-tcp", include_str!("data/iperf2-tcp.txt"), 46_804_150, cost(Some(18_087_996), None, Some(3.0917))),
        // What the server reports, not what was offered two lines above.
        ("iperf2-udp", include_str!("data/iperf2-udp.txt"), 47_792_060, cost(None, Some(26_718), None)),
        ("nuttcp-tcp", include_str!("data/nuttcp-tcp.txt"), 46_969_300, cost(Some(18_146_342), None, Some(3.09))),
        ("nuttcp-udp", include_str!("data/nuttcp-udp.txt"), 47_797_300, cost(None, Some(25_476), Some(3.0))),
        ("d-itg-udp", include_str!("data/d-itg-udp.txt"), 47_841_512, cost(None, None, None)),
    ];
    for (name, text, bps, cost) in cases {
        assert_eq!(scalar(name, text), (rate(bps), cost), "{name}");
    }
}

/// Lines as the programs' sources format them; nobody here has run these programs.
#[test]
fn research_programs_are_read_as_they_print() {
    let range = |low: u64, high| ParsedNumber::Rate { value_bps: low.midpoint(high), interval_bps: Some((low, high)) };
    let one = |name: &str, text: &str| scalar(name, text).0;
    let pathload = "Available bandwidth range : 44.50 - 46.20 (Mbps)\nMeasurements finished at Sat\n";
    assert_eq!(one("pathload", pathload), range(44_500_000, 46_200_000));
    let pathrate = "-----\nFinal capacity estimate :  96 Mbps  to  98 Mbps  \n-----\n";
    assert_eq!(one("pathrate", pathrate), range(96_000_000, 98_000_000));
    let spruce = Printed { stdout: "sender starting up\nsender finished\n".to_owned(), ..Printed::default() };
    let spruce = Printed { stderr: "availalble bandwidth estimate: 67120 Kbps\n".to_owned(), ..spruce };
    let texts = Texts { client: spruce, after: Printed::default(), server: Printed::default() };
    assert_eq!(adapter("spruce").read(&texts).unwrap().numbers[0].found, rate(67_120_000));
    let wbest = "\tmean At: 81.250000 Mbps\n\tmean Ab: 66.500000 Mbps\n\tmean Ab with loss: 66.250000 Mbps\n";
    let wbest = Printed { stdout: wbest.to_owned(), ..Printed::default() };
    let texts = Texts { client: Printed::default(), after: Printed::default(), server: wbest };
    assert_eq!(adapter("wbest").read(&texts).unwrap().numbers[0].found, rate(66_250_000));
    assert_eq!(one("assolo", "1322049600.125000 64.500000\n1322049605.250000 66.750000\n"), rate(66_750_000));
    let yaz = "## setting max_space to be 1000\n1 1322049600.125000 1322049601.250000 0\n\
               2 1322049601.750000 1322049603.125000 64516\n";
    assert_eq!(one("yaz", yaz), rate(64_516_000));
    let none = adapter("yaz").read(&printed(&format!("{yaz}3 1322049603.5 1322049604.25 0\n"))).unwrap();
    assert!(matches!(none.numbers[0].found, ParsedNumber::Inconclusive(_)), "{none:?}");
    let both =
        "\nPTR:  58.125 Mpbs (suggested)\nIGI:  61.500 Mpbs\nProbing uses 1.250 seconds, 9 trains, ending at a gap\n";
    assert_eq!(scalar("ptr", both), (rate(58_125_000), PrintedCost { seconds: Some(1.25), ..PrintedCost::default() }));
    assert_eq!(one("igi", both), rate(61_500_000));
    let obudpst = r#"{"Output":{"Summary":{"IPLayerCapacitySummary":48.25},"AtMax":{"MaxIPLayerCapacity":48.77}}}"#;
    assert_eq!(one("obudpst", obudpst), rate(48_250_000));
    let none = adapter("pathload").read(&printed("Avail-bw > 95.00 (Mbps)\n")).unwrap();
    assert!(matches!(none.numbers[0].found, ParsedNumber::Inconclusive(_)), "{none:?}");
}

#[test]
fn one_number_per_hop() {
    let hops = |name: &str, text: &str| adapter(name).read(&printed(text)).unwrap().numbers;
    let number = |(hop, found): (u16, ParsedNumber)| Number { hop: Some(hop), found };
    assert_eq!(
        hops("pchar", include_str!("data/pchar.txt")),
        [(1, rate(97_650_990)), (2, rate(10_140_773)), (3, rate(60_215_511))].map(number)
    );
    // The last of two rounds counts, and it has no number for the first hop.
    let none = ParsedNumber::Inconclusive("----.--".to_owned());
    assert_eq!(
        hops("bing", include_str!("data/bing.txt")),
        [(1, none), (2, rate(9_579_860)), (3, rate(100_060_000))].map(number)
    );
    for name in ["pchar", "bing"] {
        assert!(adapter(name).is_per_hop());
    }
    assert!(!adapter("iperf3-tcp").is_per_hop());
}

#[test]
fn a_hop_without_a_rate_is_inconclusive() {
    let text = include_str!("data/pchar.txt");
    for word in ["--.---", "-531.25", "nan", "inf", "0.000000", "1e30"] {
        let text = text.replace("10140.772888 Kbps\n    Hop", &format!("{word} Kbps\n    Hop"));
        let numbers = adapter("pchar").read(&printed(&text)).unwrap().numbers;
        assert_eq!(numbers[1].found, ParsedNumber::Inconclusive(word.to_owned()));
        assert_eq!(numbers[0].found, rate(97_650_990));
    }
}

#[test]
fn a_program_that_failed_is_quoted() {
    let refused = r#"{"start":{}, "end":{}, "error":"unable to connect to server: Connection refused"}"#;
    let error = adapter("iperf3-tcp").read(&printed(refused)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no number at /end/sum_received/bits_per_second: unable to connect to server: Connection refused"
    );
    let error = adapter("nuttcp-tcp").read(&printed("nuttcp: nothing of the kind\n")).unwrap_err();
    assert_eq!(error, ReadError::NoMatch { excerpt: "nuttcp: nothing of the kind".to_owned() });
    let no_report = "[  1] 0.0000-3.0002 sec  39327424 Bytes  104866559 bits/sec\n\
                     [  1] WARNING: did not receive ack of last datagram after 10 tries.\n";
    let (found, _) = scalar("iperf2-udp", no_report);
    assert_eq!(found, ParsedNumber::Inconclusive("did not receive ack of last datagram".to_owned()));
}

/// The description of `docs/guide/external-tools.md`, as it stands there, reads the output that
/// stands there.
#[test]
fn the_documented_example_works() {
    let page = include_str!("../../../../../docs/guide/external-tools.md");
    let block = |language: &str, holds: &str| {
        let blocks = page.split("```");
        let found = blocks.filter_map(|block| block.strip_prefix(language)).find(|block| block.contains(holds));
        found.unwrap().to_owned()
    };
    let adapter = Adapter::from_toml(&block("toml", "pathload_rcv")).unwrap();
    let reading = adapter.read(&printed(&block("text", "RESULT"))).unwrap();
    assert_eq!(
        reading.numbers,
        [Number {
            hop: None,
            found: ParsedNumber::Rate { value_bps: 45_350_000, interval_bps: Some((44_500_000, 46_200_000)) }
        }]
    );
    assert_eq!(reading.printed.seconds, Some(10.67));
    let reading = adapter.read(&printed("Avail-bw > maximum sending rate.\n")).unwrap();
    assert!(matches!(&reading.numbers[..], [Number { found: ParsedNumber::Inconclusive(_), .. }]));
}

fn reader(read: &str) -> Adapter {
    let text = format!(
        "name = 'x'\nabout = ''\nmetric = 'ip_capacity'\nlayer = 'ip'\nprogram.needs = ['x']\n\
         client = {{ command = ['x'], timeout = '1 s' }}\n[read]\n{read}\n"
    );
    Adapter::from_toml(&text).unwrap()
}

#[test]
fn intervals_and_order() {
    let both = reader(r"pattern = '(?P<value>\d+) \[(?P<low>\d+), (?P<high>\d+)\]'");
    let found = |text: &str| both.read(&printed(text)).map(|reading| reading.numbers[0].found.clone());
    assert_eq!(found("5 [0, 9]"), Ok(ParsedNumber::Rate { value_bps: 5, interval_bps: Some((0, 9)) }));
    assert_eq!(found("5 [9, 4]"), Err(ReadError::Interval { low: 9, high: 4 }));
    let many = "1 Kbps\n2 Mbps\n3 Gbps\n";
    let value = |which: &str| {
        let read = format!("pattern = '(?P<value>\\d+) (?P<unit>\\S+)'\nwhich = '{which}'");
        reader(&read).read(&printed(many)).unwrap().numbers[0].found.clone()
    };
    assert_eq!((value("first"), value("last")), (rate(1000), rate(3_000_000_000)));
    let unit = reader(r"pattern = '(?P<value>\d+) (?P<unit>\S+)'");
    assert_eq!(unit.read(&printed("1 furlong")), Err(ReadError::Unit("furlong".to_owned())));
    let scaled = reader("pattern = '(?P<value>\\d+)'\nunit = 'kB/s'\nscale = 1.024");
    assert_eq!(scaled.read(&printed("10")).unwrap().numbers[0].found, rate(81_920));
}

#[test]
fn hostile_output_is_an_error_and_no_more() {
    let long = "1".repeat(4 << 20);
    let binary: String = (0..20_000).filter_map(|n: u32| char::from_u32(n * 7 % 0x300)).collect();
    let one = |hop: u32| format!(" {hop}: a (a)\n    Hop char: rtt = 1 ms, bw = 5 Kbps\n");
    let hops = (0..2000).map(one).collect::<Vec<_>>().concat();
    let deep = "[".repeat(1_000_000);
    for text in ["", &long, &binary, &deep, "{}", "null", "\u{fffd}\0\r\n"] {
        for (name, _) in super::super::BUILT_IN {
            let adapter = adapter(name);
            assert!(adapter.read(&printed(text)).is_err(), "{name}");
        }
    }
    assert_eq!(adapter("pchar").read(&printed(&hops)), Err(ReadError::TooManyHops(HOPS)));
    let huge = " 99999: a (a)\n    Hop char: rtt = 1 ms, bw = 5 Kbps\n";
    assert_eq!(adapter("pchar").read(&printed(huge)), Err(ReadError::Hop("99999".to_owned())));
}
