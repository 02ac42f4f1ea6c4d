use super::*;

fn span(from: i64, to: i64) -> Span {
    Span { from, to }
}

fn lengths(profile: &StallProfile, state: StallState) -> (u64, i64, i64) {
    let lasting = &profile.states[&state].lasting_ns;
    (lasting.count, lasting.at[0], lasting.at[15])
}

/// By hand: a window of 1000 with stalls at 100 (10 long), 130 (20) and 600 (50). The gaps are 20,
/// 450, and 350 + 100 around the end: with bursts up to 50 the first is within one.
#[test]
fn stalls_of_one_host() {
    let stalls = [span(100, 110), span(130, 150), span(600, 650)];
    let profile = StallProfile::of(&[span(0, 1000)], &stalls, None, (5, 50));
    assert_eq!(lengths(&profile, StallState::Stalled), (3, 10, 50));
    assert_eq!(lengths(&profile, StallState::Within), (1, 20, 20));
    assert_eq!(lengths(&profile, StallState::Between), (2, 450, 450));
    let next = &profile.states[&StallState::Stalled].next;
    assert_eq!((next[&StallState::Within], next[&StallState::Between]), (1, 2));
    profile.check(Ends::One).unwrap();
    // 80 of 1000 in the stalls; quantiles of three values round that a little.
    assert!((profile.share(StallState::stops_sender) - 0.08).abs() < 0.01);
}

/// What was not watched does not count: the gap from 40 to 60 has 10 + 15 in windows.
#[test]
fn windows_are_joined() {
    let stalls = [span(20, 40), span(75, 80)];
    let profile = StallProfile::of(&[span(0, 50), span(60, 100)], &stalls, None, (1, 30));
    assert_eq!(lengths(&profile, StallState::Within), (1, 25, 25));
    assert_eq!(lengths(&profile, StallState::Between), (1, 40, 40));
    // A stall over the end of a window is cut there.
    let cut = StallProfile::of(&[span(0, 50), span(60, 100)], &[span(45, 65)], None, (1, 30));
    assert_eq!(lengths(&cut, StallState::Stalled), (1, 10, 10));
}

/// The sender stalls from 100 to 200, the receiver from 150 to 300: alone, both, alone.
#[test]
fn both_ends_stall_together() {
    let profile = StallProfile::of(&[span(0, 1000)], &[span(100, 200)], Some(&[span(150, 300)]), (5, 50));
    assert_eq!(lengths(&profile, StallState::Sender), (1, 50, 50));
    assert_eq!(lengths(&profile, StallState::Both), (1, 50, 50));
    assert_eq!(lengths(&profile, StallState::Receiver), (1, 100, 100));
    assert_eq!(profile.states[&StallState::Sender].next[&StallState::Both], 1);
    profile.check(Ends::Both).unwrap();
    assert!(profile.check(Ends::One).is_err());
}

#[test]
fn no_stall_is_no_state() {
    let profile = StallProfile::of(&[span(0, 1000)], &[], None, (5, 50));
    assert!(profile.states.is_empty());
    assert!(StallWalk::begin(&profile, &mut || 0.5).is_none());
    profile.check(Ends::One).unwrap();
    // A machine that never ran has no gap to begin in.
    let always = StallProfile::of(&[span(0, 1000)], &[span(0, 1000)], None, (5, 50));
    assert!(always.states.is_empty());
}

/// A walk through constant lengths: 1000 running, 10 stalled, and again.
#[test]
fn a_walk_goes_through_the_states() {
    let profile = StallProfile::of(&[span(0, 1010)], &[span(1000, 1010)], None, (5, 50));
    let mut walk = StallWalk::begin(&profile, &mut || 0.25).unwrap();
    let mut draw = || 0.5;
    let rows: Vec<(StallState, i64)> = (0..4)
        .map(|_| {
            let (state, span) = walk.next(&profile, &mut draw);
            (state, span.to - span.from)
        })
        .collect();
    assert_eq!(rows, [(StallState::Between, 1000), (StallState::Stalled, 10)].repeat(2));
}

/// States that never let the host run again, that are not there, or gaps in a row, are refused.
#[test]
fn impossible_walks_are_refused() {
    let good = StallProfile::of(&[span(0, 1000)], &[span(100, 110), span(130, 150)], None, (5, 50));
    let broken = |change: &dyn Fn(&mut StallProfile)| {
        let mut profile = good.clone();
        change(&mut profile);
        profile.check(Ends::One).unwrap_err().to_string()
    };
    let stalled = |profile: &mut StallProfile, next: StallState| {
        profile.states.get_mut(&StallState::Stalled).unwrap().next = BTreeMap::from([(next, 1)]);
    };
    assert!(broken(&|profile| stalled(profile, StallState::Stalled)).contains("never lead"));
    assert!(broken(&|profile| stalled(profile, StallState::Both)).contains("stalls.states.stalled.next.both"));
    assert!(broken(&|profile| profile.threshold_ns = 0).contains("stalls.threshold_ns"));
    let gaps = |profile: &mut StallProfile| {
        profile.states.get_mut(&StallState::Within).unwrap().next = BTreeMap::from([(StallState::Between, 1)]);
    };
    assert!(broken(&gaps).contains("gap behind a gap"));
}

/// A file must not keep a simulated host busy for ever, or make its counts overflow.
#[test]
fn absurd_walks_are_refused() {
    let good = include_str!("../../../../hosts/busy.toml");
    let profile = crate::HostProfile::from_toml(good).unwrap();
    let changed = |change: &dyn Fn(&mut Sojourn)| {
        let mut profile = profile.clone();
        profile.stalls.states.values_mut().for_each(change);
        crate::HostProfile::from_toml(&profile.to_toml()).unwrap_err().to_string()
    };
    let short = changed(&|sojourn| sojourn.lasting_ns = Quantiles::constant(1));
    assert!(short.contains("less than a microsecond"), "{short}");
    let many = changed(&|sojourn| sojourn.next.values_mut().for_each(|count| *count = u64::MAX >> 1));
    assert!(many.contains("has a count above"), "{many}");
}
