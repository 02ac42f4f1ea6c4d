//! Host profiles that scenarios and plans name.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use narrows_host_profile::HostProfile;
use narrows_scenario::{Scenario, ScenarioError};

use crate::error::PlanError;
use crate::text_file::read;

/// A scenario from the text of the file at `path`; host profiles that it names lie relative to it.
pub fn scenario_beside(text: &str, path: &Path) -> Result<Scenario, ScenarioError> {
    with_profiles(text, path).map(|(scenario, _)| scenario)
}

/// The same, with the texts of these profiles.
pub(crate) fn with_profiles(text: &str, path: &Path) -> Result<(Scenario, String), ScenarioError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let profiles = RefCell::new(String::new());
    let scenario = Scenario::from_toml_with(text, |name| {
        let text = read(&folder.join(name)).map_err(|error| error.to_string())?;
        profiles.borrow_mut().push_str(&text);
        Ok(text)
    })?;
    Ok((scenario, profiles.into_inner()))
}

/// A profile and its text.
pub(crate) fn profile(place: &str, path: &Path) -> Result<(Arc<HostProfile>, String), PlanError> {
    let text = read(path)?;
    let profile = HostProfile::from_toml(&text);
    let profile =
        profile.map_err(|error| PlanError::invalid(format!("{place}: {}", path.display()), error.to_string()))?;
    Ok((Arc::new(profile), text))
}
