//! Each page at two widths, light and dark: no word on the console, nothing that the policy
//! forbids, nothing that stands out at the side, nothing that axe-core finds.
//!
//! `NARROWS_SCREENSHOTS=FOLDER` keeps a picture of each.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cdp::Tab;
use crate::made_up::Fleet;
use crate::site::Site;

/// A fleet, and names and paths of its pages.
type Case = (fn() -> Fleet, &'static [(&'static str, &'static str)]);

const PAGES: [(&str, &str); 12] = [
    ("matrix", "/"),
    ("age", "/?metric=rtt&shade=age"),
    ("pair", "/pair/ams-1/fra-1"),
    ("bottlenecks", "/bottlenecks"),
    ("links", "/links"),
    ("alerts", "/alerts"),
    ("timetable", "/timetable"),
    ("run", "/run/019ab000-0001-7000-8000-00000000abcd"),
    ("orders", "/orders"),
    ("configuration", "/configuration"),
    ("fleet", "/fleet"),
    ("missing", "/pair/ams-1/nobody"),
];
const YOUNG: [(&str, &str); 4] = [
    ("young-matrix", "/"),
    ("young-pair", "/pair/measuring-host-in-frankfurt-am-main-1/measuring-host-in-frankfurt-am-main-2"),
    ("young-timetable", "/timetable"),
    ("young-fleet", "/fleet"),
];
const ALONE: [(&str, &str); 2] = [("alone-matrix", "/"), ("alone-timetable", "/timetable")];
const EMPTY: [(&str, &str); 8] = [
    ("empty-matrix", "/"),
    ("empty-bottlenecks", "/bottlenecks"),
    ("empty-links", "/links"),
    ("empty-alerts", "/alerts"),
    ("empty-timetable", "/timetable"),
    ("empty-orders", "/orders"),
    ("empty-configuration", "/configuration"),
    ("empty-fleet", "/fleet"),
];
const LARGE: [(&str, &str); 2] = [("sites", "/"), ("hundred", "/?by=host")];

/// Where `cargo xtask test` puts axe-core.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe-core/axe.min.js");

fn each_page(mut look: impl FnMut(&mut Tab, &str)) {
    let mut tab = Tab::open();
    let mut sites = Vec::new();
    let fleets: [Case; 5] = [
        (Fleet::small, &PAGES),
        (Fleet::young, &YOUNG),
        (Fleet::alone, &ALONE),
        (Fleet::empty, &EMPTY),
        (Fleet::large, &LARGE),
    ];
    for (fleet, pages) in fleets {
        for (name, path) in pages {
            // A browser in a hurry asks more of one server than it answers in a second. A page
            // whose server ends says so, so all of them stay.
            let site = Site::of(fleet());
            for width in [360, 1280] {
                for dark in [false, true] {
                    let case = format!("{name}-{width}-{}", if dark { "dark" } else { "light" });
                    tab.show(&site.url(path), width, dark);
                    look(&mut tab, &case);
                }
            }
            sites.push(site);
        }
    }
}

#[test]
#[ignore = "lab: needs chromium-headless-shell, axe-core"]
fn pages_of_a_fleet_are_quiet_and_fit_their_width_and_axe_finds_nothing() {
    each_page(|tab, case| {
        keep(tab, case);
        assert!(tab.said.is_empty(), "{case}: {:#?}", tab.said);
        let wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wide, 0, "{case} is too wide");
        let clipped = tab.evaluate(CLIPPED);
        assert_eq!(clipped, Value::Array(Vec::new()), "{case}: text that is cut off");
        // Both widths and both colours, each once: it takes a second or more.
        if case.ends_with("360-dark") || case.ends_with("1280-light") {
            let found = found_by_axe(tab);
            assert_eq!(found, Value::Array(Vec::new()), "{case}: {found:#}");
        }
    });
}

/// Keeps a picture of the page, if somebody wants to look at it.
pub(crate) fn keep(tab: &mut Tab, case: &str) {
    if let Some(folder) = std::env::var_os("NARROWS_SCREENSHOTS").map(PathBuf::from) {
        let picture = STANDARD.decode(tab.picture()).expect("base64");
        std::fs::write(folder.join(format!("{case}.png")), picture).expect("the folder is writable");
    }
}

/// What axe-core finds on the page as it is; what is folded is a page's content too.
pub(crate) fn found_by_axe(tab: &mut Tab) -> Value {
    let axe = std::fs::read_to_string(AXE).expect("cargo xtask test puts axe-core there");
    tab.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })");
    tab.evaluate(&axe);
    tab.evaluate(FOUND)
}

const FOUND: &str = "axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => [id, nodes.slice(0, 5).map((node) => [node.html, node.failureSummary])]))";

/// Text that its own box cuts off.
const CLIPPED: &str = "[...document.querySelectorAll('main *')].filter((one) =>
    one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && ['hidden', 'clip'].includes(getComputedStyle(one).overflowX)
).map((one) => one.outerHTML.slice(0, 200))";

/// Whoever presses Tab sees where it went, and comes to every control; the grid is one stop.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn every_stop_of_the_tab_key_in_a_fleet_has_a_ring() {
    let mut tab = Tab::open();
    let wanted: [(&str, &[&str]); 8] = [
        ("/", &["skip", "A", "SELECT", "TD", "wide-table"]),
        ("/pair/ams-1/fra-1", &["chart", "SUMMARY", "SELECT", "BUTTON"]),
        ("/alerts", &["SUMMARY", "SELECT", "BUTTON"]),
        ("/run/019ab000-0001-7000-8000-00000000abcd", &["A", "SUMMARY", "wide-table"]),
        ("/orders", &["A", "wide-table"]),
        ("/configuration", &["diff", "TEXTAREA", "first"]),
        ("/timetable", &["INPUT", "BUTTON"]),
        ("/fleet", &["BUTTON", "PRE"]),
    ];
    let site = Site::of(Fleet::small());
    for (path, wanted) in wanted {
        tab.show(&site.url(path), 1280, path == "/fleet");
        let mut stops = Vec::new();
        for _ in 0..150 {
            tab.press("Tab");
            let stop = tab.evaluate(
                "(() => { const at = document.activeElement, style = getComputedStyle(at);
                    return at === document.body ? null : [at.tagName === 'TD' ? 'TD' : at.className || at.tagName, style.outlineStyle, parseFloat(style.outlineWidth)]; })()",
            );
            if stop.is_null() {
                break;
            }
            assert!(stop[1] == "solid" && stop[2].as_f64() >= Some(2.0), "{path}: {stop}");
            stops.push(stop[0].as_str().unwrap_or_default().to_owned());
        }
        for wanted in wanted {
            assert!(stops.iter().any(|stop| stop == wanted), "{path}: {wanted}: {stops:?}");
        }
        assert!(stops.iter().filter(|stop| *stop == "TD").count() <= 1, "{path}: {stops:?}");
    }
}
