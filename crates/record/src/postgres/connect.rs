//! Connections: where to, with TLS or without, and what its errors mean.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{GenericClient, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

/// One hub: ingest, planner, some pages at once.
const CONNECTIONS: usize = 8;
/// A call that waits longer for a connection fails, and may be repeated.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a piece of work failed.
#[derive(Debug)]
pub(super) enum Failed {
    Record(Error),
    Sql(tokio_postgres::Error),
}

pub(super) type Work<T> = std::result::Result<T, Failed>;

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Record(error)
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<PoolError> for Failed {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Sql(error),
            other => Self::Record(Error::Unavailable(other.to_string())),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        let error = match failed {
            Failed::Record(error) => return error,
            Failed::Sql(error) => error,
        };
        let Some(said) = error.as_db_error() else {
            // The library's own text does not say why.
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            return Self::Unavailable(format!("{error}{}", cause.unwrap_or_default()));
        };
        // Classes: connection, transaction rolled back, resources, busy, operator, system, access.
        let is_passing = ["08", "25", "28", "3D", "40", "53", "55", "57", "58"];
        if is_passing.iter().any(|class| said.code().code().starts_with(class)) {
            return Self::Unavailable(said.message().to_owned());
        }
        Self::Damaged(format!("{} ({})", said.message(), said.code().code()))
    }
}

impl Failed {
    /// The same work may succeed at once: another transaction was in its way.
    pub(super) fn is_conflict(&self) -> bool {
        let code = match self {
            Self::Sql(error) => error.code(),
            Self::Record(_) => None,
        };
        code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
            || code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
            || code == Some(&SqlState::EXCLUSION_VIOLATION)
    }
}

/// The rows of a statement that the connection remembers.
pub(super) async fn query(
    on: &impl GenericClient,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> std::result::Result<Vec<Row>, tokio_postgres::Error> {
    let statement = on.prepare_cached(sql).await?;
    on.query(&statement, params).await
}

/// The number of rows that such a statement changed.
pub(super) async fn execute(
    on: &impl GenericClient,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> std::result::Result<u64, tokio_postgres::Error> {
    let statement = on.prepare_cached(sql).await?;
    on.execute(&statement, params).await
}

pub(super) fn pool(url: &str) -> Result<Pool> {
    let (config, tls) = settings(url)?;
    let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let pool = Pool::builder(manager)
        .max_size(CONNECTIONS)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE))
        .recycle_timeout(Some(PATIENCE));
    pool.build().map_err(|error| Error::Unavailable(error.to_string()))
}

/// `sslmode` and `sslrootcert` are ours: there is no TLS whose certificate nobody checks.
fn settings(url: &str) -> Result<(Config, MakeRustlsConnect)> {
    let wrong = |why: String| Error::Unavailable(format!("the address of the database: {why}"));
    let (place, asked) = url.split_once('?').unwrap_or((url, ""));
    let (mut rest, mut mode, mut authority) = (Vec::new(), None, None);
    for part in asked.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value),
            Some(("sslrootcert", file)) => authority = Some(file),
            _ => rest.push(part),
        }
    }
    let mut config: Config =
        format!("{place}?{}", rest.join("&")).parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            wrong(cause.unwrap_or_else(|| error.to_string()))
        })?;
    let encrypted = match mode {
        None => !config.get_hosts().iter().all(is_here),
        Some("disable") => false,
        Some("require" | "verify-full") => true,
        Some(other) => return Err(wrong(format!("sslmode is \"disable\" or \"verify-full\", not \"{other}\""))),
    };
    config.ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
    // Questions are short; compiling them takes longer than answering.
    let options = format!("{} -c jit=off", config.get_options().unwrap_or_default());
    config.options(options).application_name("narrows hub").connect_timeout(PATIENCE).tcp_user_timeout(PATIENCE);
    let roots = if encrypted { roots(authority)? } else { RootCertStore::empty() };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((config, MakeRustlsConnect::new(tls)))
}

/// Nothing leaves this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

/// Authorities of a file in PEM, or the system's.
fn roots(file: Option<&str>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let wrong = |why: String| Error::Unavailable(format!("{file}: {why}"));
    for one in CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))? {
        let one = one.map_err(|error| wrong(error.to_string()))?;
        roots.add(one).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() { Err(wrong("it has no certificate".to_owned())) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_somebody_says_otherwise() {
        let mode = |url: &str| settings(url).map(|(config, _)| config.get_ssl_mode());
        for (url, expected) in [
            ("postgres://hub@localhost/narrows", SslMode::Disable),
            ("postgres://hub@[::1]/narrows", SslMode::Disable),
            ("postgres://hub@%2Frun%2Fpostgresql/narrows", SslMode::Disable),
            ("postgres://hub@db.example/narrows", SslMode::Require),
            ("postgres://hub@127.0.0.1,db.example/narrows", SslMode::Require),
            ("postgres://hub@db.example/narrows?sslmode=disable", SslMode::Disable),
            ("postgres://hub@localhost/narrows?sslmode=verify-full&connect_timeout=3", SslMode::Require),
        ] {
            assert_eq!(mode(url), Ok(expected), "{url}");
        }
        for (url, said) in [
            ("postgres://hub@db/narrows?sslmode=prefer", "not \"prefer\""),
            ("postgres://hub@db/narrows?sslrootcert=/nowhere.pem", "/nowhere.pem"),
            ("postgres://hub@db/narrows?nonsense=1", "nonsense"),
        ] {
            let error = mode(url).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
