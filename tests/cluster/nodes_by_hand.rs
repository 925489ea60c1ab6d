//! A person edits, damages and deletes other nodes in ZooKeeper.

use std::time::Duration;

use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient};
use hqueue_tests::message::to_put;
use hqueue_tests::{Cluster, Consumer, Gateway, PATIENCE, Registered, refusal, wait, wait_for};

fn put(gateway: &mut Gateway, topic: &str, value: &str) {
    gateway.put_message_with_pid("q".into(), 0, to_put(topic, value)).unwrap();
}

#[test]
fn topics() {
    let cluster = Cluster::start(1);
    let broker = &cluster.brokers[0];
    broker.create("q", 1);
    let consumer = Consumer::start();
    cluster.hand.register(Registered { topics: &["a"], ..Registered::new("q", 1, "s", &consumer.address()) });
    let mut gateway = broker.gateway();
    put(&mut gateway, "a", "a1");
    put(&mut gateway, "b", "b1");
    wait("the wanted one comes", PATIENCE, || consumer.has("a1"));
    broker.wait_for_no_lag("q", "s");
    let node = "/queues/q/0/s/topics";
    let lag = || broker.subscription("q", "s").lag();
    cluster.hand.set(node, r#"["b", "c"]"#);
    wait("it is seen", PATIENCE, || {
        put(&mut gateway, "b", "b2");
        consumer.has("b2")
    });
    put(&mut gateway, "a", "a2");
    broker.wait_for_no_lag("q", "s");
    cluster.hand.set(node, "a, b");
    wait("it cannot be read", PATIENCE, || broker.subscription("q", "s").last_error().contains(node));
    assert_eq!(broker.subscription("q", "s").state(), "broken");
    put(&mut gateway, "b", "b3");
    wait("it waits", PATIENCE, || lag() == 1);
    cluster.hand.set(node, "[]");
    wait("all topics", PATIENCE, || consumer.has("b3"));
    put(&mut gateway, "z", "z1");
    wait("really all", PATIENCE, || consumer.has("z1"));
    cluster.hand.set(node, r#"["a"]"#);
    wait("fewer again", PATIENCE, || {
        put(&mut gateway, "y", "y1");
        put(&mut gateway, "a", "mark");
        let calls = consumer.calls();
        calls.last().is_some_and(|c| c.messages.iter().all(|m| m.text() == "mark"))
    });
    broker.wait_for_no_lag("q", "s");
    consumer.forget();
    cluster.hand.delete(node);
    wait("no node, all topics", PATIENCE, || {
        put(&mut gateway, "x", "x1");
        consumer.has("x1")
    });
    assert!(!consumer.has("a2") && !consumer.has("b1"));
}

#[test]
fn addresses() {
    let cluster = Cluster::start(1);
    let broker = &cluster.brokers[0];
    broker.create("q", 1);
    let (first, second) = (Consumer::start(), Consumer::start());
    cluster.register("q", 1, "s", &first.address());
    broker.put("q", 0, &["1"]);
    wait("the first has it", PATIENCE, || first.has("1"));
    let node = "/queues/q/0/s/address";
    for (damage, why) in [("nowhere", "nowhere"), ("127.0.0.1:0", "127.0.0.1:0"), ("{", "cannot be read"), ("", "address")] {
        cluster.hand.set(node, damage);
        wait("it is broken", PATIENCE, || {
            let status = broker.subscription("q", "s");
            status.state() == "broken" && status.last_error().contains(node) && status.last_error().contains(why)
        });
    }
    broker.put("q", 0, &["2"]);
    let json =
        format!(r#"{{"address": "{}", "transport": "buffered", "protocol": "binary", "connections": 2}}"#, second.address());
    cluster.hand.set(node, json);
    wait("the second has the next", PATIENCE, || second.has("2"));
    assert_eq!((first.count(), second.count()), (1, 1));
    assert_eq!(broker.subscription("q", "s").endpoints(), [second.address()]);
}

/// Options: made by hand, edited, damaged, repaired; also the partitions and the endpoints in them.
#[test]
fn options() {
    let cluster = Cluster::start(2);
    let broker = &cluster.brokers[0];
    broker.create("q", 2);
    let (consumer, second) = (Consumer::start(), Consumer::start());
    broker.subscribe("q", "s", &consumer.address(), &[]);
    let node = "/queues/q/subscribers/s";
    let written = cluster.hand.json(node);
    let edit = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = written.clone();
        change(&mut value);
        cluster.hand.set(node, value.to_string());
    };
    edit(&|v| v["options"]["batch-messages"] = 1.into());
    wait("batches of one", PATIENCE, || {
        consumer.forget();
        for p in 0..2 {
            broker.put("q", p, &["a", "b", "c", "d"]);
        }
        wait("they come", PATIENCE, || consumer.count() == 8);
        consumer.calls().iter().all(|c| c.messages.len() == 1)
    });
    edit(&|v| v["partitions"] = serde_json::json!([1]));
    let checkpoints =
        || broker.subscription("q", "s").0.checkpoints.unwrap().iter().filter_map(|c| c.partition).collect::<Vec<_>>();
    // The checkpoint of partition 0 stays and is that of somebody who may come back for it.
    wait("partition 1 is wanted", PATIENCE, || checkpoints().contains(&1));
    edit(&|v| v["addresses"] = serde_json::json!([second.address()]));
    wait("the new endpoint is called", PATIENCE, || {
        broker.put("q", 1, &["new"]);
        second.has("new")
    });
    wait("the old one is not", PATIENCE, || broker.subscription("q", "s").endpoints() == [second.address()]);
    for (damage, why) in [("{", "options"), (r#"{"partitions": [7]}"#, "partition 7")] {
        cluster.hand.set(node, damage);
        wait("it is broken", PATIENCE, || {
            let status = broker.subscription("q", "s");
            status.state() == "broken" && status.last_error().contains(node) && status.last_error().contains(why)
        });
    }
    let calls = second.call_count();
    let id = broker.put("q", 1, &["held"])[0];
    assert!(broker.scan("q", 1).iter().any(|m| m.id == id), "puts go on");
    assert_eq!(second.call_count(), calls, "nobody knows where to");
    edit(&|v| v["addresses"] = serde_json::json!([second.address()]));
    wait("repaired, it goes on", PATIENCE, || second.has("held"));
}

/// A queue's node is damaged: whoever serves the queue goes on; a broker that starts then serves the others, says why not this one,
/// and takes it up when the node is repaired.
#[test]
fn a_queue() {
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    cluster.brokers[0].create("sound", 2);
    let consumer = Consumer::start();
    cluster.register("q", 2, "s", &consumer.address());
    wait("the subscriber is known", PATIENCE, || {
        let status = cluster.brokers[0].status("q").subscriptions.unwrap();
        status.iter().any(|s| s.checkpoints.as_ref().is_some_and(|c| c.len() == 2))
    });
    let node = "/queues/q";
    let written = cluster.hand.text(node);
    cluster.hand.set(node, "{");
    wait("both say it", PATIENCE, || cluster.brokers.iter().all(|b| b.log().contains("/queues/q cannot be read")));
    for p in 0..2 {
        cluster.brokers[0].put("q", p, &["on"]);
    }
    wait("pushes go on", PATIENCE, || consumer.count() == 2);
    let other = 1 - usize::from(cluster.assigned("q")[0] == 0);
    let partition = cluster.partition_of("q", other);
    cluster.brokers[other].kill();
    cluster.brokers[other].restart();
    let broker = &cluster.brokers[other];
    for p in 0..2 {
        wait("sound queues are served", PATIENCE, || {
            broker.gateway().put_message_with_pid("sound".into(), p, to_put("t", "v")).is_ok()
        });
    }
    let refused = refusal(broker.gateway().put_message_with_pid("q".into(), partition, to_put("t", "v")));
    assert!(refused.message.contains("cannot be read"), "{refused:?}");
    cluster.hand.set(node, written.replace("enabled", "disabled"));
    wait("a state that was written by hand counts", PATIENCE, || {
        cluster.brokers.iter().all(|b| {
            let put = b.gateway().put_message_with_pid("q".into(), 0, to_put("t", "v"));
            matches!(put, Err(thrift::Error::User(_))) && refusal(put).code == TErrorCode::WRONG_STATE
        })
    });
    cluster.hand.set(node, &written);
    for p in 0..2 {
        wait("repaired, it is served by all", PATIENCE, || {
            cluster.brokers.iter().all(|b| b.gateway().put_message_with_pid("q".into(), p, to_put("t", "v")).is_ok())
        });
    }
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!(cluster.scan_all("q", 2).iter().filter(|m| m.text() == "on").count(), 2, "nothing was lost");
}

#[test]
fn an_assignment() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    let node = "/queues/q/assignment";
    let written = cluster.hand.text(node);
    for damage in ["{", r#"{"brokers": {"nobody": "0-9"}}"#] {
        cluster.hand.set(node, damage);
        wait("both say it", PATIENCE, || cluster.brokers.iter().all(|b| b.log().contains("/queues/q/assignment cannot be read")));
        for broker in &cluster.brokers {
            for p in 0..2 {
                broker.put("q", p, &["on"]);
            }
        }
    }
    cluster.hand.set(node, written);
    cluster.brokers[1].put("q", 0, &["on"]);
}

/// Owner nodes and a broker's node are deleted: they are back at once, of the same sessions.
#[test]
fn owners_and_brokers_are_deleted() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 4);
    let consumer = Consumer::start();
    cluster.register("q", 4, "s", &consumer.address());
    let hand = &cluster.hand;
    let owner = |p: i16| format!("/queues/q/{p}/owner");
    for p in 0..4 {
        let before = hand.json(&owner(p));
        let session = cluster.owner_session("q", p);
        hand.delete(&owner(p));
        let epoch = |value: &serde_json::Value| value["epoch"].as_i64().unwrap();
        let after = wait_for("it is claimed again, with a higher epoch", PATIENCE, || {
            let node = hand.get(&owner(p))?;
            let value = serde_json::from_slice(&node.payload).unwrap();
            (epoch(&value) > epoch(&before)).then_some(value)
        });
        assert_eq!((&after["broker"], cluster.owner_session("q", p)), (&before["broker"], session));
        cluster.brokers[1].put("q", p, &["a"]);
    }
    wait("pushes go on", PATIENCE, || consumer.count() == 4);
    for n in 0..2 {
        let node = format!("/brokers/{}", cluster.name(n));
        let before = hand.get(&node).unwrap();
        hand.delete(&node);
        wait("it is registered again", PATIENCE, || hand.get(&node).is_some_and(|n| n.owner_session == before.owner_session));
    }
    cluster.wait_until_complete();
    for broker in &cluster.brokers {
        for p in 0..4 {
            broker.put("q", p, &["b"]);
        }
    }
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 12);
}

