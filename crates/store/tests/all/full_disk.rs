//! A full disk: whoever measures goes on, and the rows follow once there is room.

use std::process::Command;

use narrows_store::records::Basis;
use narrows_store::{Error, Options, Store};
use narrows_watch::Signal;

use crate::common::{DAY, Folder, MINUTE, at, event, pulses, sample, span};

const FOLDER: &str = "NARROWS_STORE_FULL_DISK";

#[test]
#[ignore = "lab: needs namespaces"]
fn a_full_disk_costs_nothing_but_time() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return on_16_megabytes(folder.as_ref());
    }
    let folder = Folder::new();
    let script = "mount -t tmpfs -o size=16m tmpfs \"$0\" && exec \"$@\"";
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(folder.0.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::a_full_disk_costs_nothing_but_time", "--include-ignored", "--nocapture"])
        .env(FOLDER, folder.0.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
}

/// Takes all that is left of the disk.
fn fill(folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join("ballast");
    let full = std::fs::write(&path, vec![0_u8; 32 << 20]);
    assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    path
}

fn on_16_megabytes(folder: &std::path::Path) {
    let path = folder.join("watch.db");
    let store = Store::open(&path, Options::new(at(0))).unwrap();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    writer.flush().unwrap();
    let ballast = fill(folder);
    for minute in 0..4_000 {
        writer.pulses(target, pulses(minute * MINUTE, 0));
        writer.sample(target, Signal::AvailableForward, Basis::Server, sample(minute * MINUTE, 1e7));
    }
    let kept = writer.flush();
    assert!(matches!(kept, Err(Error::Later(_))), "{kept:?}");
    let mut one = event(Some(target), 5, "kept in memory");
    assert!(matches!(writer.event(&mut one), Err(Error::Later(_))));
    let health = writer.health();
    assert!(health.degraded.is_some() && health.held_rows == 8_001 && health.dropped_rows == 0, "{health:?}");
    assert_eq!(writer.target("office", "far.example", None, at(1)).unwrap(), target);
    assert!(reader.events(None, span(0, DAY), 9).unwrap().is_empty());
    std::fs::remove_file(&ballast).unwrap();
    writer.flush().unwrap();
    let health = writer.health();
    assert!(health.degraded.is_none() && health.held_rows == 0, "{health:?}");
    assert_eq!(reader.events(None, span(0, DAY), 9).unwrap(), [one]);
    assert_eq!(reader.pulses(target, span(0, 9 * DAY)).unwrap().len(), 4_000);
    reader.check().unwrap();
    drop(store);
    // A start on a full disk, after an end in order.
    fill(folder);
    let store = Store::open(&path, Options::new(at(0))).unwrap();
    let writer = store.writer();
    assert_eq!(writer.target("office", "far.example", None, at(1)).unwrap(), target);
    for minute in 5_000..9_000 {
        writer.pulses(target, pulses(minute * MINUTE, 0));
    }
    assert!(matches!(writer.flush(), Err(Error::Later(_))));
}
