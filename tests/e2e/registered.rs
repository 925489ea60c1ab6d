//! Subscribers that announce themselves: `subscribe`, `renew`, `unsubscribe`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::{
    TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TRegistration, TSubscriberSpec,
};
use hqueue_tests::consumer::Call;
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Broker, Consumer, Gateway, PATIENCE, refusal, wait};

fn registration(name: &str, address: &str) -> TRegistration {
    TRegistration {
        subscriber: Some(name.into()),
        address: Some(address.to_owned()),
        topics: Some(Vec::new()),
        partitions: Some(Vec::new()),
        start_position: Some("earliest".to_owned()),
        partition_start_positions: None,
        transport: None,
        protocol: None,
    }
}

fn subscribe(gateway: &mut Gateway, name: &str, consumer: &Consumer) -> i64 {
    gateway.subscribe("q".into(), registration(name, &consumer.address())).unwrap().registration_i_d.unwrap()
}

fn broker_with_queue(partitions: i32) -> (Broker, Gateway) {
    let broker = Broker::start();
    broker.create("q", partitions);
    let gateway = broker.gateway();
    (broker, gateway)
}

#[test]
fn who_leaves_and_returns_goes_on_where_it_was() {
    let (broker, mut gateway) = broker_with_queue(2);
    broker.put("q", 0, &["early"]);
    let mut consumer = Consumer::start();
    let id = subscribe(&mut gateway, "s", &consumer);
    wait("what was there comes", PATIENCE, || consumer.has("early"));
    let status = broker.subscription("q", "s");
    assert_eq!((status.state(), status.endpoints()), ("active", vec![consumer.address()]));
    gateway.unsubscribe(id).unwrap();
    consumer.stop();
    let status = broker.subscription("q", "s");
    assert_eq!((status.state(), status.endpoints()), ("waiting", vec![]));
    broker.put("q", 1, &["meanwhile"]);
    wait("what waits is counted", PATIENCE, || broker.subscription("q", "s").lag() == 1);
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
    let successor = Consumer::start();
    subscribe(&mut gateway, "s", &successor);
    wait("it goes on", PATIENCE, || successor.has("meanwhile"));
    broker.wait_for_no_lag("q", "s");
    assert_eq!(successor.values(), ["meanwhile"], "a start position counts only when the name is new");
}

/// A leave that comes late names the old registration.
#[test]
fn a_late_leave_does_not_remove_the_successor() {
    let (broker, mut gateway) = broker_with_queue(2);
    let consumer = Consumer::start();
    let old = subscribe(&mut gateway, "s", &consumer);
    let new = subscribe(&mut gateway, "s", &consumer);
    assert_ne!(old, new);
    assert_eq!(broker.subscription("q", "s").endpoints(), [consumer.address()], "one endpoint, not two");
    assert_eq!(refusal(gateway.unsubscribe(old)).code, TErrorCode::NOT_FOUND);
    broker.put("q", 0, &["a"]);
    wait("the successor is served", PATIENCE, || consumer.has("a"));
    gateway.renew(new).unwrap();
    gateway.unsubscribe(new).unwrap();
    assert_eq!(refusal(gateway.unsubscribe(new)).code, TErrorCode::NOT_FOUND);
    assert_eq!(refusal(gateway.renew(new)).code, TErrorCode::NOT_FOUND);
}

/// Two names at one address are two subscriptions; one leaves, the other stays.
#[test]
fn names_are_apart_also_at_one_address() {
    let (broker, mut gateway) = broker_with_queue(1);
    let consumer = Consumer::start();
    let one = subscribe(&mut gateway, "one", &consumer);
    subscribe(&mut gateway, "two", &consumer);
    broker.put("q", 0, &["a"]);
    wait("each has it", PATIENCE, || consumer.count() == 2);
    gateway.unsubscribe(one).unwrap();
    broker.put("q", 0, &["b"]);
    wait("who stayed has the next", PATIENCE, || consumer.has("b"));
    broker.wait_for_no_lag("q", "two");
    assert_eq!(broker.subscription("q", "one").lag(), 1);
    assert_eq!(consumer.count(), 3);
}

