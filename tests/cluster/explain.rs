//! Where is my message? Any broker answers, as the owner of its partition knows it.

use hqueue_tests::explained::{explain, explained, state, wait_until};
use hqueue_tests::letters::{QUICK, failing_at};
use hqueue_tests::{Answer, Cluster, Consumer, Message, PATIENCE, wait};

#[test]
fn any_broker_explains_what_the_owner_knows() {
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 4);
    let consumer = Consumer::answering(failing_at(|m: &Message| m.text() == "bad", Answer::Value(-1)));
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &QUICK);
    let partitions = [cluster.partition_of("q", 0), cluster.partition_of("q", 1)];
    // The letters of both are at one of them.
    let ids = partitions.map(|p| cluster.brokers[0].put("q", p, &["a", "bad", "b"]));
    cluster.brokers[0].wait_for_no_lag("q", "s");
    for (partition, ids) in partitions.iter().zip(&ids) {
        let told: Vec<_> = cluster.brokers.iter().map(|broker| explain(broker, "q", *partition, ids[0])).collect();
        assert_eq!(told[0], told[1], "both say what the owner knows");
        for broker in &cluster.brokers {
            let told = explained(broker, "q", *partition, ids[0], "s");
            assert_eq!(
                (state(&told).as_str(), told["endpoint"].as_str()),
                ("delivered", Some(consumer.address().as_str())),
                "{told}"
            );
            assert_eq!(state(&explained(broker, "q", *partition, ids[1], "s")), "dead_lettered");
            broker
                .run(&["explain", "q", &partition.to_string(), &ids[0].to_string(), "--name", "nobody"])
                .refused(1, &["nobody"]);
            broker.run(&["explain", "q", "4", &ids[0].to_string()]).refused(1, &["no partition 4"]);
        }
    }
    // One that reads partitions of one broker only.
    let [here, there] = partitions.map(|p| p.to_string());
    cluster.brokers[0].run(&["add_subscriber", "q", "half", "--partition", &here]).text();
    wait_until(&cluster.brokers[0], "q", partitions[0], ids[0][0], "half", "before_start");
    wait_until(&cluster.brokers[0], "q", partitions[1], ids[1][0], "half", "not_read");
    cluster.brokers[1].kill();
    let alive = &cluster.brokers[0];
    wait("it is seen to be away", PATIENCE, || {
        alive.run(&["explain", "q", &there, &ids[1][0].to_string()]).err.contains("is offline: its broker")
    });
    alive.run(&["explain", "q", &there, &ids[1][0].to_string()]).refused(1, &["offline", &format!("partition {there}")]);
    // What the other one has does not depend on it, be the letters there or not.
    wait_until(alive, "q", partitions[0], ids[0][0], "s", "delivered");
    wait_until(alive, "q", partitions[0], ids[0][1], "s", "dead_lettered");
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    let told = wait_until(&cluster.brokers[0], "q", partitions[1], ids[1][0], "s", "below_checkpoint");
    assert!(told["calls"].as_array().unwrap().is_empty(), "{told}");
}
