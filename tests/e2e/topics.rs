//! Readers of some topics: on the push and on the scan.

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessageScan, TSubscriberSpec};
use hqueue_tests::gateway::scan;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Consumer, PATIENCE, wait};

fn subscribe(broker: &Broker, consumer: &Consumer, topics: &[&[u8]]) {
    let spec = TSubscriberSpec {
        name: Some("s".into()),
        addresses: Some(vec![consumer.address()]),
        topics: Some(topics.iter().map(|t| t.to_vec()).collect()),
        start_position: Some("earliest".to_owned()),
        ..TSubscriberSpec::default()
    };
    broker.admin().add_subscriber("q".into(), spec).unwrap();
}

fn put(broker: &Broker, topics: &[&[u8]]) {
    let messages = topics.iter().map(|t| to_put(*t, [b"about ", *t].concat())).collect();
    broker.gateway().put_messages_with_pid("q".into(), 0, messages).unwrap();
}

#[test]
fn only_what_is_wanted_comes() {
    let broker = Broker::start();
    broker.create("q", 1);
    let odd: &[u8] = &[0, 0xff, b'\n'];
    let long: &[u8] = &[b'l'; 255];
    put(&broker, &[b"a", b"b", odd, b"a", long, b"ab", b"A"]);
    let consumer = Consumer::start();
    subscribe(&broker, &consumer, &[b"a", odd, long]);
    wait("what is wanted comes", PATIENCE, || consumer.count() >= 4);
    broker.wait_for_no_lag("q", "s");
    let topics: Vec<Vec<u8>> = consumer.accepted().into_iter().map(|m| m.topic).collect();
    assert_eq!(topics, [b"a".to_vec(), odd.to_vec(), b"a".to_vec(), long.to_vec()]);
    let wanted = TMessageScan::new(None, None, vec![b"b".to_vec(), b"ab".to_vec()]);
    let found = scan(&mut broker.gateway(), "q", 0, wanted).unwrap();
    let topics: Vec<&[u8]> = found.iter().map(|m| m.topic.as_slice()).collect();
    assert_eq!(topics, [b"b".as_slice(), b"ab"]);
}

/// What nobody wants is passed over without a call, and does not count as lag.
#[test]
fn the_unwanted_costs_no_call_and_is_no_lag() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    subscribe(&broker, &consumer, &[b"rare"]);
    let common: Vec<&[u8]> = vec![b"common"; 1000];
    for _ in 0..10 {
        put(&broker, &common);
    }
    wait("the unwanted is passed over", PATIENCE, || broker.subscription("q", "s").lag() == 0);
    let last = broker.scan("q", 0).last().unwrap().id;
    wait("the checkpoint follows", PATIENCE, || broker.subscription("q", "s").checkpoint(0) >= Some(last));
    assert_eq!(consumer.call_count(), 0);
    put(&broker, &[b"rare"]);
    wait("the wanted comes", PATIENCE, || consumer.count() == 1);
    broker.stop();
    broker.restart();
    put(&broker, &[b"common", b"rare"]);
    wait("also after a restart", PATIENCE, || consumer.count() == 2);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 2);
}

/// The lag counts what the subscription wants.
#[test]
fn the_lag_is_of_the_wanted_topics() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut consumer = Consumer::start();
    consumer.stop();
    subscribe(&broker, &consumer, &[b"a"]);
    put(&broker, &[b"a", b"b", b"a", b"b", b"b"]);
    wait("the lag", PATIENCE, || broker.subscription("q", "s").lag() == 2);
    assert_eq!(broker.subscription("q", "s").0.lag_exact, Some(true));
    consumer.resume();
    wait("both come", PATIENCE, || consumer.count() == 2);
    broker.wait_for_no_lag("q", "s");
}
