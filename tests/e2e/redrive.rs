//! Dead letters get another chance: `dlq redrive`, and `dlq drop`.

use std::collections::BTreeSet;
use std::time::Duration;

use hqueue_tests::letters::{QUICK, failing_at, letters, place, values};
use hqueue_tests::order::{by_partition, check_order};
use hqueue_tests::{Answer, Broker, Consumer, Message, PATIENCE, long_form, seed, wait};

/// A broker with queue `q`, and a consumer that has refused all of these for good, as subscriber `s`.
fn with_letters(partitions: i16, texts: &[String], options: &[(&str, &str)]) -> (Broker, Consumer) {
    let broker = Broker::start();
    broker.create("q", partitions.into());
    for (n, text) in texts.iter().enumerate() {
        broker.put("q", i16::try_from(n).unwrap() % partitions, &[text]);
    }
    let consumer = Consumer::answering(|_| Answer::Value(-3));
    broker.subscribe("q", "s", &consumer.address(), options);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(letters(&broker, "q", "s").len(), texts.len());
    consumer.forget();
    (broker, consumer)
}

fn numbers(n: usize) -> Vec<String> {
    (0..n).map(|n| n.to_string()).collect()
}

#[test]
fn what_is_accepted_leaves_the_list_in_order() {
    let (broker, consumer) = with_letters(3, &numbers(30), &QUICK);
    let before = broker.subscription("q", "s");
    consumer.answer_all();
    let done = broker.run(&["dlq", "redrive", "q", "s", "--yes"]);
    assert!(done.err.contains("30 accepted"), "{done}");
    assert!(letters(&broker, "q", "s").is_empty());
    let accepted = consumer.accepted();
    assert_eq!(accepted.len(), 30);
    for (partition, came) in by_partition(&accepted) {
        assert!(came.windows(2).all(|pair| pair[0].id < pair[1].id), "partition {partition}");
        assert!(came.iter().all(|m| m.topic == b"t" && m.headers.is_empty()), "as they were put");
    }
    let after = broker.subscription("q", "s");
    assert_eq!((0..3).map(|p| before.checkpoint(p)).collect::<Vec<_>>(), (0..3).map(|p| after.checkpoint(p)).collect::<Vec<_>>());
    broker.put("q", 0, &["next"]);
    wait("the partition goes on", PATIENCE, || consumer.has("next"));
    assert!(broker.run(&["dlq", "redrive", "q", "s", "--yes"]).err.contains("0 accepted"));
}

/// As long as the subscriber fails, letters stay, and the reason is said.
#[test]
fn what_fails_again_stays() {
    let (broker, consumer) = with_letters(1, &numbers(5), &QUICK);
    for (answer, reason) in [
        (Answer::Value(-1), "-1"),
        (Answer::Value(-2), "busy"),
        (Answer::Value(-3), "-3"),
        (Answer::Exception("the database is away".to_owned()), "the database is away"),
        (Answer::Close, "closed"),
        (Answer::Late(Duration::from_secs(4), 0), "within"),
    ] {
        consumer.answer_with(move |_| answer.clone());
        broker.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["0 accepted", reason]);
        assert_eq!(values(&letters(&broker, "q", "s")), numbers(5), "{reason}");
    }
    let status = broker.subscription("q", "s");
    assert_eq!((status.attempts(), status.lag(), status.0.dead_lettered), (0, 0, Some(5)), "it is no part of the order");
    consumer.answer_all();
    consumer.forget();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert_eq!(consumer.values(), numbers(5));
}

