//! Scenarios from files, and from templates with values crossed.

use std::path::Path;
use std::sync::Arc;

use narrows_host_profile::HostProfile;

use narrows_report::World;

use super::file::{COMBINATIONS, ScenarioFile, combinations, texts};
use super::{is_name, worlds};
use crate::error::PlanError;
use crate::hosts;
use crate::subject::PlannedScenario;
use crate::text_file::read;

/// Most octets of all scenarios that one entry makes: ours, a bound on memory.
const MOST_OCTETS: usize = 256 << 20;

pub(super) fn cross(files: &[ScenarioFile], folder: &Path) -> Result<Vec<Arc<PlannedScenario>>, PlanError> {
    let mut all = Vec::new();
    for (index, file) in files.iter().enumerate() {
        one(file, &format!("scenario {}", index + 1), folder, &mut all)?;
    }
    Ok(all)
}

/// One value of a placeholder: its name, the text, and the word for it in names.
struct Choice<'a> {
    key: &'a str,
    text: &'a str,
    label: &'a str,
}

fn one(file: &ScenarioFile, place: &str, folder: &Path, all: &mut Vec<Arc<PlannedScenario>>) -> Result<(), PlanError> {
    let (path, is_template) = match (&file.file, &file.template) {
        (Some(path), None) => (folder.join(path), false),
        (None, Some(path)) => (folder.join(path), true),
        _ => {
            let why = "needs exactly one of file = \"…\" and template = \"…\"";
            return Err(PlanError::invalid(place, why));
        }
    };
    let has_values = !file.with.is_empty() || !file.labels.is_empty();
    if has_values && !is_template {
        return Err(PlanError::invalid(place, "with and as belong to a template, not to a file"));
    }
    let text = read(&path)?;
    let lists = lists(file, place)?;
    let lengths: Vec<usize> = lists.iter().map(|(_, values, _)| values.len()).collect();
    let combinations = combinations(place, &lengths)?;
    let octets = text.len().saturating_mul(combinations.len());
    if all.len() + combinations.len() > COMBINATIONS || octets > MOST_OCTETS {
        let why = format!("more than {COMBINATIONS} scenarios, or {MOST_OCTETS} octets of them");
        return Err(PlanError::invalid(place, why));
    }
    let played = profiles(file, place, folder)?;
    for chosen in combinations {
        let choices: Vec<Choice<'_>> = lists
            .iter()
            .zip(&chosen)
            .map(|((key, values, labels), &at)| Choice { key, text: &values[at], label: &labels[at] })
            .collect();
        let own = planned(file, place, &path, &text, is_template, &choices)?;
        for hosts in &played {
            all.push(Arc::new(between(&own, hosts.as_ref(), place)?));
        }
    }
    Ok(())
}

/// A profile and its text.
type Played = (Arc<HostProfile>, String);

/// The hosts that the scenario is run between; `None`: its own.
fn profiles(file: &ScenarioFile, place: &str, folder: &Path) -> Result<Vec<Option<Played>>, PlanError> {
    let place = format!("{place}: hosts");
    let Some(list) = &file.hosts else { return Ok(vec![None]) };
    let one = |path: &String| match path.as_str() {
        "own" => Ok(None),
        path => hosts::profile(&place, &folder.join(path)).map(Some),
    };
    texts(&place, list)?.iter().map(one).collect()
}

/// The same scenario between hosts of the profile in `file`, instead of its own.
pub(super) fn played(own: &PlannedScenario, hosts: &(Arc<HostProfile>, String)) -> Result<PlannedScenario, PlanError> {
    let name = own.name.clone();
    let mut planned = between(own, Some(hosts), "--hosts")?;
    planned.scenario.name.clone_from(&name);
    Ok(PlannedScenario { name, ..planned })
}

/// The scenario between these hosts, named by them.
fn between(own: &PlannedScenario, hosts: Option<&Played>, place: &str) -> Result<PlannedScenario, PlanError> {
    let mut planned = own.clone();
    let Some((profile, text)) = hosts else { return Ok(planned) };
    planned.name = format!("{}-{}", own.name, profile.name);
    planned.profiles.clone_from(text);
    // Kernels have hosts of their own.
    planned.worlds = Some(vec![World::Simulator]);
    let scenario = planned.scenario.hosts(profile).validate();
    planned.scenario = scenario.map_err(|source| PlanError::Scenario { place: format!("{place}: hosts"), source })?;
    planned.scenario.name.clone_from(&planned.name);
    Ok(planned)
}

