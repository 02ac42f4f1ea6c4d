//! Who may ask: nobody is asked on this machine alone; else a token, a user or a session.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use crate::private;
use crate::sessions::{COOKIE, Right, Sessions, digest};

/// Whom we know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Bcrypt hashes by name.
    pub(crate) users: BTreeMap<String, String>,
    /// The digest of the token.
    pub(crate) token: Option<[u8; 32]>,
    /// That of the token of those who only read.
    pub(crate) read_token: Option<[u8; 32]>,
}

/// What somebody shows.
#[derive(Debug)]
pub(crate) enum Shown {
    User { name: String, password: String },
    Token(String),
}

/// The answer to somebody who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Welcome(Right),
    /// Nothing or the wrong thing was shown.
    Unknown,
    /// This address guessed too often.
    TooManyGuesses,
}

/// Decides who may ask.
pub(crate) struct Auth {
    known: RwLock<Arc<Known>>,
    sessions: Sessions,
    /// What bcrypt found right before, as digests: it is slow on purpose.
    right: Mutex<BTreeSet<[u8; 32]>>,
    wrong: Mutex<BTreeMap<IpAddr, (u32, Duration)>>,
    hashing: Semaphore,
}

impl Known {
    /// Nobody is asked.
    pub(crate) fn nobody(&self) -> bool {
        self.users.is_empty() && self.token.is_none() && self.read_token.is_none()
    }

    /// What whoever shows this token may do; `None` if it is none of ours.
    fn right_of(&self, token: &str) -> Option<Right> {
        let shown = digest(token.as_bytes());
        let is = |of: Option<[u8; 32]>| of.is_some_and(|of| of.ct_eq(&shown).into());
        if is(self.token) { Some(Right::Everything) } else { is(self.read_token).then_some(Right::Reading) }
    }
}

impl Auth {
    pub(crate) fn new(known: Known) -> Self {
        Self {
            known: RwLock::new(Arc::new(known)),
            sessions: Sessions::default(),
            right: Mutex::default(),
            wrong: Mutex::default(),
            hashing: Semaphore::new(1),
        }
    }

    pub(crate) fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The users or the token changed: whoever signed in does so again.
    pub(crate) fn replace(&self, known: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
        self.right.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.sessions.clear();
    }

    /// Whether a request with these headers may be answered.
    pub(crate) async fn check(&self, headers: &HeaderMap, from: IpAddr, now: Duration) -> Answer {
        if self.known().nobody() {
            return Answer::Welcome(Right::Everything);
        }
        if let Some(right) = self.of_session(headers, now) {
            return Answer::Welcome(right);
        }
        match shown(headers) {
            Some(shown) => self.verify(shown, from, now).await,
            None => Answer::Unknown,
        }
    }

    /// Whether somebody shows that they only read, also where nobody has to show anything.
    pub(crate) fn only_reads(&self, headers: &HeaderMap, now: Duration) -> bool {
        let token = match shown(headers) {
            Some(Shown::Token(token)) => self.known().right_of(&token),
            Some(Shown::User { .. }) | None => None,
        };
        self.of_session(headers, now).or(token) == Some(Right::Reading)
    }

    /// What the session of a request's cookie allows.
    fn of_session(&self, headers: &HeaderMap, now: Duration) -> Option<Right> {
        cookie(headers).and_then(|name| self.sessions.right(name, now))
    }

    /// Opens a session for whoever shows the right thing.
    pub(crate) async fn sign_in(&self, shown: Shown, from: IpAddr, now: Duration) -> Result<String, Answer> {
        match self.verify(shown, from, now).await {
            Answer::Welcome(right) => self.sessions.open(right, now).map_err(|_| Answer::Unknown),
            answer => Err(answer),
        }
    }

    async fn verify(&self, shown: Shown, from: IpAddr, now: Duration) -> Answer {
        if self.guessed_too_often(from, now) {
            return Answer::TooManyGuesses;
        }
        let known = self.known();
        let right = match shown {
            Shown::Token(token) => known.right_of(&token),
            Shown::User { name, password } => match self.password_is_right(&known, &name, password, from, now).await {
                Some(is_right) => is_right.then_some(Right::Everything),
                None => return Answer::TooManyGuesses,
            },
        };
        if let Some(right) = right {
            return Answer::Welcome(right);
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|_, (_, since)| now.saturating_sub(*since) < MINUTE);
        if wrong.len() < ADDRESSES {
            wrong.entry(from).or_insert((0, now)).0 += 1;
        }
        Answer::Unknown
    }

    fn guessed_too_often(&self, from: IpAddr, now: Duration) -> bool {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.get(&from).is_some_and(|(count, since)| *count >= GUESSES && now.saturating_sub(*since) < MINUTE)
    }

    /// `None` if this address guessed too often while this guess waited.
    async fn password_is_right(
        &self,
        known: &Known,
        name: &str,
        password: String,
        from: IpAddr,
        now: Duration,
    ) -> Option<bool> {
        // An unknown name takes as long as a wrong password.
        let (hash, exists) = known.users.get(name).map_or((NOBODY, false), |hash| (hash.as_str(), true));
        let key = digest([name, "\0", hash, "\0", &password].concat().as_bytes());
        if exists && self.right.lock().unwrap_or_else(PoisonError::into_inner).contains(&key) {
            return Some(true);
        }
        let Ok(_place) = self.hashing.acquire().await else { return Some(false) };
        // Guesses that come at once all wait here, before the first of them is found wrong.
        if self.guessed_too_often(from, now) {
            return None;
        }
        let hash = hash.to_owned();
        let verified = tokio::task::spawn_blocking(move || bcrypt::verify(password, &hash).unwrap_or(false)).await;
        if !exists || !verified.unwrap_or(false) {
            return Some(false);
        }
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right.len() >= REMEMBERED {
            right.clear();
        }
        right.insert(key);
        Some(true)
    }
}

/// The digest of the token in `path`: its text without white space at the ends. Refuses a file that
/// others may read, unless it is in the folder of `credentials`.
pub(crate) fn read_token(path: &Path, credentials: Option<&Path>) -> Result<[u8; 32], String> {
    let said = |error: io::Error| error.to_string();
    let mut file = File::open(path).map_err(said)?;
    if !private::is_credential(path, credentials) {
        private::check(&file.metadata().map_err(said)?, private::OTHERS)?;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(said)?;
    let token = text.trim();
    if token.len() < LEAST_TOKEN {
        return Err(format!("a token has at least {LEAST_TOKEN} characters: `openssl rand -hex 32` makes a good one"));
    }
    Ok(digest(token.as_bytes()))
}

fn shown(headers: &HeaderMap) -> Option<Shown> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Shown::Token(rest.trim().to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (name, password) = pair.split_once(':')?;
    Some(Shown::User { name: name.to_owned(), password: password.to_owned() })
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value)
}

/// No password has this hash.
const NOBODY: &str = "$2b$10$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
const MINUTE: Duration = Duration::from_secs(60);
/// Wrong guesses per address and minute.
const GUESSES: u32 = 10;
/// Addresses whose wrong guesses are counted.
const ADDRESSES: usize = 10_000;
const REMEMBERED: usize = 64;
const LEAST_TOKEN: usize = 16;
