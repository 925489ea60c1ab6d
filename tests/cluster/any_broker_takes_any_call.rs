//! Any broker takes any call, in every dialect, and whoever owns the partition does it.

use std::collections::{BTreeMap, BTreeSet};

use hqueue_protocol::generated::{
    TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TMessage, TMessageScan, TQueueSpec, TScanReport,
    TSubscriberSpec,
};
use hqueue_tests::gateway::{Dialect, everything, put_for_ids, registration, scan};
use hqueue_tests::message::to_put;
use hqueue_tests::{Cluster, Consumer, Gateway, Id, PATIENCE, queue_spec, refusal, wait};

const PARTITIONS: i16 = 4;

/// Every put of the contract in every dialect at every broker, and every way to read it back.
#[test]
fn puts_and_scans() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    assert_eq!(BTreeSet::from_iter(cluster.assigned("q")).len(), 2, "both brokers have partitions");
    let mut expected: BTreeMap<i16, BTreeSet<String>> = BTreeMap::new();
    let mut anywhere = BTreeSet::new();
    for (b, broker) in cluster.brokers.iter().enumerate() {
        for dialect in Dialect::ALL {
            let mut gateway = broker.try_gateway(dialect).unwrap();
            for p in 0..PARTITIONS {
                let values = put_each_way(&mut gateway, p, &format!("{b}-{dialect:?}-{p}"));
                expected.entry(p).or_default().extend(values);
            }
            let loose = format!("{b}-{dialect:?}-loose");
            gateway.put_message("q".into(), to_put("t", format!("{loose}1"))).unwrap();
            let pair = vec![to_put("t", format!("{loose}2")), to_put("t", format!("{loose}3"))];
            gateway.put_messages("q".into(), pair).unwrap();
            anywhere.extend((1..=3).map(|n| format!("{loose}{n}")));
        }
    }
    for broker in &cluster.brokers {
        for dialect in Dialect::ALL {
            let mut gateway = broker.try_gateway(dialect).unwrap();
            let mut loose = BTreeSet::new();
            for p in 0..PARTITIONS {
                let found = read_each_way(&mut gateway, p);
                let (there, other): (BTreeSet<String>, _) = found.into_iter().partition(|v| !v.contains("loose"));
                assert_eq!(there, expected[&p], "partition {p} in {dialect:?}");
                loose.extend(other);
            }
            assert_eq!(loose, anywhere, "{dialect:?}");
        }
    }
}

fn put_each_way(gateway: &mut Gateway, partition: i16, name: &str) -> Vec<String> {
    let values: Vec<String> = (0..7).map(|n| format!("{name}-{n}")).collect();
    let message = |n: usize| to_put("t", values[n].as_str());
    gateway.put_message_with_pid("q".into(), partition, message(0)).unwrap();
    gateway.put_messages_with_pid("q".into(), partition, vec![message(1), message(2)]).unwrap();
    gateway.put_message("q".into(), TMessage { partition_i_d: Some(partition), ..message(3) }).unwrap();
    let (there, ids) = put_for_ids(gateway, "q", partition, (4..7).map(message).collect()).unwrap();
    assert_eq!((there, ids.len()), (partition, 3));
    let from = TMessageScan { start_i_d: Some(ids[0].into()), ..everything() };
    let found: Vec<Id> = scan(gateway, "q", partition, from).unwrap().iter().map(|m| m.id).collect();
    assert_eq!(found, ids, "the ids are those of the messages");
    values
}

