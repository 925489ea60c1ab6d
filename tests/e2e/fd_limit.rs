//! Out of file descriptors: what cannot be done fails cleanly, nothing on disk is touched, and all is well when there are some again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, THQueueServiceSyncClient};
use hqueue_tests::message::to_put;
use hqueue_tests::raw::connect;
use hqueue_tests::{Broker, Consumer, PATIENCE, Setup, wait};

#[test]
fn the_limit_is_survived() {
    let broker = Broker::with(Setup { before: Some("ulimit -n 256".to_owned()), ..Setup::default() });
    assert!(broker.log().contains("WARN") && broker.log().contains("256"), "a start says that the limit is low");
    for n in 0..20 {
        broker.create(&format!("q{n}"), 2);
    }
    let consumer = Consumer::start();
    broker.subscribe("q0", "s", &consumer.address(), &[("retry-min", "50ms"), ("retry-max", "200ms")]);
    for n in 0..20 {
        broker.put(&format!("q{n}"), 0, &["before"]);
    }
    wait("the first is pushed", PATIENCE, || consumer.count() == 1);
    let mut connected = broker.gateway();
    connected.put_message("q0".into(), to_put("t", "connected")).unwrap();
    let files: BTreeSet<_> = broker.files().into_iter().map(|(path, _)| path).collect();

    let idle: Vec<_> = (0..300).map(|_| connect(broker.port(), Duration::from_secs(5))).collect();
    wait("no descriptor is left, and the log says so", PATIENCE, || broker.log().to_lowercase().contains("too many open files"));
    let (cpu, log, began) = (broker.figures().cpu_millis, broker.log().len(), Instant::now());
    wait("some seconds at the limit", PATIENCE, || began.elapsed() > Duration::from_secs(3));
    let used = broker.figures().cpu_millis - cpu;
    assert!(used < 900, "{used} ms of processor time in 3 s: accept spins");
    let lines = broker.log()[log..].lines().count();
    assert!(lines <= 10, "{lines} lines in 3 s");

    // Who is connected goes on, or is told why not.
    let mut acknowledged = 0;
    for n in 0..20 {
        match connected.put_message("q0".into(), to_put("t", format!("at the limit {n}"))) {
            Ok(()) => acknowledged += 1,
            Err(error) => println!("refused: {error}"),
        }
    }
    println!("{acknowledged} of 20 puts were taken at the limit");
    drop(idle);
    wait("there are descriptors again", PATIENCE, || broker.try_admin().is_ok_and(|mut admin| admin.cluster_status().is_ok()));
    for n in 0..20 {
        let queue = format!("q{n}");
        broker.put(&queue, 1, &["after"]);
        assert!(broker.scan(&queue, 0).iter().any(|m| m.value == b"before"), "{queue} has what it had");
    }
    wait("what was taken is pushed", PATIENCE, || consumer.has("after") && consumer.count() >= acknowledged + 3);
    let now: BTreeSet<_> = broker.files().into_iter().map(|(path, _)| path).collect();
    let lost: Vec<_> = files.difference(&now).filter(|p| !p.to_string_lossy().contains("index")).collect();
    assert!(lost.is_empty(), "files are gone or renamed: {lost:?}");
}
