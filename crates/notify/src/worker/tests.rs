use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::body::tests::example;
use crate::outbox::{Entry, Memory, Undelivered};

/// Gives each attempt to the test, and lets `slow` wait until the test answers.
struct Fake {
    attempts: Mutex<Sender<(String, NoticeBody)>>,
    answers: Mutex<Receiver<Result<String, SendError>>>,
}

impl Deliver for Fake {
    fn send(&self, channel: &str, body: &NoticeBody, _now: WallTime) -> Result<String, SendError> {
        self.attempts.lock().unwrap().send((channel.to_owned(), body.clone())).unwrap();
        if channel != "slow" {
            return Ok("taken".to_owned());
        }
        let closed = SendError::Silent("the test is over".to_owned());
        self.answers.lock().unwrap().recv().unwrap_or(Err(closed))
    }

    fn repeats(&self, channel: &str) -> bool {
        channel == "am"
    }

    fn stop(&self) {}
}

struct Bench {
    worker: Worker,
    outbox: Arc<Memory>,
    now: Arc<AtomicI64>,
    attempts: Receiver<(String, NoticeBody)>,
    answer: Sender<Result<String, SendError>>,
}

impl Bench {
    fn new() -> Self {
        let (sent, attempts) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let fake = Fake { attempts: Mutex::new(sent), answers: Mutex::new(answers) };
        let (outbox, now) = (Arc::new(Memory::default()), Arc::new(AtomicI64::new(0)));
        let clock = Arc::clone(&now);
        let clock = move || WallTime::from_millis(clock.load(Ordering::SeqCst));
        let worker = Worker::start(Arc::clone(&outbox) as Arc<dyn Outbox>, Arc::new(fake), clock).unwrap();
        Self { worker, outbox, now, attempts, answer }
    }

    fn push(&self, channel: &str) {
        self.worker.push(channel, &example(), self.at(0)).unwrap();
    }

    fn at(&self, seconds: i64) -> WallTime {
        WallTime::from_millis(self.now.load(Ordering::SeqCst) + seconds * 1000)
    }

    fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1000, Ordering::SeqCst);
        self.worker.wake();
    }

    /// The channel of the next attempt. The limit only ends a test that has failed.
    fn attempt(&self) -> String {
        self.attempts.recv_timeout(Duration::from_secs(60)).expect("an attempt").0
    }

    /// The slow channel's notice in the outbox, once it is as asked. The worker writes an answer
    /// down before it sends what comes later.
    fn until(&self, is_so: impl Fn(Option<&Entry>) -> bool) -> Option<Entry> {
        loop {
            self.push("quick");
            assert_eq!(self.attempt(), "quick");
            let all = self.outbox.due(WallTime::from_millis(i64::MAX)).unwrap();
            let slow = all.into_iter().find(|entry| entry.channel == "slow");
            if is_so(slow.as_ref()) {
                return slow;
            }
        }
    }
}

#[test]
fn a_slow_channel_holds_up_no_other_and_no_end() {
    let bench = Bench::new();
    bench.push("slow");
    assert_eq!(bench.attempt(), "slow");
    for _ in 0..3 {
        bench.push("quick");
        assert_eq!(bench.attempt(), "quick");
    }
    let Bench { worker, outbox, answer, .. } = bench;
    // The slow peer is answered only once the worker has ended.
    worker.stop();
    let left = outbox.due(WallTime::from_millis(i64::MAX)).unwrap();
    assert_eq!(left.iter().map(|entry| entry.channel.as_str()).collect::<Vec<_>>(), ["slow"]);
    drop(answer);
}

#[test]
fn a_notice_is_tried_until_it_is_delivered() {
    let bench = Bench::new();
    bench.push("slow");
    for (wait, tries) in [(5, 1), (10, 2), (20, 3)] {
        assert_eq!(bench.attempt(), "slow");
        bench.answer.send(Err(SendError::Unreachable("nobody".to_owned()))).unwrap();
        let written = bench.until(|slow| slow.is_some_and(|entry| entry.tries == tries));
        assert_eq!(written.map(|entry| entry.due), Some(bench.at(wait)));
        bench.pass(wait);
    }
    assert_eq!(bench.attempt(), "slow");
    bench.answer.send(Ok("taken".to_owned())).unwrap();
    bench.until(|slow| slow.is_none());
    let slow = bench.worker.status().channels["slow"].clone();
    assert_eq!((slow.delivered, slow.failed, slow.undelivered), (1, 3, 0));
    assert_eq!(slow.last.map(|last| last.result), Some(Ok("taken".to_owned())));
}

