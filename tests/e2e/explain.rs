//! What became of a message: `explain` of messages that are done with, of those that are not there, and what it refuses.

use std::fs;

use hqueue_protocol::generated::{
    TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessageID, TRegistration,
};
use hqueue_tests::consumer::turns;
use hqueue_tests::explained::{explain, explained, state, text, wait_until};
use hqueue_tests::gateway::{put_for_ids, registration};
use hqueue_tests::letters::{QUICK, failing_at, letters, place};
use hqueue_tests::message::to_put;
use hqueue_tests::{Answer, Broker, Consumer, Id, Message, PATIENCE, refusal, wait};

fn after(id: Id) -> Id {
    Id { timestamp: id.timestamp + 3_600_000, sequence: 0 }
}

/// Delivered at the third attempt: when, where, and what went wrong before.
#[test]
fn explain_a_delivery_after_failures() {
    let broker = Broker::start();
    broker.create("q", 2);
    let answers = [Answer::Value(-1), Answer::Exception("the database is away".to_owned()), Answer::Value(-2)];
    let consumer = Consumer::answering(turns(answers));
    broker.subscribe("q", "s", &consumer.address(), &QUICK[..2]);
    let ids = broker.put("q", 1, &["a", "b"]);
    broker.wait_for_no_lag("q", "s");
    for id in ids {
        let told = explained(&broker, "q", 1, id, "s");
        assert_eq!((state(&told).as_str(), told["attempts"].as_i64()), ("delivered", Some(3)), "{told}");
        assert_eq!(told["endpoint"], consumer.address(), "{told}");
        assert!(told["time"].as_str().unwrap().ends_with('Z'), "{told}");
        let results: Vec<(i64, &str)> = told["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| (call["attempt"].as_i64().unwrap(), call["result"].as_str().unwrap()))
            .collect();
        assert_eq!(results.len(), 4, "{told}");
        assert!(
            results[0] == (1, "the subscriber returned -1 (failed)") && results[1].1.contains("the database is away"),
            "{told}"
        );
        assert_eq!((results[2], results[3]), ((2, "the subscriber was busy (-2)"), (3, "consumed")), "{told}");
    }
    let shown = broker.run(&["explain", "q", "1", &ids_text(&broker, 1)[0]]);
    let shown = shown.text();
    assert!(shown.contains("it is stored, its topic is t"), "{shown}");
    assert!(shown.contains(&format!("delivered to {} at ", consumer.address())) && shown.contains("attempt 3"), "{shown}");
    assert!(shown.contains("calls to s:") && shown.contains("attempt 1: the subscriber returned -1"), "{shown}");
}

fn ids_text(broker: &Broker, partition: i16) -> Vec<String> {
    broker.scan("q", partition).iter().map(|m| m.id.to_string()).collect()
}

/// One that consumes the first k of its call: each message by its own end.
#[test]
fn explain_a_batch_that_was_consumed_in_parts() {
    let broker = Broker::start();
    broker.create("q", 1);
    let ids = broker.put("q", 0, &["a", "b", "c"]);
    let consumer = Consumer::answering(turns([Answer::Value(2), Answer::Hang]));
    broker.subscribe("q", "s", &consumer.address(), &[]);
    wait("the rest is on its way", PATIENCE, || consumer.call_count() == 2);
    for id in &ids[..2] {
        wait_until(&broker, "q", 0, *id, "s", "delivered");
    }
    let rest = wait_until(&broker, "q", 0, ids[2], "s", "in_flight");
    assert_eq!(rest["calls"][0]["result"], format!("consumed up to {} only", ids[1]), "{rest}");
}

/// Memory ends with the process: what remains is that it lies below the checkpoint, and what lay before the start.
#[test]
fn explain_after_a_restart() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let early = broker.put("q", 0, &["early"])[0];
    let consumer = Consumer::start();
    broker.run(&["add_subscriber", "q", "late", "--address", &consumer.address()]).text();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let id = broker.put("q", 0, &["a"])[0];
    broker.wait_for_no_lag("q", "s");
    broker.wait_for_no_lag("q", "late");
    for _ in 0..2 {
        assert_eq!(state(&explained(&broker, "q", 0, early, "late")), "before_start", "nobody has delivered it");
        let done = explained(&broker, "q", 0, early, "s");
        assert!(["delivered", "below_checkpoint"].contains(&state(&done).as_str()), "{done}");
        broker.stop();
        broker.restart();
    }
    let told = explained(&broker, "q", 0, id, "late");
    assert_eq!(state(&told), "below_checkpoint");
    assert_eq!(text(&told), "below the checkpoint; its call is no longer in memory");
    // Back to before its start: what lies there is its business now.
    consumer.answer_with(|_| Answer::Value(-1));
    broker.run(&["seek", "q", "late", "earliest"]).text();
    wait_until(&broker, "q", 0, early, "late", "waiting retrying");
    // And forward over all of it.
    broker.run(&["seek", "q", "late", "latest"]).text();
    wait_until(&broker, "q", 0, early, "late", "passed_over");
}

