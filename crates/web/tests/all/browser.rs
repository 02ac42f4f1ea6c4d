//! Each page at two widths, light and dark: no word on the console, nothing that the policy
//! forbids, nothing that stands out at the side, nothing that axe-core finds.
//!
//! `NARROWS_SCREENSHOTS=FOLDER` keeps a picture of each; `NARROWS_AXE=axe.min.js` names axe-core.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cdp::Tab;
use crate::site::Site;

fn pages(site: &Site) -> Vec<(&'static str, String)> {
    let runs = site.json("/api/v1/runs?target=office&since=24h&limit=20");
    let slice = runs["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["kind"] == "slice"));
    let run = slice.and_then(|run| run["id"].as_str()).expect("a run").to_owned();
    vec![
        ("overview", "/".to_owned()),
        ("target", "/target/office?range=24h".to_owned()),
        ("year", "/target/lab?range=1y".to_owned()),
        ("gone", "/target/far?range=24h".to_owned()),
        ("run", format!("/run/{run}")),
        ("path", "/path/office".to_owned()),
        ("compare", "/compare?target=office".to_owned()),
        ("missing", "/target/nobody".to_owned()),
    ]
}

/// Where axe-core is: named, or where `cargo xtask test` put it.
fn axe() -> Option<String> {
    let named = std::env::var_os("NARROWS_AXE").map(PathBuf::from);
    let usual = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe-core/axe.min.js"));
    std::fs::read_to_string(named.unwrap_or_else(usual)).ok()
}

fn each_page(mut look: impl FnMut(&mut Tab, &str)) {
    let mut tab = Tab::open();
    // A page whose server ends says so, so all of them stay.
    let mut sites = Vec::new();
    for (name, path) in pages(&Site::start()) {
        // A browser in a hurry asks more of one server than it answers in a second.
        let site = Site::start();
        site.live.ready();
        for width in [360, 1280] {
            for dark in [false, true] {
                let case = format!("{name}-{width}-{}", if dark { "dark" } else { "light" });
                tab.show(&format!("http://{}{path}", site.address), width, dark);
                look(&mut tab, &case);
            }
        }
        sites.push(site);
    }
}

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn pages_are_quiet_and_fit_their_width() {
    let folder = std::env::var_os("NARROWS_SCREENSHOTS").map(PathBuf::from);
    each_page(|tab, case| {
        if let Some(folder) = &folder {
            let picture = STANDARD.decode(tab.picture()).expect("base64");
            std::fs::write(folder.join(format!("{case}.png")), picture).expect("the folder is writable");
        }
        assert!(tab.said.is_empty(), "{case}: {:#?}", tab.said);
        let wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wide, 0, "{case} is too wide");
        let heading = tab.evaluate("document.querySelectorAll('h1').length");
        assert_eq!(heading, 1, "{case}");
    });
}

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn axe_finds_nothing() {
    let Some(axe) = axe() else {
        println!("NOT JUDGED: pages: axe-core is not there (target/axe-core/axe.min.js)");
        return;
    };
    each_page(|tab, case| {
        // What is folded is a page's content too.
        tab.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })");
        tab.evaluate(&axe);
        let found = tab.evaluate("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map((node) => [node.html, node.failureSummary])]))");
        assert_eq!(found, Value::Array(Vec::new()), "{case}: {found:#}");
    });
}

/// A chart is read and opened without a mouse.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn the_keyboard_reads_a_chart_and_opens_a_run() {
    let site = Site::start();
    let mut tab = Tab::open();
    tab.show(&format!("http://{}/target/office?range=6h", site.address), 1280, false);
    tab.evaluate("document.querySelector('.chart').focus()");
    tab.press("ArrowLeft");
    let readout = tab.evaluate("document.querySelector('.readout').textContent");
    assert!(readout.as_str().is_some_and(|readout| readout.contains("23.4 Mbit/s")), "{readout}");
    tab.press("Enter");
    tab.until("Enter opens the run", "location.pathname.startsWith('/run/')");
}
