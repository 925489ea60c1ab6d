//! Brokers of a cluster that keep messages in HBase: what commands and calls do.

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, THQueueServiceSyncClient};
use hqueue_tests::cluster::SESSION;
use hqueue_tests::hbase::HBase;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Cluster, Consumer, PATIENCE, long_form, refusal, wait};

fn cluster(brokers: usize) -> Cluster {
    Cluster::in_hbase(brokers, SESSION, HBase::shared().gateway())
}

/// Making, putting, pushing, reading, emptying and removing a queue, each at another broker than the last.
#[test]
fn any_broker_takes_any_call() {
    let cluster = cluster(2);
    let [a, b] = [&cluster.brokers[0], &cluster.brokers[1]];
    a.create("q", 4);
    cluster.wait_until_even("q", 4, &[0, 1]);
    let consumer = Consumer::start();
    b.subscribe("q", "s", &consumer.address(), &[]);
    for p in 0..4 {
        let ids = a.put("q", p, &["one", "two"]);
        assert!(b.put("q", p, &["three"])[0] > ids[1]);
    }
    wait("all are pushed", PATIENCE, || consumer.count() == 12);
    for broker in [a, b] {
        broker.wait_for_no_lag("q", "s");
        let own = broker.metrics().sum("hqueue_committed_timestamp_milliseconds", &[]);
        assert!(own > 0.0, "each tells of the partitions that it has");
        for p in 0..4 {
            let texts: Vec<String> = broker.scan("q", p).iter().map(|m| m.text().to_owned()).collect();
            assert_eq!(texts, ["one", "two", "three"]);
        }
        let status = broker.status("q");
        let partitions = status.partitions.unwrap();
        assert!(partitions.iter().all(|p| p.state.as_deref() == Some("online") && p.messages == Some(3)), "{partitions:?}");
    }
    let last: Vec<_> = (0..4).map(|p| a.scan("q", p)[2].id).collect();
    b.admin().truncate_queue("q".into()).unwrap();
    for p in 0..4 {
        assert!(a.scan("q", p).is_empty(), "partition {p} is empty");
        let ids = a.put("q", p, &["later"]);
        assert!(ids[0] > last[usize::try_from(p).unwrap()], "ids go on rising");
    }
    wait("what comes later is pushed", PATIENCE, || consumer.count() == 16);
    b.admin().disable_queue("q".into()).unwrap();
    assert!(refusal(b.gateway().put_message("q".into(), to_put("t", "v"))).message.contains("disabled"));
    wait("the other has seen it", PATIENCE, || a.gateway().put_message("q".into(), to_put("t", "v")).is_err());
    a.admin().drop_queue("q".into()).unwrap();
    assert!(cluster.hand.get("/queues/q").is_none());
    b.create("q", 4);
    for p in 0..4 {
        assert!(a.scan("q", p).is_empty(), "a queue made anew is empty");
    }
}

/// A queue is made, dropped and made again, each at another broker than the last, as fast as that goes.
#[test]
fn made_and_dropped_in_a_circle() {
    let rounds = long_form("HQUEUE_LONG_HBASE_DROPS").unwrap_or(3);
    let cluster = cluster(2);
    for round in 0..rounds {
        let (one, other) = (&cluster.brokers[round % 2], &cluster.brokers[1 - round % 2]);
        one.create("q", 4);
        for p in 0..4 {
            assert!(other.scan("q", p).is_empty(), "round {round}: nothing of the one before");
            other.put("q", p, &["x"]);
        }
        other.admin().disable_queue("q".into()).unwrap();
        other.admin().drop_queue("q".into()).unwrap();
    }
    assert_eq!(cluster.hand.children("/queues"), Vec::<String>::new());
}