/// It is not renewed and ends; another one, which is, stays.
#[test]
fn a_registration_lives_while_it_is_renewed() {
    let (broker, mut gateway) = broker_with_queue(1);
    let (kept, lost) = (Consumer::start(), Consumer::start());
    let began = Instant::now();
    let registered = gateway.subscribe("q".into(), registration("kept", &kept.address())).unwrap();
    let lifetime = Duration::from_millis(registered.lifetime_ms.unwrap() as u64);
    assert!((Duration::from_secs(5)..=Duration::from_secs(30)).contains(&lifetime), "{lifetime:?}");
    let lost_id = subscribe(&mut gateway, "lost", &lost);
    let (mut renewed, mut longest) = (Instant::now(), Duration::ZERO);
    wait("the one that is not renewed ends", lifetime + PATIENCE, || {
        let renewal = gateway.renew(registered.registration_i_d.unwrap());
        longest = longest.max(renewed.elapsed());
        // A machine that stands still for so long renews nothing.
        assert!(renewal.is_ok() || longest > lifetime / 2, "the renewed one has ended");
        renewed = Instant::now();
        broker.subscription("q", "lost").endpoints().is_empty()
    });
    assert!(began.elapsed() >= lifetime - Duration::from_millis(100), "not before its time: {:?}", began.elapsed());
    assert_eq!(refusal(gateway.renew(lost_id)).code, TErrorCode::NOT_FOUND);
    assert_eq!(lost.count(), 0);
    if longest.max(renewed.elapsed()) > lifetime / 2 {
        println!("the machine stood still for {longest:?}: nothing is said about the renewed one");
        return;
    }
    assert_eq!(broker.subscription("q", "kept").endpoints(), [kept.address()]);
    broker.put("q", 0, &["a"]);
    wait("the other is served", PATIENCE, || kept.has("a"));
}

#[test]
fn topics_may_change_with_the_next_registration() {
    let (broker, mut gateway) = broker_with_queue(1);
    let consumer = Consumer::start();
    let of = |topics: &[&str]| TRegistration {
        topics: Some(topics.iter().map(|t| t.as_bytes().to_vec()).collect()),
        ..registration("s", &consumer.address())
    };
    let put = |topic: &str, value: &str| broker.gateway().put_message("q".into(), to_put(topic, value)).unwrap();
    gateway.subscribe("q".into(), of(&["red"])).unwrap();
    put("red", "red1");
    put("blue", "blue1");
    broker.wait_for_no_lag("q", "s");
    gateway.subscribe("q".into(), of(&["blue"])).unwrap();
    put("red", "red2");
    put("blue", "blue2");
    wait("the new topic comes", PATIENCE, || consumer.has("blue2"));
    gateway.subscribe("q".into(), of(&[])).unwrap();
    put("green", "green3");
    wait("every topic comes", PATIENCE, || consumer.has("green3"));
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.values(), ["red1", "blue2", "green3"]);
}

#[test]
fn some_partitions_and_their_own_start() {
    let (broker, mut gateway) = broker_with_queue(4);
    for partition in 0..4 {
        broker.put("q", partition, &[format!("old{partition}")]);
    }
    let consumer = Consumer::start();
    let wanted = TRegistration {
        partitions: Some(vec![1, 3]),
        start_position: Some("latest".to_owned()),
        partition_start_positions: Some([(3, "earliest".to_owned())].into()),
        ..registration("s", &consumer.address())
    };
    gateway.subscribe("q".into(), wanted).unwrap();
    for partition in 0..4 {
        broker.put("q", partition, &[format!("new{partition}")]);
    }
    wait("what is wanted comes", PATIENCE, || consumer.count() >= 3);
    broker.wait_for_no_lag("q", "s");
    let mut values = consumer.values();
    values.sort();
    assert_eq!(values, ["new1", "new3", "old3"]);
    let checkpoints = broker.subscription("q", "s").0.checkpoints.unwrap();
    let partitions: BTreeSet<i16> = checkpoints.iter().filter_map(|c| c.partition).collect();
    assert_eq!(partitions, BTreeSet::from([1, 3]));
}

