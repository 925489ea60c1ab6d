//! Parts of a queue: by id, by time, by topic.

use hqueue_tests::{Broker, Id};

use crate::program::{Done, Program, word_count};
use crate::queues::{Line, count, fill, put};

fn check<'a>(done: Done, wanted: impl Iterator<Item = &'a Line> + Clone, what: &str) {
    let done = done.succeeded();
    assert!(wanted.clone().next().is_some(), "{what}: the test wants something");
    assert_eq!(done.counter("MESSAGES_READ"), wanted.clone().count() as u64, "{what}");
    assert!(done.counts() == count(wanted), "{what}");
}

#[test]
fn by_id_and_by_topic() {
    let broker = Broker::start();
    let lines = fill(&broker, 12);
    let (start, stop) = (lines[lines.len() / 4].id, lines[lines.len() / 2].id);
    let within = |line: &&Line| (start..stop).contains(&line.id);
    let settings =
        [format!("hqueue.input.start={start}"), format!("hqueue.input.stop={stop}"), "hqueue.input.topics=odd".to_owned()];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    check(word_count(&broker, "q", &settings[..2]), lines.iter().filter(within), "ids");
    check(word_count(&broker, "q", &settings), lines.iter().filter(within).filter(|line| line.topic == "odd"), "ids and a topic");
}

#[test]
fn by_time() {
    let broker = Broker::start();
    let lines = fill(&broker, 8);
    let between = wait_a_millisecond(&lines);
    let later = put(&broker, 8);
    assert!(later.iter().all(|line| line.id.timestamp > between));
    let (from, to) = (format!("hqueue.input.start={between}"), format!("hqueue.input.stop={between}"));
    check(word_count(&broker, "q", &[&from]), later.iter(), "from a time on");
    check(word_count(&broker, "q", &[&to]), lines.iter(), "up to a time");
}

/// A time behind all of these messages, and before all that are put from now on.
fn wait_a_millisecond(lines: &[Line]) -> i64 {
    let last: Id = lines.iter().map(|line| line.id).max().unwrap();
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    hqueue_tests::wait("the clock goes on", hqueue_tests::PATIENCE, || now() > last.timestamp + 2);
    last.timestamp + 1
}

/// What is put once the splits are made is for the next job.
#[test]
fn a_job_ends_where_the_queue_ended() {
    let broker = Broker::start();
    let lines = fill(&broker, 8);
    let mut job = Program::job(&broker.address(), &["test.pause.at=1"], &["wordcount", "q", "{}/out"]);
    job.wait_for_line("paused 0");
    assert!(!put(&broker, 4).is_empty());
    job.go_on();
    for _ in 0..4 {
        // Each task pauses at its first message.
        job.wait_for_line("paused 1");
        job.go_on();
    }
    check(job.end(), lines.iter(), "what was there");
}