/// One by one and in lists; a scanner that was closed is gone.
fn read_each_way(gateway: &mut Gateway, partition: i16) -> Vec<String> {
    let in_lists: Vec<String> =
        scan(gateway, "q", partition, everything()).unwrap().iter().map(|m| m.text().to_owned()).collect();
    let scanner = gateway.message_scanner_open("q".into(), partition, everything()).unwrap();
    let mut single = Vec::new();
    loop {
        let message = gateway.message_scanner_get(scanner).unwrap();
        if message.id.is_none() {
            break;
        }
        assert_eq!(message.partition_i_d, Some(partition));
        single.push(String::from_utf8(message.value.unwrap()).unwrap());
    }
    assert_eq!(gateway.message_scanner_report(scanner).unwrap(), TScanReport::new(0, 0));
    gateway.message_scanner_close(scanner).unwrap();
    assert_eq!(refusal(gateway.message_scanner_get(scanner)).code, TErrorCode::NOT_FOUND);
    assert_eq!(refusal(gateway.message_scanner_report(scanner)).code, TErrorCode::NOT_FOUND);
    assert_eq!(single, in_lists);
    in_lists
}

/// Locations are the same wherever they are asked for, and a client that goes there is served.
#[test]
fn locations_name_the_owner() {
    let cluster = Cluster::start(2);
    cluster.brokers[1].create("q", PARTITIONS.into());
    let owners: Vec<String> = cluster.assigned("q").into_iter().map(|b| cluster.brokers[b].address()).collect();
    for broker in &cluster.brokers {
        wait("the locations are known", PATIENCE, || {
            let locations = broker.gateway().get_queue_locations("q".into()).unwrap();
            locations.into_iter().map(|l| String::from_utf8(l).unwrap()).collect::<Vec<_>>() == owners
        });
    }
}

/// What one broker refuses the other refuses too, for the same reason: the owner's words come through.
#[test]
fn refusals_come_from_the_owner() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    for dialect in Dialect::ALL {
        for broker in &cluster.brokers {
            let mut gateway = broker.try_gateway(dialect).unwrap();
            for p in 0..PARTITIONS {
                let no_topic = gateway.put_message_with_pid("q".into(), p, to_put("", "v"));
                assert_eq!(refusal(no_topic).code, TErrorCode::INVALID);
                let large = vec![0; (4 << 20) + 1];
                let refused = refusal(gateway.put_message_with_pid("q".into(), p, to_put("t", large)));
                assert_eq!(refused.code, TErrorCode::TOO_LARGE);
                assert!(refused.message.contains("4194304") && refused.message.contains("4194305"), "{}", refused.message);
            }
            assert_eq!(refusal(gateway.put_message_with_pid("q".into(), 4, to_put("t", "v"))).code, TErrorCode::INVALID);
            assert_eq!(refusal(gateway.put_message("none".into(), to_put("t", "v"))).code, TErrorCode::NOT_FOUND);
            assert_eq!(refusal(gateway.message_scanner_open("q".into(), 9, everything())).code, TErrorCode::INVALID);
            assert_eq!(refusal(gateway.message_scanner_get(77)).code, TErrorCode::NOT_FOUND);
        }
    }
    assert!(cluster.scan_all("q", PARTITIONS).is_empty(), "nothing was stored of what was refused");
}

