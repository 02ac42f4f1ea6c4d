//! The pages of a fleet in a real browser, over made-up fleets.

#[path = "../../examples/fleet_pages/answers.rs"]
mod answers;
#[path = "../../examples/fleet_pages/api.rs"]
mod api;
#[path = "../../src/assets.rs"]
mod assets;
#[path = "../../../web/tests/all/cdp.rs"]
mod cdp;
#[path = "../../examples/fleet_pages/made_up.rs"]
mod made_up;
mod pages;
#[path = "../../examples/fleet_pages/reports.rs"]
mod reports;
mod site;
mod use_them;
