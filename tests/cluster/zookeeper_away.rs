//! ZooKeeper is away: before anybody starts, for a while, and again and again.

use std::process::Stdio;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::THQueueServiceSyncClient;
use hqueue_tests::figures::Figures;
use hqueue_tests::gateway::everything;
use hqueue_tests::message::to_put;
use hqueue_tests::zookeeper::ZooKeeper;
use hqueue_tests::{Broker, Cluster, Consumer, Hand, Meeting, PATIENCE, Setup, hqueue, long_form, run, wait};

/// It stays away for longer than sessions live, then it comes and goes a few times. Nothing is acknowledged meanwhile, nothing that
/// was is lost, little is used and little is written, and 10 s after it is back everything is as before.
#[test]
fn for_a_while_and_again_and_again() {
    let flaps = long_form("HQUEUE_LONG_FLAPS").unwrap_or(3);
    let outage = Duration::from_secs(if flaps > 3 { 60 } else { 5 });
    let mut server = ZooKeeper::start();
    let cluster = Cluster::on(&server.host(), 2, "3s");
    cluster.brokers[0].create("q", 2);
    let consumer = Consumer::start();
    // A fixed endpoint that cannot be reached beside one that can.
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[]);
    cluster.brokers[0].subscribe("q", "unreachable", "127.0.0.1:9", &[]);
    let mut values = Vec::new();
    everything_works(&cluster, &consumer, "before", &mut values);
    let before: Vec<Figures> = cluster.brokers.iter().map(Broker::figures).collect();
    let logged: Vec<usize> = cluster.brokers.iter().map(|b| b.log().len()).collect();
    server.kill();
    let began = Instant::now();
    wait("no broker takes puts", PATIENCE, || {
        cluster
            .brokers
            .iter()
            .all(|b| matches!(b.gateway().put_message("q".into(), to_put("t", "x")), Err(thrift::Error::User(_))))
    });
    println!("puts are refused {:?} after its end", began.elapsed());
    for broker in &cluster.brokers {
        for p in ["0", "1"] {
            broker.run(&["put", "q", "--topic", "t", "--partition", p, "x"]).refused(1, &["offline"]);
        }
        let create = broker.run(&["create", "new", "--partitions", "1", "--ttl", "60"]);
        assert_eq!(create.code, Some(1), "{create}");
        assert!(create.took < Duration::from_secs(20), "{create}");
        let status = broker.run(&["status"]);
        assert!(status.code == Some(0) && status.err.contains("ZooKeeper"), "{status}");
        let here = (0..2).filter(|p| broker.gateway().message_scanner_open("q".into(), *p, everything()).is_ok()).count();
        assert!(here >= 1, "scans of what is here go on");
    }
    let (from, cpu): (Instant, Vec<u64>) = (Instant::now(), cluster.brokers.iter().map(|b| b.figures().cpu_millis).collect());
    wait("the outage lasts", PATIENCE * 4, || began.elapsed() >= outage && from.elapsed() >= Duration::from_secs(2));
    for (broker, before) in cluster.brokers.iter().zip(cpu) {
        let used = broker.figures().cpu_millis - before;
        println!("{used} ms of processor time in {:?} of outage", from.elapsed());
        assert!(u128::from(used) * 5 < from.elapsed().as_millis(), "{used} ms");
    }
    server.restart();
    let back = Instant::now();
    everything_works(&cluster, &consumer, "after", &mut values);
    println!("everything works {:?} after it is back", back.elapsed());
    assert!(back.elapsed() < Duration::from_secs(10), "{:?}", back.elapsed());
    for flap in 0..flaps {
        server.kill();
        server.restart();
        println!("flap {flap}");
    }
    everything_works(&cluster, &consumer, "flapped", &mut values);
    for ((broker, before), logged) in cluster.brokers.iter().zip(before).zip(logged) {
        wait("threads and descriptors are as before", PATIENCE, || {
            let now = broker.figures();
            now.threads <= before.threads + 1 && now.descriptors <= before.descriptors + 3
        });
        let log = broker.log().len() - logged;
        println!("{log} bytes of log over an outage and {flaps} flaps; {:?}", broker.figures());
        assert!(log < 12_000 + 3_000 * flaps, "{log} bytes of log:\n{}", broker.log());
    }
}

