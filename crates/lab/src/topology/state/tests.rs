use super::leftovers::{bears, writer};
use super::process::{began, outside};
use super::*;

#[test]
fn ids_name_files_and_namespaces() {
    let id: LabId = "lab_7".parse().unwrap();
    assert_eq!(id.namespace("cross-1-source"), "narrows-lab-lab_7-cross-1-source");
    assert_eq!(owner("narrows-lab-lab_7-cross-1-source"), Some("lab_7"));
    for other in ["narrows-17-0-sender", "narrows-lab-", "narrows-lab-x", "narrows-lab--sender", "blue"] {
        assert_eq!(owner(other), None, "{other}");
    }
    for bad in ["", "a-b", "a/b", "..", "é", "a123456789012345678901234"] {
        assert!(matches!(bad.parse::<LabId>(), Err(LabError::BadId { .. })), "{bad}");
    }
}

#[test]
fn scraps_name_their_writers() {
    assert_eq!(writer("lab_7.4711.draft"), Some(4_711));
    assert_eq!(writer("up_4711.log"), Some(4_711));
    for other in ["lab_7.json", "lab_7.log", "up_x.log", "x.draft", ".draft"] {
        assert_eq!(writer(other), None, "{other}");
    }
}

#[test]
fn users_outside() {
    assert_eq!(outside("         0          0 4294967295\n", 0), Some(0));
    assert_eq!(outside("0 1000 1\n", 0), Some(1000));
    assert_eq!(outside("0 1000 1\n1 100000 65536\n", 3), Some(100_002));
    assert_eq!(outside("0 1000 1\n", 1), None);
    assert_eq!(outside("", 0), None);
}

#[test]
fn births_of_processes() {
    let stat = "17 (a) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 12345 67";
    assert_eq!(began(stat), Some(4_711));
    assert_eq!(began(&stat.replace(" S ", " Z ")), None);
    assert_eq!(began("17 (a"), None);
    assert!(process_began(std::process::id()).is_some());
    // Above the largest possible process number (2^22).
    assert_eq!(process_began(u32::MAX), None);
}

#[test]
fn marks_tell_processes_apart() {
    let text = |process, began| mark(process, began).map(|address| address.to_string());
    assert_eq!(text(0, 0), ["127.64.0.0", "127.128.0.0"]);
    assert_eq!(text(4_194_303, u64::MAX), ["127.127.255.255", "127.191.255.255"]);
    assert_eq!(text(258, 515), ["127.64.1.2", "127.128.2.3"]);
    let table = "  |-- 127.64.1.2\n  /32 host LOCAL\n  |-- 127.128.2.3\n  /32 host LOCAL\n";
    assert!(bears(table, mark(258, 515)));
    assert!(!bears(table, mark(258, 516)) && !bears(table, mark(25, 515)));
    assert!(!bears("  |-- 127.64.1.2\n", mark(258, 515)));
}

#[test]
fn states_survive_their_file() {
    let state = LabState {
        id: "x".parse().unwrap(),
        process: 7,
        process_began: 8,
        held: true,
        began_uptime_s: 1.5,
        namespaces: vec!["narrows-lab-x-sender".to_owned()],
        numbers: vec![4_026_532_000],
        path_cpu: Some(1),
        description: None,
        links: Vec::new(),
        flows: Vec::new(),
    };
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<LabState>(&text).unwrap(), state);
    assert!(serde_json::from_str::<LabState>(&text.replace("\"x\"", "\"../x\"")).is_err());
    assert!(!state.is_alive(), "another process of this number, if any, began at another time");
}
