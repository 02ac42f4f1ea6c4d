//! The files of the pages, in the program and compressed at its start.

use std::io::Write as _;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The files of the pages, as they are and compressed.
pub(crate) struct Assets {
    /// Part of each address, so that a browser may keep a file for ever.
    version: String,
    page: String,
    files: Vec<File>,
}

struct File {
    name: &'static str,
    kind: &'static str,
    plain: Bytes,
    compressed: Bytes,
}

impl Assets {
    pub(crate) fn new() -> Self {
        let mut hash = Sha256::new();
        for (_, _, bytes) in FILES {
            hash.update(bytes);
        }
        let [a, b, c, d, ..]: [u8; 32] = hash.finalize().into();
        let version = format!("{:08x}", u32::from_be_bytes([a, b, c, d]));
        let page = include_str!("../assets/index.html").replace("VERSION", &version);
        let file = |(name, kind, bytes): &(&'static str, &'static str, &'static [u8])| File {
            name,
            kind,
            plain: Bytes::from_static(bytes),
            compressed: compress(bytes),
        };
        Self { version, page, files: FILES.iter().map(file).collect() }
    }

    /// The shell of every page.
    pub(crate) fn page(&self) -> Response {
        ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], self.page.clone()).into_response()
    }

    pub(crate) fn file(&self, version: &str, name: &str, headers: &HeaderMap) -> Option<Response> {
        let file = self.files.iter().find(|file| file.name == name && version == self.version)?;
        let gzip =
            headers.get(header::ACCEPT_ENCODING).and_then(|of| of.to_str().ok()).is_some_and(|of| of.contains("gzip"));
        let body = if gzip { &file.compressed } else { &file.plain };
        let mut response = ([(header::CONTENT_TYPE, file.kind)], body.clone()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Some(response)
    }
}

fn compress(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to a Vec cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Name, type, content.
const FILES: [(&str, &str, &[u8]); 13] = [
    ("style.css", STYLE, include_bytes!("../assets/style.css")),
    ("uPlot.min.css", STYLE, include_bytes!("../assets/uplot/uPlot.min.css")),
    ("uPlot.iife.min.js", SCRIPT, include_bytes!("../assets/uplot/uPlot.iife.min.js")),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
    ("app.js", SCRIPT, include_bytes!("../assets/app.js")),
    ("kit.js", SCRIPT, include_bytes!("../assets/kit.js")),
    ("chart.js", SCRIPT, include_bytes!("../assets/chart.js")),
    ("heat.js", SCRIPT, include_bytes!("../assets/heat.js")),
    ("pipe.js", SCRIPT, include_bytes!("../assets/pipe.js")),
    ("overview.js", SCRIPT, include_bytes!("../assets/overview.js")),
    ("target.js", SCRIPT, include_bytes!("../assets/target.js")),
    ("run.js", SCRIPT, include_bytes!("../assets/run.js")),
    ("compare.js", SCRIPT, include_bytes!("../assets/compare.js")),
];
