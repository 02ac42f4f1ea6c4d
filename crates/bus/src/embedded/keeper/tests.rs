//! The file with a clock of our own.

use super::*;
use crate::embedded::frame::Kept;
use crate::embedded::limits::Limits;
use crate::settings::Bucket;

const SECOND: Duration = Duration::from_secs(1);

struct File {
    connection: Connection,
    state: State,
    now: Now,
    folder: tempfile::TempDir,
}

impl File {
    fn new(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = open::open(&folder.path().join("bus.db")).unwrap();
        let state = State::load(&connection).unwrap();
        let now = Now { wall: 1_800_000_000_000, running: Duration::ZERO };
        let mut file = Self { connection, state, now, folder };
        assert_eq!(file.ask(Call::Provide(settings)), Ok(Answer::Done));
        file
    }

    fn pass(&mut self, time: Duration) {
        self.now.wall += i64::try_from(time.as_millis()).unwrap();
        self.now.running += time;
    }

    /// The next server on the same file.
    fn restart(self) -> Self {
        let Self { connection, now, folder, .. } = self;
        drop(connection);
        let connection = open::open(&folder.path().join("bus.db")).unwrap();
        let state = State::load(&connection).unwrap();
        Self { connection, state, now: Now { running: Duration::ZERO, ..now }, folder }
    }

    fn ask(&mut self, call: Call) -> Result<Answer> {
        let transaction = self.connection.transaction().unwrap();
        let answer = self.state.work(&transaction, self.now, call, &mut Vec::new());
        transaction.commit().unwrap();
        answer.map_err(|failed| disk(&failed))
    }

    fn sweep(&mut self) {
        let transaction = self.connection.transaction().unwrap();
        let settings = self.state.settings.clone().unwrap();
        self.state.stream.sweep(&transaction, &settings, self.now).unwrap();
        transaction.commit().unwrap();
    }

    /// The number, and whether it was there already.
    fn publish(&mut self, id: &str, octets: usize) -> Result<(u64, bool)> {
        let (subject, id, payload) = ("result.a.rtt".to_owned(), id.to_owned(), vec![0; octets]);
        match self.ask(Call::Publish { subject, id, payload })? {
            Answer::Kept { sequence, duplicate } => Ok((sequence, duplicate)),
            other => panic!("{other:?}"),
        }
    }

    fn fetch(&mut self, most: u32) -> Vec<Kept> {
        match self.ask(Call::Fetch { sink: "ingest".to_owned(), most, wait_ms: 0 }) {
            Ok(Answer::Batch(batch)) => batch,
            other => panic!("{other:?}"),
        }
    }

    /// Numbers and attempts.
    fn fetched(&mut self, most: u32) -> Vec<(u64, u64)> {
        self.fetch(most).iter().map(|kept| (kept.sequence, kept.attempt)).collect()
    }

    fn ack(&mut self, sequences: &[u64]) {
        let call = Call::Ack { sink: "ingest".to_owned(), sequences: sequences.to_vec() };
        assert_eq!(self.ask(call), Ok(Answer::Done));
    }

