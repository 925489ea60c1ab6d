//! A message that cannot be consumed becomes a dead letter: alone, once, with its story, and the rest goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessage};
use hqueue_tests::letters::{QUICK, failing_at, failing_whole, letters, place, values};
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Broker, Consumer, Message, PATIENCE, gateway, long_form, refusal, seed, wait};

fn is_boom(message: &Message) -> bool {
    message.value == b"boom"
}

fn is_bad(message: &Message) -> bool {
    message.value.starts_with(b"bad")
}

/// However a consumer fails, of a batch that is tried as a whole only the one message is buried; those before and behind it arrive
/// in order, and so do those of other partitions.
#[test]
fn one_message_is_buried_and_the_rest_flows() {
    let broker = Broker::start();
    let failures = [
        Answer::Value(-1),
        Answer::Value(i32::MAX),
        Answer::Exception("cannot eat boom".to_owned()),
        Answer::Close,
        Answer::Late(Duration::from_millis(900), 0),
    ];
    std::thread::scope(|scope| {
        for (n, failure) in failures.into_iter().enumerate() {
            let broker = &broker;
            scope.spawn(move || {
                let queue = format!("q{n}");
                broker.create(&queue, 2);
                let mut texts: Vec<String> = (0..40).map(|n| n.to_string()).collect();
                texts.insert(20, "boom".to_owned());
                let ids = broker.put(&queue, 0, &texts);
                let consumer = Consumer::answering(failing_whole(is_boom, failure.clone()));
                let mut options = QUICK.to_vec();
                options.extend([("call-timeout", "300ms")]);
                broker.subscribe(&queue, "s", &consumer.address(), &options);
                broker.put(&queue, 1, &["other"]);
                wait("the rest is consumed", PATIENCE * 2, || consumer.count() >= 41);
                broker.wait_for_no_lag(&queue, "s");
                check_order(&consumer.accepted());
                assert!(!consumer.has("boom"), "{failure:?}");
                let letters = letters(broker, &queue, "s");
                assert_eq!(values(&letters), ["boom"], "{failure:?}");
                assert_eq!((place(&letters[0]), &letters[0]["topic"]), ((0, ids[20]), &"t".into()), "{failure:?}");
                assert!(letters[0]["attempts"].as_i64() >= Some(2), "{failure:?}: {}", letters[0]);
                assert!(letters[0]["last_error"].as_str().is_some_and(|e| !e.is_empty()) && letters[0]["since"].is_string());
                let status = broker.subscription(&queue, "s");
                assert_eq!((status.0.dead_lettered, status.attempts(), status.state()), (Some(1), 0, "active"), "{failure:?}");
            });
        }
    });
}

/// Poison in several places of several partitions; a consumer that says how far it came.
#[test]
fn each_of_many_is_buried_once_in_the_order_in_which_they_failed() {
    let broker = Broker::start();
    broker.create("q", 3);
    let mut wanted = BTreeMap::new();
    for partition in 0..3 {
        let texts: Vec<String> =
            (0..60).map(|n| if n % 7 == 3 { format!("bad-{partition}-{n}") } else { format!("{partition}-{n}") }).collect();
        for (text, id) in texts.iter().zip(broker.put("q", partition, &texts)) {
            if text.starts_with("bad") {
                wanted.insert((partition, id), text.clone());
            }
        }
    }
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 180 - wanted.len());
    check_order(&consumer.accepted());
    let letters = letters(&broker, "q", "s");
    let found: Vec<((i16, _), String)> = letters.iter().map(place).zip(values(&letters)).collect();
    assert_eq!(found.iter().cloned().collect::<BTreeMap<_, _>>(), wanted);
    assert_eq!(found.len(), wanted.len(), "each once");
    for partition in 0..3 {
        let ids: Vec<_> = found.iter().filter(|((p, _), _)| *p == partition).map(|((_, id), _)| *id).collect();
        assert!(ids.is_sorted(), "those of a partition failed in order");
    }
    assert_eq!(broker.metrics().sum("hqueue_dead_lettered_messages_total", &["subscriber=\"s\""]), wanted.len() as f64);
}

