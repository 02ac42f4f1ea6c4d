//! Which database a text names.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::record::Record;
use crate::sqlite;

/// Opens the record that a text names: `sqlite:FILE`. It is made if there is none.
pub async fn open(url: &str) -> Result<Arc<dyn Record>> {
    let file = url.strip_prefix("sqlite:").ok_or_else(|| Error::Unavailable(format!("\"{url}\" names no database")))?;
    Ok(Arc::new(sqlite::Record::open(Path::new(file))?))
}
