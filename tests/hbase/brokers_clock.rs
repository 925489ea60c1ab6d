//! Brokers whose clocks differ: case C3.

use hqueue_tests::cluster::SHORT;
use hqueue_tests::hbase::HBase;
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::{Answer, Cluster, Consumer, PATIENCE, wait};

/// Of Debian's package faketime.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// 2050-01-01 in UTC, less a day: whatever the time zone.
const IN_2050: i64 = 2_524_521_600_000;

/// A broker whose clock is decades ahead stores and pushes; it dies, and one with the right clock goes on: ids go on rising, all arrives.
#[test]
fn a_clock_was_decades_ahead() {
    assert!(std::path::Path::new(LIBRARY).exists(), "Debian's package faketime is not installed");
    let mut cluster = Cluster::in_hbase(1, SHORT, HBase::shared().gateway());
    // Timers go on as they are.
    cluster.add_behind(&format!("export LD_PRELOAD={LIBRARY} FAKETIME='@2050-01-01 00:00:00' FAKETIME_DONT_FAKE_MONOTONIC=1"));
    cluster.brokers[0].create("q", 2);
    cluster.wait_until_even("q", 2, &[0, 1]);
    let ahead = cluster.partition_of("q", 1);
    let consumer = Consumer::start();
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[("retry-max", "1s")]);
    let early = cluster.brokers[1].put("q", ahead, &["1", "2", "3", "4", "5"]);
    assert!(early[0].timestamp > IN_2050, "its clock is ahead: {}", early[0]);
    wait("the first are served", PATIENCE, || consumer.has("5"));
    consumer.answer_with(|_| Answer::Exception("not now".to_owned()));
    let waiting = cluster.brokers[1].put("q", ahead, &["6", "7", "8", "9", "10"]);
    cluster.brokers[1].kill();
    cluster.wait_until_even("q", 2, &[0]);
    let late = cluster.brokers[0].put("q", ahead, &["11", "12", "13", "14", "15"]);
    assert!(late[0] > waiting[4], "{} is not above {}", late[0], waiting[4]);
    consumer.answer_all();
    wait("all arrive", PATIENCE, || consumer.has("15"));
    cluster.brokers[0].wait_for_no_lag("q", "s");
    let stored = cluster.scan_all("q", 2);
    check_rising(&stored);
    assert_eq!(stored.len(), 15);
    check_order(&consumer.accepted());
    for n in 1..=15 {
        assert!(consumer.has(&n.to_string()), "{n} is missing");
    }
}
