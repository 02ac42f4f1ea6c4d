//! From the click on "1y" until the chart is drawn, in a browser.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cdp::Tab;
use crate::served::Served;
use crate::{Failure, nap, percentiles, say};

const WHAT: &str = "page of a year, click to chart";
const GOAL: &str = "below 200 ms";

pub(crate) fn click_to_chart(server: &Served) -> Result<(), Failure> {
    let there =
        Command::new("chromium-headless-shell").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        say(WHAT, GOAL, "not measured: chromium-headless-shell is not installed");
        return Ok(());
    }
    let mut tab = Tab::open();
    let mut times = Vec::new();
    for n in 0..20 {
        tab.show(&format!("http://{}/target/t{}?range=24h", server.address, 1 + n), 1280, false);
        // A page asks a dozen questions, and an address has twenty a second.
        nap(Duration::from_millis(1500));
        tab.evaluate("document.querySelector('a[href=\"?range=1y\"]').click()");
        tab.until(
            "a year is drawn",
            "location.search === '?range=1y' && performance.getEntriesByName('chart').length > 0",
        );
        // Since the click, by the browser's own clock.
        let millis = tab.evaluate("performance.getEntriesByName('chart')[0].startTime");
        times.push(Duration::from_secs_f64(millis.as_f64().ok_or("a number")? / 1e3));
        nap(Duration::from_millis(1500));
    }
    say(WHAT, GOAL, &percentiles(&mut times));
    Ok(())
}
