//! The files of the pages, in the program and compressed at its start.

use std::io::Write as _;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The files of the pages, as they are and compressed.
pub struct Assets {
    /// Part of each address, so that a browser may keep a file for ever.
    version: String,
    page: String,
    files: Vec<Held>,
}

struct Held {
    file: File,
    compressed: Bytes,
}

/// A file of the pages.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its name in addresses.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its content.
    pub content: &'static [u8],
}

impl Assets {
    /// These files beside those of the [`KIT`]. In `shell`, `VERSION` stands for a part of the
    /// addresses which changes with any file.
    pub fn new(shell: &str, files: &[File]) -> Self {
        let all: Vec<File> = KIT.iter().chain(files).copied().collect();
        let mut hash = Sha256::new();
        hash.update(shell);
        for file in &all {
            hash.update(file.content);
        }
        let [a, b, c, d, ..]: [u8; 32] = hash.finalize().into();
        let version = format!("{:08x}", u32::from_be_bytes([a, b, c, d]));
        let page = shell.replace("VERSION", &version);
        let held = |file: File| Held { file, compressed: compress(file.content) };
        Self { version, page, files: all.into_iter().map(held).collect() }
    }

    /// The shell as text.
    pub fn shell(&self) -> &str {
        &self.page
    }

    /// The shell of every page.
    pub fn page(&self) -> Response {
        ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], self.page.clone()).into_response()
    }

    /// A file, compressed for whoever takes that; `None`: there is none, or another version is
    /// asked for.
    pub fn file(&self, version: &str, name: &str, headers: &HeaderMap) -> Option<Response> {
        let file = self.files.iter().find(|file| file.file.name == name && version == self.version)?;
        let gzip =
            headers.get(header::ACCEPT_ENCODING).and_then(|of| of.to_str().ok()).is_some_and(|of| of.contains("gzip"));
        let body = if gzip { file.compressed.clone() } else { Bytes::from_static(file.file.content) };
        let mut response = ([(header::CONTENT_TYPE, file.file.kind)], body).into_response();
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

/// The media type of scripts.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The media type of styles.
pub const STYLE: &str = "text/css; charset=utf-8";

/// What all pages use: elements and words, charts, reports of runs, the frame of a page with
/// sign-in and news.
pub const KIT: [File; 8] = [
    File { name: "style.css", kind: STYLE, content: include_bytes!("../assets/style.css") },
    File { name: "uPlot.min.css", kind: STYLE, content: include_bytes!("../assets/uplot/uPlot.min.css") },
    File { name: "uPlot.iife.min.js", kind: SCRIPT, content: include_bytes!("../assets/uplot/uPlot.iife.min.js") },
    File { name: "icon.svg", kind: "image/svg+xml", content: include_bytes!("../assets/icon.svg") },
    File { name: "kit.js", kind: SCRIPT, content: include_bytes!("../assets/kit.js") },
    File { name: "chart.js", kind: SCRIPT, content: include_bytes!("../assets/chart.js") },
    File { name: "report.js", kind: SCRIPT, content: include_bytes!("../assets/report.js") },
    File { name: "frame.js", kind: SCRIPT, content: include_bytes!("../assets/frame.js") },
];
