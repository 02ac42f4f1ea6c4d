//! Pages over TLS, and what is said of files that cannot be used for it.

use std::fs::Permissions;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use narrows_web::{Server, Settings};
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::site::{Reply, Site, local, read};

/// Writes a certificate for `localhost` with its key, and the web config file that names them.
fn made(folder: &Path) -> (CertifiedKey<KeyPair>, Settings) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    write(folder, "cert.pem", &made.cert.pem());
    write(folder, "key.pem", &made.signing_key.serialize_pem());
    (made, settings(folder, "cert_file: cert.pem\n  key_file: key.pem"))
}

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, text).expect("a file");
    // Some of them are keys.
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is ours");
}

fn settings(folder: &Path, lines: &str) -> Settings {
    write(folder, "web.yml", &format!("tls_server_config:\n  {lines}\n"));
    Settings { web_config: Some(folder.join("web.yml")), ..local() }
}

/// Asks for a page as a client that trusts this certificate alone.
fn get(site: &Site, made: &CertifiedKey<KeyPair>) -> std::io::Result<Reply> {
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of the provider")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream: StreamOwned<_, TcpStream> = StreamOwned::new(client, site.connect());
    stream.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    Ok(read(&mut stream))
}

#[test]
fn a_page_is_served_to_whoever_trusts_the_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let (made, settings) = made(folder.path());
    let site = Site::with(settings);
    let reply = get(&site, &made).expect("it is trusted");
    assert_eq!((reply.status, reply.body.as_str()), (200, "narrows watch is running\n"), "{reply:?}");
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let refused = get(&site, &other).expect_err("nobody signed this one");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    // Without TLS nothing is said.
    assert_eq!(site.get("/-/healthy").status, 0);
}

#[test]
fn links_to_its_pages_say_that_it_has_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::bind(made(folder.path()).1).expect("it is a right one");
    assert_eq!(server.links().target("lab"), format!("https://{}/target/lab", server.address()));
}

#[test]
fn a_wrong_file_is_refused_and_what_to_mend_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, right) = made(folder.path());
    drop(Server::bind(right).expect("a right one is taken"));
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    write(folder.path(), "other.pem", &other.signing_key.serialize_pem());
    write(folder.path(), "empty.pem", "");
    for (lines, file, words) in [
        ("cert_file: none.pem\n  key_file: key.pem", "none.pem", "No such file"),
        ("cert_file: empty.pem\n  key_file: key.pem", "empty.pem", "has no certificate (PEM)"),
        ("cert_file: key.pem\n  key_file: cert.pem", "key.pem", "has no certificate (PEM)"),
        ("cert_file: cert.pem\n  key_file: cert.pem", "cert.pem", "has no private key (PEM)"),
        ("cert_file: cert.pem\n  key_file: other.pem", "other.pem", "is not the key of the certificate in cert.pem"),
        ("cert_file: cert.pem", "web.yml", "key_file"),
        ("cert_file: cert.pem\n  key_file: key.pem\n  min_version: TLS11", "web.yml", "TLS12"),
        (
            "cert_file: cert.pem\n  key_file: key.pem\n  client_auth_type: RequireAndVerifyClientCert",
            "web.yml",
            "client_ca_file",
        ),
        (
            "cert_file: cert.pem\n  key_file: key.pem\n  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: empty.pem",
            "empty.pem",
            "has no certificate (PEM)",
        ),
        ("cert_file: cert.pem\n  key_file: key.pem\n  cipher_suites: [x]", "web.yml", "cipher_suites"),
    ] {
        let said = Server::bind(settings(folder.path(), lines)).expect_err(lines).to_string();
        assert!(said.contains(file) && said.contains(words), "{lines}\n{said}");
    }
}