    fn write(&mut self, key: &str, octets: usize, expected: u64) -> Result<u64> {
        let (bucket, key) = ("plan".to_owned(), key.to_owned());
        match self.ask(Call::Write { bucket, key, value: vec![0; octets], expected })? {
            Answer::Revision(revision) => Ok(revision),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_id_is_known_for_ten_minutes_also_after_a_restart() {
    let mut file = File::new(Settings::fleet(1));
    assert_eq!(file.publish("x", 10), Ok((1, false)));
    file.pass(599 * SECOND);
    assert_eq!(file.publish("x", 10), Ok((1, true)));
    let mut file = file.restart();
    assert_eq!(file.publish("x", 10), Ok((1, true)));
    file.pass(SECOND);
    assert_eq!(file.publish("x", 10), Ok((2, false)));
    file.sweep();
    assert_eq!(file.publish("x", 10), Ok((2, true)));
}

#[test]
fn what_is_not_acknowledged_comes_again_after_a_minute() {
    let mut file = File::new(Settings::fleet(1));
    for id in ["x", "y", "z"] {
        file.publish(id, 10).unwrap();
    }
    assert_eq!(file.fetched(2), [(1, 1), (2, 1)]);
    file.ack(&[1]);
    file.pass(59 * SECOND);
    assert_eq!(file.fetched(9), [(3, 1)]);
    file.pass(SECOND);
    assert_eq!(file.fetched(9), [(2, 2)]);
    file.pass(59 * SECOND);
    assert_eq!(file.fetched(9), [(3, 2)]);
    // A new server does not know who has what.
    let mut file = file.restart();
    assert_eq!(file.fetched(9), [(2, 1), (3, 1)]);
    file.ack(&[2, 3]);
    file.pass(600 * SECOND);
    assert_eq!(file.fetched(9), []);
}

#[test]
fn old_messages_make_room() {
    let mut settings = Settings::fleet(1);
    settings.stream.max_octets = 1_000;
    let mut file = File::new(settings);
    assert_eq!(file.publish("x", 900), Ok((1, false)));
    assert_eq!(file.publish("y", 900), Err(Error::Full("results".to_owned())));
    assert_eq!(file.fetched(9), [(1, 1)]);
    file.pass(7 * 86_400 * SECOND);
    // Nobody swept yet: a full stream looks for what is too old.
    assert_eq!(file.publish("y", 900), Ok((2, false)));
    assert_eq!(file.fetched(9), [(2, 1)]);
    let elsewhere = Call::Publish { subject: "status.a".to_owned(), id: "z".to_owned(), payload: Vec::new() };
    assert!(matches!(file.ask(elsewhere), Err(Error::Missing(_))));
}

#[test]
fn a_batch_ends_with_a_mebioctet_and_at_the_limit_of_pending_ones() {
    let mut settings = Settings::fleet(1);
    settings.sinks.max_pending = 4;
    let mut file = File::new(settings);
    for id in ["a", "b", "c", "d", "e"] {
        file.publish(id, 400_000).unwrap();
    }
    assert_eq!(file.fetched(9), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(file.fetched(9), [(4, 1)]);
    assert_eq!(file.fetched(9), []);
    file.ack(&[2]);
    assert_eq!(file.fetched(9), [(5, 1)]);
}

#[test]
fn a_new_sink_gets_what_is_there() {
    let mut settings = Settings::fleet(1);
    settings.sinks.names.clear();
    let mut file = File::new(settings.clone());
    file.publish("x", 10).unwrap();
    settings.sinks.names.push("ingest".to_owned());
    assert_eq!(file.ask(Call::Provide(settings)), Ok(Answer::Done));
    file.publish("y", 10).unwrap();
    assert_eq!(file.fetched(9), [(1, 1), (2, 1)]);
}

#[test]
fn revisions_go_on_after_a_restart_and_history_is_bounded() {
    let mut settings = Settings::fleet(1);
    settings.buckets[0].history = 2;
    let mut file = File::new(settings);
    assert_eq!(file.write("a", 10, 0), Ok(1));
    assert_eq!(file.write("b", 10, 0), Ok(2));
    assert_eq!(file.write("a", 10, 1), Ok(3));
    assert_eq!(file.write("a", 10, 1), Err(Error::Conflict("plan/a".to_owned())));
    let mut file = file.restart();
    assert_eq!(file.write("a", 10, 3), Ok(4));
    let kept: Vec<u64> = file
        .connection
        .prepare("select revision from entry where key = 'a' order by revision")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(rusqlite::Result::unwrap)
        .collect();
    assert_eq!(kept, [3, 4]);
}

#[test]
fn a_full_bucket_takes_what_replaces_as_much() {
    let mut settings = Settings::fleet(1);
    settings.buckets = vec![Bucket { max_octets: 1_000, ..Bucket::new("plan", "plan") }];
    let mut file = File::new(settings);
    let full = Err(Error::Full("plan".to_owned()));
    assert_eq!(file.write("a", 900, 0), Ok(1));
    assert_eq!(file.write("b", 900, 0), full);
    assert_eq!(file.write("a", 950, 1), Ok(2));
    assert_eq!(file.write("a", 1_000, 2), full);
    assert_eq!(file.write("a", 10, 2), Ok(3));
    assert_eq!(file.write("b", 900, 0), Ok(4));
    let mut file = file.restart();
    assert_eq!(file.write("c", 900, 0), full);
}

/// What the hub made before plans of large fleets had room.
#[test]
fn a_file_of_an_earlier_version_grows_and_keeps_what_it_has() {
    let mut before = Settings::fleet(1);
    for bucket in &mut before.buckets {
        bucket.max_octets = 1_000;
    }
    before.buckets[0].history = 2;
    let mut file = File::new(before);
    assert_eq!(file.write("a", 900, 0), Ok(1));
    assert_eq!(file.write("b", 900, 0), Err(Error::Full("plan".to_owned())));
    assert_eq!(file.publish("x", 10), Ok((1, false)));
    assert_eq!(file.ask(Call::Provide(Settings::fleet(1))), Ok(Answer::Done));
    assert_eq!(file.write("b", 900, 0), Ok(2));
    assert_eq!(file.write("a", 900, 1), Ok(3));
    let mut file = file.restart();
    assert_eq!(file.ask(Call::Provide(Settings::fleet(1))), Ok(Answer::Done));
    assert_eq!(file.fetched(9), [(1, 1)]);
    // A limit that is larger than wanted stays, and its size is said.
    let smaller = Settings::fleet(1).within(1_000_000);
    let refused = file.ask(Call::Provide(smaller)).unwrap_err();
    assert_eq!(refused.to_string(), "results: max_octets is 20000000000 and must be 1000000");
}

/// SQLite reports a file that may not grow as it reports a disk without room.
#[test]
fn a_full_disk_refuses_a_whole_commit_and_keeps_what_was_there() {
    let mut file = File::new(Settings::fleet(1));
    file.publish("before", 10).unwrap();
    let now = file.now;
    let File { connection, state, .. } = file;
    let (router, (arrived, _arrivals)) = (Arc::new(Router::new(Limits::default())), watch::channel(0));
    let mut owner = Owner { connection, state, router, arrived };
    let pages = |owner: &Owner, most: i64| {
        owner.connection.query_row(&format!("pragma max_page_count = {most}"), [], |_| Ok(())).unwrap();
    };
    let (sender, answers) = std::sync::mpsc::channel();
    let commit = |owner: &mut Owner, octets: &[usize]| -> Vec<Result<Answer>> {
        let jobs = octets.iter().map(|&octets| {
            let (subject, id, sender) = ("result.a.rtt".to_owned(), format!("id-{octets}"), sender.clone());
            let call = Call::Publish { subject, id, payload: vec![0; octets] };
            Job { call, reply: Box::new(move |answer| sender.send(answer).unwrap()) }
        });
        owner.commit(jobs.collect(), now, false);
        answers.try_iter().collect()
    };
    let used: i64 = owner.connection.query_row("pragma page_count", [], |row| row.get(0)).unwrap();
    pages(&owner, used + 2);
    let refused = commit(&mut owner, &[1, 100_000]);
    assert!(refused.len() == 2 && refused.iter().all(|one| matches!(one, Err(Error::Storage(_)))), "{refused:?}");
    pages(&owner, 1_000_000);
    let kept = |sequence| Ok(Answer::Kept { sequence, duplicate: false });
    assert_eq!(commit(&mut owner, &[1, 100_000]), [kept(2), kept(3)]);
}
