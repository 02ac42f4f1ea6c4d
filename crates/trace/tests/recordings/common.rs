//! Runs of methods over the scenarios that ship, recorded.

use std::path::Path;

use narrows_probe::{Measured, Method, Order, Outcome, RawParams, run};
use narrows_scenario::{Expectation, PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_trace::{Played, Recorder, Recording, Setting, WorldKind, Writer};

/// Every scenario that ships, by the order of their names, with its text.
pub(crate) fn scenarios() -> Vec<(Scenario, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the scenarios ship")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|own| own == "toml"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("it is text");
            let scenario = Scenario::from_toml(&text).expect("it is a scenario");
            (scenario, text)
        })
        .collect()
}

/// The scenarios that expect something of this method.
pub(crate) fn of_method(name: &str) -> Vec<(Scenario, String, Expectation)> {
    let mut all = Vec::new();
    for (scenario, text) in scenarios() {
        if let Some(expectation) = scenario.expect.iter().find(|expectation| expectation.method == name) {
            let expectation = expectation.clone();
            all.push((scenario, text, expectation));
        }
    }
    all
}

/// A path on which `rtt` asks for its two echoed trains and no more: it is too long for hosts to
/// matter.
pub(crate) fn waiting_path() -> (Scenario, String, Expectation) {
    let mut all = of_method("rtt").into_iter();
    all.find(|(scenario, ..)| scenario.name == "rtt-waiting-path").expect("it is among the scenarios")
}

pub(crate) fn params(pairs: &[(String, String)]) -> RawParams {
    pairs.iter().cloned().collect()
}

/// One run, and its recording's octets.
pub(crate) fn recorded(
    scenario: &Scenario,
    text: &str,
    method: &dyn Method,
    raw: &RawParams,
    seed: u64,
) -> (Measured, Vec<u8>) {
    let played = Played { scenario: scenario.name.clone(), text: text.to_owned(), seed };
    let setting = Setting::new(WorldKind::Simulator).playing(played);
    let world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let writer = Writer::new(Vec::new()).expect("memory can be written");
    let mut recorder = Recorder::new(world, writer, setting).with_true_time(|world| Some(world.true_time()));
    let budget = method.imposes(raw).budget();
    let order = Order::new(method, raw, budget).expect("the scenario's parameters are good");
    let Ok(measured) = run(&mut recorder, order);
    let (_, writer, fault) = recorder.into_parts();
    assert!(fault.is_none(), "{fault:?}");
    let octets = writer.expect("nothing failed").finish().expect("memory can be written");
    (measured, octets)
}

pub(crate) fn read(octets: &[u8]) -> Recording {
    let recording = Recording::read(octets).expect("it is a recording");
    assert_eq!(recording.damage, None);
    recording
}

/// Undefined numbers equal themselves here.
pub(crate) fn text(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).expect("outcomes are JSON")
}
