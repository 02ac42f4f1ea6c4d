use narrows_units::{BitRate, Octets};
use narrows_watch::schedule::{NightTest, Turn};

use super::*;

fn files(texts: &[&str]) -> Vec<(PathBuf, String)> {
    texts.iter().zip(1..).map(|(text, number)| (PathBuf::from(format!("{number}.toml")), (*text).to_owned())).collect()
}

#[test]
fn a_host_alone_has_the_defaults() {
    let settings = merged(&[], &["far.example".to_owned()]).unwrap();
    let [target] = &settings.targets[..] else { panic!("{settings:?}") };
    assert_eq!((target.name.as_str(), target.family, target.port), ("far.example", Family::Auto, None));
    assert!((target.budget.share - 0.01).abs() < 1e-12 && target.budget.night.is_some());
}

#[test]
fn files_add_up_and_a_target_overrides() {
    let first = r#"
        [budget]
        share = "2 %"
        per_day = "1 GB"
        test = "light"
        [[target]]
        host = "a.example"
        name = "office"
        family = "both"
        phase = "2/2"
        budget = { share = "0.5 %", first_capacity = "10 Mbit/s" }
        [[alert]]
        name = "low"
        when = "available < 20 Mbit/s"
        clear = "> 22 Mbit/s"
        notify = ["ops"]
    "#;
    let second = r#"
        [budget]
        per_day = "auto"
        [store]
        max_size = "2 GB"
        [[target]]
        host = "b.example"
        [channel.ops]
        kind = "webhook"
        url = "http://127.0.0.1/"
    "#;
    let settings = merged(&files(&[first, second]), &["b.example".to_owned(), "c.example".to_owned()]).unwrap();
    let names: Vec<&str> = settings.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["office/4", "office/6", "b.example", "c.example"]);
    let (office, other) = (&settings.targets[0].budget, &settings.targets[2].budget);
    assert!((office.share - 0.005).abs() < 1e-12 && office.turn == Turn::new(2, 2));
    assert_eq!((office.first_capacity, office.test), (BitRate::from_mbps(10), NightTest::Light));
    assert!((other.share - 0.02).abs() < 1e-12 && other.per_day.is_none(), "the later file outweighs");
    assert_eq!(settings.rules[0].clear_for, 3);
    assert_eq!(settings.max_size, Some(Octets::new(2_000_000_000)));
    assert_eq!(settings.channels["ops"]["kind"].as_str(), Some("webhook"));
    let fixed = merged(&files(&["[budget]\nper_day = \"1 GB\"\n[[target]]\nhost = \"x\""]), &[]).unwrap();
    assert_eq!(fixed.targets[0].budget.per_day, Some(Octets::new(1_000_000_000)));
    assert_eq!(fixed.max_size, None);
}

#[test]
fn what_is_wrong_is_named_with_its_file() {
    for (text, words) in [
        ("[[target]]\nhost = \"x\"\ncolour = 1", &["1.toml", "line 3", "colour"][..]),
        ("[store]\nmax_size = \"2 MB\"", &["1.toml", "store.max_size", "10 MB"]),
        ("[store]\nmax_size = \"much\"", &["store.max_size", "much"]),
        ("[store]\nsize = \"2 GB\"", &["1.toml", "line 2", "size"]),
        ("[buget]", &["1.toml", "buget"]),
        ("[[target]]\nname = \"x\"", &["1.toml", "host"]),
        ("[[target]]\nhost = \"x\"\nphase = \"3/2\"", &["\"x\"", "phase"]),
        ("[[target]]\nhost = \"x\"\nphase = \"1/1\"", &["\"x\"", "phase", "1/2"]),
        ("[[target]]\nhost = \"x\"\nvia = \"smoke\"", &["via", "smoke"]),
        ("[budget]\nshare = \"1\"\n[[target]]\nhost = \"x\"", &["budget.share"]),
        ("[budget]\nnight = \"9\"\n[[target]]\nhost = \"x\"", &["budget.night"]),
        ("[[target]]\nhost = \"x\"\n[[target]]\nhost = \"x\"", &["\"x\"", "twice"]),
        ("[[alert]]\nname = \"a\"\nwhen = \"speed < 3\"", &["\"a\"", "when", "speed"]),
        ("[[alert]]\nname = \"a\"\nwhen = \"route_changed\"\nclear = \"> 3\"", &["\"a\"", "clear"]),
        ("[[alert]]\nname = \"a\"\nwhen = \"route_changed\"\nnotify = [\"ops\"]", &["\"a\"", "ops"]),
        ("[[target]", &["1.toml", "line 1"]),
    ] {
        let fault = merged(&files(&[text]), &[]).expect_err(text).to_string();
        assert!(words.iter().all(|word| fault.contains(word)), "{text}: {fault}");
    }
}