/// All candidates are deleted: there is a balancer again.
#[test]
fn candidates_are_deleted() {
    let cluster = Cluster::start(2);
    for name in cluster.hand.children("/balancer") {
        cluster.hand.delete(&format!("/balancer/{name}"));
    }
    cluster.brokers[0].create("q", 2);
    assert_eq!(cluster.hand.children("/balancer").len(), 2);
}

/// A queue's nodes are deleted as a whole: it is served no more, its messages are kept, and that is said.
#[test]
fn a_queue_is_deleted() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    cluster.brokers[0].create("sound", 2);
    for p in 0..2 {
        cluster.brokers[0].put("q", p, &["a"]);
    }
    // Owners put their nodes back while they are deleted, so this takes more than one go.
    wait("it is deleted", PATIENCE, || {
        let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cluster.hand.delete_tree("/queues/q")));
        gone.is_ok() && cluster.hand.get("/queues/q").is_none()
    });
    for broker in &cluster.brokers {
        wait("it is unknown", Duration::from_secs(10), || {
            matches!(broker.gateway().put_message("q".into(), to_put("t", "v")), Err(thrift::Error::User(_)))
        });
        wait("that is said", PATIENCE, || broker.log().contains("its node is gone although nobody dropped it"));
        assert!(broker.data().join("queues/q").exists(), "its messages are kept");
        broker.put("sound", 1, &["on"]);
    }
    assert!(cluster.hand.get("/queues/q").is_none(), "nobody puts it back");
    let names = cluster.brokers[0].admin().list_queues().unwrap();
    assert_eq!(names.len(), 1);
}
