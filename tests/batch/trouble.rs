//! What goes wrong while a job runs: brokers and ways that go away, messages that expire or are damaged. Nothing is lost without a word.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;

use hqueue_protocol::generated::THQueueAdminServiceSyncClient;
use hqueue_tests::cluster::SESSION;
use hqueue_tests::zookeeper::{Proxy, Way, ZooKeeper};
use hqueue_tests::{Broker, Meeting, PATIENCE, Setup, free_port, wait};

use crate::copy::{all, content};
use crate::program::Program;
use crate::queues::{PARTITIONS, count, fill, put};

/// Small batches, so that most of a partition has not come at the pause; a task pauses at this message.
const PAUSED: [&str; 2] = ["test.pause.at=30", "hqueue.input.batch.messages=10"];

/// Has the job run, with `trouble` at the pause of the first task; the others are not held up.
fn paused(brokers: &str, settings: &[&str], trouble: impl FnOnce()) -> crate::program::Done {
    let settings = [&PAUSED, settings].concat();
    let mut job = Program::job(brokers, &settings, &["wordcount", "q", "{}/out"]);
    job.wait_for_line("paused 0");
    job.go_on();
    job.wait_for_line("paused 30");
    trouble();
    // For this pause and those of the other tasks.
    (0..4).for_each(|_| job.go_on());
    job.end()
}

#[test]
fn a_broker_is_killed_and_comes_back() {
    let mut broker = Broker::start();
    let lines = fill(&broker, 12);
    let address = broker.address();
    let done = paused(&address, &[], || {
        broker.kill();
        broker.launch();
    })
    .succeeded();
    assert!(done.counts() == count(&lines));
    assert_eq!(done.counter("MESSAGES_READ"), lines.len() as u64, "none twice");
    assert!(done.counter("REOPENED_SCANNERS") >= 1, "{:?}", done.lines);
}

/// The address of the split goes away for good; the job has another one.
#[test]
fn the_job_goes_on_at_another_address() {
    let zookeeper = ZooKeeper::start();
    let mut proxy = None;
    let meeting = Meeting { zookeeper: format!("{}/q", zookeeper.host()), session_timeout: SESSION.to_owned() };
    let setup = Setup { meeting: Some(meeting), ..Setup::default() };
    let broker = Broker::advertising(setup, |port| proxy.insert(Proxy::to((Ipv4Addr::LOCALHOST, port).into())).host());
    let proxy = proxy.unwrap();
    let lines = fill(&broker, 12);
    let addresses = format!("127.0.0.1:{},{}", free_port(), broker.address());
    let done = paused(&addresses, &[], || {
        assert!(proxy.open() > 0, "the split is read where it lies");
        proxy.set(Way::Refused);
        proxy.cut();
    })
    .succeeded();
    assert!(done.counts() == count(&lines));
    assert_eq!(done.counter("MESSAGES_READ"), lines.len() as u64, "none twice");
    assert!(done.counter("REOPENED_SCANNERS") >= 1, "{:?}", done.lines);
}

/// What expires between the splits and the reading is counted, and can fail the job.
#[test]
fn what_expires_meanwhile_is_counted() {
    for (setting, is_good) in [("hqueue.input.on.missing=count", true), ("hqueue.input.on.missing=fail", false)] {
        let broker = Broker::start();
        broker.create_with_ttl("q", 4, 4);
        let settings = ["test.pause.before=true", "test.pause.at=1000000", setting];
        let mut job = Program::job(&broker.address(), &settings, &["wordcount", "q", "{}/out"]);
        job.wait_for_line("paused -1");
        let lines = put(&broker, 4);
        job.go_on();
        job.wait_for_line("paused 0");
        wait("all has expired", PATIENCE, || (0..4).all(|partition| broker.scan("q", partition).is_empty()));
        job.go_on();
        let done = job.end();
        assert_eq!(done.is_good, is_good, "{done:?}");
        assert!(done.errors.contains("messages have expired before they were read"), "{}", done.errors);
        if is_good {
            assert_eq!((done.counter("EXPIRED_MESSAGES"), done.counter("MESSAGES_READ")), (lines.len() as u64, 0));
        }
    }
}

