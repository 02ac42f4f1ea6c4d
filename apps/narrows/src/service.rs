//! `narrows serve` and `narrows watch` under a service manager: what it gives, and what it hears.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
#[cfg(feature = "watch")]
use std::time::Duration;

#[cfg(feature = "watch")]
use narrows_net::clock;
use narrows_wire::Psk;
use sd_notify::NotifyState;

use crate::exit::Failure;

/// Tells the manager, if there is one, that the service has begun, or goes on after a reload.
pub(crate) fn is_ready() {
    tell(&[NotifyState::Ready]);
}

/// Tells the manager that settings are read again. [`is_ready`] follows.
#[cfg(feature = "watch")]
pub(crate) fn is_reloading() {
    // The manager wants to know when, to tell this reload from an earlier one.
    match NotifyState::monotonic_usec_now() {
        Ok(at) => tell(&[NotifyState::Reloading, at]),
        Err(error) => tracing::warn!(%error, "cannot tell the service manager"),
    }
}

/// Tells the manager that no more will be done.
pub(crate) fn is_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// One line for whoever asks the manager for the service's status.
#[cfg(feature = "watch")]
pub(crate) fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// Tells the manager that the service is alive, where it restarts one that is not.
#[cfg(feature = "watch")]
#[derive(Debug)]
pub(crate) struct Watchdog {
    every_ns: Option<i64>,
    next_ns: i64,
}

#[cfg(feature = "watch")]
impl Watchdog {
    /// As often as the manager wants.
    pub(crate) fn new() -> Self {
        Self::every(sd_notify::watchdog_enabled())
    }

    fn every(time: Option<Duration>) -> Self {
        // A look that comes late must not be the last one.
        Self { every_ns: time.map(|time| clock::nanos(time / 3)), next_ns: 0 }
    }

    /// To be called more often than that.
    pub(crate) fn feed(&mut self) {
        if self.is_due(clock::now_ns()) {
            tell(&[NotifyState::Watchdog]);
        }
    }

    fn is_due(&mut self, now_ns: i64) -> bool {
        let Some(every_ns) = self.every_ns.filter(|_| now_ns >= self.next_ns) else { return false };
        self.next_ns = now_ns + every_ns;
        true
    }
}

fn tell(states: &[NotifyState]) {
    // A manager that does not listen is no reason to stop serving.
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}

/// The key that the manager hands over: systemd's `LoadCredential=psk:FILE`. The manager keeps
/// others from reading it; its mode may show an access list, which `key::read` would refuse.
pub(crate) fn key() -> Result<Option<Psk>, Failure> {
    let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY") else { return Ok(None) };
    let path = PathBuf::from(folder).join("psk");
    if !path.exists() {
        return Ok(None);
    }
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage(format!("the key in {}: {error}", path.display()));
    let mut content = Vec::new();
    let file = File::open(&path).map_err(|error| unreadable(&error))?;
    // Two more for the newline, one more to tell that it is too long.
    file.take(Psk::MAX_OCTETS as u64 + 3).read_to_end(&mut content).map_err(|error| unreadable(&error))?;
    Psk::from_file_content(&content).map(Some).map_err(|error| unreadable(&error))
}

#[cfg(all(test, feature = "watch"))]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_fed_three_times_as_often_as_it_wants() {
        const SECOND: i64 = 1_000_000_000;
        let mut watchdog = Watchdog::every(Some(Duration::from_secs(60)));
        let fed: Vec<i64> = (1..100).filter(|second| watchdog.is_due(second * SECOND)).collect();
        assert_eq!(fed, [1, 21, 41, 61, 81]);
        assert!(!Watchdog::every(None).is_due(i64::MAX));
    }
}
