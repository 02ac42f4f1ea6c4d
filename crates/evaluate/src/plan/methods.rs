//! Methods with their parameters crossed, and external tools.

use std::path::Path;
use std::sync::Arc;

use narrows_methods as methods;
use narrows_methods::{DEFAULT, DEFAULT_PER_HOP};
use narrows_probe::Method;
use narrows_units::Metric;

use super::file::{ExternalToolFile, MethodFile, combinations, text, texts};
use super::worlds;
use crate::error::PlanError;
use crate::external_tool::{self, Adapter, AdapterError};
use crate::subject::{PlannedExternalTool, PlannedMethod, Subject};
use crate::text_file::read;

pub(super) fn cross(files: &[MethodFile]) -> Result<Vec<Subject>, PlanError> {
    let mut all = Vec::new();
    for (index, file) in files.iter().enumerate() {
        one(file, &format!("method {} ({})", index + 1, file.name), &mut all)?;
    }
    Ok(all)
}

fn one(file: &MethodFile, place: &str, all: &mut Vec<Subject>) -> Result<(), PlanError> {
    let (method, metric) = resolve(place, &file.name, file.metric)?;
    let mut lists = Vec::new();
    for (name, value) in &file.params {
        lists.push((name, texts(&format!("{place}: params: {name}"), value)?));
    }
    let lengths: Vec<usize> = lists.iter().map(|(_, values)| values.len()).collect();
    let narrowed = file.worlds.clone();
    let narrowed = narrowed.map(|given| worlds(&format!("{place}: worlds"), given)).transpose()?;
    for chosen in combinations(place, &lengths)? {
        let params: Vec<(String, String)> =
            lists.iter().zip(&chosen).map(|((name, values), &at)| ((*name).clone(), values[at].clone())).collect();
        if let Some(method) = method {
            begin(method, &params).map_err(|source| PlanError::Parameter { place: place.to_owned(), source })?;
        }
        // What a label does not say already: parameters that vary, and without a label of the
        // user's all of them.
        let reported = lists.iter().zip(&params).filter(|((_, values), _)| values.len() > 1 || file.label.is_none());
        let reported: Vec<String> = reported.map(|(_, (name, value))| format!(" {name}={value}")).collect();
        all.push(Subject::Method(Arc::new(PlannedMethod {
            label: file.label.as_ref().unwrap_or(&file.name).clone() + &reported.concat(),
            name: file.name.clone(),
            metric,
            params,
            worlds: narrowed.clone(),
        })));
    }
    Ok(())
}

/// The method of that name and what is judged of it.
fn resolve(
    place: &str,
    name: &str,
    metric: Option<Metric>,
) -> Result<(Option<&'static dyn Method>, Metric), PlanError> {
    let need = |why: String| PlanError::invalid(format!("{place}: metric"), why);
    if name == DEFAULT {
        let metric = metric.ok_or_else(|| need("the automatic choice needs a metric".to_owned()))?;
        let method = methods::automatic(metric);
        let method = method.ok_or_else(|| need(format!("there is no automatic choice for {metric}")))?;
        return Ok((Some(method), metric));
    }
    let per_hop = (name == DEFAULT_PER_HOP).then(methods::automatic_per_hop);
    if let Some(method) = per_hop.or_else(|| methods::find(name)) {
        return Ok((Some(method), metric.unwrap_or(method.info().metric)));
    }
    let why = format!("there is no method \"{name}\" yet, so the plan must say what it will measure");
    Ok((None, metric.ok_or_else(|| need(why))?))
}

/// The method's state machine with these parameters.
pub(crate) fn begin(
    method: &dyn Method,
    params: &[(String, String)],
) -> Result<Box<dyn narrows_probe::Estimator>, narrows_probe::ParamError> {
    method.begin(&params.iter().cloned().collect())
}

pub(super) fn external_tools(files: &[ExternalToolFile], folder: &Path) -> Result<Vec<Subject>, PlanError> {
    let mut all = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let place = format!("external tool {}", index + 1);
        let (name, adapter) = match (&file.name, &file.file) {
            (Some(name), None) => (name.clone(), None),
            (None, Some(path)) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (stem, Some(read(&folder.join(path))?))
            }
            _ => {
                let why = "needs exactly one of name = \"…\" (an adapter that we have) and file = \"…\"";
                return Err(PlanError::invalid(place, why));
            }
        };
        let read = match &adapter {
            Some(text) => Adapter::from_toml(text),
            None => external_tool::builtin(&name).unwrap_or_else(|| Err(AdapterError::Unknown(name.clone()))),
        };
        let read = read.map_err(|error| PlanError::invalid(format!("{place} ({name})"), error.to_string()))?;
        let narrowed = file.worlds.clone();
        let param = |(name, value): (&String, &toml::Value)| {
            Ok((name.clone(), text(&format!("{place}: params: {name}"), value)?))
        };
        let params: Result<_, PlanError> = file.params.iter().map(param).collect();
        all.push(Subject::ExternalTool(Arc::new(PlannedExternalTool {
            label: file.label.clone().unwrap_or_else(|| name.clone()),
            name,
            adapter,
            metric: file.metric.or(Some(read.metric())),
            params: params?,
            worlds: narrowed.map(|given| worlds(&format!("{place}: worlds"), given)).transpose()?,
        })));
    }
    Ok(all)
}