/// Processes of one name share the partitions; each partition is with one of them at a time, also while they come and go.
#[test]
fn processes_of_one_name_share_the_partitions() {
    let (broker, mut gateway) = broker_with_queue(8);
    let time = Duration::from_millis(5);
    let start = || Consumer::answering(move |_| Answer::Slow(time, 0));
    let (one, two, three) = (start(), start(), start());
    subscribe(&mut gateway, "s", &one);
    let second = subscribe(&mut gateway, "s", &two);
    let mut number = 0;
    let mut put_round = || {
        for partition in 0..8 {
            broker.put("q", partition, &[format!("{number}")]);
            number += 1;
        }
    };
    let total = || one.count() + two.count() + three.count();
    for _ in 0..20 {
        put_round();
    }
    wait("two have all", PATIENCE, || total() >= 160);
    let of = |consumer: &Consumer| consumer.accepted().iter().map(|m| m.partition).collect::<BTreeSet<i16>>();
    assert!(of(&one).is_disjoint(&of(&two)), "{:?} and {:?}", of(&one), of(&two));
    assert_eq!((of(&one).len(), of(&two).len()), (4, 4), "evenly");
    subscribe(&mut gateway, "s", &three);
    for _ in 0..20 {
        put_round();
    }
    wait("three have all", PATIENCE, || total() >= 320);
    assert!(of(&three).len() >= 2, "the third has its part: {:?}", of(&three));
    gateway.unsubscribe(second).unwrap();
    let left = two.count();
    for _ in 0..10 {
        put_round();
    }
    wait("those who stayed have all", PATIENCE, || total() >= 400);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(two.count(), left, "who left gets nothing more");
    assert_eq!(total(), 400, "nothing twice while nothing fails");
    check_never_at_two(&[&one, &two, &three], time);
}

/// In each partition, a call begins only when the one before has ended, whoever had it; together they are in order.
fn check_never_at_two(consumers: &[&Consumer], time: Duration) {
    let mut calls: Vec<Call> = consumers.iter().flat_map(|c| c.calls()).collect();
    calls.sort_by_key(|c| c.at);
    for partition in 0..8 {
        let of_this: Vec<&Call> = calls.iter().filter(|c| c.messages[0].partition == partition).collect();
        for pair in of_this.windows(2) {
            assert!(pair[1].at >= pair[0].at + time, "partition {partition} was with two at once");
        }
    }
    let messages: Vec<_> = calls.into_iter().flat_map(|c| c.messages).collect();
    assert_eq!(check_order(&messages), 0);
}

/// A process that dies without leaving: the others take its partitions over, at the latest when its registration ends.
#[test]
fn the_others_take_over_from_one_that_died() {
    let (broker, mut gateway) = broker_with_queue(4);
    let (one, mut two) = (Consumer::start(), Consumer::start());
    let alive = subscribe(&mut gateway, "s", &one);
    subscribe(&mut gateway, "s", &two);
    for partition in 0..4 {
        broker.put("q", partition, &["before"]);
    }
    wait("both are at work", PATIENCE, || one.count() + two.count() == 4);
    assert!(one.count() > 0 && two.count() > 0);
    broker.wait_for_no_lag("q", "s");
    two.stop();
    for partition in 0..4 {
        broker.put("q", partition, &["after"]);
    }
    wait("the other has all", PATIENCE, || {
        gateway.renew(alive).unwrap();
        one.values().iter().filter(|v| *v == "after").count() == 4
    });
    wait("the registration of the dead one ends", PATIENCE, || {
        gateway.renew(alive).unwrap();
        broker.subscription("q", "s").endpoints() == [one.address()]
    });
}

#[test]
fn registrations_end_with_the_broker_and_checkpoints_stay() {
    let (mut broker, mut gateway) = broker_with_queue(1);
    let consumer = Consumer::start();
    let id = subscribe(&mut gateway, "s", &consumer);
    broker.put("q", 0, &["a"]);
    wait("it is pushed", PATIENCE, || consumer.has("a"));
    broker.wait_for_no_lag("q", "s");
    broker.stop();
    broker.restart();
    let mut gateway = broker.gateway();
    assert_eq!(refusal(gateway.renew(id)).code, TErrorCode::NOT_FOUND, "which tells it to subscribe again");
    broker.put("q", 0, &["b"]);
    assert_eq!(broker.subscription("q", "s").state(), "waiting");
    subscribe(&mut gateway, "s", &consumer);
    wait("it goes on", PATIENCE, || consumer.has("b"));
    assert_eq!(consumer.values(), ["a", "b"]);
}

