//! Addresses of pages, for those who are told of them elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where the pages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    base: String,
}

impl Links {
    /// The first name under which browsers reach the pages, else the address.
    pub(crate) fn new(is_tls: bool, names: &[String], address: SocketAddr) -> Self {
        let scheme = if is_tls { "https" } else { "http" };
        let base = match names.first() {
            Some(name) => format!("{scheme}://{name}:{}", address.port()),
            None => format!("{scheme}://{}", SocketAddr::new(reachable(address.ip()), address.port())),
        };
        Self { base }
    }

    /// The page of a target.
    pub fn target(&self, name: &str) -> String {
        format!("{}/target/{}", self.base, encoded(name))
    }
}

/// "All addresses" is none that a browser can open; this machine's own is.
const fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

/// One segment of a path (RFC 3986 §2.3).
fn encoded(name: &str) -> String {
    let octet = |octet: u8| match octet {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(octet).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_can_be_opened_from_where_it_is_read() {
        let at = |address: &str| address.parse::<SocketAddr>().unwrap();
        let page = |is_tls, names: &[&str], address: &str, target: &str| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Links::new(is_tls, &names, at(address)).target(target)
        };
        assert_eq!(page(false, &[], "127.0.0.1:8621", "office"), "http://127.0.0.1:8621/target/office");
        assert_eq!(
            page(true, &["watch.example"], "[::]:443", "a/b ü"),
            "https://watch.example:443/target/a%2Fb%20%C3%BC"
        );
        assert_eq!(page(true, &[], "[::]:8621", "lab"), "https://[::1]:8621/target/lab");
        assert_eq!(page(false, &[], "0.0.0.0:80", "lab"), "http://127.0.0.1:80/target/lab");
    }
}
