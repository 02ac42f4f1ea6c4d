//! Stateless cookies.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::secret::{Cookie, Nonce};

/// How long one key makes cookies; a cookie lives for one to two of these.
pub const COOKIE_EPOCH: Duration = Duration::from_secs(10);

/// Makes and checks cookies: HMAC-SHA-256 over family, address, port, nonce and epoch, first 16
/// octets. Nothing is kept per client. One secret serves all epochs, because the epoch is part of
/// what is signed; the current and the last one are accepted.
#[derive(Clone)]
pub struct CookieKeys {
    secret: [u8; 32],
}

impl fmt::Debug for CookieKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieKeys(..)")
    }
}

impl CookieKeys {
    /// From 32 random octets, drawn when the server starts.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    fn at_epoch(&self, from: SocketAddr, nonce: &Nonce, epoch: u64) -> Cookie {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        mac.update(b"narrows 1 cookie");
        match from.ip().to_canonical() {
            IpAddr::V4(address) => {
                mac.update(&[4]);
                mac.update(&address.octets());
            }
            IpAddr::V6(address) => {
                mac.update(&[6]);
                mac.update(&address.octets());
            }
        }
        mac.update(&from.port().to_be_bytes());
        mac.update(nonce.octets());
        mac.update(&epoch.to_be_bytes());
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        let mut cookie = [0; Cookie::OCTETS];
        cookie.copy_from_slice(&full[..Cookie::OCTETS]);
        Cookie::new(cookie)
    }

    /// The cookie for a hello from `from` at `now` (time since the server started).
    pub fn make(&self, from: SocketAddr, nonce: &Nonce, now: Duration) -> Cookie {
        self.at_epoch(from, nonce, epoch(now))
    }

    /// Whether a cookie was made for this address and nonce in this epoch or the last. In constant
    /// time for each.
    pub fn check(&self, from: SocketAddr, nonce: &Nonce, cookie: &Cookie, now: Duration) -> bool {
        let current = epoch(now);
        let fresh = self.at_epoch(from, nonce, current) == *cookie;
        let older = current > 0 && self.at_epoch(from, nonce, current - 1) == *cookie;
        fresh | older
    }
}

fn epoch(now: Duration) -> u64 {
    now.as_secs() / COOKIE_EPOCH.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn binds_address_port_nonce_and_time() {
        let keys = CookieKeys::new([1; 32]);
        let from: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let nonce = Nonce::new([2; 16]);
        let cookie = keys.make(from, &nonce, at(105));
        assert!(keys.check(from, &nonce, &cookie, at(105)));
        assert!(keys.check(from, &nonce, &cookie, at(119)));
        assert!(!keys.check(from, &nonce, &cookie, at(120)));
        assert!(!keys.check(from, &nonce, &cookie, at(99)));
        for other in ["192.0.2.1:5001", "192.0.2.2:5000", "[2001:db8::1]:5000"] {
            assert!(!keys.check(other.parse().unwrap(), &nonce, &cookie, at(105)), "{other}");
        }
        assert!(!keys.check(from, &Nonce::new([3; 16]), &cookie, at(105)));
        assert!(!CookieKeys::new([9; 32]).check(from, &nonce, &cookie, at(105)));
    }

    #[test]
    fn a_mapped_address_is_the_same_address() {
        let keys = CookieKeys::new([1; 32]);
        let nonce = Nonce::new([2; 16]);
        let cookie = keys.make("[::ffff:192.0.2.1]:5000".parse().unwrap(), &nonce, at(0));
        assert!(keys.check("192.0.2.1:5000".parse().unwrap(), &nonce, &cookie, at(0)));
    }
}
