//! What people do with the pages: walk, touch, order, sign in, and look while news come.

use narrows_fleet::config::{Agent, Config};
use serde_json::{Value, json};

use crate::cdp::Tab;
use crate::made_up::Fleet;
use crate::pages::{found_by_axe, keep};
use crate::site::{Site, local};

/// The names of the row and the column that have the focus.
const WHERE: &str =
    "(() => { const cell = document.activeElement.closest('td'); return [cell.parentElement.firstChild.textContent,
    document.querySelector('.grid thead tr').children[cell.cellIndex].textContent].join(' to '); })()";

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn the_keyboard_walks_through_the_matrix_and_opens_a_pair() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    tab.show(&site.url("/"), 1280, false);
    tab.evaluate("document.querySelector('.grid td[tabindex=\"0\"]').focus()");
    assert_eq!(tab.evaluate(WHERE), "ams-1 to ams-2");
    for (key, place) in [
        ("ArrowDown", "ams-2 to ams-2"),
        ("ArrowRight", "ams-2 to ams-3"),
        ("End", "ams-2 to lon-4"),
        ("ArrowRight", "ams-2 to lon-4"),
        ("PageDown", "lon-4 to lon-4"),
        ("Home", "lon-4 to ams-1"),
        ("ArrowUp", "lon-3 to ams-1"),
    ] {
        tab.press(key);
        assert_eq!(tab.evaluate(WHERE), place, "{key}");
    }
    let card = tab.evaluate("document.querySelector('.cell-card').textContent");
    assert!(card.as_str().is_some_and(|card| card.starts_with("lon-3 → ams-1: ")), "{card}");
    assert_eq!(tab.evaluate("document.querySelectorAll('.grid td[tabindex=\"0\"]').length"), 1);
    tab.press("Enter");
    tab.until("Enter opens the pair", "location.pathname === '/pair/lon-3/ams-1'");
}

/// For each look, how many cells have it and how many the API gave, where these differ.
const AS_ANSWERED: &str = "fetch('/api/v1/matrix?by=host').then((answer) => answer.json()).then(({ cells }) =>
    Object.entries({ inferred: 'inferred', hatched: 'inconclusive', crossed: 'failed', 'bound-low': 'at_least' })
        .map(([look, state]) => [look, document.querySelectorAll(`.grid td.${look}`).length, cells.filter((cell) => cell.state === state).length])
        .concat([['unknown', document.querySelectorAll('.grid td.unknown').length, 9900 - cells.length]])
        .filter(([, drawn, given]) => drawn !== given || given === 0))";

/// A hundred hosts: each cell is there, names stay in sight, and the time is printed.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_matrix_of_a_hundred_hosts_is_drawn_and_keeps_its_headings() {
    let site = Site::of(Fleet::large());
    let mut tab = Tab::open();
    for width in [1280, 360] {
        tab.show(&site.url("/?by=host"), width, false);
        tab.until("it is painted", "performance.getEntriesByName('matrix').length > 0");
        let [painted, answered] = [
            "performance.getEntriesByName('matrix')[0].startTime",
            "performance.getEntriesByType('resource').find((of) => of.name.includes('/matrix')).responseEnd",
        ]
        .map(|of| tab.evaluate(of).as_f64().expect("a time"));
        println!(
            "100 x 100 at {width} px: painted {painted:.0} ms after the address was opened; the API had answered after {answered:.0} ms"
        );
        assert_eq!(tab.evaluate("document.querySelectorAll('.grid td').length"), 10_000);
        assert_eq!(
            tab.evaluate(
                "[...document.querySelectorAll('.grid td')].filter((cell) => !cell.getAttribute('aria-label')).length"
            ),
            0
        );
        assert_eq!(tab.evaluate(AS_ANSWERED), json!([]), "cells that look otherwise than the API says");
        tab.evaluate("document.querySelector('.grid tbody tr:last-child td:last-child').focus()");
        let seen = tab.evaluate(
            "(() => { const box = document.querySelector('.grid-box').getBoundingClientRect(), of = (css) => document.querySelector(css).getBoundingClientRect(),
                head = of('.grid thead th:last-child'), side = of('.grid tbody tr:last-child th'), cell = document.activeElement.getBoundingClientRect();
                return [Math.round(head.top - box.top), Math.round(side.left - box.left), cell.top >= head.bottom - 1, cell.left >= side.right - 1, cell.right <= box.right]; })()",
        );
        assert_eq!(seen, json!([1, 1, true, true, true]), "{width}");
    }
}

