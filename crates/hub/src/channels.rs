//! By what people are told.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use narrows_notify::{Deliver, NoticeBody, SendError};
use narrows_watch::WallTime;

/// The channels of the hub's own file, with their secrets read. They are not part of the fleet's
/// configuration: whoever may change that one must not be able to start programs on the hub.
#[derive(Clone)]
pub struct Channels {
    /// Their names.
    pub names: BTreeSet<String>,
    /// What sends.
    pub deliver: Arc<dyn Deliver>,
}

impl Default for Channels {
    fn default() -> Self {
        Self { names: BTreeSet::new(), deliver: Arc::new(Nobody) }
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").field("names", &self.names).finish_non_exhaustive()
    }
}

/// A hub without channels.
struct Nobody;

impl Deliver for Nobody {
    fn send(&self, channel: &str, _: &NoticeBody, _: WallTime) -> Result<String, SendError> {
        Err(SendError::Settings(format!("there is no [channel.{channel}]")))
    }

    fn repeats(&self, _: &str) -> bool {
        false
    }

    fn stop(&self) {}
}
