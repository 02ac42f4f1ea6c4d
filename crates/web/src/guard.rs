//! What a request passes before it is answered: host, rate, who asks, and what a POST may be.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{Answer, Auth};

/// What requests are held against.
pub(crate) struct Guard {
    pub(crate) auth: Auth,
    /// Whether what is sent is encrypted.
    pub(crate) tls: bool,
    hosts: Vec<String>,
    rates: DefaultKeyedRateLimiter<IpAddr>,
}

impl Guard {
    pub(crate) fn new(auth: Auth, tls: bool, hosts: Vec<String>) -> Self {
        let quota = Quota::per_second(RATE).allow_burst(BURST);
        Self { auth, tls, hosts, rates: RateLimiter::keyed(quota) }
    }

    /// Forgets addresses that were quiet.
    pub(crate) fn tidy(&self) {
        self.rates.retain_recent();
        self.rates.shrink_to_fit();
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

    fn refuse_host(&self, uri: &Uri, headers: &HeaderMap) -> Option<Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let host = named.next().and_then(|host| host.to_str().ok());
        let fits = host.is_some_and(|host| self.knows(host)) && named.next().is_none();
        let authority = uri.authority().is_none_or(|authority| self.knows(authority.as_str()));
        let text = "this host name is not in `hosts` of the settings";
        (!fits || !authority).then(|| Problem::new(StatusCode::MISDIRECTED_REQUEST, text))
    }

    /// A form of another site can neither send JSON nor our origin.
    fn refuse_post(&self, headers: &HeaderMap) -> Option<Problem> {
        let of = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let json = of(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
        });
        let length = of(header::CONTENT_LENGTH).map_or(Ok(0), str::parse::<usize>);
        if !length.is_ok_and(|length| length <= LARGEST_BODY) {
            return Some(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "more than 16 kB"));
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

/// The first that a request meets.
pub(crate) async fn check(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let html = wants_html(&head.headers);
    let asset = head.uri.path().starts_with("/assets/");
    let mut response = match admit(&app, from.ip(), &head).await {
        Ok(()) if head.method == Method::POST => {
            let answered = tokio::time::timeout(SLOW_BODY, next.run(Request::from_parts(head, body))).await;
            answered.unwrap_or_else(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "that took too long").into_response())
        }
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => unauthorised(&app, problem, html),
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if !asset {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn admit(app: &App, from: IpAddr, head: &Parts) -> Result<(), Problem> {
    let guard = app.guard();
    if let Some(problem) = guard.refuse_host(&head.uri, &head.headers) {
        return Err(problem);
    }
    let path = head.uri.path();
    if path.starts_with("/assets/") {
        return Ok(());
    }
    let from = network(from);
    if guard.rates.check_key(&from).is_err() {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "more than 20 requests in a second"));
    }
    if head.method == Method::POST
        && let Some(problem) = guard.refuse_post(&head.headers)
    {
        return Err(problem);
    }
    if OPEN.contains(&path) {
        return Ok(());
    }
    match guard.auth.check(&head.headers, from, app.now()).await {
        Answer::Welcome => Ok(()),
        Answer::Unknown => Err(Problem::new(StatusCode::UNAUTHORIZED, "sign in, or send a token or a user")),
        Answer::TooManyGuesses => Err(too_many_guesses()),
    }
}

pub(crate) fn too_many_guesses() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong guesses; wait a minute")
}

/// People get the page on which they sign in; programs hear which schemes there are.
fn unauthorised(app: &App, problem: Problem, html: bool) -> Response {
    if html {
        let mut page = app.assets().page();
        *page.status_mut() = StatusCode::UNAUTHORIZED;
        return page;
    }
    let mut response = problem.into_response();
    let known = app.guard().auth.known();
    if !known.users.is_empty() {
        response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"narrows\""));
    }
    if known.token.is_some() {
        response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn wants_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').map_or(host, |end| &host[..=end]);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// One customer of IPv6 has 2^64 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => IpAddr::V4(four),
            None => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX))),
        },
    }
}

/// Who signs in, and who looks whether the process lives, shows nothing.
const OPEN: [&str; 3] = ["/-/healthy", "/-/ready", "/api/v1/session"];

const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

const RATE: NonZeroU32 = NonZeroU32::new(20).expect("20 is not zero");
/// A page asks for this much at most when it opens; then 20 a second.
const BURST: NonZeroU32 = NonZeroU32::new(40).expect("40 is not zero");
/// Octets of what is posted.
pub(crate) const LARGEST_BODY: usize = 16 * 1024;
const SLOW_BODY: Duration = Duration::from_secs(10);
