//! Decides who is to be alerted of what, and when.
//!
//! [`Alerts`] keeps a state per rule and target. A threshold fires only when the whole interval is
//! beyond it, and clears only when all of it is back; no data changes nothing. Silences hold
//! notices back, not states.
//!
//! Whoever groups what fires, as the hub of a fleet does, keeps a [`State`] of each path and one of
//! each group; [`Rule::apply`] turns the former.

mod condition;
mod loss_window;
mod rules;
mod silence;
mod state;
mod table;
mod text;

pub use condition::{Condition, ConditionError, Threshold};
pub use rules::{Alerts, Input, Notice, NoticeKind, Rule};
pub use silence::Silence;
pub use state::State;
pub use table::{RuleError, RuleTable};
pub use text::{AlertText, Usual, lasted_text, since_text};