/// One that is deleted and made anew under its name has delivered nothing.
#[test]
fn explain_knows_a_new_subscriber_of_an_old_name() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let id = broker.put("q", 0, &["a"])[0];
    wait_until(&broker, "q", 0, id, "s", "delivered");
    // Other options are no other subscriber.
    broker.run(&["set_subscriber", "q", "s", "--batch-messages", "7"]).text();
    wait_until(&broker, "q", 0, id, "s", "delivered");
    broker.run(&["delete_subscriber", "q", "s", "--yes"]).text();
    broker.run(&["add_subscriber", "q", "s", "--address", &consumer.address()]).text();
    wait_until(&broker, "q", 0, id, "s", "before_start");
}

/// Its topic is not wanted, or was not; several subscribers, each with its own answer.
#[test]
fn explain_for_several_subscribers() {
    let broker = Broker::start();
    broker.create("q", 2);
    let consumer = Consumer::start();
    let add = |name: &str, more: &[&str]| {
        let words = ["add_subscriber", "q", name, "--from", "earliest", "--address", &consumer.address()];
        broker.run(&[&words[..], more].concat()).text();
    };
    add("all", &[]);
    add("other-topic", &["--topic", "u"]);
    add("other-partition", &["--partition", "1"]);
    broker.run(&["add_subscriber", "q", "nowhere", "--from", "earliest"]).text();
    let id = broker.put("q", 0, &["a"])[0];
    wait_until(&broker, "q", 0, id, "all", "delivered");
    wait_until(&broker, "q", 0, id, "other-topic", "filtered");
    let told = explain(&broker, "q", 0, id);
    assert_eq!((told["state"].as_str(), told["topic"].as_str()), (Some("stored"), Some("t")), "{told}");
    assert_eq!((told["queue"].as_str(), told["partition"].as_i64()), (Some("q"), Some(0)));
    let states: Vec<(&str, String)> =
        told["subscriptions"].as_array().unwrap().iter().map(|s| (s["name"].as_str().unwrap(), state(s))).collect();
    let wanted =
        [("all", "delivered"), ("nowhere", "waiting no_endpoint"), ("other-partition", "not_read"), ("other-topic", "filtered")];
    assert_eq!(states, wanted.map(|(name, state)| (name, state.to_owned())), "in the order of their names");
    let shown = broker.run(&["explain", "q", "0", &id.to_string()]);
    for says in ["it does not want the topic", "it does not read this partition", "has no endpoint"] {
        assert!(shown.text().contains(says), "{shown}");
    }
    // The shell, in the original's words and in plain ones.
    for line in [
        format!("explain 'q', 0, '{id}'"),
        format!("explain ‘q′, 0, {id}"),
        format!("explain q 0 {id}"),
        format!("explain 'q', 0, '{id}', {{'name' => 'all'}}"),
    ] {
        assert!(broker.run(&["shell", "-e", &line]).text().contains("delivered to"), "{line}");
    }
}

