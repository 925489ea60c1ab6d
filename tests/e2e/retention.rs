//! Queues that may have so many bytes: what is refused, what goes to make room, and that nobody loses anything without a word.

use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient};
use hqueue_tests::gateway::{Refused, put_for_ids};
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Consumer, Id, PATIENCE, refusal, wait};
use serde_json::json;

const QUICK: [(&str, &str); 2] = [("retry-min", "20ms"), ("retry-max", "100ms")];

fn create(broker: &Broker, flags: &[&str]) {
    let words = [&["create", "q", "--partitions", "2", "--ttl", "3600", "--max-bytes", "100000"], flags].concat();
    assert_eq!(broker.run(&words).code, Some(0));
}

/// Puts a value of a thousand bytes, which its number begins.
fn put(broker: &Broker, partition: i16, number: usize) -> Result<Id, Refused> {
    let value = format!("{number:04} {}", "x".repeat(995));
    match put_for_ids(&mut broker.gateway(), "q", partition, vec![to_put("t", value.into_bytes())]) {
        Ok((_, ids)) => Ok(ids[0]),
        error => Err(refusal(error)),
    }
}

/// Puts to both partitions in turn until that is refused.
fn fill(broker: &Broker) -> (Vec<Id>, Refused) {
    let mut ids = Vec::new();
    loop {
        match put(broker, (ids.len() % 2) as i16, ids.len()) {
            Ok(id) => ids.push(id),
            Err(refused) => return (ids, refused),
        }
        assert!(ids.len() <= 100, "more is taken than the limit allows");
    }
}

