//! Who shares an endpoint has a fair part of it, and a partition is at one endpoint at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use hqueue_protocol::generated::THQueueServiceSyncClient;
use hqueue_tests::gateway::registration;
use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, wait};

fn numbers(n: usize) -> Vec<String> {
    (0..n).map(|n| n.to_string()).collect()
}

/// As long as all have something, no partition has more than its turns.
#[test]
fn partitions_take_turns() {
    const PARTITIONS: i16 = 8;
    let broker = Broker::start();
    broker.create("q", PARTITIONS.into());
    // One has far more than the others.
    for partition in 0..PARTITIONS {
        broker.put("q", partition, &numbers(if partition == 3 { 3000 } else { 200 }));
    }
    let consumer = Consumer::answering(|_| Answer::Slow(Duration::from_millis(1), 0));
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "10")]);
    wait("all but one are done", PATIENCE, || consumer.count() >= 8 * 200);
    let mut turns: BTreeMap<i16, usize> = (0..PARTITIONS).map(|p| (p, 0)).collect();
    for call in consumer.calls().iter().filter(|call| !call.messages.is_empty()).take(8 * 20) {
        *turns.get_mut(&call.messages[0].partition).expect("a partition of the queue") += 1;
        let (least, most) = (turns.values().min().expect("some"), turns.values().max().expect("some"));
        assert!(most - least <= 2, "{turns:?}");
    }
}

/// Two subscriptions that name the same endpoint: the backlog of one is not in the way of the other.
#[test]
fn a_backlog_is_in_nobody_elses_way() {
    let broker = Broker::start();
    for queue in ["much", "little"] {
        broker.create(queue, 1);
    }
    broker.put("much", 0, &numbers(5000));
    let consumer = Consumer::answering(|_| Answer::Slow(Duration::from_millis(3), 0));
    broker.subscribe("much", "s", &consumer.address(), &[("batch-messages", "5")]);
    wait("it is busy", PATIENCE, || consumer.count() > 50);
    broker.subscribe("little", "s", &consumer.address(), &[("batch-messages", "5")]);
    broker.put("little", 0, &["small"]);
    wait("the other is served", PATIENCE, || consumer.has("small"));
    assert!(broker.subscription("much", "s").lag() > 0, "long before the backlog is done");
}

/// A second process of the name comes while a call is under way at the first: what moves to it moves when that call has ended.
#[test]
fn a_partition_moves_when_its_call_has_ended() {
    let broker = Broker::start();
    // Half of the partitions move to the second: the same ones in each queue.
    let (first, second) = (Consumer::start(), Consumer::start());
    let mut moved = 0;
    for partition in 0..4 {
        let queue = format!("q{partition}");
        broker.create(&queue, 4);
        first.answer_with(|_| Answer::Hang);
        [&first, &second].iter().for_each(|consumer| consumer.forget());
        let mut gateway = broker.gateway();
        let mut registered = Vec::new();
        let mut subscribe = |consumer: &Consumer| {
            let done =
                broker.gateway().subscribe(queue.clone().into(), registration("s", &consumer.address())).expect("it is taken");
            registered.push(done.registration_i_d.expect("an id"));
        };
        subscribe(&first);
        broker.put(&queue, partition, &["a", "b"]);
        wait("its call hangs", PATIENCE, || first.call_count() == 1);
        subscribe(&second);
        let mut live = || registered.iter().for_each(|id| gateway.renew(*id).expect("it is renewed"));
        // Those without a call move at once.
        for other in (0..4).filter(|other| *other != partition) {
            broker.put(&queue, other, &["other"]);
        }
        broker.put(&queue, partition, &["c"]);
        wait("the second is called", PATIENCE, || {
            live();
            second.call_count() > 0
        });
        let is_its =
            |consumer: &Consumer| consumer.calls().iter().flat_map(|c| c.messages.clone()).any(|m| m.partition == partition);
        assert!(!is_its(&second), "a call for partition {partition} is under way at the first");
        first.answer_all();
        wait("all is done", PATIENCE, || {
            live();
            broker.subscription(&queue, "s").lag() == 0
        });
        let mut all = first.accepted();
        all.extend(second.accepted());
        all.retain(|message| message.partition == partition);
        assert_eq!(check_order(&all), 0, "each once, in order");
        assert_eq!(all.len(), 3);
        moved += usize::from(is_its(&second));
    }
    assert_eq!(moved, 2, "half of the partitions move");
}
