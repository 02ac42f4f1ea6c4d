//! Each page at two widths, light and dark: no word on the console, nothing that the policy
//! forbids, nothing that stands out at the side, nothing that axe-core finds.
//!
//! `NARROWS_SCREENSHOTS=FOLDER` keeps a picture of each.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use narrows_watch::detect::Learning;
use narrows_web::Source;
use serde_json::{Value, json};

use crate::begun::Begun;
use crate::cdp::Tab;
use crate::site::{Site, local};
use crate::year::{OFFICE, Year};

fn pages(site: &Site) -> Vec<(&'static str, String)> {
    let runs = site.json("/api/v1/runs?target=office&since=24h&limit=20");
    let slice = runs["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["kind"] == "slice"));
    let run = slice.and_then(|run| run["id"].as_str()).expect("a run").to_owned();
    let busy = busy_run(site);
    vec![
        ("overview", "/".to_owned()),
        ("target", "/target/office?range=24h".to_owned()),
        ("year", "/target/lab?range=1y".to_owned()),
        ("gone", "/target/far?range=24h".to_owned()),
        ("run", format!("/run/{run}")),
        ("busy", format!("/run/{busy}")),
        ("path", "/path/office".to_owned()),
        ("compare", "/compare?target=office".to_owned()),
        ("missing", "/target/nobody".to_owned()),
    ]
}

/// A run for which the server had no slot.
fn busy_run(site: &Site) -> String {
    let runs = site.json("/api/v1/runs?target=office&since=24h&limit=2000");
    let busy = runs["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["outcome"] == "server_busy"));
    busy.and_then(|run| run["id"].as_str()).expect("a busy run").to_owned()
}

/// Where `cargo xtask test` puts axe-core.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe-core/axe.min.js");

fn each_page(mut look: impl FnMut(&mut Tab, &str)) {
    let mut tab = Tab::open();
    // A page whose server ends says so, so all of them stay.
    let mut sites = Vec::new();
    let mut show = |source: Arc<dyn Source>, name: &str, path: &str| {
        // A browser in a hurry asks more of one server than it answers in a second.
        let site = Site::of(local(), source);
        site.live.ready();
        if name.starts_with("two-minutes") {
            site.live.learning(OFFICE, Some(Learning { values: 2, of: 60 }));
        }
        for width in [360, 1280] {
            for dark in [false, true] {
                let case = format!("{name}-{width}-{}", if dark { "dark" } else { "light" });
                tab.show(&format!("http://{}{path}", site.address), width, dark);
                look(&mut tab, &case);
            }
        }
        sites.push(site);
    };
    for (name, path) in pages(&Site::start()) {
        show(Arc::new(Year), name, &path);
    }
    show(Arc::new(Begun(None)), "empty", "/");
    show(Arc::new(Begun(Some(20))), "start-overview", "/");
    show(Arc::new(Begun(Some(20))), "start-target", "/target/office");
    show(Arc::new(Begun(Some(130))), "two-minutes-overview", "/");
    show(Arc::new(Begun(Some(130))), "two-minutes", "/target/office");
}

/// What axe-core finds on the page as it is; what is folded is a page's content too.
fn found_by_axe(tab: &mut Tab, axe: &str) -> Value {
    tab.evaluate(UNFOLD);
    tab.evaluate(axe);
    tab.evaluate("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map((node) => [node.html, node.failureSummary])]))")
}

#[test]
#[ignore = "lab: needs chromium-headless-shell, axe-core"]
fn pages_are_quiet_and_fit_their_width_and_axe_finds_nothing() {
    let folder = std::env::var_os("NARROWS_SCREENSHOTS").map(PathBuf::from);
    let axe = std::fs::read_to_string(AXE).expect("cargo xtask test puts axe-core there");
    each_page(|tab, case| {
        if let Some(folder) = &folder {
            let picture = STANDARD.decode(tab.picture()).expect("base64");
            std::fs::write(folder.join(format!("{case}.png")), picture).expect("the folder is writable");
        }
        assert!(tab.said.is_empty(), "{case}: {:#?}", tab.said);
        let wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wide, 0, "{case} is too wide");
        let clipped = tab.evaluate(CLIPPED);
        assert_eq!(clipped, Value::Array(Vec::new()), "{case}: text that is cut off");
        let found = found_by_axe(tab, &axe);
        assert_eq!(found, Value::Array(Vec::new()), "{case}: {found:#}");
    });
}

/// Opens what is folded, and what is folded within. Each is made as it opens.
const UNFOLD: &str = "for (let closed; (closed = document.querySelector('details:not([open])'));) {
    closed.open = true;
    closed.dispatchEvent(new Event('toggle'));
}";

/// Text that its own box cuts off, and text of a picture that leaves the picture.
const CLIPPED: &str = "[...document.querySelectorAll('main *')].filter((one) => {
    const style = getComputedStyle(one);
    const hidden = one.clientWidth > 0 && ['hidden', 'clip'].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1;
    const box = one.tagName === 'text' && one.ownerSVGElement.getBoundingClientRect();
    const own = box && one.getBoundingClientRect();
    return hidden || (box && (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1));
}).map((one) => one.outerHTML.slice(0, 200))";

/// A check that finds nothing must be able to find something.
#[test]
#[ignore = "lab: needs chromium-headless-shell, axe-core"]
fn axe_finds_what_is_wrong() {
    let axe = std::fs::read_to_string(AXE).expect("cargo xtask test puts axe-core there");
    let site = Site::start();
    let mut tab = Tab::open();
    tab.show(&format!("http://{}/compare", site.address), 1280, false);
    tab.evaluate("document.querySelector('main').append(document.createElement('button'))");
    tab.evaluate("document.querySelector('h1').style.color = '#ccc'");
    let found = found_by_axe(&mut tab, &axe).to_string();
    assert!(found.contains("button-name") && found.contains("color-contrast"), "{found}");
}

