//! What is run, and over which path: the words in which a plan and its rows speak.

use std::collections::BTreeMap;
use std::sync::Arc;

use narrows_report::World;
use narrows_units::Metric;

/// One path of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedScenario {
    /// Its name in the plan: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The scenario file's text, placeholders replaced.
    pub text: String,
    /// The texts of the host profiles that it plays; empty without any.
    pub profiles: String,
    /// The same, read; it has the plan's name for it.
    pub scenario: narrows_scenario::Scenario,
    /// Narrower than the plan's worlds.
    pub worlds: Option<Vec<World>>,
    /// Labels or names of what is run on it; `None`: everything.
    pub methods: Option<Vec<String>>,
}

/// One method with one set of parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedMethod {
    /// How rows call it.
    pub label: String,
    /// Its name; `default` is the automatic choice for the metric, `default_per_hop` that per hop.
    pub name: String,
    /// What is judged.
    pub metric: Metric,
    /// Parameters other than the defaults, in order of their names.
    pub params: Vec<(String, String)>,
    /// Narrower than the plan's worlds.
    pub worlds: Option<Vec<World>>,
}

/// Another program.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedExternalTool {
    /// How rows call it.
    pub label: String,
    /// The adapter's name, or its file's stem.
    pub name: String,
    /// The text of the adapter's file; `None`: the built-in adapter of that name.
    pub adapter: Option<String>,
    /// What is judged: what the adapter says, if the plan says nothing else.
    pub metric: Option<Metric>,
    /// Parameters of the adapter other than its defaults.
    pub params: BTreeMap<String, String>,
    /// Narrower than the plan's worlds.
    pub worlds: Option<Vec<World>>,
}

/// What is run.
#[derive(Debug, Clone)]
pub enum Subject {
    /// One of our methods, there or to come.
    Method(Arc<PlannedMethod>),
    /// Another program.
    ExternalTool(Arc<PlannedExternalTool>),
}

impl Subject {
    /// How rows call it.
    pub fn label(&self) -> &str {
        match self {
            Self::Method(method) => &method.label,
            Self::ExternalTool(external_tool) => &external_tool.label,
        }
    }

    /// Whether a plan means it by this word: its label, or its name.
    pub fn answers_to(&self, word: &str) -> bool {
        let name = match self {
            Self::Method(method) => &method.name,
            Self::ExternalTool(external_tool) => &external_tool.name,
        };
        self.label() == word || name == word
    }

    /// What is judged; `None` of an external tool whose adapter is not known.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            Self::Method(method) => Some(method.metric),
            Self::ExternalTool(external_tool) => external_tool.metric,
        }
    }

    /// Whether it is to be run in that world. Other programs need real sockets.
    pub fn allows(&self, world: World) -> bool {
        match self {
            Self::Method(method) => allows(method.worlds.as_ref(), world),
            Self::ExternalTool(external_tool) => world == World::Lab && allows(external_tool.worlds.as_ref(), world),
        }
    }
}

pub(crate) fn allows(narrowed: Option<&Vec<World>>, world: World) -> bool {
    narrowed.is_none_or(|worlds| worlds.contains(&world))
}

impl PlannedMethod {
    /// The method; `None` if we have none of that name yet.
    pub fn method(&self) -> Option<&'static dyn narrows_probe::Method> {
        narrows_methods::named(&self.name, self.metric)
    }
}
