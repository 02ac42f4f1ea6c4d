//! The profiles that ship.

use narrows_host_profile::{HostProfile, Quantiles};

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hosts");

fn read(name: &str) -> HostProfile {
    let path = format!("{HOSTS}/{name}.toml");
    HostProfile::from_toml(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

/// Evenly from one value to another.
fn even(from: i64, to: i64) -> Quantiles {
    let all = (0..=1000).map(|k| from + (to - from) * k / 1000);
    Quantiles { count: 0, ..Quantiles::of(all).expect("some values") }
}

/// The derived profile: the quiet host, behind a card that holds interrupts back.
fn coalescing(quiet: &HostProfile) -> HostProfile {
    let mut derived = quiet.clone();
    "coalescing".clone_into(&mut derived.name);
    "derived: one host behind a card that holds interrupts back for 50 to 125 µs".clone_into(&mut derived.about);
    derived.recorded.at = format!("derived from {} of {}", quiet.name, quiet.recorded.at);
    derived.virtual_interface = false;
    derived.receive.stamp_ns = even(50_000, 125_000);
    derived.receive.stamp_rested_ns = even(50_000, 125_000);
    // What a driver takes for a packet that already lies in its ring.
    derived.receive.inside_ns = even(300, 1_000);
    // At 50 µs from packet to packet: what comes within the time.
    derived.receive.batch_packets = even(2, 3);
    derived
}

/// The derived profile is derived from what is shipped. `STORE_PROFILES=1` derives it again, after
/// the quiet one was recorded anew.
#[test]
fn coalescing_is_derived_from_the_quiet_host() {
    let (file, text) = (format!("{HOSTS}/coalescing.toml"), coalescing(&read("quiet")).to_toml());
    if std::env::var_os("STORE_PROFILES").is_some() {
        std::fs::write(&file, &text).expect("hosts/ can be written");
    }
    assert_eq!(std::fs::read_to_string(file).expect("it is shipped"), text);
}

/// Each file is as the program would write it, and bears its profile's name.
#[test]
fn shipped_profiles_are_whole() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(HOSTS).expect(HOSTS) {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let profile = read(&name);
        assert_eq!(profile.name, name);
        assert_eq!(profile.to_toml(), std::fs::read_to_string(&path).expect("a file"), "{name}");
        names.push(name);
    }
    assert!(names.len() >= 3, "{names:?}");
}

/// What is held back is within the times that the profile is for.
#[test]
fn coalescing_is_50_to_125_us() {
    let receive = read("coalescing").receive;
    for delay in [&receive.stamp_ns, &receive.stamp_rested_ns] {
        assert_eq!((delay.value(0.0), delay.median(), delay.value(1.0)), (50_000, 87_500, 125_000));
    }
}