/// One letter that is still poison is not in the way of the others.
#[test]
fn those_that_are_not_poison_any_more_go() {
    let (broker, consumer) = with_letters(2, &numbers(20), &QUICK);
    consumer.answer_with(|messages| {
        // As most consumers do: all or nothing.
        if messages.iter().any(|m| m.text() == "7" || m.text() == "12") {
            Answer::Exception("still".to_owned())
        } else {
            Answer::Value(0)
        }
    });
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["18 accepted", "still"]);
    // They are of two partitions, which have no order between them.
    let left: BTreeSet<String> = values(&letters(&broker, "q", "s")).into_iter().collect();
    assert_eq!(left, BTreeSet::from(["7", "12"].map(str::to_owned)));
    assert_eq!(consumer.count(), 18);
    check_order(&consumer.accepted());
}

#[test]
fn only_the_named_ones() {
    let (broker, consumer) = with_letters(1, &numbers(6), &QUICK);
    let ids: Vec<String> = letters(&broker, "q", "s").iter().map(|l| place(l).1.to_string()).collect();
    consumer.answer_all();
    let last = broker.run(&["put", "q", "--topic", "t", "--partition", "0", "no letter"]).text().to_owned();
    let no_letter = last.split_whitespace().nth(1).unwrap();
    broker.wait_for_no_lag("q", "s");
    consumer.forget();
    for action in ["redrive", "drop"] {
        broker.run(&["dlq", action, "q", "s", &ids[0], no_letter, "--yes"]).refused(1, &[no_letter, "nothing was done"]);
        broker.run(&["dlq", action, "q", "s", "1:0", "--yes"]).refused(1, &["1:0"]);
        broker.run(&["dlq", action, "q", "s", "x", "--yes"]).refused(2, &["x"]);
        broker.run(&["dlq", action, "q", "s"]).refused(2, &["--yes"]);
        broker.run(&["dlq", action, "nothing", "s", "--yes"]).refused(1, &["nothing"]);
        broker.run(&["dlq", action, "q", "nobody", "--yes"]).refused(1, &["nobody"]);
    }
    broker.run(&["dlq", "list", "q", "nobody"]).refused(1, &["no subscriber \"nobody\"", "it has s"]);
    broker.run(&["dlq", "list", "nothing", "s"]).refused(1, &["nothing"]);
    broker.run(&["dlq", "list", "q", "s", &ids[0]]).refused(2, &["list"]);
    broker.run(&["dlq", "bury", "q", "s"]).refused(2, &["bury"]);
    assert_eq!(consumer.call_count(), 0);

    broker.run(&["dlq", "redrive", "q", "s", &ids[3], &ids[1], "--yes"]).text();
    assert_eq!(consumer.values(), ["1", "3"]);
    assert!(broker.run(&["dlq", "drop", "q", "s", &ids[0], "--yes"]).err.contains("1 removed"));
    assert_eq!(values(&letters(&broker, "q", "s")), ["2", "4", "5"]);
    broker.run(&["dlq", "redrive", "q", "s", &ids[1], "--yes"]).refused(1, &[&ids[1]]);
    assert!(broker.run(&["dlq", "drop", "q", "s", "--yes"]).err.contains("3 removed"));
    assert!(letters(&broker, "q", "s").is_empty() && broker.scan("q.dlq", 0).is_empty());
    let said = "dead letters dropped by command";
    assert_eq!(broker.log().lines().filter(|line| line.contains(said)).count(), 2, "once for each command");
}

/// Letters are those of one subscriber.
#[test]
fn others_get_nothing() {
    let (broker, one) = with_letters(1, &numbers(3), &QUICK);
    let two = Consumer::answering(|_| Answer::Value(-3));
    broker.subscribe("q", "t", &two.address(), &QUICK);
    broker.wait_for_no_lag("q", "t");
    two.forget();
    one.answer_all();
    two.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert_eq!((one.count(), two.call_count()), (3, 0));
    assert!(letters(&broker, "q", "s").is_empty());
    assert_eq!(values(&letters(&broker, "q", "t")), numbers(3));
}