/// -3 buries the first message at once, whatever is to become of poison, and is no sign of a consumer that fails at everything.
#[test]
fn a_refusal_for_good_buries_at_once_and_does_not_count() {
    let broker = Broker::start();
    broker.create("q", 1);
    let texts: Vec<String> = (0..8).map(|n| format!("bad-{n}")).collect();
    broker.put("q", 0, &texts);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-3)));
    let options = [("retry-min", "10ms"), ("max-dead-in-a-row", "2"), ("on-poison", "block")];
    broker.subscribe("q", "s", &consumer.address(), &options);
    broker.wait_for_no_lag("q", "s");
    let letters = letters(&broker, "q", "s");
    assert_eq!(values(&letters), texts);
    assert!(letters.iter().all(|letter| letter["attempts"] == 1), "{letters:?}");
    assert_eq!(consumer.call_count(), 8, "one call for each");
    assert_eq!(broker.subscription("q", "s").state(), "active");
}

/// It is a queue to readers, and is not in anybody's way.
#[test]
fn the_dead_letter_queue_is_read_like_any_queue() {
    let broker = Broker::start();
    broker.create("q", 2);
    let early = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &early.address(), &QUICK);
    broker.run(&["scan", "q.dlq"]).refused(1, &["q.dlq"]);
    let id = broker.put("q", 1, &["bad-1"])[0];
    broker.wait_for_no_lag("q", "s");
    let stored = broker.scan("q.dlq", 0);
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].topic.as_slice(), stored[0].text()), (&b"s"[..], "bad-1"));
    let header = |name: &str| String::from_utf8(stored[0].headers[name].clone()).unwrap();
    assert_eq!((header("hq-partition"), header("hq-id"), header("hq-topic")), ("1".to_owned(), id.to_string(), "t".to_owned()));
    assert!(header("hq-attempts").parse::<u32>().unwrap() >= 2 && header("hq-error").contains("-1"));
    let listed = broker.run(&["list", "--format", "json"]).json();
    assert_eq!(listed["queues"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(broker.run(&["status", "q.dlq", "--format", "json"]).json()["partitions"].as_array().unwrap().len(), 1);

    let watcher = Consumer::start();
    broker.subscribe("q.dlq", "watcher", &watcher.address(), &QUICK);
    wait("letters are pushed, too", PATIENCE, || watcher.has("bad-1"));
    broker.put("q", 0, &["bad-2"]);
    wait("new ones as well", PATIENCE, || watcher.has("bad-2"));
    // One that was redriven is not to be seen any more, by nobody.
    early.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    let late = Consumer::start();
    broker.subscribe("q.dlq", "late", &late.address(), &QUICK);
    broker.wait_for_no_lag("q.dlq", "late");
    broker.wait_for_no_lag("q.dlq", "watcher");
    assert_eq!((late.count(), watcher.count()), (0, 2), "neither letters that are removed nor what says so");
    assert!(broker.scan("q.dlq", 0).is_empty());
}

#[test]
fn the_dead_letter_queue_is_nobodys_to_change() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.run(&["create", "x.dlq", "--partitions", "1", "--ttl", "60"]).refused(2, &[".dlq"]);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["bad"]);
    broker.wait_for_no_lag("q", "s");
    broker.run(&["put", "q.dlq", "--topic", "s", "x"]).refused(1, &["q.dlq", "dead letters"]);
    let mut client = broker.gateway();
    for refused in [
        refusal(client.put_message("q.dlq".into(), to_put("s", "x"))),
        refusal(client.put_message_with_pid("q.dlq".into(), 0, to_put("s", "x"))),
        refusal(client.put_messages("q.dlq".into(), vec![to_put("s", "x")])),
    ] {
        assert!(refused.message.contains("q.dlq"), "{refused:?}");
    }
    for words in [&["drop", "q.dlq", "--yes"][..], &["disable", "q.dlq"]] {
        broker.run(words).refused(1, &["q.dlq"]);
    }
    assert_eq!(values(&letters(&broker, "q", "s")), ["bad"], "none of that did anything");

    // All letters can be thrown away, and there is room for new ones, of the same messages too.
    broker.run(&["truncate_queue", "q.dlq", "--yes"]).text();
    assert!(letters(&broker, "q", "s").is_empty());
    broker.run(&["seek", "q", "s", "earliest"]).text();
    wait("it is a letter again", PATIENCE, || values(&letters(&broker, "q", "s")) == ["bad"]);

    broker.run(&["disable", "q"]).text();
    broker.run(&["drop", "q", "--yes"]).text();
    broker.run(&["scan", "q.dlq"]).refused(1, &["q.dlq"]);
    broker.create("q", 1);
    broker.run(&["scan", "q.dlq"]).refused(1, &["q.dlq"]);
    let again = Consumer::start();
    broker.subscribe("q", "s", &again.address(), &QUICK);
    assert!(letters(&broker, "q", "s").is_empty(), "letters go with their queue");
}

