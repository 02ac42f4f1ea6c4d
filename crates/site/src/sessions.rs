//! Who signed in on the page: random names of sessions in memory, gone with the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Everything,
    /// Reads everything, and changes nothing.
    Reading,
}

/// The open sessions, by the digest of their name: when each began, and what it may do.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<[u8; 32], (Duration, Right)>>,
}

impl Sessions {
    /// Opens one and returns its name; the oldest gives way when there are too many.
    pub(crate) fn open(&self, right: Right, now: Duration) -> Result<String, getrandom::Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        let name = URL_SAFE_NO_PAD.encode(random);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (began, _)| now.saturating_sub(*began) < LIFE);
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, (began, _))| *began).map(|(name, _)| *name);
            oldest.and_then(|name| open.remove(&name));
        }
        open.insert(digest(name.as_bytes()), (now, right));
        Ok(name)
    }

    /// What this session may do, if it is open.
    pub(crate) fn right(&self, name: &str, now: Duration) -> Option<Right> {
        // The digest of a guess says nothing about how near it was.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, right) = open.get(&digest(name.as_bytes()))?;
        (now.saturating_sub(*began) < LIFE).then_some(*right)
    }

    /// Ends all of them: the users changed.
    pub(crate) fn clear(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The cookie's name.
pub(crate) const COOKIE: &str = "narrows_session";
/// How long a session lasts.
pub(crate) const LIFE: Duration = Duration::from_secs(7 * 86_400);
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_and_the_oldest_gives_way() {
        let sessions = Sessions::default();
        let at = Duration::from_millis;
        let first = sessions.open(Right::Reading, at(0)).expect("the system has random numbers");
        assert_eq!((sessions.right(&first, at(1)), sessions.right("else", at(1))), (Some(Right::Reading), None));
        assert_eq!(sessions.right(&first, at(7 * 86_400_000)), None);
        let names: Vec<String> =
            (1..=256).map(|ms| sessions.open(Right::Everything, at(ms)).expect("random")).collect();
        assert_eq!(sessions.right(&first, at(300)), None);
        assert_eq!(sessions.right(&names[255], at(300)), Some(Right::Everything));
    }
}
