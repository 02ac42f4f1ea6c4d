//! A full disk: nothing is acknowledged, and nothing is lost that was.

use std::path::Path;
use std::process::Command;

use narrows_fleet::message::Run;
use narrows_record::sqlite::Record;
use narrows_record::{Error, Record as _};
use narrows_units::Metric;

use crate::common::{EVER, NOON, agents, available, name};

const FOLDER: &str = "NARROWS_RECORD_FULL_DISK";

#[test]
#[ignore = "lab: needs namespaces"]
fn a_full_disk_costs_nothing_but_time() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(on_16_megabytes(folder.as_ref()));
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=16m tmpfs \"$0\" && exec \"$@\"";
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::a_full_disk_costs_nothing_but_time", "--include-ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
}

fn batch(number: u64) -> Vec<Run> {
    let one = |seq| {
        let text: String =
            (0..2_000_u64).map(|at| char::from(b'a' + u8::try_from((at * at * seq + at) % 23).unwrap())).collect();
        Run { evidence: Some(serde_json::json!({"text": text})), ..available("a", seq, "b", NOON, 1e6) }
    };
    (number * 100 + 1..=number * 100 + 100).map(one).collect()
}

async fn on_16_megabytes(folder: &Path) {
    let path = folder.join("hub.db");
    let record = Record::open(&path).unwrap();
    agents(&record, &["a"]).await;
    let ballast = folder.join("ballast");
    let mut stored = 0;
    std::fs::write(&ballast, vec![0_u8; 13 << 20]).unwrap();
    let refused = loop {
        match record.ingest(&batch(stored), NOON).await {
            Ok(done) => assert_eq!(done.new, 100),
            Err(error) => break error,
        }
        stored += 1;
    };
    println!("{stored} batches, then: {refused}");
    assert!(matches!(&refused, Error::Unavailable(why) if why.contains("full")), "{refused}");
    // What needs no disk goes on.
    assert_eq!(record.agents().await.unwrap()[0].stored.ranges, [(1, stored * 100 + 1)]);
    assert!(record.latest(Metric::AvailableIpCapacity, 0).await.unwrap().len() == 1);
    assert!(matches!(record.ingest(&batch(stored), NOON).await, Err(Error::Unavailable(_))));
    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(record.ingest(&batch(stored), NOON).await.unwrap().new, 100);
    drop(record);
    // Nothing starts on a full disk, and nothing is lost by the attempt.
    std::fs::write(&ballast, vec![0_u8; 32 << 20]).unwrap_err();
    let refused = Record::open(&path).unwrap_err().to_string();
    assert!(refused.contains("is its disk full?"), "{refused}");
    std::fs::remove_file(&ballast).unwrap();
    let record = Record::open(&path).unwrap();
    let series = record.series(&name("a"), &name("b"), Metric::AvailableIpCapacity, EVER, 100_000).await.unwrap();
    assert_eq!(series.len(), usize::try_from(stored * 100 + 100).unwrap());
}