/// What a queue is in HBase is shown, and where its messages are.
#[test]
fn what_hbase_has_is_shown() {
    let cluster = cluster(2);
    let broker = &cluster.brokers[0];
    let done = broker.run(&[
        "create",
        "q",
        "--partitions",
        "6",
        "--ttl",
        "86400",
        "--set",
        "hbase.hqueue.partitionsPerRegion=2",
        "--set",
        "hbase.hqueue.compression=GZ",
        "--set",
        "hbase.hstore.compaction.min=16",
        "--set",
        "hbase.hregion.memstore.flush.size=33554432",
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let told = broker.run(&["describe", "q"]);
    let text = told.text().to_owned();
    for line in [
        "hbase.regions = 3",
        "hbase.compression = GZ",
        "hbase.ttl_seconds = 86460",
        "hbase.attribute.hbase.hstore.compaction.min = 16",
        "hbase.attribute.MEMSTORE_FLUSHSIZE = 33554432",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let locations = broker.run(&["locations", "q"]);
    let lines: Vec<&str> = locations.text().lines().collect();
    assert!(
        lines.len() == 6 && lines.iter().all(|line| line.split(' ').count() == 3 && line.contains("localhost:")),
        "{lines:?}"
    );
    broker.admin().truncate_queue("q".into()).unwrap();
    assert!(broker.run(&["describe", "q"]).text().contains("hbase.regions = 3"), "the splits stay");
}

/// Keys that there are not, values that HBase refuses, limits that it does not have.
#[test]
fn what_cannot_be_is_refused() {
    let cluster = cluster(1);
    let broker = &cluster.brokers[0];
    for (words, says) in [
        (&["--set", "hbase.hqueue.partitionPerRegion=2"][..], "hbase.hqueue.partitionsPerRegion"),
        (&["--set", "hqueue.compression=GZ"], "hbase.hqueue.compression"),
        (&["--set", "hbase.hqueue.compression=fast"], "SNAPPY"),
        (&["--set", "hbase.hregion.memstore.flush.size=5"], "1048576"),
        (&["--max-bytes", "5000"], "set_quota"),
    ] {
        let done = broker.run(&[&["create", "q", "--partitions", "1", "--ttl", "60"], words].concat());
        assert!(done.code == Some(1) && done.err.contains(says), "{words:?}: {done:?}");
    }
    assert!(cluster.hand.get("/queues/q").is_none());
}

/// A broker that keeps messages elsewhere is told so, and does not start.
#[test]
fn brokers_of_another_store_are_refused() {
    let cluster = cluster(1);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let words =
        ["broker", "--zookeeper", cluster.zookeeper(), "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let gateway = HBase::shared().gateway();
    for (store, says) in [
        (&["--store", "log"][..], "--store hbase"),
        (&["--store", "hbase", "--hbase", gateway, "--hbase-namespace", "elsewhere"], "namespace cluster_"),
    ] {
        let done = hqueue_tests::run([&words, store].concat().iter().map(|w| (*w).to_owned()).collect::<Vec<_>>(), b"");
        assert!(done.code == Some(1) && done.err.contains(says), "{store:?}: {done:?}");
    }
}

/// A single broker without ZooKeeper keeps its messages in HBase: killed and started again it has them, and ids go on rising.
#[test]
fn a_broker_alone() {
    let namespace = format!("alone_{}", hqueue_tests::free_port());
    let flags = ["--store", "hbase", "--hbase", HBase::shared().gateway(), "--hbase-namespace", &namespace];
    let mut broker = Broker::with_flags(&flags);
    broker.create("q", 2);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let before: Vec<_> = (0..2).map(|p| broker.put("q", p, &["before"])[0]).collect();
    broker.wait_for_no_lag("q", "s");
    broker.kill();
    broker.restart();
    for (p, before) in (0..2).zip(before) {
        assert!(broker.put("q", p, &["after"])[0] > before);
        assert_eq!(broker.scan("q", p).len(), 2);
    }
    wait("it goes on", PATIENCE, || consumer.has("after"));
    broker.admin().truncate_queue("q".into()).unwrap();
    assert!(broker.scan("q", 0).is_empty());
    broker.stop();
    broker.restart();
    assert!(broker.scan("q", 1).is_empty());
    assert!(broker.run(&["describe", "q"]).text().contains(&format!("hbase.table = {namespace}:q")));
    broker.admin().disable_queue("q".into()).unwrap();
    broker.admin().drop_queue("q".into()).unwrap();
}
