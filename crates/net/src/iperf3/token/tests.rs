//! Tokens of both paddings against keys that were made for these tests and for nothing else.

use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::KeySize;

use super::*;

/// A key pair: private in PKCS#8 and in PKCS#1, and public.
struct Pems {
    pkcs8: String,
    pkcs1: String,
    public: String,
}

static PEMS: LazyLock<Pems> = LazyLock::new(|| {
    let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: Pkcs8V1Der<'_> = key.as_der().unwrap();
    let public: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
    let pem = |name: &str, der: &[u8]| {
        let text = BASE64_STANDARD.encode(der);
        format!("-----BEGIN {name}-----\n{text}\n-----END {name}-----\n")
    };
    // Sequence, version, algorithm and the octet string's own head: what `in_pkcs8` puts before it.
    let pkcs1 = &pkcs8.as_ref()[26..];
    assert_eq!(in_pkcs8(pkcs1), pkcs8.as_ref());
    Pems {
        pkcs8: pem("PRIVATE KEY", pkcs8.as_ref()),
        pkcs1: pem("RSA PRIVATE KEY", pkcs1),
        public: pem("PUBLIC KEY", public.as_ref()),
    }
});

const NOW: u64 = 1_767_225_600;

pub(crate) fn alice(password: &str, unix_seconds: u64) -> Credentials {
    Credentials { user: "alice".to_owned(), password: password.to_owned(), unix_seconds }
}

fn gate(pem: &str) -> Gate {
    // printf '%s' '{alice}open sesame' | sha256sum
    let users = Users::parse("alice,64c126f6f6c9248763178dbd8ab23f3f529859ae730404cec29c8a2594117b22\n");
    Gate::parse(pem.as_bytes(), users, None).unwrap()
}

/// What a client has, and a server that knows alice.
pub(crate) fn pair() -> (PublicKey, Gate) {
    (PublicKey::parse(PEMS.public.as_bytes()).unwrap(), gate(&PEMS.pkcs8))
}

#[test]
fn either_padding_opens_and_once_only() {
    let public = PublicKey::parse(PEMS.public.as_bytes()).unwrap();
    for pem in [&PEMS.pkcs8, &PEMS.pkcs1] {
        let gate = gate(pem);
        for padding in [Padding::Pkcs1, Padding::Oaep] {
            let token = public.seal(&alice("open sesame", NOW), padding).unwrap();
            assert_eq!(token.len(), 344, "256 octets in base64, without line ends");
            assert_eq!(gate.admit(Some(&token), NOW + 3), Some("alice".to_owned()), "{padding:?}");
            assert_eq!(gate.admit(Some(&token), NOW + 3), None, "shown before: {padding:?}");
            assert_eq!(gate.admit(Some(&token), NOW + 20), None, "nor later: {padding:?}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let (public, gate) = (PublicKey::parse(PEMS.public.as_bytes()).unwrap(), gate(&PEMS.pkcs8));
    let sealed = |credentials| public.seal(&credentials, Padding::Oaep).unwrap();
    for (credentials, why) in [
        (alice("open barley", NOW), "password"),
        (alice("open sesame", NOW - 11), "too old"),
        (alice("open sesame", NOW + 11), "from the future"),
        (alice("open sesame", u64::MAX), "far from it"),
        (Credentials { user: "bob".to_owned(), ..alice("open sesame", NOW) }, "nobody"),
    ] {
        assert_eq!(gate.admit(Some(&sealed(credentials)), NOW), None, "{why}");
    }
    assert!(gate.admit(Some(&sealed(alice("open sesame", NOW - 10))), NOW).is_some());
    let whole = sealed(alice("open sesame", NOW));
    let zeroes = BASE64_STANDARD.encode([0; 256]);
    let long = BASE64_STANDARD.encode([0xff; 3_000]);
    for nonsense in ["", "=", "!", "AAAA", &whole[..340], &whole[4..], &zeroes, &long, "\u{e9}", "\0"] {
        assert_eq!(gate.admit(Some(nonsense), NOW), None, "{nonsense:?}");
    }
    assert_eq!(gate.admit(None, NOW), None);
}

#[test]
fn what_cannot_be_sealed_is_said_so() {
    let public = PublicKey::parse(PEMS.public.as_bytes()).unwrap();
    for (padding, most) in [(Padding::Pkcs1, 245), (Padding::Oaep, 214)] {
        // The three names of the lines, their ends, a name of 5 octets and a time of 10.
        let fits = most - 18 - 2 - 5 - 10;
        assert!(public.seal(&alice(&"x".repeat(fits), NOW), padding).is_ok());
        let error = public.seal(&alice(&"x".repeat(fits + 1), NOW), padding).unwrap_err();
        assert!(
            matches!(error, TokenError::TooLong { octets, most: room } if (octets, room) == (most + 1, most)),
            "{error}"
        );
    }
    let lines = public.seal(&alice("two\nlines", NOW), Padding::Oaep);
    assert!(matches!(lines, Err(TokenError::Lines)));
}

#[test]
fn files_without_keys_are_reported_apart() {
    assert!(PublicKey::parse(PEMS.pkcs8.as_bytes()).is_none() && PublicKey::parse(b"").is_none());
    let users = || Users::parse("alice,00");
    assert!(Gate::parse(PEMS.public.as_bytes(), users(), None).is_none());
    assert!(Gate::parse(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", users(), None).is_none());
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8], mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let (key, open) = (file("key", PEMS.pkcs8.as_bytes(), 0o600), file("open", PEMS.pkcs8.as_bytes(), 0o644));
    let (some, none) = (file("users", b"alice,00\n", 0o644), file("none", b"# nobody\n", 0o644));
    assert!(Gate::read(&key, &some, None).is_ok());
    let error = |key: &Path, users: &Path| Gate::read(key, users, None).unwrap_err();
    assert!(matches!(error(&open, &some), TokenError::Open { mode: 0o644, .. }));
    assert!(matches!(error(&key, &none), TokenError::NoUsers { .. }));
    assert!(matches!(error(&some, &some), TokenError::Open { .. }));
    assert!(matches!(error(Path::new("/nowhere"), &some), TokenError::Read { .. }));
    assert!(matches!(PublicKey::read(&some), Err(TokenError::NoKey { .. })));
}