/// Per placeholder: its name, its values, the words for them.
type List<'a> = (&'a str, Vec<String>, Vec<String>);

fn lists<'a>(file: &'a ScenarioFile, place: &str) -> Result<Vec<List<'a>>, PlanError> {
    for key in file.labels.keys() {
        if !file.with.contains_key(key) {
            return Err(PlanError::invalid(format!("{place}: as"), format!("\"{key}\" is not in with")));
        }
    }
    let mut lists = Vec::new();
    for (key, value) in &file.with {
        let place = format!("{place}: with: {key}");
        let values = texts(&place, value)?;
        let labels = file.labels.get(key).unwrap_or(&values).clone();
        if labels.len() != values.len() {
            let why = format!("has {} values, and as has {} words for them", values.len(), labels.len());
            return Err(PlanError::invalid(place, why));
        }
        // Replaced one after the other, such a value could grow without end.
        if values.iter().chain(&labels).any(|value| value.contains("{{")) {
            return Err(PlanError::invalid(place, "a value cannot hold a placeholder"));
        }
        lists.push((key.as_str(), values, labels));
    }
    Ok(lists)
}

fn planned(
    file: &ScenarioFile,
    place: &str,
    path: &Path,
    template: &str,
    is_template: bool,
    choices: &[Choice<'_>],
) -> Result<PlannedScenario, PlanError> {
    let words: Vec<(&str, &str)> = choices.iter().map(|choice| (choice.key, choice.label)).collect();
    let name = match (&file.name, is_template) {
        (Some(name), _) => Some(filled(&format!("{place}: name"), name, &words, false)?),
        (None, true) => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Some(choices.iter().fold(stem, |name, choice| name + "-" + choice.label))
        }
        (None, false) => None,
    };
    let name = name.map(|name| valid(&name));
    let text = if is_template {
        let mut values: Vec<(&str, &str)> = choices.iter().map(|choice| (choice.key, choice.text)).collect();
        let name = name.as_deref().unwrap_or_default();
        if template.contains("{{name}}") {
            values.push(("name", name));
        }
        filled(&format!("{place}: {}", path.display()), template, &values, true)?
    } else {
        template.to_owned()
    };
    let (mut scenario, profiles) = hosts::with_profiles(&text, path).map_err(|source| {
        let values: Vec<String> = choices.iter().map(|choice| format!("{} = {}", choice.key, choice.text)).collect();
        PlanError::Scenario { place: [format!("{place}: {}", path.display()), values.join(", ")].join(" "), source }
    })?;
    if let Some(name) = name {
        if name.is_empty() {
            return Err(PlanError::invalid(format!("{place}: name"), "is empty"));
        }
        scenario.name = name;
    }
    Ok(PlannedScenario {
        name: scenario.name.clone(),
        text,
        profiles,
        scenario,
        worlds: file.worlds.clone().map(|given| worlds(&format!("{place}: worlds"), given)).transpose()?,
        methods: file.methods.clone(),
    })
}

/// `text` with every `{{key}}` replaced. Placeholders without a value are refused, and (in a
/// template) values without a placeholder: either would run something else than was meant.
fn filled(place: &str, text: &str, values: &[(&str, &str)], all_used: bool) -> Result<String, PlanError> {
    let mut out = text.to_owned();
    for (key, value) in values {
        let placeholder = format!("{{{{{key}}}}}");
        if all_used && !text.contains(&placeholder) {
            return Err(PlanError::invalid(place, format!("has no {placeholder}, for which with gives values")));
        }
        out = out.replace(&placeholder, value);
    }
    if let Some((_, rest)) = out.split_once("{{") {
        let key = rest.split("}}").next().unwrap_or_default();
        let line = key.lines().next().unwrap_or_default();
        return Err(PlanError::invalid(place, format!("{{{{{line}}}}} has no value in with")));
    }
    Ok(out)
}

/// A name that scenarios may have: no white space, and a dash for every other sign.
fn valid(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).map(|c| if is_name(c) { c } else { '-' }).collect()
}
