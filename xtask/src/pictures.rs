//! `cargo xtask pictures`: the pictures of the README and of the guide.
//!
//! Screens come from recorded runs and the report from a simulated one, so that they are the same
//! wherever they are made, but for the browser's fonts.

use anyhow::Result;

use crate::install;
use crate::shell::{built_program, root, say, shown};

const FOLDER: &str = "docs/guide/pictures";

/// The top of the report: answer, path and table.
const SIZE: &str = "--window-size=1000,1120";

/// No repository should grow by more for a picture.
const MOST_OCTETS: u64 = 150_000;

/// `--program PATH` names a program that is built already.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let Some(program) = built_program("pictures", args)? else {
        return Ok(false);
    };
    std::fs::create_dir_all(root().join(FOLDER))?;
    let drawn = shown("cargo", &["run", "-q", "-p", "narrows-report", "--example", "screens", "--", FOLDER], &[])?;
    Ok(drawn && report(&program)?)
}

/// The HTML report of the demo in the simulator, as a browser shows it.
fn report(program: &str) -> Result<bool> {
    let Some(browser) = ["chromium-headless-shell", "chromium"].into_iter().find(|name| install::found(name)) else {
        say("no picture of the report: neither chromium-headless-shell nor chromium is installed\n");
        return Ok(false);
    };
    let folder = root().join("target/pictures");
    std::fs::create_dir_all(&folder)?;
    let page = folder.join("report.html");
    let picture = format!("{FOLDER}/report.png");
    let written = shown(
        root().join(program).to_string_lossy().as_ref(),
        &[
            "demo",
            "--simulate",
            "--quiet",
            "--output",
            "target/pictures/report.txt",
            "--html",
            "target/pictures/report.html",
        ],
        &[],
    )?;
    let screenshot = format!("--screenshot={}", root().join(&picture).display());
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", SIZE];
    let page = format!("file://{}", page.display());
    if !written || !shown(browser, &[&flags[..], &[&profile, &screenshot, &page]].concat(), &[])? {
        return Ok(false);
    }
    let octets = std::fs::metadata(root().join(&picture))?.len();
    say(&format!("{picture}: {octets} octets\n"));
    Ok(octets <= MOST_OCTETS)
}