/// A cause may lie at one of several hops, and a number in a name is no hop.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn each_hop_at_which_a_cause_may_lie_is_marked() {
    let site = Site::start();
    let mut tab = Tab::open();
    let marked = "[...document.querySelectorAll('.pipe text.hot')].map((text) => text.textContent)";
    tab.show(&format!("http://{}/target/office", site.address), 1280, false);
    assert_eq!(tab.evaluate(marked), json!(["▲ 4–5"]));
    assert_eq!(tab.evaluate("document.querySelectorAll('.pipe .hop.hot').length"), 2);
    let other = "import(performance.getEntriesByType('resource').map((one) => one.name).find((name) => name.endsWith('pipe.js')))
        .then(async ({ pipe }) => {
            const hops = Array(12).fill({ addresses: ['192.0.2.1'], round_trip_ns: 1 });
            const incident = { cause: 'shared segment (hop 10.0.0.2)', first_hop: null, last_hop: null };
            document.querySelector('main').replaceChildren(pipe({ name: 'far', path: { hops }, incident }));
            while (!document.querySelector('svg.pipe')) await new Promise(requestAnimationFrame);
            return [document.querySelectorAll('.pipe .hop').length, document.querySelectorAll('.pipe .hot').length];
        })";
    assert_eq!(tab.evaluate(other), json!([11, 0]));
}

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_run_without_a_result_says_why() {
    let site = Site::start();
    let mut tab = Tab::open();
    tab.show(&format!("http://{}/run/{}", site.address, busy_run(&site)), 1280, false);
    let text = tab.evaluate("document.querySelector('main').innerText").to_string();
    for wanted in ["server busy", "No slot within 5 s.", "It has no result."] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

/// What a picture shows is in a table too: the day of a target, and the numbers of the evidence.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn small_pictures_have_tables() {
    let site = Site::start();
    let mut tab = Tab::open();
    let [overview, run] = [&pages(&site)[0].1, &pages(&site)[4].1].map(|path| format!("http://{}{path}", site.address));
    tab.show(&overview, 1280, false);
    tab.evaluate(UNFOLD);
    let rows = tab.evaluate("[...document.querySelectorAll('.card table')].map((table) => table.rows.length)");
    assert!(
        rows.as_array().is_some_and(|rows| rows.len() == 3 && rows.iter().all(|rows| rows.as_u64() > Some(50))),
        "{rows}"
    );
    tab.show(&run, 1280, false);
    tab.evaluate(UNFOLD);
    let rows = tab.evaluate(
        "[...document.querySelectorAll('figure')].map((figure) => figure.querySelector('table').rows.length)",
    );
    assert!(
        rows.as_array().is_some_and(|rows| !rows.is_empty() && rows.iter().all(|rows| rows.as_u64() > Some(4))),
        "{rows}"
    );
}

/// Changes of one incident come within minutes: their numbers would cover each other.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn numbers_of_events_that_would_touch_stand_as_one() {
    let site = Site::start();
    let mut tab = Tab::open();
    tab.show(&format!("http://{}/target/office?range=24h", site.address), 360, false);
    let texts = tab.evaluate(
        "import(performance.getEntriesByType('resource').map((one) => one.name).find((name) => name.endsWith('chart.js')))
            .then(({ joined }) => joined(
                [[0, 6], [100, 5], [104, 4], [118, 3], [200, 2], [300, 1]].map(([x, number]) => ({ x, numbers: [number] })),
                (text) => 7 * text.length, [0, 300], 6))
            .then((texts) => texts.map(({ text, from, to }) => `${text}: ${Math.round(from)} to ${Math.round(to)}`))",
    );
    assert_eq!(texts, json!(["6: 0 to 7", "3–5: 97 to 118", "2: 197 to 204", "1: 293 to 300"]));
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

/// Whoever presses Tab sees where it went, and comes to every control and every chart.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn every_stop_of_the_tab_key_has_a_ring() {
    let site = Site::start();
    let mut tab = Tab::open();
    for dark in [false, true] {
        tab.show(&format!("http://{}/target/office", site.address), 1280, dark);
        let mut stops = Vec::new();
        for _ in 0..80 {
            tab.press("Tab");
            let stop = tab.evaluate(
                "(() => { const at = document.activeElement, style = getComputedStyle(at);
                    return at === document.body ? null : [at.className || at.tagName, style.outlineStyle, parseFloat(style.outlineWidth)]; })()",
            );
            if stop.is_null() {
                break;
            }
            assert!(stop[1] == "solid" && stop[2].as_f64() >= Some(2.0), "{stop}");
            stops.push(stop[0].as_str().unwrap_or_default().to_owned());
        }
        for wanted in ["skip", "chart", "chart heat", "SUMMARY", "SELECT", "BUTTON", "INPUT"] {
            assert!(stops.iter().any(|stop| stop == wanted), "{wanted}: {stops:?}");
        }
    }
}

/// No process of the browser is there once its tab is dropped, also by a panic.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_browser_ends_with_its_tab() {
    let mut profile = String::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let tab = Tab::open();
        profile = tab.profile.path().display().to_string();
        assert!(!processes(&profile).is_empty(), "the browser runs");
        panic!("as a test does");
    }));
    assert!(panicked.is_err());
    assert_eq!(processes(&profile), Vec::<String>::new());
}

/// The command lines that hold `word`.
fn processes(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = all.filter_map(|of| std::fs::read_to_string(of.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(word)).collect()
}