/// Dead-lettered, then redriven, or dropped.
#[test]
fn explain_a_dead_letter() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(failing_at(|m: &Message| m.text().starts_with("bad"), Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    let ids = broker.put("q", 0, &["a", "bad1", "b", "bad2"]);
    broker.wait_for_no_lag("q", "s");
    let at = |n: usize| place(&letters(&broker, "q", "s")[n]).1;
    assert_eq!((at(0), at(1)), (ids[1], ids[3]));
    let in_dlq: Vec<Id> = broker.scan("q.dlq", 0).iter().map(|m| m.id).collect();
    let listed = letters(&broker, "q", "s")[0].clone();
    let told = explained(&broker, "q", 0, ids[1], "s");
    assert_eq!(
        (state(&told).as_str(), told["letter"].as_str()),
        ("dead_lettered", Some(in_dlq[0].to_string().as_str())),
        "{told}"
    );
    assert_eq!(
        (&told["attempts"], told["last_error"].as_str()),
        (&listed["attempts"], Some("the subscriber returned -1 (failed)")),
        "{told}"
    );
    wait_until(&broker, "q", 0, ids[2], "s", "delivered");
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", &ids[1].to_string(), "--yes"]).text();
    let told = explained(&broker, "q", 0, ids[1], "s");
    assert_eq!((state(&told).as_str(), told["endpoint"].as_str()), ("redriven", Some(consumer.address().as_str())), "{told}");
    // A letter is known over a restart, whoever made it.
    broker.stop();
    broker.restart();
    wait_until(&broker, "q", 0, ids[3], "s", "dead_lettered");
    wait_until(&broker, "q", 0, ids[1], "s", "below_checkpoint");
    // And when its subscriber is gone.
    broker.run(&["delete_subscriber", "q", "s", "--yes"]).text();
    let told = explain(&broker, "q", 0, ids[3]);
    assert_eq!(
        (told["subscriptions"][0]["name"].as_str(), state(&told["subscriptions"][0]).as_str()),
        (Some("s"), "dead_lettered")
    );
}

#[test]
fn explain_a_letter_that_was_dropped() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Value(-3));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    let id = broker.put("q", 0, &["a"])[0];
    wait_until(&broker, "q", 0, id, "s", "dead_lettered");
    broker.run(&["dlq", "drop", "q", "s", "--yes"]).text();
    let told = wait_until(&broker, "q", 0, id, "s", "letter_gone");
    assert_eq!(told["calls"][0]["result"], "refused for good (-3)", "{told}");
}

/// Expired before anybody had it, and after; removed by command; never there.
#[test]
fn explain_what_is_not_there() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 2, 2);
    let consumer = Consumer::start();
    broker.subscribe("q", "served", &consumer.address(), &[]);
    broker.run(&["add_subscriber", "q", "nowhere", "--from", "earliest"]).text();
    let mut late = Consumer::start();
    late.stop();
    broker.subscribe("q", "late", &late.address(), &QUICK);
    let id = broker.put("q", 0, &["a"])[0];
    wait_until(&broker, "q", 0, id, "served", "delivered");
    wait("it expires", PATIENCE, || explain(&broker, "q", 0, id)["state"] == "expired");
    let told = explain(&broker, "q", 0, id);
    assert!(text(&told).contains("older than the time to live") && told.get("topic").is_none(), "{told}");
    assert_eq!(state(&explained(&broker, "q", 0, id, "served")), "delivered");
    assert_eq!(state(&explained(&broker, "q", 0, id, "nowhere")), "expired");
    // Once it has been passed, too.
    late.resume();
    broker.put("q", 0, &["b"]);
    wait("it goes on behind it", PATIENCE, || late.has("b"));
    assert_eq!(state(&explained(&broker, "q", 0, id, "late")), "expired");

    let unknown = |partition: i16, id: Id, says: &str| {
        let told = explain(&broker, "q", partition, id);
        assert_eq!((told["state"].as_str(), told["subscriptions"].as_array().map(Vec::len)), (Some("never"), Some(0)), "{told}");
        assert!(text(&told).contains(says), "{told}");
    };
    unknown(1, id, "there is none in the partition yet");
    unknown(0, after(id), "the newest is");
    broker.create("r", 1);
    let ids = broker.put("r", 0, &["a", "b"]);
    let gap = Id { sequence: ids[1].sequence + 1, ..ids[1] };
    let last = broker.put("r", 0, &["c"])[0];
    let told = explain(&broker, "r", 0, gap);
    assert!(gap < last && text(&told).contains(&format!("the next one is {last}")), "{told}");
    broker.run(&["truncate_queue", "r", "--yes"]).text();
    // Whether it was one of those is not known when even their places are gone.
    let told = explain(&broker, "r", 0, ids[0]);
    assert!(["truncated", "gone"].contains(&told["state"].as_str().unwrap()), "{told}");
    assert!(text(&told).contains("removed by truncate_queue"), "{told}");
}

#[test]
fn explain_a_damaged_message() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let ids: Vec<Id> = (0..9).flat_map(|n| broker.put("q", 0, &[format!("{n} {}", "x".repeat(100))])).collect();
    broker.kill();
    let segments = fs::read_dir(broker.data().join("queues/q")).unwrap().map(|e| e.unwrap().path());
    let segment = segments.filter(|p| p.extension().is_some_and(|e| e == "segment")).max().expect("a segment");
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.windows(4).position(|w| w == b"4 xx").expect("the fifth value");
    bytes[at + 2] = b'y';
    fs::write(&segment, bytes).unwrap();
    broker.restart();
    let consumer = Consumer::start();
    broker.run(&["add_subscriber", "q", "nowhere", "--from", "earliest"]).text();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 8);
    let told = explain(&broker, "q", 0, ids[4]);
    assert!(["damaged", "gone"].contains(&told["state"].as_str().unwrap()) && text(&told).contains("damaged"), "{told}");
    for name in ["nowhere", "s"] {
        assert_eq!(state(&explained(&broker, "q", 0, ids[4], name)), "damaged", "{name}");
    }
    assert_eq!(state(&explained(&broker, "q", 0, ids[5], "s")), "delivered");
}

