use super::super::record;
use super::*;

const OUTPUT: &str = r#"{"schema":"narrows.simulation/1","method":"slope","runs":[{"value_bps":100,"others_yield":1.5,"caveats":[{"id":"others_yield","text":"others gave way"}],"evidence":{"a/b":[1,2,null]}},{"value_bps":null,"notes":["a","b"]}]}"#;

fn document(stdout: &str) -> Document {
    Document {
        group: "scenarios".to_owned(),
        call: ["simulate", "scenarios/a.toml", "--others", "--param", "car=2"].map(str::to_owned).to_vec(),
        exit: Some(0),
        stdout: stdout.to_owned(),
        stderr: String::new(),
    }
}

fn tally(old: &Document, new: &Document, names: &Names, texts: bool) -> Tally {
    let mut tally = Tally::default();
    tally.add(old, new, names, texts);
    tally
}

fn paths(old: &str, new: &str, names: &str) -> Vec<String> {
    let names = Names::parse(names).unwrap();
    let tally = tally(&document(old), &document(new), &names, false);
    tally.differences.into_iter().map(|difference| difference.path).collect()
}

#[test]
fn the_same_output_has_no_difference() {
    let names = Names::default();
    let tally = tally(&document(OUTPUT), &document(OUTPUT), &names, true);
    assert!(tally.differences.is_empty(), "{:?}", tally.differences);
    // Exit and complaint; schema, method; four of the first run and three of its evidence; one and
    // two of the second.
    assert_eq!((tally.documents, tally.values), (1, 14));
}

/// One digit changed in a copy of the record is found, and named.
#[test]
fn a_tampered_record_is_found() {
    let folder = std::env::temp_dir().join(format!("narrows-golden-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("record.gz");
    record::write(&path, &[document(&OUTPUT.replace("100", "101"))]).unwrap();
    let tampered = record::read(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let found = tally(&tampered[0], &document(OUTPUT), &Names::default(), false).differences;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].to_string(),
        "scenarios: simulate scenarios/a.toml --others --param car=2\n    /stdout/0/runs/0/value_bps: was 101, is 100"
    );
}

#[test]
fn every_kind_of_change_is_found() {
    for (from, to, path) in [
        ("\"value_bps\":100", "\"value_bps\":100.0", "/stdout/0/runs/0/value_bps"),
        ("\"value_bps\":null", "\"value_bps\":0", "/stdout/0/runs/1/value_bps"),
        ("1.5", "1.5000000000000002", "/stdout/0/runs/0/others_yield"),
        ("[1,2,null]", "[1,2]", "/stdout/0/runs/0/evidence/a~1b/2"),
        ("\"slope\"", "\"curve\"", "/stdout/0/method"),
        ("others gave way", "", "/stdout/0/runs/0/caveats/0/text"),
    ] {
        assert_eq!(paths(OUTPUT, &OUTPUT.replace(from, to), ""), [path]);
        assert_eq!(paths(&OUTPUT.replace(from, to), OUTPUT, ""), [path]);
    }
    let mut failed = document(OUTPUT);
    failed.exit = Some(1);
    failed.stderr = "it broke".to_owned();
    let found = tally(&document(OUTPUT), &failed, &Names::default(), false).differences;
    let found: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
    assert_eq!(found, ["/exit", "/stderr/text"]);
}

#[test]
fn texts_count_when_asked_for() {
    let new = document(&OUTPUT.replace("others gave way", "cross traffic backed off"));
    let names = Names::default();
    assert!(tally(&document(OUTPUT), &new, &names, false).differences.is_empty());
    assert_eq!(tally(&document(OUTPUT), &new, &names, true).differences.len(), 1);
    let names = Names::parse("[words]\n\"others gave way\" = \"cross  traffic\\nbacked off\"").unwrap();
    assert!(tally(&document(OUTPUT), &new, &names, true).differences.is_empty());
}

#[test]
fn where_a_replay_left_its_recording_counts() {
    let old = r#"{"differs":"asked for 7 octets at step 31","result":null}"#;
    let new = r#"{"differs":"step 31: 7 octets","result":null}"#;
    assert_eq!(paths(old, new, ""), [""; 0]);
    assert_eq!(paths(old, &new.replace('7', "8"), ""), ["/stdout/0/differs"]);
}

#[test]
fn names_are_mapped_before_anything_is_compared() {
    let new = OUTPUT
        .replace("\"others_yield\":1.5", "\"backed_off\":1.5")
        .replace("\"id\":\"others_yield\"", "\"id\":\"elastic_cross_traffic\"");
    let names = "[keys]\nothers_yield = \"backed_off\"\n[values]\nothers_yield = \"elastic_cross_traffic\"";
    assert_eq!(paths(OUTPUT, &new, names), [""; 0]);
    assert_eq!(paths(OUTPUT, &new, "").len(), 3);
    // A map that no longer fits is as bad as a missing one.
    assert_eq!(paths(OUTPUT, OUTPUT, names).len(), 3);
}

#[test]
fn calls_are_mapped() {
    let names = "[keys]\ncar = \"sub_train\"\n[flags]\nsimulate = \"sim run\"\n\"--others\" = \"--cross-traffic\"\n\
                 [files]\n\"scenarios/\" = \"shared/\"\n\"scenarios/a\" = \"shared/b\"";
    let call = Names::parse(names).unwrap().call(&document(""));
    let expected = ["sim", "run", "shared/b.toml", "--cross-traffic", "--param", "sub_train=2"];
    assert_eq!(call.args, expected);
    let whole = "[calls]\n\"simulate scenarios/a.toml --others --param car=2\" = \"simulate b\"";
    assert_eq!(Names::parse(whole).unwrap().call(&document("")).args, ["simulate", "b"]);
}

#[test]
fn keys_may_move() {
    let new = OUTPUT
        .replace("\"others_yield\":1.5,", "")
        .replace("\"evidence\":{", "\"diagnostics\":{\"cross\":{\"yield\":1.5}},\"evidence\":{");
    let names =
        "[[moved]]\nfrom = \"/stdout/*/runs/*/others_yield\"\nto = \"/stdout/*/runs/*/diagnostics/cross/yield\"";
    assert_eq!(paths(OUTPUT, &new, names), [""; 0]);
    assert_eq!(paths(OUTPUT, &new.replace("1.5", "1.6"), names).len(), 1);
}

#[test]
fn wanted_differences_are_counted_and_must_be_there() {
    let new = OUTPUT.replace("\"value_bps\":100", "\"value_bps\":102,\"unit\":\"bit/s\"");
    let text = "[[added]]\npath = \"**/unit\"\nreason = \"typed\"\n\
                [[intended]]\npath = \"/stdout/*/runs/*/value_bps\"\nreason = \"mended\"\ndocuments = \"*a.toml*\"\n";
    let names = Names::parse(text).unwrap();
    assert!(tally(&document(OUTPUT), &document(&new), &names, false).differences.is_empty());
    assert!(names.unused().is_empty());
    assert!(names.uses().contains("1 intended /stdout/*/runs/*/value_bps: mended"), "{}", names.uses());
    // Nothing differs: both are unused. What is only added may not hide a change.
    let names = Names::parse(text).unwrap();
    tally(&document(OUTPUT), &document(OUTPUT), &names, false);
    assert_eq!(names.unused().len(), 2);
    assert_eq!(paths(OUTPUT, &new, &text.replace("intended", "added")).len(), 1);
    assert_eq!(paths(OUTPUT, &new, &text.replace("*a.toml*", "*b.toml*")).len(), 1);
    assert!(Names::parse(&text.replace("mended", " ")).is_err());
}