/// Puts by each broker into each partition succeed, and are pushed; the brokers know each other.
fn everything_works(cluster: &Cluster, consumer: &Consumer, name: &str, values: &mut Vec<String>) {
    for (n, broker) in cluster.brokers.iter().enumerate() {
        for p in 0..2 {
            let value = format!("{name}-{n}-{p}");
            let put = || broker.gateway().put_message_with_pid("q".into(), p, to_put("t", value.as_str())).is_ok();
            wait("puts are taken", PATIENCE, put);
            values.push(value);
        }
    }
    wait("all is pushed", PATIENCE, || values.iter().all(|v| consumer.has(v)));
    cluster.wait_until_complete();
}

/// Brokers are started before ZooKeeper, with a root that does not exist: they say what they wait for, take no calls, and serve by
/// themselves when it is there. The command line fails in time.
#[test]
fn before_anybody_starts() {
    let mut server = ZooKeeper::prepared();
    let zookeeper = format!("{}/not/there/yet", server.host());
    let meeting = Meeting { zookeeper: zookeeper.clone(), session_timeout: "10s".to_owned() };
    let mut brokers = [(); 2].map(|()| Broker::prepared(Setup { meeting: Some(meeting.clone()), ..Setup::default() }));
    brokers.iter_mut().for_each(Broker::launch);
    for broker in &brokers {
        wait("it says what it waits for", PATIENCE, || {
            let log = broker.log();
            log.contains("waiting for ZooKeeper") && log.contains(&server.host())
        });
        let refused = broker.run(&["put", "q", "--topic", "t", "x"]);
        refused.refused(1, &[&broker.address()]);
        assert!(refused.took < Duration::from_secs(5), "{refused}");
    }
    server.launch();
    server.wait_until_it_serves();
    let began = Instant::now();
    brokers.iter_mut().for_each(Broker::wait_until_it_serves);
    println!("serving {:?} after ZooKeeper", began.elapsed());
    let hand = Hand::at(&zookeeper);
    wait("both are registered", PATIENCE, || hand.children("/brokers").len() == 2);
    brokers[0].create("q", 4);
    for p in 0..4 {
        brokers[1].put("q", p, &["a"]);
    }
    // A broker that is told to stop while it waits does so.
    server.kill();
    let mut waiting = Broker::prepared(Setup { meeting: Some(meeting), ..Setup::default() });
    waiting.launch();
    wait("it waits", PATIENCE, || waiting.log().contains("waiting for ZooKeeper"));
    waiting.terminate();
    waiting.ended(Duration::from_secs(10));
}

/// What cannot be a root or a host is refused with the reason, at once.
#[test]
fn wrong_words() {
    for (zookeeper, words) in [
        ("127.0.0.1:2181/a//b", &["/a//b"][..]),
        ("127.0.0.1:99999/hqueue", &["99999"]),
        ("zk://127.0.0.1:2181/hqueue", &["zk"]),
        ("/hqueue", &["host"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let done = run(["broker", "--zookeeper", zookeeper, "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"], b"");
        assert!(matches!(done.code, Some(1 | 2)), "{zookeeper}: {done}");
        for word in words {
            assert!(done.err.contains(word), "{word:?} is not said: {done}");
        }
    }
    for timeout in ["1s", "2h", "x"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new(hqueue());
        command.args(["broker", "--zookeeper", "127.0.0.1:9", "--session-timeout", timeout, "--listen", "127.0.0.1:0"]);
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let done = command.output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(matches!(done.status.code(), Some(1 | 2)) && err.contains("timeout"), "{timeout}: {err}");
    }
}