/// A place that an administrator kept is taken by who registers; a fixed endpoint is nobody's to take.
#[test]
fn added_beforehand_with_and_without_an_endpoint() {
    let (broker, mut gateway) = broker_with_queue(1);
    let consumer = Consumer::start();
    broker.put("q", 0, &["a"]);
    let place =
        TSubscriberSpec { name: Some("place".into()), start_position: Some("earliest".to_owned()), ..TSubscriberSpec::default() };
    broker.admin().add_subscriber("q".into(), place).unwrap();
    let status = broker.subscription("q", "place");
    assert_eq!((status.state(), status.lag()), ("waiting", 1));
    let late = TRegistration { start_position: Some("latest".to_owned()), ..registration("place", &consumer.address()) };
    gateway.subscribe("q".into(), late).unwrap();
    wait("the place's own start counts", PATIENCE, || consumer.has("a"));
    broker.subscribe("q", "fixed", &consumer.address(), &[]);
    let refused = refusal(gateway.subscribe("q".into(), registration("fixed", "127.0.0.1:9")));
    assert_eq!(refused.code, TErrorCode::EXISTS, "{}", refused.message);
}

#[test]
fn a_deleted_subscriber_is_gone_with_its_registration() {
    let (broker, mut gateway) = broker_with_queue(1);
    let consumer = Consumer::start();
    let id = subscribe(&mut gateway, "s", &consumer);
    broker.put("q", 0, &["a"]);
    wait("it is pushed", PATIENCE, || consumer.has("a"));
    broker.admin().delete_subscriber("q".into(), "s".into()).unwrap();
    assert!(broker.status("q").subscriptions.unwrap().is_empty());
    assert_eq!(refusal(gateway.renew(id)).code, TErrorCode::NOT_FOUND);
    broker.put("q", 0, &["b"]);
    subscribe(&mut gateway, "s", &consumer);
    wait("a new one of the old name begins where it says", PATIENCE, || consumer.count() == 3);
    assert_eq!(consumer.values(), ["a", "a", "b"]);
}

#[test]
fn refusals_name_what_is_wrong() {
    let (broker, mut gateway) = broker_with_queue(2);
    let good = || registration("s", "127.0.0.1:9");
    let cases = [
        (TRegistration { subscriber: Some("a/b".into()), ..good() }, "a/b"),
        (TRegistration { subscriber: Some("owner".into()), ..good() }, "owner"),
        (TRegistration { subscriber: None, ..good() }, "name"),
        (TRegistration { address: Some("nowhere".to_owned()), ..good() }, "nowhere"),
        (TRegistration { address: Some("127.0.0.1:0".to_owned()), ..good() }, "127.0.0.1:0"),
        (TRegistration { address: Some("127.0.0.1:70000".to_owned()), ..good() }, "70000"),
        (TRegistration { address: None, ..good() }, "address"),
        (TRegistration { partitions: Some(vec![2]), ..good() }, "2"),
        (TRegistration { partitions: Some(vec![-1]), ..good() }, "-1"),
        (TRegistration { start_position: Some("soon".to_owned()), ..good() }, "soon"),
        (TRegistration { partition_start_positions: Some([(0, "then".to_owned())].into()), ..good() }, "then"),
        (TRegistration { topics: Some(vec![vec![b't'; 256]]), ..good() }, "255"),
        (TRegistration { topics: Some(vec![vec![]]), ..good() }, "topic"),
        (TRegistration { transport: Some("http".to_owned()), ..good() }, "http"),
        (TRegistration { protocol: Some("json".to_owned()), ..good() }, "json"),
    ];
    for (wanted, word) in cases {
        let refused = refusal(gateway.subscribe("q".into(), wanted.clone()));
        assert_eq!(refused.code, TErrorCode::INVALID, "{wanted:?}: {}", refused.message);
        assert!(refused.message.contains(word), "{word:?} is not in {:?}", refused.message);
    }
    assert_eq!(refusal(gateway.subscribe("other".into(), good())).code, TErrorCode::NOT_FOUND);
    assert!(broker.status("q").subscriptions.unwrap().is_empty(), "what was refused left nothing behind");
}
