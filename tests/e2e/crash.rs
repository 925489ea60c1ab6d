//! `kill -9` at any moment: what was acknowledged is stored and is pushed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::{Broker, Consumer, Dialect, PATIENCE, long_form, seed, wait};

const PARTITIONS: i32 = 4;

/// Four putters and a subscriber while the broker is killed again and again. Long form: `HQUEUE_LONG_KILLS=100`.
#[test]
fn nothing_acknowledged_is_lost_by_kill() {
    let kills = long_form("HQUEUE_LONG_KILLS").unwrap_or(3);
    let mut random = seed("nothing_acknowledged_is_lost_by_kill");
    let mut broker = Broker::start();
    broker.create("q", PARTITIONS);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "20ms"), ("retry-max", "200ms"), ("batch-messages", "50")]);
    let acknowledged = Acknowledged::default();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = StopAtEnd(&stop);
        for putter in 0..4 {
            let random = random.fork();
            let port = broker.port();
            let (acknowledged, stop) = (&acknowledged, &stop);
            scope.spawn(move || put_until(stop, port, putter, random, acknowledged));
        }
        for kill in 0..kills {
            let enough = acknowledged.count() + random.usize(100..1500);
            wait("puts go on", PATIENCE, || acknowledged.count() >= enough);
            broker.kill();
            broker.restart();
            println!("kill {kill}: {} acknowledged", acknowledged.count());
        }
        let enough = acknowledged.count() + 200;
        wait("puts go on after the last kill", PATIENCE, || acknowledged.count() >= enough);
    });
    broker.wait_for_no_lag("q", "s");
    let stored: Vec<_> = (0..PARTITIONS as i16).flat_map(|p| broker.scan("q", p)).collect();
    check_rising(&stored);
    acknowledged.check_all_in(&stored, "stored");
    let accepted = consumer.accepted();
    let duplicates = check_order(&accepted);
    acknowledged.check_all_in(&accepted, "pushed");
    println!(
        "{} acknowledged, {} stored, {} pushed, {duplicates} of them again",
        acknowledged.count(),
        stored.len(),
        accepted.len()
    );
}

/// Ends the putters also when the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Puts batches of all sizes; connects anew whenever the broker has gone.
fn put_until(stop: &AtomicBool, port: u16, putter: usize, mut random: Rng, acknowledged: &Acknowledged) {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut gateway) = hqueue_tests::gateway::gateway(port, Dialect::USUAL) else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        while !stop.load(Ordering::Relaxed) {
            let values: Vec<Vec<u8>> = (0..random.usize(1..20))
                .map(|_| {
                    number += 1;
                    let mut value = format!("{putter} {number} ").into_bytes();
                    value.resize(value.len() + random.usize(0..2000), b'x');
                    value
                })
                .collect();
            let messages = values.iter().map(|v| to_put("t", v.clone())).collect();
            // An end without an answer says nothing: the batch may be stored or not.
            let Ok((partition, ids)) = put_for_ids(&mut gateway, "q", -1, messages) else { break };
            acknowledged.note(partition, &ids, &values);
        }
    }
}

/// The broker is killed right behind the acknowledgement of a single message. Long form: `HQUEUE_LONG_ACKS=10000`.
#[test]
fn an_acknowledged_message_survives_the_next_instant() {
    let rounds = long_form("HQUEUE_LONG_ACKS").unwrap_or(8);
    let mut broker = Broker::start();
    broker.create("q", 1);
    let mut ids = Vec::new();
    for round in 0..rounds {
        let (_, id) = put_for_ids(&mut broker.gateway(), "q", 0, vec![to_put("t", round.to_string())]).unwrap();
        broker.kill();
        ids.extend(id);
        broker.restart();
        let stored = broker.scan("q", 0);
        check_rising(&stored);
        let found: Vec<_> = stored.iter().map(|m| m.id).collect();
        assert_eq!(found, ids, "round {round}");
    }
}

/// A checkpoint that was confirmed holds: a restart does not begin at the start again, and a batch that failed comes again.
#[test]
fn progress_survives_a_kill() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "10"), ("retry-min", "20ms"), ("retry-max", "50ms")]);
    let values: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let ids = broker.put("q", 0, &values);
    wait("all are pushed", PATIENCE, || consumer.count() == 100);
    // Checkpoints are written at most a second late.
    wait("the checkpoint is written", PATIENCE, || broker.subscription("q", "s").checkpoint(0) >= Some(ids[99]));
    std::thread::sleep(Duration::from_millis(1500));
    consumer.answer_with(|_| hqueue_tests::Answer::Value(-1));
    broker.put("q", 0, &["failed"]);
    wait("the batch fails", PATIENCE, || consumer.call_count() > 10);
    broker.kill();
    consumer.answer_all();
    broker.restart();
    broker.put("q", 0, &["last"]);
    wait("both come", PATIENCE, || consumer.has("failed") && consumer.has("last"));
    assert_eq!(consumer.values()[100..], ["failed", "last"], "nothing of what was confirmed comes again");
}