/// Whoever sees no colours sees that one is stronger than the next, in both themes.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn shades_differ_in_lightness() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    for dark in [false, true] {
        tab.show(&site.url("/"), 1280, dark);
        let light = tab.evaluate(
            "[...document.querySelectorAll('.scale .swatch')].map((swatch) => { const [r, g, b] = getComputedStyle(swatch).backgroundColor.match(/\\d+/g)
                .map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; })",
        );
        let light: Vec<f64> = light.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        assert_eq!(light.len(), 7);
        // The contrast of WCAG 2.2 between neighbours; from the slowest on.
        let ratio = |two: &[f64]| (two[1] + 0.05) / (two[0] + 0.05);
        let steps: Vec<f64> = light.windows(2).map(ratio).map(|ratio| if dark { 1.0 / ratio } else { ratio }).collect();
        assert!(steps.iter().all(|step| *step > 1.2), "{steps:?}");
    }
}

/// At the width of a telephone a touch shows a card inside the screen, and opens nothing.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_touched_cell_shows_its_card() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    tab.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": true }));
    tab.show(&site.url("/"), 360, false);
    let place = tab.evaluate(
        "(() => { const cell = document.querySelectorAll('.grid tbody tr')[1].children[1]; cell.scrollIntoView({ block: 'center' });
            const box = cell.getBoundingClientRect(); return { x: box.x + 9, y: box.y + 9 }; })()",
    );
    tab.call("Input.dispatchTouchEvent", &json!({ "type": "touchStart", "touchPoints": [place] }));
    tab.call("Input.dispatchTouchEvent", &json!({ "type": "touchEnd", "touchPoints": [] }));
    tab.until(
        "the card is shown",
        "document.querySelector('.cell-card.on')?.textContent.startsWith('ams-2 → ams-1: ')",
    );
    let card = tab.evaluate("(() => { const box = document.querySelector('.cell-card').getBoundingClientRect(); return [box.left >= 0, box.right <= 360, box.bottom <= 900, location.pathname]; })()");
    assert_eq!(card, json!([true, true, true, "/"]));
    tab.evaluate("document.querySelector('.cell-card a').click()");
    tab.until("its link opens the pair", "location.pathname === '/pair/ams-2/ams-1'");
}

/// News change the one cell that they are about; whoever stands in the matrix stays there.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn news_change_one_cell_and_leave_the_focus() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    tab.show(&site.url("/"), 1280, false);
    tab.until("the stream is open", "document.getElementById('live').textContent === 'Live'");
    tab.evaluate("document.querySelector('.grid td[tabindex=\"0\"]').focus(); document.querySelectorAll('.grid td').forEach((cell, n) => { cell.before_ = cell.className + cell.textContent; })");
    site.news();
    tab.until("the new value is shown", "document.activeElement.textContent.includes('123 M')");
    let changed = tab.evaluate(
        "[...document.querySelectorAll('.grid td')].filter((cell) => cell.textContent.includes('123 Mbit/s')).length",
    );
    assert_eq!(changed, 1);
    assert_eq!(tab.evaluate(WHERE), "ams-1 to ams-2");
    assert!(tab.said.is_empty(), "{:#?}", tab.said);
}

/// Presses what `css` finds, and waits until the page says `words`.
fn press(tab: &mut Tab, css: &str, words: &str) {
    tab.evaluate(&format!("document.querySelector({}).click()", Value::from(css)));
    tab.until(words, &format!("document.body.innerText.includes({})", Value::from(words)));
}

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn buttons_say_what_became_of_the_order() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    tab.show(&site.url("/bottlenecks"), 1280, false);
    press(&mut tab, ".held button", "Ordered: two loading runs");
    tab.show(&site.url("/pair/ams-1/fra-1"), 1280, false);
    press(&mut tab, "form .order button", "it keeps others off host.ams-1, host.fra-1");
    tab.show(&site.url("/alerts"), 1280, false);
    press(&mut tab, "[aria-label=\"Alert core-low\"] button", "Silence 4 is made");
    press(&mut tab, "table .order button", "Silence 3 is over");
    tab.show(&site.url("/timetable"), 1280, false);
    press(&mut tab, "[data-key=\"host.ams-2\"]", "Runs of host.ams-2");
    assert_eq!(tab.evaluate("document.activeElement.dataset.key"), "host.ams-2");
    tab.show(&site.url("/configuration"), 1280, false);
    press(&mut tab, "form button.first", "4 -> 8 runs a day");
    press(&mut tab, "form button:not(.first)", "Applied.");
    let site = Site::of(Fleet::small());
    tab.show(&site.url("/fleet"), 1280, false);
    press(&mut tab, ".join button.first", "nw1.5e5e");
    press(&mut tab, "[aria-label=\"Revoke ams-1\"]", "Really revoke?");
    press(&mut tab, "[aria-label=\"Really revoke ams-1?\"]", "ams-1 is revoked");
    assert!(tab.said.is_empty(), "{:#?}", tab.said);
}

