//! Whoever finds brokers in ZooKeeper may pick one that is of no use: then another is asked, and what is waited for is said.

use hqueue_tests::silent::{HangsUp, NeverReads};
use hqueue_tests::{Cluster, Follower, free_port};

/// One broker of four is one. Which is the first is chance: six subscribers meet every order that matters.
#[test]
fn a_subscriber_asks_the_others() {
    let cluster = Cluster::start(1);
    let broker = &cluster.brokers[0];
    broker.create("q", 1);
    broker.put("q", 0, &["early"]);
    let (hangs, hangs_up, gone) = (NeverReads::listen(), HangsUp::listen(), format!("127.0.0.1:{}", free_port()));
    for (n, address) in [hangs.address(), hangs_up.address(), gone].into_iter().enumerate() {
        cluster.hand.ephemeral(&format!("/brokers/stranger-{n}"), serde_json::json!({"address": address}).to_string());
    }
    let url = format!("zk://{}", cluster.zookeeper());
    let subscribers: Vec<Follower> = (0..6)
        .map(|n| Follower::start(["subscribe", "q", "--name", &format!("s{n}"), "--from", "earliest", "--connect", &url]))
        .collect();
    for subscriber in subscribers {
        assert!(subscriber.line().ends_with("\tearly"));
        subscriber.kill();
    }
}

/// A broker has died, and ZooKeeper does not know it yet: it is given partitions, and does not claim them.
#[test]
fn a_queue_that_waits_for_a_broker_says_for_which() {
    let mut cluster = Cluster::with_session(2, "40s");
    let status = cluster.brokers[0].run(&["status", "--format", "json"]).json();
    let balancer = status["brokers"].as_array().unwrap().iter().find(|b| b["balancer"] == true).unwrap()["name"].clone();
    let dies = (0..2).find(|n| cluster.name(*n) != balancer).unwrap();
    let name = cluster.name(dies);
    cluster.brokers[dies].kill();
    let done = cluster.brokers[1 - dies].run(&["create", "q", "--partitions", "3", "--ttl", "60"]);
    done.refused(1, &["queue q is made, but not open yet", &format!("it waits for broker {name}, which has")]);
}
