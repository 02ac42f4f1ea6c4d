//! The suite over SQLite, and what only this one has.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use narrows_record::sqlite::Record;
use narrows_record::{Error, open};

use crate::suite::{World, cases};

fn world(folder: &Path) -> World {
    let file = folder.join("hub.db");
    World { a: Arc::new(Record::open(&file).unwrap()), b: Arc::new(Record::open(&file).unwrap()) }
}

#[tokio::test]
async fn one_suite_holds_over_sqlite() {
    join_all(cases().into_iter().map(|case| async move {
        let began = tokio::time::Instant::now();
        let folder = tempfile::tempdir().unwrap();
        (case.run)(&world(folder.path())).await;
        println!("{}: {} ms", case.name, began.elapsed().as_millis());
    }))
    .await;
}

#[tokio::test]
async fn the_files_are_their_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path());
    crate::common::agents(&*world.a, &["a"]).await;
    let modes = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().mode() & 0o777);
    assert_eq!(modes.collect::<Vec<_>>(), [0o600; 3]);
}

async fn refused(file: &Path) -> Error {
    let before = std::fs::read(file).unwrap();
    let error = open(&format!("sqlite:{}", file.display())).await.err().unwrap();
    assert!(std::fs::read(file).unwrap() == before, "not one octet is changed");
    error
}

#[tokio::test]
async fn files_of_others_and_of_newer_programs_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let notes = "my notes, which are longer than any header of a file of SQLite's, by some words\n".repeat(9);
    std::fs::write(path("notes"), notes).unwrap();
    assert!(matches!(refused(&path("notes")).await, Error::Foreign(_)));
    rusqlite::Connection::open(path("cookies")).unwrap().execute_batch("create table cookies (a)").unwrap();
    let error = refused(&path("cookies")).await;
    assert!(matches!(&error, Error::Foreign(why) if why.contains("another program")), "{error}");
    for (name, change, why) in [
        ("newer", "insert into migration values (99, 'x')", "version 99"),
        ("changed", "update migration set checksum = 'x' where version = 1", "another step"),
    ] {
        drop(Record::open(&path(name)).unwrap());
        rusqlite::Connection::open(path(name)).unwrap().execute(change, []).unwrap();
        let error = refused(&path(name)).await;
        assert!(matches!(&error, Error::Foreign(said) if said.contains(why)), "{error}");
    }
    assert!(matches!(open("mysql://nobody").await.err(), Some(Error::Unavailable(_))));
    let nowhere = open("sqlite:/proc/nothing/here/hub.db").await.err();
    assert!(matches!(nowhere, Some(Error::Unavailable(_))), "{nowhere:?}");
}
