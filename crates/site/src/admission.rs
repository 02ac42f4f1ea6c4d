//! What a request passes before it is answered: host, rate, who asks; and what each answer says of
//! itself to browsers.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse as _, Response};

use crate::auth::Answer;
use crate::guard::too_many_guesses;
use crate::problem::Problem;
use crate::sessions::Right;
use crate::site::Site;

/// The first that a request meets.
pub(crate) async fn check(
    State(site): State<Site>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let html = wants_html(&head.headers);
    let asset = head.uri.path().starts_with("/assets/");
    let mut response = match admit(&site, from.ip(), &head).await {
        Ok(()) if head.method == Method::POST => {
            let answered = tokio::time::timeout(SLOW_BODY, next.run(Request::from_parts(head, body))).await;
            answered.unwrap_or_else(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "that took too long").into_response())
        }
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => unauthorised(&site, problem, html),
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

async fn admit(site: &Site, peer: IpAddr, head: &Parts) -> Result<(), Problem> {
    let guard = site.guard();
    if let Some(problem) = guard.refuse_host(&head.uri, &head.headers) {
        return Err(problem);
    }
    let path = head.uri.path();
    if path.starts_with("/assets/") {
        return Ok(());
    }
    let from = network(peer);
    if !guard.allows(from) {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "more than 20 requests in a second"));
    }
    if head.method == Method::POST
        && let Some(problem) = guard.refuse_post(&head.headers)
    {
        return Err(problem);
    }
    if site.is_open(path) {
        return Ok(());
    }
    let trusted = guard.trusts_own_machine() && is_own(peer) && !guard.auth.only_reads(&head.headers, site.now());
    let answer = if trusted {
        Answer::Welcome(Right::Everything)
    } else {
        guard.auth.check(&head.headers, from, site.now()).await
    };
    match answer {
        Answer::Welcome(Right::Everything) => Ok(()),
        Answer::Welcome(Right::Reading) if matches!(head.method, Method::GET | Method::HEAD) => Ok(()),
        Answer::Welcome(Right::Reading) => Err(Problem::new(StatusCode::FORBIDDEN, READS_ONLY)),
        Answer::Unknown => Err(Problem::new(StatusCode::UNAUTHORIZED, "sign in, or send a token or a user")),
        Answer::TooManyGuesses => Err(too_many_guesses()),
    }
}

/// People get the page on which they sign in; programs hear which schemes there are.
fn unauthorised(site: &Site, problem: Problem, html: bool) -> Response {
    if html {
        return (StatusCode::UNAUTHORIZED, Html(site.shell().to_owned())).into_response();
    }
    let mut response = problem.into_response();
    let known = site.guard().auth.known();
    if !known.users.is_empty() {
        response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"narrows\""));
    }
    if known.token.is_some() || known.read_token.is_some() {
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

/// Whether an address is one of this machine's. To bind a socket to it would not tell: hosts with
/// `ip_nonlocal_bind` bind to any.
fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let own = |interface: nix::ifaddrs::InterfaceAddress| {
        let one = interface.address?;
        let four = one.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or_else(|| one.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    };
    address.is_loopback()
        || nix::ifaddrs::getifaddrs().is_ok_and(|mut all| all.any(|interface| own(interface) == Some(address)))
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

const READS_ONLY: &str = "whoever shows the reading token changes nothing: another token or a user may";
const SLOW_BODY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_its_own() {
        let own = |text: &str| is_own(text.parse().unwrap());
        assert!(own("127.0.0.1") && own("::1") && own("::ffff:127.0.0.1"));
        // Reserved for documentation (RFC 5737, RFC 3849): nobody has them.
        assert!(!own("192.0.2.1") && !own("2001:db8::1") && !own("0.0.0.0"));
    }
}
