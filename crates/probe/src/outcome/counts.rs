//! What a method made of its samples.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Diagnostics;

/// Samples that a method kept, and those that it left out and why. A name says what was counted
/// (`round_trips`, `one_stamp_pairs`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleCounts {
    /// What was kept, where the method counts it.
    pub kept: BTreeMap<Cow<'static, str>, u64>,
    /// What was left out, by reason.
    pub rejected: BTreeMap<Cow<'static, str>, u64>,
}

impl SampleCounts {
    /// With samples that were kept.
    #[must_use]
    pub fn kept(mut self, name: &'static str, count: impl TryInto<u64>) -> Self {
        self.kept.insert(name.into(), count.try_into().unwrap_or(u64::MAX));
        self
    }

    /// With samples that were left out.
    #[must_use]
    pub fn rejected(mut self, name: &'static str, count: impl TryInto<u64>) -> Self {
        self.rejected.insert(name.into(), count.try_into().unwrap_or(u64::MAX));
        self
    }

    /// The same for people.
    pub(super) fn tell(&self, diagnostics: &mut Diagnostics) {
        for (prefix, counts) in [("kept", &self.kept), ("rejected", &self.rejected)] {
            for (name, count) in counts {
                diagnostics.insert_composed(format!("{prefix}_{name}").into(), *count);
            }
        }
    }
}
