//! A queue that may become so large, over several brokers.

use hqueue_protocol::generated::TErrorCode;
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::letters::QUICK;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Cluster, Consumer, PATIENCE, refusal, wait};

/// Puts messages of some thousand bytes until that is refused. Returns how many were taken.
fn fill(broker: &Broker, partition: i16) -> usize {
    for taken in 0..200 {
        let message = to_put("t", "x".repeat(1000));
        if let Err(error) = put_for_ids(&mut broker.gateway(), "q", partition, vec![message]) {
            let refused = refusal::<()>(Err(error));
            assert_eq!(refused.code, TErrorCode::NO_SPACE, "{}", refused.message);
            return taken;
        }
    }
    panic!("more is taken than the limit allows");
}

/// Each broker takes its share of the limit, and keeps what a subscriber has not consumed there, whoever was asked to add it.
#[test]
fn each_broker_has_its_share() {
    let cluster = Cluster::start(2);
    let one = &cluster.brokers[0];
    let flags = ["--max-bytes", "200000", "--when-full", "drop_oldest", "--keep-unread"];
    one.run(&[&["create", "q", "--partitions", "4", "--ttl", "3600"], &flags[..]].concat()).text();
    let mut consumer = Consumer::start();
    consumer.stop();
    one.subscribe("q", "s", &consumer.address(), &QUICK);
    let partitions = [cluster.partition_of("q", 0), cluster.partition_of("q", 1)];
    let taken = partitions.map(|partition| fill(one, partition));
    assert!(taken.iter().all(|taken| (90..=98).contains(taken)), "{taken:?} of half of the limit each");
    consumer.resume();
    wait("all are delivered", PATIENCE, || consumer.count() >= taken.iter().sum());
    for partition in partitions {
        let put = || put_for_ids(&mut one.gateway(), "q", partition, vec![to_put("t", "again")]).is_ok();
        wait("there is room", PATIENCE, put);
    }
    wait("all are delivered", PATIENCE, || consumer.count() >= taken.iter().sum::<usize>() + 2);
    let lost: i64 = cluster.brokers.iter().map(|broker| broker.subscription("q", "s").expired()).sum();
    assert_eq!(lost, 0);
}
