//! SIGTERM and SIGINT: exit code 0 in bounded time, nothing lost and nothing twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_order;
use hqueue_tests::{Broker, Consumer, PATIENCE, wait};

/// A stop may take so long: the patience for calls under way is 8 s.
const BOUND: Duration = Duration::from_secs(10);

#[test]
fn a_busy_broker_stops_without_loss_and_without_duplicates() {
    let mut broker = Broker::start();
    broker.create("q", 4);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "20")]);
    let acknowledged = Acknowledged::default();
    for _ in 0..2 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut gateway = broker.gateway();
                let (acknowledged, stop) = (&acknowledged, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let values: Vec<Vec<u8>> = (0..5).map(|n| vec![b'v'; 100 + n]).collect();
                        let messages = values.iter().map(|v| to_put("t", v.clone())).collect();
                        let Ok((partition, ids)) = put_for_ids(&mut gateway, "q", -1, messages) else { break };
                        acknowledged.note(partition, &ids, &values);
                    }
                });
            }
            let enough = acknowledged.count() + 500;
            wait("puts and pushes go on", PATIENCE, || acknowledged.count() >= enough && consumer.count() * 2 >= enough);
            let took = broker.stop();
            stop.store(true, Ordering::Relaxed);
            assert!(took < BOUND, "{took:?}");
        });
        broker.restart();
    }
    broker.wait_for_no_lag("q", "s");
    let accepted = consumer.accepted();
    acknowledged.check_all_in(&accepted, "pushed");
    assert_eq!(check_order(&accepted), 0, "an orderly stop repeats nothing");
}

#[test]
fn either_signal_and_a_repeated_one_end_it_in_order() {
    let mut broker = Broker::start();
    broker.create("q", 2);
    for round in 0..3 {
        broker.put("q", 0, &[round.to_string()]);
        let began = Instant::now();
        match round {
            0 => broker.interrupt(),
            1 => broker.terminate(),
            _ => {
                broker.terminate();
                broker.terminate();
                broker.interrupt();
            }
        }
        let code = broker.ended(BOUND).code();
        // A second signal ends what is still going on at once, and says that by its exit code.
        assert!(code == Some(0) || round == 2 && code == Some(1), "round {round}: {code:?} after {:?}", began.elapsed());
        broker.restart();
    }
    let values: Vec<_> = broker.scan("q", 0).into_iter().map(|m| m.text().to_owned()).collect();
    assert_eq!(values, ["0", "1", "2"]);
}

/// A signal may come while the broker reads its log, or before it can take signals at all; it ends, and nothing is lost.
#[test]
fn a_signal_during_the_start_ends_it() {
    let mut broker = Broker::start();
    broker.create("q", 2);
    let line = "x".repeat(1000);
    for _ in 0..20 {
        broker.put("q", 0, &vec![&line; 1000]);
    }
    broker.kill();
    for millis in [0, 5, 10, 20, 40, 80, 160] {
        broker.launch();
        // Not to wait for something: the moment of the signal is what is tried.
        std::thread::sleep(Duration::from_millis(millis));
        broker.terminate();
        let status = broker.ended(BOUND);
        let by_signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert!(status.code() == Some(0) || by_signal == Some(15), "after {millis} ms: {status}");
    }
    assert!(!broker.log().contains("panicked"));
    broker.restart();
    assert_eq!(broker.scan("q", 0).len(), 20_000);
}

#[test]
fn a_call_that_hangs_does_not_hold_it() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "10")]);
    broker.put("q", 0, &["before"]);
    wait("the first is pushed", PATIENCE, || consumer.count() == 1);
    broker.wait_for_no_lag("q", "s");
    consumer.freeze();
    let values: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    broker.put("q", 0, &values);
    wait("a call is under way", PATIENCE, || broker.subscription("q", "s").0.in_flight > Some(0));
    let took = broker.stop();
    assert!(took < BOUND, "{took:?}");
    consumer.thaw();
    wait("the call that was given up ends", PATIENCE, || consumer.connections() == 0);
    consumer.forget();
    broker.restart();
    wait("all come", PATIENCE, || consumer.count() >= 30);
    assert_eq!(consumer.values(), values, "what was confirmed does not come again, what was not comes whole");
}

/// A consumer that needs a second for its call is waited for: its answer counts.
#[test]
fn a_slow_call_is_waited_for() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let slow = hqueue_tests::Answer::Slow(Duration::from_secs(1), 0);
    let consumer = Consumer::answering(move |_| slow.clone());
    broker.subscribe("q", "s", &consumer.address(), &[]);
    broker.put("q", 0, &["slow"]);
    wait("the call is under way", PATIENCE, || consumer.call_count() == 1);
    let took = broker.stop();
    assert!(took < BOUND, "{took:?}");
    assert_eq!(consumer.count(), 1);
    broker.restart();
    consumer.answer_all();
    broker.put("q", 0, &["next"]);
    wait("the next comes", PATIENCE, || consumer.has("next"));
    assert_eq!(consumer.values(), ["slow", "next"], "the answer during the stop was kept");
}
