//! What a request is held against: known hosts, the rate of an address, what a POST may be.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use tokio::time::Instant;

use crate::auth::Auth;
use crate::problem::Problem;
use crate::settings::Settings;

/// What requests are held against.
pub(crate) struct Guard {
    pub(crate) auth: Auth,
    /// Whether what is sent is encrypted.
    pub(crate) tls: bool,
    trusts_own_machine: bool,
    hosts: Vec<String>,
    largest_body: usize,
    rates: Rates,
}

impl Guard {
    pub(crate) fn new(auth: Auth, tls: bool, settings: &Settings) -> Self {
        Self {
            auth,
            tls,
            trusts_own_machine: settings.trusts_own_machine,
            hosts: settings.hosts.clone(),
            largest_body: settings.largest_body,
            rates: Rates::default(),
        }
    }

    /// Whether who asks from this machine shows nothing.
    pub(crate) fn trusts_own_machine(&self) -> bool {
        self.trusts_own_machine && self.auth.known().users.is_empty()
    }

    /// Whether this address may ask once more now.
    pub(crate) fn allows(&self, from: IpAddr) -> bool {
        self.rates.allow(from)
    }

    /// Forgets addresses that were quiet.
    pub(crate) fn tidy(&self) {
        self.rates.tidy();
    }

    /// A name that an attacker's DNS may point here is no name of ours. An address is: no DNS is
    /// asked for it.
    fn knows(&self, host: &str) -> bool {
        let name = without_port(host);
        let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        literal
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }

    pub(crate) fn refuse_host(&self, uri: &Uri, headers: &HeaderMap) -> Option<Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        let fits = host.is_some_and(|host| self.knows(host)) && named.next().is_none();
        let authority = uri.authority().is_none_or(|authority| self.knows(authority.as_str()));
        let text = "this host name is not one of ours: ask by address, or start the server with the name";
        (!fits || !authority).then(|| Problem::new(StatusCode::MISDIRECTED_REQUEST, text))
    }

    /// A form of another site can neither send JSON nor our origin.
    pub(crate) fn refuse_post(&self, headers: &HeaderMap) -> Option<Problem> {
        let of = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let json = of(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
        });
        let length = of(header::CONTENT_LENGTH).map_or(Ok(0), str::parse::<usize>);
        if !length.is_ok_and(|length| length <= self.largest_body) {
            return Some(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("more than {} kB", self.largest_body / 1024),
            ));
        }
        if !json {
            return Some(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json"));
        }
        let scheme = if self.tls { "https" } else { "http" };
        let ours = of(header::HOST).map(|host| format!("{scheme}://{host}"));
        let same = headers.get(header::ORIGIN).is_none() || of(header::ORIGIN) == ours.as_deref();
        let site =
            of(HeaderName::from_static("sec-fetch-site")).is_none_or(|site| matches!(site, "same-origin" | "none"));
        (!same || !site).then(|| Problem::new(StatusCode::FORBIDDEN, "this comes from another site"))
    }
}

pub(crate) fn too_many_guesses() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong guesses; wait a minute")
}

fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').map_or(host, |end| &host[..=end]);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// The requests of each address, by the virtual scheduling of ITU-T I.371 (annex A): when the next
/// would be due if they came evenly.
#[derive(Debug, Default)]
struct Rates {
    due: Mutex<BTreeMap<IpAddr, Instant>>,
}

impl Rates {
    fn allow(&self, from: IpAddr) -> bool {
        let now = Instant::now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let next = due.get(&from).map_or(now, |due| now.max(*due));
        let allowed = next < now + EACH * BURST;
        if allowed {
            due.insert(from, next + EACH);
        }
        allowed
    }

    fn tidy(&self) {
        let now = Instant::now();
        self.due.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, due| now < *due);
    }
}

/// Twenty a second.
const EACH: Duration = Duration::from_millis(50);
/// A page asks for this much at most when it opens.
const BURST: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_burst_and_then_its_rate() {
        let (rates, one, other) = (Rates::default(), IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let taken = |from| (0..100).filter(|_| rates.allow(from)).count();
        assert_eq!((taken(one), taken(other)), (40, 40));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((taken(one), taken(one)), (20, 0));
        rates.tidy();
        assert!(!rates.allow(one));
        tokio::time::advance(Duration::from_secs(2)).await;
        rates.tidy();
        assert!(rates.due.lock().unwrap().is_empty());
        assert_eq!(taken(one), 40);
    }
}
