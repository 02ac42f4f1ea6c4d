//! What is told to have limited a transfer, where the limit is known: every induced limit over several paths, as a confusion matrix.
//!
//! The matrix stands in `docs/verdicts.md`; `UPDATE_VERDICTS=1` writes it anew. The example `verdicts` does the same over paths that were drawn.

#[path = "limits/induced.rs"]
mod induced;

use induced::{Base, Control, INDUCED, matrix, page};

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
    assert_eq!(page, renewed, "docs/verdicts.md: UPDATE_VERDICTS=1 renews it");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