/// The numbers of what is there, in order.
fn there(broker: &Broker) -> Vec<usize> {
    let all = [broker.scan("q", 0), broker.scan("q", 1)].concat();
    let mut numbers: Vec<usize> = all.iter().map(|message| message.text()[..4].parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_full_queue_refuses_puts_until_there_is_room() {
    let mut broker = Broker::start();
    create(&broker, &[]);
    let (ids, refused) = fill(&broker);
    assert_eq!(refused.code, TErrorCode::NO_SPACE);
    assert!(refused.message.contains("100000") && refused.message.contains("queue q is full"), "{}", refused.message);
    assert!((90..=98).contains(&ids.len()), "{} messages of some 1040 bytes", ids.len());
    // One that just fits is taken still; a restart, also after a kill, changes nothing.
    broker.kill();
    broker.restart();
    assert_eq!(put(&broker, 1, 0).unwrap_err().code, TErrorCode::NO_SPACE);
    assert_eq!(there(&broker), (0..ids.len()).collect::<Vec<_>>());
    let done = broker.run(&["put", "q", "--topic", "t", &"x".repeat(2000)]);
    done.refused(1, &["full", "100000"]);
    broker.admin().truncate_queue(b"q".to_vec()).unwrap();
    let (again, _) = fill(&broker);
    assert_eq!(again.len(), ids.len());
}

#[test]
fn what_expires_makes_room() {
    let broker = Broker::start();
    let flags = ["--partitions", "2", "--ttl", "2", "--max-bytes", "100000"];
    assert_eq!(broker.run(&[&["create", "q"], &flags[..]].concat()).code, Some(0));
    let (ids, _) = fill(&broker);
    wait("there is room again", PATIENCE, || put(&broker, 0, 9999).is_ok());
    assert!(ids.len() >= 90);
}

#[test]
fn the_oldest_go_and_the_newest_stay() {
    let mut broker = Broker::start();
    create(&broker, &["--when-full", "drop_oldest"]);
    for number in 0..300 {
        put(&broker, (number % 2) as i16, number).unwrap();
    }
    let newest = |numbers: &[usize]| numbers == (numbers[0]..300).collect::<Vec<_>>();
    let numbers = there(&broker);
    assert!(newest(&numbers) && (90..=98).contains(&numbers.len()), "{numbers:?}");
    // Gone is gone.
    broker.kill();
    broker.restart();
    assert_eq!(there(&broker), numbers);
    broker.stop();
    broker.restart();
    assert_eq!(there(&broker), numbers);
}

/// What made room before it was read is counted, exactly, and said; the rest is delivered.
#[test]
fn a_subscription_is_told_what_it_has_lost() {
    let broker = Broker::start();
    create(&broker, &["--when-full", "drop_oldest"]);
    let mut consumer = Consumer::start();
    consumer.stop();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    for number in 0..250 {
        put(&broker, (number % 2) as i16, number).unwrap();
    }
    let left = there(&broker);
    wait("the loss is counted", PATIENCE, || broker.subscription("q", "s").expired() as usize == 250 - left.len());
    consumer.resume();
    wait("what is left is delivered", PATIENCE, || consumer.count() >= left.len());
    broker.wait_for_no_lag("q", "s");
    let status = broker.subscription("q", "s");
    assert_eq!((status.delivered() as usize, status.expired() as usize), (left.len(), 250 - left.len()));
    assert!(broker.log().contains("expired unread"), "the log says so");
}

fn kept() -> (Broker, Consumer) {
    let broker = Broker::start();
    create(&broker, &["--when-full", "drop_oldest", "--keep-unread"]);
    let mut consumer = Consumer::start();
    consumer.stop();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    (broker, consumer)
}

/// Fills the queue; it is full because of what is unread.
#[track_caller]
fn fill_with_unread(broker: &Broker) -> Vec<Id> {
    let (ids, refused) = fill(broker);
    assert_eq!(refused.code, TErrorCode::NO_SPACE);
    assert!(refused.message.contains("what subscriptions have not consumed is kept"), "{}", refused.message);
    ids
}

/// Puts so many more, each as soon as there is room.
fn put_more(broker: &Broker, numbers: std::ops::Range<usize>) {
    for number in numbers {
        wait("there is room", PATIENCE, || put(broker, (number % 2) as i16, number).is_ok());
    }
}

/// The numbers of what was consumed, each once.
fn consumed(consumer: &Consumer) -> Vec<usize> {
    let mut numbers: Vec<usize> = consumer.accepted().iter().map(|message| message.text()[..4].parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// With `--keep-unread` puts are refused while a subscription has not consumed what is there, over a kill too, and it gets everything.
#[test]
fn what_is_unread_is_kept() {
    let (mut broker, mut consumer) = kept();
    let ids = fill_with_unread(&broker);
    broker.kill();
    broker.restart();
    assert_eq!(put(&broker, 0, 0).unwrap_err().code, TErrorCode::NO_SPACE);
    consumer.resume();
    wait("all are delivered", PATIENCE, || consumer.count() >= ids.len());
    // What is consumed makes room, and nothing else does.
    put_more(&broker, ids.len()..ids.len() + 200);
    wait("all are delivered", PATIENCE, || consumed(&consumer) == (0..ids.len() + 200).collect::<Vec<_>>());
    assert_eq!(broker.subscription("q", "s").expired(), 0);
    assert!(broker.metrics().sum("hqueue_dropped_messages_total", &[]) >= 200.0);
}

/// Nobody reads: nothing is unread. Whoever comes is counted on from then on, and no longer once it is deleted.
#[test]
fn subscribers_come_and_go() {
    let (broker, _consumer) = kept();
    broker.run(&["delete_subscriber", "q", "s", "--yes"]).text();
    put_more(&broker, 0..200);
    assert_eq!(put(&broker, 0, 0).map(drop), Ok(()), "without subscribers there is always room");
    for (name, partition) in [("all", None), ("half", Some("1"))] {
        let words = ["add_subscriber", "q", name, "--from", "earliest"];
        let words = [&words[..], &partition.map_or(vec![], |p| vec!["--partition", p])].concat();
        broker.run(&words).text();
        wait("it is full", PATIENCE, || put(&broker, 1, 0).is_err());
        assert!(broker.scan("q", 1).len() > 10, "what it wants is there");
        broker.run(&["delete_subscriber", "q", name, "--yes"]).text();
        put_more(&broker, 0..100);
    }
}

/// What is wanted again by a seek is kept from the moment on at which the command returns.
#[test]
fn what_was_sought_is_kept() {
    let (broker, mut consumer) = kept();
    consumer.resume();
    put_more(&broker, 0..60);
    broker.wait_for_no_lag("q", "s");
    broker.run(&["pause", "q", "s"]).text();
    broker.run(&["seek", "q", "s", "earliest"]).text();
    let (ids, _) = fill(&broker);
    assert!(ids.len() < 40, "{} fit beside what is unread again", ids.len());
    assert_eq!(put(&broker, 0, 0).unwrap_err().code, TErrorCode::NO_SPACE);
    consumer.forget();
    broker.run(&["resume", "q", "s"]).text();
    wait("all come again", PATIENCE, || consumer.count() >= 60 + ids.len());
    assert_eq!(broker.subscription("q", "s").expired(), 0);
    put_more(&broker, 0..100);
}

/// A consumer that pulls is a subscriber like any other: what it has committed makes room.
#[test]
fn a_commit_makes_room() {
    let broker = Broker::start();
    create(&broker, &["--when-full", "drop_oldest", "--keep-unread"]);
    broker.run(&["poll", "q", "--name", "p", "--from", "earliest"]).text();
    let ids = fill_with_unread(&broker);
    let polled = broker.run(&["poll", "q", "--name", "p", "--no-commit", "--max", "1000"]);
    assert_eq!(polled.text().lines().count(), ids.len());
    assert_eq!(put(&broker, 0, 0).unwrap_err().code, TErrorCode::NO_SPACE, "nothing is committed");
    assert_eq!(broker.run(&["poll", "q", "--name", "p", "--max", "1000"]).text().lines().count(), ids.len());
    // A commit is stored before it is answered.
    assert_eq!(put(&broker, 0, 0).map(drop), Ok(()));
}

#[test]
fn a_limit_is_shown_and_one_without_sense_is_refused() {
    let broker = Broker::start();
    create(&broker, &["--when-full", "drop_oldest", "--keep-unread"]);
    let described = broker.run(&["describe", "q", "--format", "json"]).json();
    let shown = json!([described["max_bytes"], described["when_full"], described["keep_unread"]]);
    assert_eq!(shown, json!([100_000, "drop_oldest", true]));
    let text = broker.run(&["describe", "q"]).text().to_owned();
    assert!(text.contains("max bytes    100000, when full: drop_oldest, unread messages are kept"), "{text}");
    assert_eq!(broker.run(&["create", "plain", "--partitions", "1", "--ttl", "60"]).code, Some(0));
    let plain = broker.run(&["describe", "plain", "--format", "json"]).json();
    assert!(plain.get("max_bytes").is_none() && plain.get("when_full").is_none(), "{plain}");
    for (flags, words) in [
        (&["--max-bytes", "0"][..], &["--max-bytes"][..]),
        (&["--max-bytes", "5", "--when-full", "drop_newest"], &["drop_newest", "drop_oldest"]),
        (&["--when-full", "drop_oldest"], &["--max-bytes"]),
        (&["--keep-unread"], &["--max-bytes"]),
        (&["--max-bytes", "5", "--keep-unread"], &["--keep-unread", "drop_oldest"]),
    ] {
        broker.run(&[&["create", "x", "--partitions", "1", "--ttl", "60"], flags].concat()).refused(2, words);
    }
}
