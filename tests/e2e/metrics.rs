//! What those who watch over a broker see.

use hqueue_tests::{Broker, Consumer, PATIENCE, http_get, wait};

#[test]
fn counters_move_with_what_happens() {
    let broker = Broker::start();
    assert_eq!(http_get(broker.http_port(), "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(http_get(broker.http_port(), "/nothing").0, 404);
    broker.create("q", 2);
    let mut consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "20ms"), ("retry-max", "50ms")]);
    broker.put("q", 0, &["a"; 100]);
    broker.put("q", 1, &["b"; 50]);
    wait("all are pushed", PATIENCE, || consumer.count() == 150);
    broker.wait_for_no_lag("q", "s");
    let metrics = broker.metrics();
    let (queue, subscriber) = ("queue=\"q\"", "subscriber=\"s\"");
    assert_eq!(metrics.sum("hqueue_put_messages_total", &[queue]), 150.0);
    assert!(metrics.sum("hqueue_put_bytes_total", &[queue]) > 150.0);
    assert!(metrics.sum("hqueue_syncs_total", &[]) >= 1.0);
    assert!(metrics.sum("hqueue_sync_microseconds_total", &[]) > 0.0);
    assert_eq!(metrics.sum("hqueue_sync_seconds_count", &[]), metrics.sum("hqueue_syncs_total", &[]), "a histogram of the same");
    assert_eq!(metrics.sum("hqueue_sync_seconds_bucket", &["le=\"+Inf\""]), metrics.sum("hqueue_sync_seconds_count", &[]));
    assert_eq!(metrics.sum("hqueue_partitions_held", &[]), 2.0);
    assert_eq!(metrics.sum("hqueue_subscription_state", &[subscriber, "state=\"active\""]), 1.0);
    assert_eq!(metrics.sum("hqueue_delivered_messages_total", &[queue, subscriber]), 150.0);
    assert_eq!(metrics.sum("hqueue_lag_messages", &[queue, subscriber]), 0.0);
    assert!(metrics.sum("hqueue_calls_total", &[subscriber, "result=\"consumed\""]) >= 2.0);
    assert!(metrics.sum("hqueue_call_microseconds_total", &[subscriber]) > 0.0);
    assert!(metrics.sum("hqueue_committed_timestamp_milliseconds", &[queue]) > 1.6e12);
    assert!(metrics.sum("hqueue_requests_total", &[]) > 2.0);
    assert!(metrics.samples.keys().all(|name| name.starts_with("hqueue_")), "names of our own");

    consumer.stop();
    broker.put("q", 0, &["c"; 10]);
    wait("the lag is seen", PATIENCE, || broker.metrics().sum("hqueue_lag_messages", &[queue, subscriber]) == 10.0);
    wait("its age grows", PATIENCE, || broker.metrics().sum("hqueue_lag_seconds", &[queue, subscriber]) > 0.2);
    wait("failures are counted", PATIENCE, || {
        broker.metrics().sum("hqueue_last_error_timestamp_seconds", &[queue, subscriber]) > 1.6e9
    });
    let refused = broker.metrics().sum("hqueue_puts_refused_total", &[queue]);
    let too_large = hqueue_tests::message::to_put("t", vec![b'x'; 4_194_305]);
    hqueue_tests::gateway::put_for_ids(&mut broker.gateway(), "q", 0, vec![too_large]).unwrap_err();
    assert_eq!(broker.metrics().sum("hqueue_puts_refused_total", &[queue]), refused + 1.0);
    let now = broker.metrics();
    for (name, kind) in &metrics.types {
        if kind == "counter" {
            let total = format!("{name}_total");
            assert!(now.sum(&total, &[]) >= metrics.sum(&total, &[]), "{name} never goes down");
        }
    }
}

/// A thousand queues do not make the text grow without bound, and asking costs no message.
#[test]
fn many_at_once_can_ask() {
    let broker = Broker::start();
    broker.create("q", 1000);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert!(broker.metrics().sum("hqueue_connections_accepted_total", &[]) > 0.0);
                }
            });
        }
    });
}