/// A damaged block is passed over, said and counted; all the rest is read.
#[test]
fn what_is_damaged_is_counted() {
    let mut broker = Broker::start();
    let lines = fill(&broker, 12);
    let damaged = &lines[lines.len() / 2];
    broker.kill();
    let files = fs::read_dir(broker.data().join("queues/q")).unwrap().map(|entry| entry.unwrap().path());
    let segment = files.filter(|path| path.extension().is_some_and(|end| end == "segment")).max().unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let line = longest_of(&lines, damaged).as_bytes();
    let at = bytes.windows(line.len()).position(|window| window == line).unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    broker.restart();
    let done = crate::program::word_count(&broker, "q", &[]).succeeded();
    let there: Vec<_> = (0..4).flat_map(|partition| broker.scan("q", partition)).map(|m| (m.partition, m.id)).collect();
    let left: Vec<_> = lines.iter().filter(|line| there.contains(&(line.partition, line.id))).cloned().collect();
    assert!(left.len() < lines.len(), "something is damaged");
    assert!(done.counts() == count(&left));
    assert_eq!(done.counter("DAMAGED_MESSAGES"), (lines.len() - left.len()) as u64);
    assert_eq!(done.counter("EXPIRED_MESSAGES"), 0);
    assert!(done.errors.contains("are damaged on the broker's disk"), "{}", done.errors);
}

/// The longest line of the file that `line` is in.
fn longest_of<'a>(lines: &'a [crate::queues::Line], line: &crate::queues::Line) -> &'a str {
    let same = lines.iter().filter(|other| other.partition == line.partition && other.id.timestamp == line.id.timestamp);
    same.map(|line| line.text.as_str()).max_by_key(|text| text.len()).unwrap()
}

/// A queue that is truncated under a job fails it: what was there when the splits were made is neither read nor known to have expired.
#[test]
fn a_truncated_queue_fails_the_job() {
    let broker = Broker::start();
    fill(&broker, 4);
    let mut job = Program::job(&broker.address(), &["test.pause.at=1000000"], &["wordcount", "q", "{}/out"]);
    job.wait_for_line("paused 0");
    broker.admin().truncate_queue("q".into()).unwrap();
    job.go_on();
    let done = job.end();
    assert!(!done.is_good && done.errors.contains("was the queue truncated, or made anew?"), "{done:?}");
}

/// A put that gets no answer is put again at another address. That arrives, and the first one does, late: the job has counted what may be there
/// twice, and nothing is missing.
#[test]
fn a_put_without_an_answer_is_counted() {
    let broker = Broker::start();
    fill(&broker, 12);
    broker.create("to", PARTITIONS.into());
    let proxy = Proxy::to((Ipv4Addr::LOCALHOST, broker.port()).into());
    let brokers = format!("{},{}", proxy.host(), broker.address());
    let settings =
        ["test.pause.at=35", "hqueue.output.batch.messages=10", "hqueue.output.partition=same", "hqueue.call.timeout=2s"];
    let mut job = Program::job(&brokers, &settings, &["copy", "q", "to"]);
    job.wait_for_line("paused 0");
    job.go_on();
    job.wait_for_line("paused 35");
    proxy.set(Way::Held);
    // For this pause and those of the other tasks.
    (0..4).for_each(|_| job.go_on());
    let done = job.end().succeeded();
    let again = usize::try_from(done.counter("MESSAGES_PUT_AGAIN")).unwrap();
    assert!(again >= 10, "{:?}", done.lines);
    let from: Vec<String> = all(&broker, "q").iter().map(content).collect();
    assert_eq!(done.counter("MESSAGES_PUT"), from.len() as u64);
    proxy.set(Way::Open);
    wait("the first put is done, too", PATIENCE, || all(&broker, "to").len() > from.len());
    let to: Vec<String> = all(&broker, "to").iter().map(content).collect();
    assert!(to.len() <= from.len() + again, "{} and {again} again, {} are there", from.len(), to.len());
    let different = |messages: &[String]| messages.iter().cloned().collect::<BTreeSet<_>>();
    assert!(different(&to) == different(&from), "nothing is missing, nothing else is there");
}
