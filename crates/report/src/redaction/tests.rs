use proptest::prelude::*;

use super::*;
use crate::report_file::ReportFile;
use crate::report_file::tests::{ADDRESS as SEEN, INTERFACE, document};

fn redaction() -> Redaction {
    let target = Target { name: "far.example".to_owned(), address: "192.0.2.7".parse().ok(), port: None };
    let mut redaction = Redaction::of_target(&target);
    redaction.hide_this_host("near");
    redaction.hide("eth0", "interface-1");
    redaction
}

#[test]
fn names_and_addresses_are_replaced_in_sentences() {
    for (text, expected) in [
        ("far.example (192.0.2.7) refused TCP 8620", "host-1 (host-1) refused TCP 8620"),
        ("FAR.example:8620, 192.0.2.7:8620", "host-1:8620, host-1:8620"),
        ("net.ipv4.conf.eth0.rp_filter on near", "net.ipv4.conf.interface-1.rp_filter on this-host"),
        ("a nearby eth01", "a nearby eth01"),
        ("by 203.0.113.9, 2001:db8::1 and fe80::", "by address, address and address"),
        ("02:00:5e:10:00:01 at [2001:db8::1]:53", "address at [address]:53"),
        ("at 12:30:45, 1.5 s, 99.3 %, version 0.1.0", "at 12:30:45, 1.5 s, 99.3 %, version 0.1.0"),
        ("::", "address"),
        ("", ""),
    ] {
        assert_eq!(redaction().text(text), expected, "{text}");
    }
}

#[test]
fn a_label_is_not_replaced_again() {
    let mut redaction = Redaction::default();
    redaction.hide("host", "hop-1");
    redaction.hide("x", "host");
    assert_eq!(redaction.text("x host x"), "host hop-1 host");
}

/// Everything that a document can be written as.
fn forms(document: &Document) -> Vec<String> {
    let file = ReportFile::of(document, "");
    vec![
        document.text(),
        document.long_text(),
        document.netest_text(),
        document.json(),
        document.row_json(),
        document.csv(),
        file.html(),
        file.markdown(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No name and no address survives, in whatever form.
    #[test]
    fn nothing_of_a_name_survives(name in "zq[a-z0-9.-]{1,40}x", here in "zh[a-z0-9-]{1,20}y", remote in "zr[A-Z0-9-]{1,20}w") {
        let original = document(&name, [&here, &remote], 5);
        for form in forms(&original.redacted()) {
            let form = form.to_lowercase();
            for hidden in [name.as_str(), here.as_str(), remote.as_str(), SEEN, INTERFACE] {
                prop_assert!(!form.contains(&hidden.to_lowercase()), "{hidden} in {form}");
            }
        }
    }

    /// Arbitrary text goes through without a panic, and without the name.
    #[test]
    fn any_text_is_bearable(before in ".{0,30}", after in ".{0,30}") {
        let text = redaction().text(&format!("{before} far.example {after}"));
        prop_assert!(!text.contains("far.example"), "{text}");
    }
}

#[test]
fn the_same_name_has_the_same_label_everywhere() {
    let document = document("zq-there", ["zq-here", "zq-there"], 5).redacted();
    assert_eq!(document.target.name, "host-1");
    assert_eq!(document.host.receiver_environment.hostname.as_deref(), Some("host-1"));
    assert_eq!(document.host.sender_environment.hostname.as_deref(), Some("this-host"));
    assert!(document.answer[0].text.ends_with("to host-1"), "{:?}", document.answer);
    assert_eq!(document.notes[0].text, "host-1 was reached at host-1:8620 over interface-1");
}
