//! Which database a text names.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::record::Record;
use crate::tables::Tables;
use crate::{postgres, sqlite};

/// A record, as the hub sees it and as its tables.
pub(crate) struct Opened {
    pub(crate) record: Arc<dyn Record>,
    pub(crate) tables: Arc<dyn Tables>,
}

impl Opened {
    fn new<R: Record + Tables + 'static>(record: R) -> Self {
        let record = Arc::new(record);
        Self { tables: Arc::<R>::clone(&record), record }
    }
}

/// Opens the record that a text names: `sqlite:FILE` or `postgres://user@host/database`. It is made
/// if there is none.
pub async fn open(url: &str) -> Result<Arc<dyn Record>> {
    Ok(opened(url).await?.record)
}

pub(crate) async fn opened(url: &str) -> Result<Opened> {
    if let Some(file) = url.strip_prefix("sqlite:") {
        return Ok(Opened::new(sqlite::Record::open(Path::new(file))?));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Opened::new(postgres::Record::open(url).await?));
    }
    // It may have a password, so it is not repeated.
    Err(Error::Unavailable("its address is neither \"sqlite:FILE\" nor \"postgres://...\"".to_owned()))
}