#[test]
fn alertmanager_hears_of_an_alert_each_minute() {
    let bench = Bench::new();
    bench.push("am");
    assert_eq!(bench.attempt(), "am");
    for _ in 0..3 {
        bench.pass(60);
        assert_eq!(bench.attempt(), "am");
    }
}

/// The outbox of an earlier program, and an alert that has fired since then.
#[test]
fn what_was_left_is_sent_at_the_next_start() {
    let bench = Bench::new();
    let text = serde_json::to_string(&example()).unwrap();
    bench.outbox.push("quick", &text, bench.at(0)).unwrap();
    bench.worker.wake();
    assert_eq!(bench.attempt(), "quick");
    bench.worker.still("am", &example(), bench.at(0));
    bench.pass(60);
    assert_eq!(bench.attempt(), "am");
}

/// An outbox on a disk that is full.
struct Full;

impl Outbox for Full {
    fn push(&self, _channel: &str, _body: &str, _made: WallTime) -> Result<i64, OutboxError> {
        Err(OutboxError("the disk is full".to_owned()))
    }

    fn due(&self, _now: WallTime) -> Result<Vec<Entry>, OutboxError> {
        Err(OutboxError("the disk is full".to_owned()))
    }

    fn retry(&self, _id: i64, _due: WallTime) -> Result<(), OutboxError> {
        unreachable!("nothing was pushed")
    }

    fn done(&self, _id: i64, _at: WallTime) -> Result<(), OutboxError> {
        unreachable!("nothing was pushed")
    }
}

#[test]
fn a_full_disk_is_no_reason_to_say_nothing() {
    let (sent, attempts) = mpsc::channel();
    let fake = Fake { attempts: Mutex::new(sent), answers: Mutex::new(mpsc::channel().1) };
    let worker = Worker::start(Arc::new(Full), Arc::new(fake), || WallTime::from_millis(0)).unwrap();
    let error = worker.push("quick", &example(), WallTime::from_millis(0)).unwrap_err();
    assert_eq!(error.to_string(), "outbox: the disk is full");
    assert_eq!(attempts.recv_timeout(Duration::from_secs(60)).unwrap(), ("quick".to_owned(), example()));
    assert_eq!(worker.status().outbox, Some(error));
}

/// An outbox that tells the test what is given up.
struct Telling(Memory, Mutex<Sender<Undelivered>>);

impl Outbox for Telling {
    fn push(&self, channel: &str, body: &str, made: WallTime) -> Result<i64, OutboxError> {
        self.0.push(channel, body, made)
    }

    fn due(&self, now: WallTime) -> Result<Vec<Entry>, OutboxError> {
        self.0.due(now)
    }

    fn retry(&self, id: i64, due: WallTime) -> Result<(), OutboxError> {
        self.0.retry(id, due)
    }

    fn done(&self, _id: i64, _at: WallTime) -> Result<(), OutboxError> {
        unreachable!("nothing is delivered")
    }

    fn give_up(&self, of: &Undelivered) -> Result<(), OutboxError> {
        self.1.lock().unwrap().send(of.clone()).unwrap();
        self.0.give_up(of)
    }
}

#[test]
fn what_no_channel_took_for_a_day_is_given_up_and_said() {
    let (sent, _attempts) = mpsc::channel();
    // Nobody answers: each attempt is in vain.
    let fake = Fake { attempts: Mutex::new(sent), answers: Mutex::new(mpsc::channel().1) };
    let (reports, reported) = mpsc::channel();
    let outbox = Telling(Memory::default(), Mutex::new(reports));
    let text = serde_json::to_string(&example()).unwrap();
    let id = outbox.push("slow", &text, WallTime::from_millis(0)).unwrap();
    let now = WallTime::from_millis(86_400_000);
    let _worker = Worker::start(Arc::new(outbox), Arc::new(fake), move || now).unwrap();
    let of = reported.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!((of.id, &*of.channel, &*of.rule, of.at), (id, "slow", &*example().rule, now));
    assert!(of.why.contains("the test is over"), "{of}");
}
