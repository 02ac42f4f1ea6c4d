//! `narrows throughput --ndt7`.

use std::path::PathBuf;

#[cfg(feature = "tls")]
mod run;

#[cfg(feature = "tls")]
pub(super) use run::run;

/// Which tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Which {
    Both,
    Download,
    Upload,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ndt7Args {
    /// Speak ndt7 with HOST, or with a URL of ws:// or wss://; a bare HOST means wss at port 443,
    /// and with --port ws
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "both",
          conflicts_with_all = ["iperf3", "udp", "bidir", "bytes", "blockcount", "bitrate", "fq_rate"])]
    ndt7: Option<Which>,
    /// Certificates (PEM) that a wss server may show, instead of the public ones
    #[arg(long, value_name = "FILE", requires = "ndt7")]
    ca: Option<PathBuf>,
}

impl Ndt7Args {
    pub(super) fn wanted(&self) -> bool {
        self.ndt7.is_some()
    }
}

#[cfg(not(feature = "tls"))]
pub(super) fn run(
    _args: &super::ThroughputArgs,
    _stop: &std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> Result<crate::exit::Exit, crate::exit::Failure> {
    Err(crate::exit::Failure::without("ndt7", "tls"))
}
