//! How long a browser takes to show the matrix of 100 x 100 hosts, from the beginning of the
//! navigation until it is painted: `cargo xtask bench matrix` runs this.
//!
//! Each first load has a browser of its own that never saw the page; each second one is the same
//! browser's next navigation. The server answers from a made-up fleet, in this process.

#[path = "../fleet_pages/answers.rs"]
mod answers;
#[path = "../fleet_pages/api.rs"]
mod api;
#[path = "../../src/assets.rs"]
mod assets;
#[allow(dead_code, reason = "tests press keys and read what a page said, too")]
#[path = "../../../web/tests/all/cdp.rs"]
mod cdp;
#[allow(dead_code, reason = "the pages show other fleets, too")]
#[path = "../fleet_pages/made_up.rs"]
mod made_up;
#[path = "../fleet_pages/reports.rs"]
mod reports;
#[allow(dead_code, reason = "tests send news, too")]
#[path = "../../tests/browser/site.rs"]
mod site;

use std::fmt::Write as _;

use cdp::Tab;
use made_up::Fleet;
use site::Site;

/// Loads of each kind, unless the first argument is another number.
const ROUNDS: usize = 20;
const CELLS: i64 = 10_000;

/// Times of a load in ms after the navigation began, in the order in which they come.
const TIMES: [(&str, &str); 3] = [
    ("the document was there", "performance.getEntriesByType('navigation')[0].responseEnd"),
    (
        "the API had answered",
        "performance.getEntriesByType('resource').find((of) => of.name.includes('/matrix')).responseEnd",
    ),
    ("painted", "performance.getEntriesByName('matrix')[0].startTime"),
];

fn main() {
    let rounds = std::env::args().nth(1).map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let mut table = "| width | load | figure | median | longest | of |\n|-|-|-|-|-|-|\n".to_owned();
    for width in [1280, 360] {
        let mut figures = [const { [const { Vec::new() }; TIMES.len()] }; 2];
        for _ in 0..rounds {
            let site = Site::of(Fleet::large());
            let mut tab = Tab::open();
            for figures in &mut figures {
                load(&mut tab, &site, width, figures);
            }
        }
        for (load, figures) in ["first", "second"].into_iter().zip(figures) {
            for ((name, _), mut all) in TIMES.into_iter().zip(figures) {
                all.sort_by(f64::total_cmp);
                let (median, longest) = (all[all.len() / 2], all[all.len() - 1]);
                // Writing to a text cannot fail.
                let _ = writeln!(
                    table,
                    "| {width} px | {load} | {name} | {median:.0} ms | {longest:.0} ms | {} |",
                    all.len()
                );
            }
        }
    }
    std::io::Write::write_all(&mut std::io::stdout(), table.as_bytes()).expect("somebody reads it");
}

fn load(tab: &mut Tab, site: &Site, width: u32, figures: &mut [Vec<f64>; TIMES.len()]) {
    // What the page before had painted is not this one's.
    tab.navigate("about:blank", width, false);
    tab.navigate(&site.url("/?by=host"), width, false);
    tab.until("it is painted", "performance.getEntriesByName('matrix').length > 0");
    assert_eq!(tab.evaluate("document.querySelectorAll('.grid td').length"), CELLS, "not all cells are there");
    for ((_, expression), all) in TIMES.into_iter().zip(figures) {
        all.push(tab.evaluate(expression).as_f64().expect("a time"));
    }
}