/// The largest message, with headers, as a letter and back.
#[test]
fn a_letter_of_the_largest_size_comes_back_as_it_was() {
    let broker = Broker::start();
    broker.create("q", 1);
    let value: Vec<u8> = (0..4_194_304_u32).map(|n| (n % 251) as u8).collect();
    let headers: BTreeMap<String, Vec<u8>> = (0..20).map(|n| (format!("header-{n}"), vec![n; 100_000])).collect();
    let message = TMessage::new(None, None, vec![0xff, 0, b't'], value.clone(), headers.clone());
    let (_, ids) = gateway::put_for_ids(&mut broker.gateway(), "q", 0, vec![message]).unwrap();
    let consumer = Consumer::answering(|_| Answer::Exception("é".repeat(5000)));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.wait_for_no_lag("q", "s");
    let list = letters(&broker, "q", "s");
    assert_eq!(place(&list[0]), (0, ids[0]));
    assert!(list[0]["topic_base64"].is_string() && list[0]["value_base64"].is_string(), "what is no text is marked so");
    assert!(list[0]["last_error"].as_str().is_some_and(|e| e.contains("éé") && e.len() <= 1024));
    consumer.forget();
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    let back = consumer.accepted();
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].id, back[0].partition, back[0].topic.as_slice()), (ids[0], 0, &[0xff, 0, b't'][..]));
    assert!(back[0].value == value && back[0].headers == headers, "value and headers are as they were put");
    assert!(letters(&broker, "q", "s").is_empty());
}

/// What a producer writes into headers of the same names must not make a letter of it that is none.
#[test]
fn a_producers_headers_are_no_story() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Value(-3));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    let first = broker.put("q", 0, &["first"])[0];
    broker.wait_for_no_lag("q", "s");
    let letter = broker.scan("q.dlq", 0)[0].id;
    let forged = [("hq-removed", letter.to_string()), ("hq-id", first.to_string()), ("hq-own", "mine".to_owned())];
    let headers = forged.iter().map(|(k, v)| ((*k).to_owned(), v.clone().into_bytes())).collect::<BTreeMap<_, _>>();
    let message = TMessage::new(None, None, b"t".to_vec(), b"second".to_vec(), headers);
    gateway::put_for_ids(&mut broker.gateway(), "q", 0, vec![message]).unwrap();
    broker.put("q", 0, &["third"]);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(values(&letters(&broker, "q", "s")), ["first", "second", "third"]);
    consumer.forget();
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert_eq!(consumer.values(), ["first", "second", "third"]);
    assert_eq!(consumer.accepted()[1].headers.get("hq-own").map(Vec::as_slice), Some(&b"mine"[..]), "what is not ours stays");
}

