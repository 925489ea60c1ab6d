//! What is not confirmed lies behind the checkpoint, whoever dies or stands still, and checkpoints only rise.

use std::time::{Duration, Instant};

use hqueue_tests::cluster::SHORT;
use hqueue_tests::hand::checkpoint;
use hqueue_tests::order::check_order;
use hqueue_tests::rising::Rising;
use hqueue_tests::{Answer, Cluster, Consumer, Message, PATIENCE, long_form, seed, wait};

/// Takes everything up to the message `bad`, and refuses that one.
fn up_to_bad(messages: &[Message]) -> Answer {
    match messages.iter().position(|m| m.text() == "bad") {
        Some(0) => Answer::Value(-1),
        Some(k) => Answer::Value(k as i32),
        None => Answer::Value(0),
    }
}

/// One partition fails at a message while another goes on; the brokers are killed at random moments. The checkpoint never passes the
/// message that was not confirmed, and it comes again after each start.
#[test]
fn never_beyond_what_was_not_confirmed() {
    let kills = long_form("HQUEUE_LONG_CHECKPOINT_KILLS").unwrap_or(3);
    let mut random = seed("never_beyond_what_was_not_confirmed");
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    let consumer = Consumer::answering(up_to_bad);
    cluster.brokers[0].subscribe(
        "q",
        "s",
        &consumer.address(),
        &[
            ("retry-min", "50ms"),
            ("retry-max", "100ms"),
            ("batch-messages", "4"),
            ("on-poison", "block"),
            ("max-attempts", "1000"),
        ],
    );
    let rising = Rising::watch(&cluster.hand, "q", 2, "s");
    let ids = cluster.brokers[0].put("q", 0, &["0", "1", "2", "3", "4", "bad", "6", "7"]);
    let mut put = 8;
    for kill in 0..kills {
        for n in 0..20 {
            let text = format!("{kill}-{n}");
            cluster.brokers[0].put("q", n % 2, &[text]);
            put += 1;
        }
        let calls = consumer.call_count();
        let enough = random.usize(2..8);
        wait("it is called", PATIENCE, || {
            let at = cluster.hand.checkpoint("q", 0, "s");
            assert!(at.is_none_or(|at| at < ids[5]), "{at:?} lies beyond {}", ids[5]);
            consumer.call_count() >= calls + enough
        });
        let n = random.usize(0..2);
        cluster.brokers[n].kill();
        cluster.brokers[n].restart();
        cluster.wait_until_complete();
    }
    wait("everything before it is confirmed", PATIENCE, || cluster.hand.checkpoint("q", 0, "s") == Some(ids[4]));
    assert!(cluster.brokers[0].subscription("q", "s").attempts() > 0);
    consumer.answer_all();
    cluster.brokers[1].wait_for_no_lag("q", "s");
    let accepted = consumer.accepted();
    let again = check_order(&accepted);
    assert_eq!(accepted.len() - again, put, "no gap");
    println!("{again} pushed again over {kills} kills");
    let last = [0, 1].map(|p| cluster.brokers[0].subscription("q", "s").checkpoint(p));
    wait("the last checkpoints are written", PATIENCE, || [0, 1].map(|p| cluster.hand.checkpoint("q", p, "s")) == last);
    println!("{} checkpoints seen, all rising", rising.finish());
}

/// An owner stands still in the middle of a call, for longer than its session. Meanwhile somebody else moves the checkpoint on. When
/// it wakes up and the reply is there, its own, older checkpoint is not written; it goes on behind the newer one, without a restart.
#[test]
fn a_late_write_is_refused() {
    let cluster = Cluster::with_session(2, SHORT);
    cluster.brokers[0].create("q", 2);
    let p = cluster.partition_of("q", 1);
    let consumer = Consumer::start();
    cluster.register("q", 2, "s", &consumer.address());
    cluster.brokers[0].put("q", p, &["warm"]);
    wait("it is pushed", PATIENCE, || consumer.has("warm"));
    cluster.brokers[0].wait_for_no_lag("q", "s");
    let rising = Rising::watch(&cluster.hand, "q", 2, "s");
    consumer.answer_with(|_| Answer::Slow(Duration::from_millis(500), 1));
    let ids = cluster.brokers[0].put("q", p, &(0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    wait("a call is under way", PATIENCE, || consumer.calls().last().is_some_and(|c| c.messages[0].text() == "0"));
    let session = cluster.owner_session("q", p);
    let frozen = Instant::now();
    cluster.brokers[1].freeze();
    wait("its session ends", PATIENCE, || cluster.owner_session("q", p).is_none());
    println!("the session of a stopped broker ended after {:?}", frozen.elapsed());
    cluster.hand.set(&format!("/queues/q/{p}/s"), checkpoint(ids[6]));
    consumer.answer_all();
    let before = consumer.call_count();
    cluster.brokers[1].thaw();
    let woken = Instant::now();
    wait("it has the partition again", PATIENCE, || cluster.owner_session("q", p).is_some_and(|s| Some(s) != session));
    wait("it goes on", PATIENCE, || consumer.has("9"));
    println!("back {:?} after it woke up", woken.elapsed());
    cluster.brokers[0].wait_for_no_lag("q", "s");
    wait("its checkpoint follows", PATIENCE, || cluster.hand.checkpoint("q", p, "s") == Some(ids[9]));
    let after: Vec<String> = consumer.calls()[before..].iter().flat_map(|c| &c.messages).map(|m| m.text().to_owned()).collect();
    assert_eq!(after, ["7", "8", "9"], "what lies before the newer checkpoint is not sent again");
    println!("{} checkpoints seen, all rising", rising.finish());
}
