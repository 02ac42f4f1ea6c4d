//! What every request passes, and what routes may ask of it.

use std::sync::Arc;
use std::time::Duration;

use crate::guard::Guard;
use crate::settings::Settings;

/// What the requests of one server share; cheap to clone.
#[derive(Clone)]
pub struct Site {
    shared: Arc<Shared>,
}

struct Shared {
    guard: Guard,
    now: fn() -> Duration,
    open: &'static [&'static str],
    shell: String,
}

impl Site {
    pub(crate) fn new(guard: Guard, settings: &Settings, shell: String) -> Self {
        Self { shared: Arc::new(Shared { guard, now: settings.now, open: settings.open, shell }) }
    }

    /// Unix time, by the server's clock.
    pub fn now(&self) -> Duration {
        (self.shared.now)()
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.shared.guard
    }

    /// Whether whoever asks for this path shows nothing.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        OPEN.contains(&path) || self.shared.open.contains(&path)
    }

    /// The page on which people sign in: the shell, whose script finds out.
    pub(crate) fn shell(&self) -> &str {
        &self.shared.shell
    }
}

/// Who signs in, and who looks whether the process lives, shows nothing.
pub(crate) const OPEN: [&str; 3] = ["/-/healthy", "/-/ready", "/api/v1/session"];
