//! What has nothing to do costs nothing.

use std::time::{Duration, Instant};

use hqueue_tests::figures::Figures;
use hqueue_tests::{Broker, Consumer, PATIENCE, wait};

/// Wake-ups and processor time of a broker over some seconds.
fn observe(broker: &Broker, time: Duration) -> (u64, u64) {
    let (began, before): (Instant, Figures) = (Instant::now(), broker.figures());
    wait("some seconds pass", PATIENCE, || began.elapsed() >= time);
    let after = broker.figures();
    (after.voluntary_switches - before.voluntary_switches, after.cpu_millis - before.cpu_millis)
}

/// 50 queues of 8 partitions with 4 subscriptions each, all idle.
#[test]
fn an_idle_broker_sleeps() {
    let broker = Broker::start();
    let small = broker.figures();
    let consumer = Consumer::start();
    for n in 0..50 {
        let queue = format!("q{n}");
        broker.create(&queue, 8);
        for s in 0..4 {
            broker.subscribe(&queue, &format!("s{s}"), &consumer.address(), &[]);
        }
    }
    for partition in 0..8 {
        broker.put("q7", partition, &["a"]);
    }
    wait("what was put is pushed", PATIENCE, || consumer.count() == 32);
    // Checkpoints follow within a second.
    let (began, seconds) = (Instant::now(), Duration::from_secs(4));
    wait("all is written", PATIENCE, || began.elapsed() >= Duration::from_secs(2));
    let large = broker.figures();
    assert_eq!(large.threads, small.threads, "threads are independent of queues, partitions and subscriptions");
    let (wakeups, cpu) = observe(&broker, seconds);
    println!("200 idle subscriptions: {wakeups} wake-ups and {cpu} ms of processor time in {seconds:?}");
    println!("{} MiB, {} descriptors, {} threads", large.rss_bytes >> 20, large.descriptors, large.threads);
    assert!(wakeups < 400, "{wakeups} wake-ups in {seconds:?}");
    assert!(cpu < 400, "{cpu} ms of processor time in {seconds:?}");
    assert!(large.descriptors < small.descriptors + 50 * 4, "{} descriptors", large.descriptors);
    broker.put("q49", 3, &["b"]);
    wait("it is awake at once", Duration::from_secs(2), || consumer.count() == 36);
}
