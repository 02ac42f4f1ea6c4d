//! Records that an older program made, as it left them.

use std::path::Path;

use narrows_record::Record;
use narrows_units::hex;
use sha2::{Digest as _, Sha256};

use crate::cluster::Cluster;
use crate::common::{NOON, reservation};

const SQLITE: [&str; 2] = [include_str!("../../schema/sqlite/1.sql"), include_str!("../../schema/sqlite/2.sql")];
const POSTGRES: [&str; 2] = [include_str!("../../schema/postgres/1.sql"), include_str!("../../schema/postgres/2.sql")];

/// All that makes such a record, from an empty database on: a span is reserved in it.
fn script(steps: [&str; 2], migration: &str, id: &str) -> String {
    let step = |(version, step): (i32, &str)| {
        let sum = hex::to_text(&Sha256::digest(step));
        format!("{step}\ninsert into {migration} (version, checksum) values ({version}, '{sum}');\n")
    };
    let steps: String = (1..).zip(steps).map(step).collect();
    let (begin, end) = (NOON, NOON + 100);
    let row = format!("'host.a', {begin}, {end}, {id}, 'a', 3");
    format!("{steps}insert into reservation (key, begin_ms, end_ms, run, agent, serial) values ({row});\n")
}

async fn goes_on(record: &dyn Record) {
    // Nobody knows what that run may send, or who asked for it.
    let mut old = reservation("host.a", 0, 100, 1);
    (old.octets, old.by_hand) = (0, false);
    assert_eq!(record.reservations(0).await.unwrap(), [old.clone()]);
    let new = reservation("host.a", 100, 200, 2);
    record.reserve(std::slice::from_ref(&new)).await.unwrap();
    assert_eq!(record.reservations(0).await.unwrap(), [old, new]);
}

/// "nrwr" marks the file as ours.
fn file(path: &Path) {
    let id = format!("x'{:032x}'", 1);
    let script = script(SQLITE, "migration", &id) + "pragma application_id = 1852995442;";
    rusqlite::Connection::open(path).unwrap().execute_batch(&script).unwrap();
}

#[tokio::test]
async fn a_file_of_an_older_program_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    file(&path);
    goes_on(&*narrows_record::open(&format!("sqlite:{}", path.display())).await.unwrap()).await;
}

/// The same with PostgreSQL.
pub(crate) async fn a_database_goes_on(cluster: &Cluster) {
    let name = cluster.database(false);
    cluster.sql(&name, &script(POSTGRES, "narrows_migration", "'00000000-0000-0000-0000-000000000001'"));
    goes_on(&*narrows_record::open(&cluster.url(&name)).await.unwrap()).await;
}
