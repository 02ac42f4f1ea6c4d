//! With the shell as the program.

use super::*;

fn plan(script: &str, limit: Duration) -> Plan {
    // In the background of a shell SIGINT is ignored, and programs would inherit that.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default()).unwrap();
    Plan {
        words: ["sh", "-c", script].map(ToOwned::to_owned).to_vec(),
        folder: std::env::temp_dir(),
        limit,
        interrupt_after: None,
    }
}

fn done(script: &str, limit: Duration) -> Done {
    watch(&plan(script, limit), &Arc::default()).unwrap()
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

#[test]
fn both_streams_and_the_code() {
    let done = done("echo out; echo err >&2; exit 3", LONG);
    assert!(matches!(done.end, End::Ended(status) if status.code() == Some(3)));
    assert_eq!((done.printed.stdout.as_str(), done.printed.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn what_hangs_is_ended_with_its_children() {
    let done = done("trap '' INT TERM; sleep 50 & echo $!; wait; sleep 50", SHORT);
    assert!(matches!(done.end, End::TimedOut));
    assert!(done.ran >= SHORT && done.ran < Duration::from_secs(20), "{:?}", done.ran);
    let child: i32 = done.printed.stdout.trim().parse().unwrap();
    // Killed it is by now; that it is gone, the kernel says a little later, or whoever adopted it
    // does.
    let gone = || {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z")
    };
    assert!(
        (0..500).any(|_| gone() || {
            nap(POLL);
            false
        }),
        "{child}"
    );
}

#[test]
fn what_prints_without_end_is_ended() {
    let done = done("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", LONG);
    assert!(matches!(done.end, End::TooMuch));
    assert_eq!(done.printed.stdout.len(), OUTPUT_LIMIT);
}

#[test]
fn binary_output_becomes_text() {
    let done = done(r"printf '\377\000a\200'", LONG);
    assert_eq!(done.printed.stdout, "\u{fffd}\0a\u{fffd}");
}

#[test]
fn what_never_ends_by_itself_is_interrupted() {
    let mut plan = plan("trap 'echo 5 Mbps; exit 7' INT; while :; do sleep 0.01; done", LONG);
    plan.interrupt_after = Some(SHORT);
    let done = watch(&plan, &Arc::default()).unwrap();
    assert!(matches!(done.end, End::Ended(_)), "{done:?}");
    assert_eq!(done.printed.stdout, "5 Mbps\n");
}

#[test]
fn one_that_is_asked_to_stop_may_say_a_last_word() {
    let control = Arc::new(Control::default());
    control.stop();
    let script = "trap 'echo bye; exit' INT; echo up; while :; do sleep 0.01; done";
    let done = watch(&plan(script, LONG), &control).unwrap();
    assert!(matches!(done.end, End::Stopped), "{done:?}");
}

#[test]
fn a_grandchild_that_keeps_the_stream_does_not_keep_us() {
    let began = now();
    let done = done("setsid sleep 60 & echo done", LONG);
    assert_eq!(done.printed.stdout, "done\n");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn programs_are_found_where_they_are() {
    assert!(find("sh").is_some());
    assert!(find("/bin/sh").is_some());
    assert!(find("no-such-program").is_none());
}