/// What a consumer that pulls has committed.
#[test]
fn explain_a_commit() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.run(&["add_subscriber", "q", "s", "--from", "earliest"]).text();
    let ids = broker.put("q", 0, &["a", "b", "c"]);
    broker.run(&["poll", "q", "--name", "s", "--max", "2"]).text();
    for (id, wanted) in ids.iter().zip(["delivered", "delivered", "waiting no_endpoint"]) {
        wait_until(&broker, "q", 0, *id, "s", wanted);
    }
    assert!(text(&explained(&broker, "q", 0, ids[0], "s")).contains("a consumer that pulls"));
}

/// Which topics count are those of the time when the message's turn came.
#[test]
fn explain_goes_by_the_topics_of_then() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    let mut gateway = broker.gateway();
    let mut register = |topics: &[&[u8]]| {
        let topics = Some(topics.iter().map(|topic| topic.to_vec()).collect());
        let wanted = TRegistration { topics, ..registration("s", &consumer.address()) };
        gateway.subscribe("q".into(), wanted).unwrap().registration_i_d.unwrap()
    };
    let first = register(&[b"u"]);
    let topics = ["t", "u", "t", "u", "t"];
    let messages = topics.iter().map(|topic| to_put(*topic, *topic)).collect();
    let (_, ids) = put_for_ids(&mut broker.gateway(), "q", 0, messages).unwrap();
    wait("what it wants comes", PATIENCE, || consumer.count() == 2);
    for (id, topic) in ids.iter().zip(topics) {
        wait_until(&broker, "q", 0, *id, "s", if topic == "u" { "delivered" } else { "filtered" });
    }
    broker.gateway().unsubscribe(first).unwrap();
    register(&[]);
    let next = broker.put("q", 0, &["next"])[0];
    wait_until(&broker, "q", 0, next, "s", "delivered");
    let states: Vec<String> = ids.iter().map(|id| state(&explained(&broker, "q", 0, *id, "s"))).collect();
    // The last one lies behind the last call.
    assert_eq!(states, ["below_checkpoint", "delivered", "filtered", "delivered", "below_checkpoint"]);
    assert!(text(&explained(&broker, "q", 0, ids[4], "s")).contains("or its topic was not wanted"));
}

/// What cannot be answered is refused in words.
#[test]
fn explain_refuses_what_it_does_not_know() {
    let broker = Broker::start();
    broker.create("q", 2);
    broker.run(&["add_subscriber", "q", "s"]).text();
    let id = broker.put("q", 0, &["a"])[0].to_string();
    broker.run(&["explain", "nothing", "0", &id]).refused(1, &["nothing"]);
    broker.run(&["explain", "q", "0", &id, "--name", "nobody"]).refused(1, &["nobody"]);
    broker.run(&["explain", "q", "0", "1:0", "--name", "nobody"]).refused(1, &["nobody"]);
    broker.run(&["explain", "q", "2", &id]).refused(1, &["no partition 2", "it has 2 (0 to 1)"]);
    for (words, says) in [
        (&["explain", "q", "0", "soon"][..], "soon"),
        (&["explain", "q", "-1", &id], "-1"),
        (&["explain", "q", "32767", &id], "32766"),
        (&["explain", "q", "0"], "ID"),
        (&["explain", "q", "0", "1:-1"], "1:-1"),
        (&["explain", "a b", "0", &id], "name"),
    ] {
        broker.run(words).refused(2, &[says]);
    }
    broker.run(&["shell", "-e", "explain 'q', 0"]).refused(1, &["ID is missing"]);
    // Over the wire anything may come.
    for (timestamp, sequence) in [(-1, 0), (0, -1), (i64::MIN, i16::MIN)] {
        let told = broker.admin().explain_message(b"q".to_vec(), 0, TMessageID::new(timestamp, sequence), Vec::new());
        assert_eq!(refusal(told).code, TErrorCode::INVALID);
    }
    let told = broker.admin().explain_message(b"q".to_vec(), 0, TMessageID::new(i64::MAX, i16::MAX), Vec::new()).unwrap();
    assert_eq!(told.state.as_deref(), Some("never"));
}
