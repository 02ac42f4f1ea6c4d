//! TLS to a server that is known by the hash of its key, as a join token has it: no authority has
//! to vouch for a hub.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest as _, Sha256};

/// SHA-256 of the `SubjectPublicKeyInfo` of a certificate (RFC 5280 §4.1), as RFC 7858 §4.2 pins
/// servers: it stays when the certificate is made anew over the same key.
pub fn key_hash(certificate: &CertificateDer<'_>) -> Result<[u8; 32], Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    Ok(Sha256::digest(parsed.subject_public_key_info()).into())
}

/// Accepts exactly the certificate whose key has this hash, whatever names and dates it has. The
/// server still proves in the handshake that it has the key.
#[expect(clippy::missing_panics_doc, reason = "the provider speaks the versions that rustls has by default")]
pub fn pinned(key_hash: [u8; 32]) -> ClientConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Pinned { key_hash, provider: Arc::clone(&provider) };
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs speaks TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth()
}

/// Whether a connection by [`pinned`] failed because the server has another key.
pub fn has_other_key(error: &std::io::Error) -> bool {
    let why = error.get_ref().and_then(|why| why.downcast_ref::<Error>());
    matches!(why, Some(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)))
}

#[derive(Debug)]
struct Pinned {
    key_hash: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if key_hash(certificate)? == self.key_hash {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use rustls::{ClientConnection, ServerConfig, ServerConnection};

    use super::*;

    type Made = rcgen::CertifiedKey<rcgen::KeyPair>;

    fn made() -> Made {
        rcgen::generate_simple_self_signed(["hub".to_owned()]).unwrap()
    }

    /// A handshake in memory; the server shows `shown` and has the key of `has`.
    fn greet(hash: [u8; 32], shown: &Made, has: &Made) -> Result<(), Error> {
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(has.signing_key.serialize_der()));
        let signer = aws_lc_rs::sign::any_supported_type(&secret)?;
        let certified = rustls::sign::CertifiedKey::new(vec![shown.cert.der().clone()], signer);
        let resolver = rustls::sign::SingleCertAndKey::from(certified);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_no_client_auth().with_cert_resolver(Arc::new(resolver));
        let mut server = ServerConnection::new(Arc::new(config))?;
        let name = ServerName::try_from("192.0.2.1").unwrap();
        let mut client = ClientConnection::new(Arc::new(pinned(hash)), name)?;
        while client.is_handshaking() || server.is_handshaking() {
            let mut octets = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut octets).unwrap();
            }
            while !octets.is_empty() {
                let taken = server.read_tls(&mut &octets[..]).unwrap();
                octets.drain(..taken);
                server.process_new_packets()?;
            }
            while server.wants_write() {
                server.write_tls(&mut octets).unwrap();
            }
            while !octets.is_empty() {
                let taken = client.read_tls(&mut &octets[..]).unwrap();
                octets.drain(..taken);
                client.process_new_packets()?;
            }
        }
        Ok(())
    }

    #[test]
    fn only_the_key_of_the_token_is_the_hub() {
        let (hub, other) = (made(), made());
        let hash = key_hash(hub.cert.der()).unwrap();
        assert_eq!(greet(hash, &hub, &hub), Ok(()));
        let stranger = greet(hash, &other, &other).unwrap_err();
        assert!(matches!(stranger, Error::InvalidCertificate(_)), "{stranger}");
        let thief = greet(hash, &hub, &other).unwrap_err();
        assert!(matches!(thief, Error::InvalidCertificate(CertificateError::BadSignature)), "{thief}");
    }

    #[test]
    fn a_new_certificate_over_the_same_key_is_the_same_hub() {
        let hub = made();
        let renewed = rcgen::CertificateParams::new(["another-name".to_owned()]).unwrap();
        let renewed = renewed.self_signed(&hub.signing_key).unwrap();
        assert_ne!(renewed.der(), hub.cert.der());
        assert_eq!(key_hash(renewed.der()).unwrap(), key_hash(hub.cert.der()).unwrap());
    }
}
