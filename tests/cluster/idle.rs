//! What has nothing to do asks ZooKeeper for nothing but to keep its session; what has much to do does not flood it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::load::{Load, Puts};
use hqueue_tests::zookeeper::ZooKeeper;
use hqueue_tests::{Cluster, Consumer, PATIENCE, Registered, long_form, wait, wait_for};

/// Requests that the server has received so far.
fn received(server: &ZooKeeper) -> u64 {
    wait_for("the server answers", PATIENCE, || {
        let text = server.ask("srvr")?;
        text.lines().find_map(|line| line.strip_prefix("Received: "))?.trim().parse().ok()
    })
}

/// Requests a second over this time. The question itself is one.
fn rate(server: &ZooKeeper, time: Duration) -> f64 {
    let (began, before) = (Instant::now(), received(server));
    wait("time passes", PATIENCE * 2, || began.elapsed() >= time);
    (received(server) - before).saturating_sub(1) as f64 / began.elapsed().as_secs_f64()
}

/// What is watched is read again once in this time, though nothing is heard of it. Seconds.
const READ_AGAIN: f64 = 300.0;

/// Many queues and many subscribers of four partitions. Long form, `HQUEUE_LONG_IDLE=200`: so many queues, and 250 subscribers.
#[test]
fn many_idle_queues() {
    let queues = long_form("HQUEUE_LONG_IDLE").unwrap_or(25);
    let subscribers = if queues > 25 { 250 } else { 60 };
    let (server, time) = (ZooKeeper::start(), Duration::from_secs(if queues > 25 { 20 } else { 5 }));
    let mut cluster = Cluster::on(&server.host(), 2, "10s");
    let few = rate(&server, time);
    let few_figures = cluster.brokers[1].figures();
    for n in 0..queues {
        cluster.brokers[n % 2].create(&format!("q{n}"), 4);
    }
    let consumer = Consumer::start();
    let address = consumer.address();
    cluster.brokers[0].create("busy", 4);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for part in 0..10 {
            let (hand, address) = (&cluster.hand, &address);
            scope.spawn(move || {
                for s in part * subscribers / 10..(part + 1) * subscribers / 10 {
                    hand.register(Registered::new("busy", 4, &format!("s{s}"), address));
                }
            });
        }
    });
    println!("{} registrations by hand took {:?}", 4 * subscribers, began.elapsed());
    cluster.brokers[0].put("busy", 0, &["a"]);
    wait("all subscriptions are served", PATIENCE, || consumer.count() >= subscribers);
    // Of a subscription in a partition four paths are watched, of a queue of four partitions about 20, by two brokers.
    let watched = (4 * 4 * subscribers + 2 * 20 * queues) as f64;
    let most = few + 3.0 + watched / READ_AGAIN;
    let many = wait_for("nothing but heartbeats, and what is read again", PATIENCE * 2, || {
        Some(rate(&server, time)).filter(|many| *many < most)
    });
    let (cpu, began) = (cluster.brokers[1].figures(), Instant::now());
    println!(
        "requests a second of two brokers and a hand: {few:.1} with nothing, {many:.1} with {queues} queues and {} subscriptions",
        4 * subscribers
    );
    wait("a while", PATIENCE, || began.elapsed() >= Duration::from_secs(2));
    let now = cluster.brokers[1].figures();
    println!(
        "{} ms of processor time in {:?}, {} threads, {} descriptors",
        now.cpu_millis - cpu.cpu_millis,
        began.elapsed(),
        now.threads,
        now.descriptors
    );
    assert_eq!(now.threads, few_figures.threads, "threads do not grow");
    assert!(u128::from(now.cpu_millis - cpu.cpu_millis) * 10 < began.elapsed().as_millis(), "an idle broker works");
    loaded(&server, &cluster);
    let began = Instant::now();
    cluster.brokers[1].kill();
    cluster.brokers[1].restart();
    println!("kill -9 and start with {} partitions: {:?}", 4 * queues + 4, began.elapsed());
    let value = "after the restart";
    let (p, before) = (cluster.partition_of("busy", 1), consumer.count());
    wait("puts are taken", PATIENCE, || {
        cluster.brokers[0].run(&["put", "busy", "--topic", "t", "--partition", &p.to_string(), value]).code == Some(0)
    });
    wait("all are pushed to", PATIENCE, || consumer.count() >= before + subscribers);
    println!("the next pushes to {subscribers} subscriptions: {:?} after the kill", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// A queue under load: checkpoints are written at most once a second for each node.
fn loaded(server: &ZooKeeper, cluster: &Cluster) {
    cluster.brokers[0].create("load", 4);
    let consumer = Consumer::start();
    cluster.brokers[0].subscribe("load", "s", &consumer.address(), &[]);
    let quiet = rate(server, Duration::from_secs(1));
    let acknowledged = Arc::default();
    let puts = |n: usize| Puts { queue: "load", partition: n as i16, pause: Duration::from_millis(2) };
    let load = |n: usize, a: &Arc<Acknowledged>| Load::start(&format!("l{n}"), &[cluster.brokers[n % 2].port()], puts(n), a);
    let loads: Vec<Load> = (0..4).map(|n| load(n, &acknowledged)).collect();
    loads.iter().for_each(|load| load.wait_for(20));
    let busy = rate(server, Duration::from_secs(4));
    loads.into_iter().for_each(|load| drop(load.finish()));
    println!("requests a second: {quiet:.1} before, {busy:.1} with four partitions under load ({} puts)", acknowledged.count());
    assert!(busy < quiet + 4.0 * 6.0, "more than a few requests for each checkpoint and second");
    cluster.brokers[0].wait_for_no_lag("load", "s");
}
