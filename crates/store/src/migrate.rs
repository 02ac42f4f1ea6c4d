//! The schema's versions, one step after the other.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{Error, Result};

/// What makes version N out of version N - 1, from N = 1 on.
pub(crate) const STEPS: &[&str] = &[include_str!("../schema/1.sql"), include_str!("../schema/2.sql")];

/// "nrws": tells our files from other SQLite files.
pub(crate) const APPLICATION: i64 = 0x6e72_7773;

/// Brings a file to the last version. A file that holds rows is copied first.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<()> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION {
        return Err(Error::Foreign(path.to_owned()));
    }
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found > 0 && found < known {
        copy(connection, &beside(path, &format!("v{found}")))?;
    }
    for (version, step) in (1..=known).zip(steps).skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

/// A copy of a store while others use it. The file must not exist, unless it is empty.
pub(crate) fn copy(connection: &Connection, to: &Path) -> Result<()> {
    let name = to.to_str().ok_or_else(|| Error::File {
        path: to.to_owned(),
        error: std::io::Error::new(std::io::ErrorKind::InvalidInput, "the name is not text"),
    })?;
    // The copy of an attempt that failed is worth nothing.
    if to.exists() {
        std::fs::remove_file(to).map_err(|error| Error::File { path: to.to_owned(), error })?;
    }
    connection.execute("vacuum into ?1", [name])?;
    Ok(())
}

/// A file's name with another ending: `watch.db` and `v1` give `watch.db.v1`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "create table added (id integer primary key) strict; alter table target add column link text;";

    fn version(connection: &Connection) -> u32 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_step_goes_forward_and_leaves_a_copy_of_what_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &STEPS[..1]).unwrap();
        connection.execute("insert into target (name, host, added) values ('a', 'b', 1)", []).unwrap();
        assert!(!beside(&path, "v1").exists());
        migrate(&mut connection, &path, &[STEPS[0], NEXT]).unwrap();
        assert_eq!(version(&connection), 2);
        let linked: Option<String> = connection.query_row("select link from target", [], |row| row.get(0)).unwrap();
        assert_eq!(linked, None);
        let copy = Connection::open(beside(&path, "v1")).unwrap();
        assert_eq!(version(&copy), 1);
        let name: String = copy.query_row("select name from target", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "a");
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection, &path, &STEPS[..1]).unwrap();
        let broken = "create table added (id integer) strict; insert into nowhere values (1);";
        assert!(migrate(&mut connection, &path, &[STEPS[0], broken]).is_err());
        assert_eq!(version(&connection), 1);
        assert!(connection.query_row("select * from added", [], |_| Ok(())).is_err());
    }
}
