//! Documents as they were stored: JSON, or a page that holds one.

use serde_json::Value;
use thiserror::Error;

/// What cannot be read. The caller, who named the file, can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoredError {
    /// No JSON.
    #[error("is neither JSON nor a page with a document in it: {reason}")]
    NoJson {
        /// What the parser says.
        reason: String,
    },
    /// An HTML page that holds no document.
    #[error("is a page without a document in it (no element with the id \"{MARK}\")")]
    NoDocument,
}

/// The element of a page that holds its document.
const MARK: &str = "narrows-document";

/// The document of a file: one JSON object, the last line of many, or the one that a page holds.
pub fn stored(text: &str) -> Result<Value, StoredError> {
    let text = text.trim();
    if text.starts_with('<') {
        return parsed(embedded(text).ok_or(StoredError::NoDocument)?);
    }
    match (parsed(text), text.lines().last()) {
        // `available --watch --json` ends with its summary.
        (Err(first), Some(last)) => parsed(last).map_err(|_| first),
        (whole, _) => whole,
    }
}

fn parsed(text: &str) -> Result<Value, StoredError> {
    serde_json::from_str(text).map_err(|error| StoredError::NoJson { reason: error.to_string() })
}

fn embedded(page: &str) -> Option<&str> {
    let at = page.find(&format!("id=\"{MARK}\""))?;
    let (_, rest) = page[at..].split_once('>')?;
    let (document, _) = rest.split_once("</script")?;
    Some(document.trim())
}
