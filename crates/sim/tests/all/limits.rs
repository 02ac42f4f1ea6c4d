//! What is told to have limited a transfer, where the limit is known: every induced limit over
//! several paths, as a confusion matrix.
//!
//! The matrix stands in `docs/results/verdicts.md`; `UPDATE_VERDICTS=1` writes it anew. The example
//! `verdicts` does the same over paths that were drawn.

mod induced;

use induced::beside::BESIDE;
use std::sync::Arc;

use induced::{Base, Control, FURTHER, INDUCED, Induced, counted, judged, matrix, page};
use narrows_diagnose::limits::LimitingFactor;
use narrows_host_profile::HostProfile;

const BASES: [Base; 6] = [
    base(20.0, 10.0, true),
    base(20.0, 40.0, false),
    base(50.0, 80.0, false),
    base(80.0, 10.0, true),
    base(100.0, 20.0, false),
    base(60.0, 40.0, true),
];

const fn base(mbps: f64, rtt_ms: f64, reno: bool) -> Base {
    Base {
        mbps,
        rtt_ms,
        queue: 1.0,
        control: if reno { Control::Reno } else { Control::Cubic },
        streams: 1,
        length: 12.0,
        seed: 1,
    }
}

#[expect(clippy::print_stdout, reason = "the matrix is what this test is for")]
fn say(text: &str) {
    println!("{text}");
}

#[test]
fn confusion_matrix() {
    let (text, wrong) = matrix(&INDUCED, &BASES, &mut |_| ());
    say(&text);
    for line in &wrong {
        say(line);
    }
    let (page, renewed) = page("matrix", &text);
    assert_eq!(page, renewed, "docs/results/verdicts.md: UPDATE_VERDICTS=1 renews it");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is held by a queue that it shares is not called a shaper, a bucket or chance, in tests as
/// short as quick mode makes them: right or unclear, but for one in fifty.
#[test]
fn beside_others_verdicts_are_right_or_unclear() {
    let short = |mbps, rtt_ms, reno, seed| Base { length: 1.8, seed, ..base(mbps, rtt_ms, reno) };
    let bases = [
        short(12.0, 20.0, true, 11),
        short(12.0, 20.0, false, 12),
        short(100.0, 20.0, true, 13),
        short(100.0, 20.0, false, 14),
        short(40.0, 8.0, false, 15),
        short(128.0, 8.5, true, 2032),
        short(9.3, 13.4, true, 2034),
    ];
    let (text, misses) = matrix(&BESIDE, &bases, &mut |_| ());
    say(&text);
    let wrong: Vec<&String> = misses.iter().filter(|miss| miss.starts_with("WRONG")).collect();
    assert!(wrong.len() <= 1, "of 42: {wrong:#?}");
}

/// The same limits between hosts as they were measured: right or unclear, but for one in fifty. The
/// round trips of the busy ones grow by more than most queues are long.
/// docs/results/verdicts.md has all profiles, over more paths.
#[test]
fn between_measured_hosts_verdicts_are_right_or_unclear() {
    for text in [
        include_str!("../../../../hosts/quiet-both-ends.toml"),
        include_str!("../../../../hosts/coalescing.toml"),
        include_str!("../../../../hosts/busy-both-ends.toml"),
    ] {
        let hosts = Arc::new(HostProfile::from_toml(text).expect("a profile"));
        let all = INDUCED.iter().chain(&BESIDE).map(|limit| counted(limit, &BASES[..3], Some(&hosts), &mut say));
        let (mut runs, mut wrong) = (0, Vec::new());
        for counted in all {
            runs += counted.runs();
            wrong.extend(counted.misses.into_iter().filter(|miss| miss.starts_with("WRONG")));
        }
        assert!(runs >= 50 && wrong.len() <= 1, "{}: of {runs}: {wrong:#?}", hosts.name);
    }
}

fn named(all: &[Induced], name: &str) -> Induced {
    let found = all.iter().find(|(this, ..)| *this == name);
    *found.expect("it is in the list")
}

/// Shapers whose rate acknowledgements do not show: BBR's phases and its losses, and few segments
/// to a sample.
#[test]
fn shapers_that_deliveries_tell() {
    let bases = [
        (4.65, 3.8, 1.14, Control::Reno, 4, 4251),
        (6.68, 1.07, 0.58, Control::Bbr, 4, 4259),
        (35.8, 105.1, 1.91, Control::Bbr, 1, 4262),
    ]
    .map(|(mbps, rtt_ms, queue, control, streams, seed)| Base {
        mbps,
        rtt_ms,
        queue,
        control,
        streams,
        length: 12.0,
        seed,
    });
    let (text, wrong) = matrix(&[named(&INDUCED, "shaper")], &bases, &mut |_| ());
    say(&text);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A burst of losses that takes a retransmission, too, silences the connection for seconds: nothing
/// goes at an even rate, and the last round trip that was measured stands. That is no shaper.
#[test]
fn silence_is_no_shaper() {
    let (_, _, induce) = named(&FURTHER, "loss in bursts");
    for (mbps, rtt_ms, queue, control, streams, seed) in [
        (450.192_767_667_963_66, 1.861_893_279_709_486_5, 0.786_007_870_804_723_7, Control::Cubic, 1, 4258),
        (450.0, 1.9, 0.8, Control::Cubic, 1, 4258),
        (888.5, 2.1, 2.5, Control::Cubic, 2, 777),
    ] {
        let base = Base { mbps, rtt_ms, queue, control, streams, length: 12.0, seed };
        let case = induce(base).expect("it would strike");
        let said = judged(&case, base.seed);
        assert!(!said.verdicts.contains(&LimitingFactor::Shaper), "{base:?}: {said:?}");
    }
}