/// Each command is given to one broker, and its effect is looked for at the other.
#[test]
fn administration() {
    let cluster = Cluster::start(2);
    let [one, two] = &cluster.brokers[..] else { panic!("two brokers") };
    let configuration = BTreeMap::from([("hbase.x".to_owned(), "7".to_owned())]);
    one.admin().create_queue(TQueueSpec { configuration: Some(configuration), ..queue_spec("q", 4, 60) }).unwrap();
    let description = two.admin().describe_queue("q".into()).unwrap();
    assert_eq!((description.partitions, description.ttl_seconds), (Some(4), Some(60)));
    assert_eq!(description.configuration.unwrap()["hbase.x"], "7");
    assert_eq!(refusal(two.admin().create_queue(queue_spec("q", 1, 1))).code, TErrorCode::EXISTS);
    let consumer = Consumer::start();
    let spec = TSubscriberSpec {
        name: Some("s".into()),
        addresses: Some(vec![consumer.address()]),
        start_position: Some("earliest".to_owned()),
        ..TSubscriberSpec::default()
    };
    two.admin().add_subscriber("q".into(), spec.clone()).unwrap();
    assert_eq!(refusal(one.admin().add_subscriber("q".into(), spec)).code, TErrorCode::EXISTS);
    for p in 0..4 {
        one.put("q", p, &[format!("m{p}")]);
    }
    wait("all partitions are pushed", PATIENCE, || consumer.count() == 4);
    for broker in &cluster.brokers {
        broker.wait_for_no_lag("q", "s");
        let status = broker.subscription("q", "s");
        assert_eq!((status.state(), status.delivered()), ("active", 4), "the status gathers from all owners");
        assert_eq!(status.0.checkpoints.as_ref().map(Vec::len), Some(4));
        let partitions = broker.status("q").partitions.unwrap();
        assert!(partitions.iter().all(|p| p.state.as_deref() == Some("online") && p.messages == Some(1)), "{partitions:?}");
    }
    disabled_and_truncated(&cluster, &consumer);
    two.admin().delete_subscriber("q".into(), "s".into()).unwrap();
    wait("it is gone everywhere", PATIENCE, || one.status("q").subscriptions.unwrap().is_empty());
    assert_eq!(refusal(one.admin().delete_subscriber("q".into(), "s".into())).code, TErrorCode::NOT_FOUND);
    assert_eq!(refusal(two.admin().drop_queue("q".into())).code, TErrorCode::WRONG_STATE);
    one.admin().disable_queue("q".into()).unwrap();
    wait("the other knows", PATIENCE, || two.status("q").state.as_deref() == Some("disabled"));
    two.admin().drop_queue("q".into()).unwrap();
    assert!(cluster.hand.get("/queues/q").is_none(), "when drop returns, its nodes are gone");
    wait("the first does not list it", PATIENCE, || one.admin().list_queues().unwrap().is_empty());
}

fn disabled_and_truncated(cluster: &Cluster, consumer: &Consumer) {
    let [one, two] = &cluster.brokers[..] else { panic!("two brokers") };
    two.admin().disable_queue("q".into()).unwrap();
    for p in 0..4 {
        wait("both refuse puts", PATIENCE, || {
            let refused = one.gateway().put_message_with_pid("q".into(), p, to_put("t", "no"));
            matches!(refused, Err(thrift::Error::User(_)))
        });
        assert_eq!(two.scan("q", p).len(), one.scan("q", p).len(), "scans go on");
    }
    one.admin().enable_queue("q".into()).unwrap();
    wait("both take puts again", PATIENCE, || {
        (0..4)
            .all(|p| cluster.brokers.iter().all(|b| b.gateway().put_message_with_pid("q".into(), p, to_put("t", "yes")).is_ok()))
    });
    one.wait_for_no_lag("q", "s");
    let before = consumer.count();
    two.admin().truncate_queue("q".into()).unwrap();
    assert!(cluster.scan_all("q", 4).is_empty(), "nothing is left in any partition");
    for p in 0..4 {
        one.put("q", p, &["behind"]);
    }
    wait("subscribers go on behind it", PATIENCE, || consumer.count() == before + 4);
}

/// A subscriber that announces itself to one broker is called by all owners; any broker renews and ends its registration.
#[test]
fn registrations() {
    let cluster = Cluster::start(2);
    let [one, two] = &cluster.brokers[..] else { panic!("two brokers") };
    one.create("q", PARTITIONS.into());
    let consumer = Consumer::start();
    let id = two.gateway().subscribe("q".into(), registration("s", &consumer.address())).unwrap().registration_i_d.unwrap();
    for p in 0..PARTITIONS {
        one.put("q", p, &["a"]);
    }
    wait("all owners push to it", PATIENCE, || consumer.count() == 4);
    one.gateway().renew(id).unwrap();
    one.gateway().unsubscribe(id).unwrap();
    assert_eq!(refusal(two.gateway().renew(id)).code, TErrorCode::NOT_FOUND);
    let left = consumer.call_count();
    for p in 0..PARTITIONS {
        two.put("q", p, &["b"]);
    }
    wait("what waits is counted", PATIENCE, || one.subscription("q", "s").lag() == 4);
    assert_eq!(consumer.call_count(), left, "who has left is not called");
    assert_eq!(one.subscription("q", "s").state(), "waiting");
}