#[test]
fn without_anybody_to_push_to_it_says_so() {
    let (broker, consumer) = with_letters(1, &numbers(2), &QUICK);
    consumer.answer_all();
    broker.run(&["pause", "q", "s"]).text();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["paused"]);
    broker.run(&["resume", "q", "s"]).text();
    broker.run(&["disable", "q"]).text();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["disabled"]);
    broker.run(&["enable", "q"]).text();
    broker.run(&["delete_subscriber", "q", "s", "--yes"]).text();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["subscriber", "s"]);
    broker.run(&["add_subscriber", "q", "s"]).text();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["endpoint"]);
    assert_eq!((consumer.call_count(), letters(&broker, "q", "s").len()), (0, 2));
}

/// Calls of a redrive are as small as all others: libraries refuse large ones, and whoever asked for one message a call gets one.
#[test]
fn calls_stay_within_the_limits() {
    let (broker, consumer) = with_letters(1, &(0..24).map(|n| n.to_string().repeat(500_000)).collect::<Vec<_>>(), &QUICK);
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert_eq!(consumer.count(), 24);
    for call in consumer.calls() {
        let bytes: usize = call.messages.iter().map(|m| m.value.len()).sum();
        assert!(bytes <= 1_048_576 || call.messages.len() == 1, "{} messages, {bytes} bytes", call.messages.len());
    }
    let one = [QUICK.as_slice(), &[("batch-messages", "1")]].concat();
    let (broker, consumer) = with_letters(1, &numbers(5), &one);
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert_eq!((consumer.count(), consumer.call_count()), (5, 5));
}

/// What fails waits its time out, whatever is redriven meanwhile.
#[test]
fn a_redrive_does_not_hasten_what_fails() {
    let options = [("retry-min", "30s"), ("retry-max", "30s"), ("max-attempts", "3")];
    let (broker, consumer) = with_letters(1, &numbers(3), &options);
    consumer.answer_with(failing_at(|m: &Message| m.text() == "stuck", Answer::Value(-1)));
    broker.put("q", 0, &["stuck"]);
    wait("it has failed", PATIENCE, || broker.subscription("q", "s").attempts() == 1);
    for letter in letters(&broker, "q", "s") {
        let (_, id) = place(&letter);
        broker.run(&["dlq", "redrive", "q", "s", &id.to_string(), "--yes"]).text();
    }
    assert_eq!(consumer.count(), 3);
    assert_eq!(broker.subscription("q", "s").attempts(), 1, "no attempt before its time");
}

/// `kill -9` in the middle of a redrive: what was accepted may come again, what was not is still there.
#[test]
fn kills_lose_no_letter() {
    let kills = long_form("HQUEUE_LONG_LETTER_KILLS").unwrap_or(3);
    let mut random = seed("kills_lose_no_letter");
    let texts = numbers(40);
    // Two partitions take turns: a call for each letter.
    let (mut broker, consumer) = with_letters(2, &texts, &QUICK);
    consumer.answer_with(|_| Answer::Slow(Duration::from_millis(5), 0));
    for _ in 0..kills {
        let (url, calls) = (broker.url(), consumer.call_count() + random.usize(1..10));
        let redrive =
            std::thread::spawn(move || hqueue_tests::run(["dlq", "redrive", "q", "s", "--yes", "--connect", &url], b""));
        wait("some are pushed", PATIENCE, || consumer.call_count() >= calls || redrive.is_finished());
        broker.kill();
        redrive.join().unwrap();
        let accepted: BTreeSet<String> = consumer.values().into_iter().collect();
        broker.restart();
        let left: BTreeSet<String> = values(&letters(&broker, "q", "s")).into_iter().collect();
        assert!(texts.iter().all(|t| accepted.contains(t) || left.contains(t)), "{accepted:?} {left:?}");
    }
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert!(letters(&broker, "q", "s").is_empty());
    let accepted = consumer.values();
    let distinct: BTreeSet<&String> = accepted.iter().collect();
    assert_eq!(distinct.len(), 40);
    println!("{} pushed again over {kills} kills", accepted.len() - 40);
}
