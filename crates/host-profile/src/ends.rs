//! Whose behaviour a profile is.

use serde::{Deserialize, Serialize};

/// Whose behaviour a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Of one host; two that play it stall independently.
    One,
    /// Of both ends on one machine, the path between them included: they stall together, and have
    /// one clock.
    Both,
}
