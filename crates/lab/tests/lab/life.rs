//! Begin and end of labs.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use narrows_lab::{RealTimePath, Side, StartOptions};
use narrows_scenario::{Hop, PathDirection, Scenario};
use narrows_units::BitRate;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::bench::{MS, alone, round_trips, start, three_hops};

fn names_of_this_process() -> Vec<String> {
    let prefix = format!("narrows-{}-", std::process::id());
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

#[test]
#[ignore = "lab: needs namespaces"]
fn nothing_is_left_behind() {
    let _alone = alone();
    let named = StartOptions { named: true, ..StartOptions::default() };
    let path = RealTimePath::start(&three_hops(), named).unwrap();
    assert_eq!(names_of_this_process().len(), 2);
    let name = path.host(Side::Sender).name().unwrap().to_owned();
    assert!(Path::new("/run/netns").join(&name).exists());
    drop(path);
    assert_eq!(names_of_this_process(), Vec::<String>::new());

    let panicked = std::panic::catch_unwind(|| {
        let path = RealTimePath::start(&three_hops(), named).unwrap();
        path.host(Side::Receiver).run(|| panic!("the closure's own trouble")).unwrap();
    });
    let message = panicked.unwrap_err();
    assert_eq!(*message.downcast_ref::<&str>().unwrap(), "the closure's own trouble");
    assert_eq!(names_of_this_process(), Vec::<String>::new());
}

/// The first `ip netns add` since the machine began makes the folder of names a mount of its own.
/// Whoever had names in it by then must still get rid of them.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_first_name_of_iproute2_hides_none_of_ours() {
    let _alone = alone();
    // A thread whose mounts nobody else sees, with a folder that nobody has used yet.
    let tried = thread::spawn(|| {
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).unwrap();
        mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none).unwrap();
        mount(Some("none"), "/run", Some("tmpfs"), MsFlags::empty(), none).unwrap();
        let named = StartOptions { named: true, ..StartOptions::default() };
        let path = RealTimePath::start(&three_hops(), named).unwrap();
        assert_eq!(names_of_this_process().len(), 2);
        let added = std::process::Command::new("ip").args(["netns", "add", "narrows-test-first"]).status().unwrap();
        assert!(added.success());
        drop(path);
        assert_eq!(names_of_this_process(), Vec::<String>::new());
    });
    tried.join().unwrap();
}

#[test]
#[ignore = "lab: needs namespaces"]
fn names_of_dead_processes_are_removed() {
    let _alone = alone();
    // The largest process number is 2^22.
    let dead = Path::new("/run/netns/narrows-4194305-0-sender");
    let foreign = Path::new("/run/netns/narrows-test-foreign");
    std::fs::create_dir_all("/run/netns").unwrap();
    for path in [dead, foreign] {
        std::fs::write(path, "").unwrap();
    }
    let bind = MsFlags::MS_BIND;
    let none = None::<&str>;
    mount(Some("/proc/self/ns/net"), dead, none, bind, none).unwrap();
    let removed = narrows_lab::clean_leftovers();
    assert!(removed.contains(&"narrows-4194305-0-sender".to_owned()), "{removed:?}");
    assert!(!dead.exists() && foreign.exists());
    std::fs::remove_file(foreign).unwrap();
}

/// The same addresses twice, with different paths between them; the clocks are not judged, since
/// two labs share two processors.
#[test]
#[ignore = "lab: needs namespaces"]
fn labs_live_side_by_side() {
    let _alone = alone();
    let with_delay =
        |delay| Scenario::new("side by side").hop(Hop::rate(BitRate::from_mbps(100)).delay(delay)).validate().unwrap();
    let scenarios = [with_delay(20 * MS), with_delay(100 * MS)];
    let paths = scenarios.each_ref().map(start);
    for (path, scenario) in paths.iter().zip(&scenarios) {
        let mut trips = round_trips(path, false, 100, 9);
        trips.sort();
        let truth = scenario.truth(PathDirection::Forward).base_rtt(128, 128);
        assert!(trips[0] >= truth && trips[0] <= truth + 150 * MS, "{trips:?}, truth {truth:?}");
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn a_report_taken_begins_anew() {
    const WAIT: Duration = Duration::from_millis(200);
    let _alone = alone();
    let begun = Instant::now();
    let path = start(&three_hops());
    round_trips(&path, false, 100, 3);
    thread::sleep(WAIT);
    assert_eq!(path.timing_report().unwrap().releases, 6);
    assert_eq!(path.take_timing_report().unwrap().releases, 6);
    round_trips(&path, false, 100, 2);
    let last = path.stop().unwrap();
    assert_eq!((last.releases, last.accepted), (4, 4));
    assert!(last.ran <= begun.elapsed().saturating_sub(WAIT), "counted from the report that was taken");
}