#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_text_that_means_nothing_is_not_applied() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    tab.show(&site.url("/configuration"), 1280, false);
    tab.evaluate("document.querySelector('textarea').value = '[[test]]'");
    press(&mut tab, "form button.first", "missing field");
    assert_eq!(tab.evaluate("document.querySelector('form button:not(.first)').hidden"), true);
}

/// The target answers a trace too.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn a_route_ends_at_its_target_and_counts_routers_alone() {
    let site = Site::of(Fleet::small());
    let mut tab = Tab::open();
    tab.show(&site.url("/pair/ams-1/fra-1"), 1280, false);
    let hops = tab.evaluate("[...document.querySelectorAll('.route li')].map((hop) => hop.textContent)");
    assert_eq!(hops, json!(["ams-1", "192.0.2.1", "192.0.2.9", "no answer", "192.0.2.17", "fra-1"]));
    let said = tab.evaluate("document.querySelector('.route').previousSibling.textContent");
    let said = said.as_str().expect("a sentence");
    assert!(said.starts_with("4 routers, of which 1 did not answer"), "{said}");
}

/// The rules that the page shows for a beginning are some.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn the_example_of_the_alerts_is_a_configuration() {
    let site = Site::of(Fleet::empty());
    let mut tab = Tab::open();
    tab.show(&site.url("/alerts"), 1280, false);
    let text = tab.evaluate("document.querySelector('pre').textContent");
    let config = Config::read(text.as_str().expect("a text")).expect("it is right");
    assert_eq!(config.resolve(&[], 1, 0).expect("it fits").alerts.len(), 2);
}

/// The file that the page shows for a beginning is one.
#[test]
#[ignore = "lab: needs chromium-headless-shell"]
fn the_example_of_the_timetable_is_a_configuration() {
    let site = Site::of(Fleet::young());
    let mut tab = Tab::open();
    tab.show(&site.url("/timetable"), 1280, false);
    let text = tab.evaluate("document.querySelector('pre').textContent");
    let config = Config::read(text.as_str().expect("a text")).expect("it is right");
    let agent = |name: &str| Agent { name: name.parse().expect("a name"), labels: std::collections::BTreeMap::new() };
    let fleet = config.resolve(&[agent("one"), agent("two")], 1, 0).expect("it fits");
    assert_eq!(fleet.tests[0].pairs.len(), 2, "{fleet:?}");
}

#[test]
#[ignore = "lab: needs chromium-headless-shell, axe-core"]
fn whoever_shows_the_token_comes_in() {
    let token = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(token.path(), "a token of many letters\n").expect("it is writable");
    let settings = narrows_site::Settings { token_file: Some(token.path().to_owned()), ..local() };
    let site = Site::with(settings, Fleet::small());
    let mut tab = Tab::open();
    for (width, dark) in [(1280, false), (1280, true), (360, false), (360, true)] {
        tab.show(&site.url("/"), width, dark);
        assert_eq!(tab.evaluate("document.querySelector('h1').textContent"), "Sign in");
        keep(&mut tab, &format!("sign-in-{width}-{}", if dark { "dark" } else { "light" }));
    }
    let found = found_by_axe(&mut tab);
    assert_eq!(found, json!([]), "{found:#}");
    let send = |secret: &str| {
        format!(
            "document.querySelector('[name=secret]').value = '{secret}'; document.querySelector('form button').click()"
        )
    };
    tab.evaluate(&send("a wrong one of many letters"));
    tab.until("the page says so", "document.querySelector('[role=alert]').textContent !== ''");
    tab.evaluate(&send("a token of many letters"));
    tab.until("the matrix is shown", "document.querySelectorAll('.grid td').length === 144");
}