/// A message that fails again after a seek is still one letter; after it was removed it can become one again.
#[test]
fn one_subscriber_partition_and_id_has_one_letter() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a", "bad", "b"]);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.wait_for_no_lag("q", "s");
    for round in 2..4 {
        broker.run(&["seek", "q", "s", "earliest"]).text();
        wait("it goes through all of it again", PATIENCE, || consumer.count() == 2 * round);
        broker.wait_for_no_lag("q", "s");
        assert_eq!(values(&letters(&broker, "q", "s")), ["bad"]);
    }
    broker.run(&["dlq", "drop", "q", "s", "--yes"]).text();
    assert!(letters(&broker, "q", "s").is_empty());
    broker.run(&["seek", "q", "s", "earliest"]).text();
    wait("it goes through all of it again", PATIENCE, || consumer.count() == 8);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(values(&letters(&broker, "q", "s")), ["bad"]);
}

/// `kill -9` at any moment of dead-lettering: nothing is lost, nothing is buried that could be consumed, and no letter is there twice.
#[test]
fn kills_lose_no_letter_and_make_none_twice() {
    let kills = long_form("HQUEUE_LONG_LETTER_KILLS").unwrap_or(4);
    let mut random = seed("kills_lose_no_letter_and_make_none_twice");
    let mut broker = Broker::start();
    broker.create("q", 2);
    let consumer = Consumer::answering(failing_whole(is_bad, Answer::Value(-1)));
    let options = [
        ("retry-min", "10ms"),
        ("retry-max", "10ms"),
        ("max-attempts", "1"),
        ("batch-messages", "4"),
        ("max-dead-in-a-row", "1000000"),
    ];
    broker.subscribe("q", "s", &consumer.address(), &options);
    let (mut bad, mut good) = (BTreeSet::new(), BTreeSet::new());
    for kill in 0..=kills {
        for partition in 0..2 {
            let texts: Vec<String> =
                (0..30).map(|n| format!("{}{kill}-{partition}-{n}", if random.u8(0..3) == 0 { "bad-" } else { "" })).collect();
            broker.put("q", partition, &texts);
            for text in texts {
                if text.starts_with("bad") {
                    bad.insert(text)
                } else {
                    good.insert(text)
                };
            }
        }
        if kill == kills {
            break;
        }
        let calls = consumer.call_count() + random.usize(1..40);
        wait("some calls", PATIENCE, || consumer.call_count() >= calls);
        broker.kill();
        broker.restart();
    }
    broker.wait_for_no_lag("q", "s");
    let letters = values(&letters(&broker, "q", "s"));
    assert_eq!(letters.iter().cloned().collect::<BTreeSet<_>>(), bad, "exactly the poison is buried");
    assert_eq!(letters.len(), bad.len(), "each once");
    let accepted = consumer.accepted();
    println!("{} letters, {} pushed again over {kills} kills", letters.len(), check_order(&accepted));
    assert_eq!(consumer.values().into_iter().collect::<BTreeSet<_>>(), good, "the rest was consumed");
}

/// A letter lives as long as the queue's messages, counted from when it became one.
#[test]
fn letters_expire_with_the_queues_time_to_live() {
    let broker = Broker::start();
    broker.create_with_ttl("q", 1, 6);
    let consumer = Consumer::answering(|_| Answer::Value(-2));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["bad"]);
    wait("half of its time goes by", PATIENCE, || broker.subscription("q", "s").0.lag_seconds.unwrap().0 > 3.0);
    consumer.answer_with(|_| Answer::Value(-3));
    wait("it becomes a letter", PATIENCE, || letters(&broker, "q", "s").len() == 1);
    wait("the message has expired", PATIENCE, || broker.scan("q", 0).is_empty());
    assert_eq!(letters(&broker, "q", "s").len(), 1, "the letter counts from when it became one");
    wait("and then it expires, too", PATIENCE, || letters(&broker, "q", "s").is_empty());
    assert_eq!(broker.admin().queue_status("q".into()).unwrap().subscriptions.unwrap().len(), 1);
}
