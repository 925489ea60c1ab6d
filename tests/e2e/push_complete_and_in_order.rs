//! What is put is pushed: all of it, once while nothing fails, in order within a partition.

use hqueue_protocol::generated::{THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TSubscriberSpec};
use hqueue_tests::gateway::put_for_ids;
use hqueue_tests::message::to_put;
use hqueue_tests::order::{by_partition, check_order};
use hqueue_tests::text::files_of_lines;
use hqueue_tests::{Broker, Consumer, Dialect, PATIENCE, wait};

#[test]
fn real_text_arrives_line_by_line() {
    let broker = Broker::start();
    broker.create("sources", 4);
    let consumer = Consumer::start();
    broker.subscribe("sources", "reader", &consumer.address(), &[]);
    let mut partitions: Vec<Vec<String>> = vec![Vec::new(); 4];
    for (n, lines) in files_of_lines().into_iter().enumerate() {
        let partition = n % 4;
        for batch in lines.chunks(500) {
            broker.put("sources", partition as i16, batch);
        }
        partitions[partition].extend(lines);
    }
    let total: usize = partitions.iter().map(Vec::len).sum();
    assert!(partitions.iter().flatten().any(String::is_empty), "blank lines are lines");
    wait("every line is pushed", PATIENCE * 2, || consumer.count() >= total);
    broker.wait_for_no_lag("sources", "reader");
    let accepted = consumer.accepted();
    assert_eq!(check_order(&accepted), 0, "nothing comes twice while nothing fails");
    for (partition, came) in by_partition(&accepted) {
        let came: Vec<&str> = came.iter().map(|m| m.text()).collect();
        assert!(came == partitions[partition as usize], "partition {partition}: complete and in order");
    }
}

#[test]
fn every_dialect_of_the_stock_library_is_served() {
    let broker = Broker::start();
    broker.create("q", 2);
    let consumers: Vec<Consumer> = Dialect::ALL.into_iter().map(Consumer::speaking).collect();
    for (n, consumer) in consumers.iter().enumerate() {
        broker.subscribe("q", &format!("s{n}"), &consumer.address(), &[]);
    }
    let values: Vec<Vec<u8>> = vec![b"".to_vec(), (0..=255).collect(), vec![0xff; 100_000], "héllo ✓".as_bytes().to_vec()];
    for dialect in Dialect::ALL {
        let mut gateway = broker.try_gateway(dialect).unwrap();
        let messages = values.iter().map(|v| to_put([0, 0xfe], v.clone())).collect();
        gateway.put_messages_with_pid("q".into(), 1, messages).unwrap();
    }
    for (n, consumer) in consumers.iter().enumerate() {
        wait("all are pushed", PATIENCE, || consumer.count() >= 16);
        let accepted = consumer.accepted();
        assert_eq!(check_order(&accepted), 0);
        for (message, value) in accepted.iter().zip(values.iter().cycle()) {
            assert!(message.topic == [0, 0xfe] && message.value == *value, "{:?}: {}", Dialect::ALL[n], message.id);
        }
    }
}

/// A batch goes to one partition as a whole; consumers see the ids that the putter got.
#[test]
fn ids_are_those_that_the_putter_got() {
    let broker = Broker::start();
    broker.create("q", 8);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let mut gateway = broker.gateway();
    let mut put = Vec::new();
    for batch in 0..40 {
        let messages = (0..5).map(|n| to_put("t", format!("{batch}.{n}"))).collect();
        let (partition, ids) = put_for_ids(&mut gateway, "q", -1, messages).unwrap();
        put.extend(ids.into_iter().enumerate().map(|(n, id)| (partition, id, format!("{batch}.{n}"))));
    }
    wait("all are pushed", PATIENCE, || consumer.count() >= put.len());
    let accepted = consumer.accepted();
    check_order(&accepted);
    let mut came: Vec<_> = accepted.iter().map(|m| (m.partition, m.id, m.text().to_owned())).collect();
    came.sort();
    put.sort();
    assert_eq!(came, put);
    assert!(by_partition(&accepted).len() > 3, "puts without a partition are spread");
}

/// Puts of many connections at once: the order of a partition is that of its ids, for the scan and for the push.
#[test]
fn concurrent_puts_have_one_order() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    std::thread::scope(|scope| {
        for putter in 0..8 {
            let mut gateway = broker.gateway();
            scope.spawn(move || {
                for n in 0..100 {
                    gateway.put_message_with_pid("q".into(), 0, to_put("t", format!("{putter} {n}"))).unwrap();
                }
            });
        }
    });
    wait("all are pushed", PATIENCE, || consumer.count() >= 800);
    let accepted = consumer.accepted();
    assert_eq!(check_order(&accepted), 0);
    assert!(broker.scan("q", 0) == accepted, "the push has the order of the scan");
    for putter in 0..8 {
        let own: Vec<&str> = accepted.iter().map(|m| m.text()).filter(|t| t.starts_with(&format!("{putter} "))).collect();
        let sent: Vec<String> = (0..100).map(|n| format!("{putter} {n}")).collect();
        assert!(own == sent, "what one putter sent one after the other stays so");
    }
}

/// Behind a restart nothing is in memory. While a call is under way whoever is next in its endpoint's line reads already, and may get its
/// turn at the other endpoint meanwhile.
#[test]
fn a_backlog_on_the_disk_arrives_whole_over_one_connection_and_over_two() {
    const PARTITIONS: i16 = 8;
    let mut broker = Broker::start();
    broker.create("q", PARTITIONS.into());
    let filler = "x".repeat(20_000);
    for round in 0..10 {
        for partition in 0..PARTITIONS {
            let values: Vec<_> = (0..20).map(|n| format!("{} {filler}", round * 20 + n)).collect();
            broker.put("q", partition, &values);
        }
    }
    broker.stop();
    broker.restart();
    let total = usize::from(PARTITIONS.unsigned_abs()) * 200;
    let (alone, pair) = (Consumer::start(), [Consumer::start(), Consumer::start()]);
    let options = Some([("batch-bytes".to_owned(), "300000".to_owned())].into());
    let addresses: Vec<_> = pair.iter().map(Consumer::address).collect();
    let spec = TSubscriberSpec::new(b"pair".to_vec(), addresses, Vec::new(), Vec::new(), "earliest".to_owned(), options);
    broker.admin().add_subscriber("q".into(), spec).unwrap();
    broker.subscribe("q", "alone", &alone.address(), &[("batch-bytes", "300000")]);
    for subscription in ["alone", "pair"] {
        broker.wait_for_no_lag("q", subscription);
    }
    assert!(broker.metrics().sum("hqueue_disk_read_bytes_total", &[]) > 30e6, "it was read from the disk");
    let of_pair: Vec<_> = pair.iter().map(Consumer::accepted).collect();
    assert!(of_pair.iter().all(|accepted| !accepted.is_empty()), "both were called");
    for accepted in of_pair.iter().chain([&alone.accepted()]) {
        assert_eq!(check_order(accepted), 0, "nothing comes twice");
    }
    assert_eq!((alone.count(), pair.iter().map(Consumer::count).sum::<usize>()), (total, total));
    for (partition, came) in by_partition(&alone.accepted()) {
        let numbers = came.iter().map(|m| m.text().split_once(' ').unwrap().0.parse::<usize>().unwrap());
        assert!(numbers.eq(0..200), "partition {partition}: complete and in order");
    }
}
